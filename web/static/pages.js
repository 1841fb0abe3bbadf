// Rows for the window on a conversation: from the database where they are here, else page by page from the server. Rows of two parts of a
// conversation (spans.js) never stand side by side: what lies between them would be missing.

import { spanOf } from "./spans.js";

// Rows taken from the database at once.
const PAGE = 60;
// Pages of history that are fetched at once, to have something to show: one may hold reactions alone.
const MOST_PAGES = 5;
// How long the server may take to send what a conversation opens with, where something can be shown meanwhile.
const PATIENCE_MS = 2_000;

export class Pages {
  /** `inOrder(view, job)`, `isOpen(view)` and `draw(view)` are the pane's. */
  constructor(store, log, { inOrder, isOpen, draw }) { Object.assign(this, { store, log, inOrder, isOpen, draw }); }

  /** What is known of the conversation. */
  known({ id }) { return { floor: this.store.base, read_to: 0, unread: 0, ...this.store.conversations.get(id) }; }

  /** Rows of one part of it ([from, to]). */
  async page(view, [from, to], { before = Infinity, after = 0, ...where }) {
    const ids = { after: Math.max(after, from - 1), before: Math.min(before, to + 1) };
    return ids.after < ids.before ? this.store.db.page(view.id, { limit: PAGE, ...where, ...ids }) : [];
  }

  /** The part in which the row `id` of the window stands; the one at the end, where the window is empty. */
  partOf(view, id) {
    const known = this.known(view);
    return (view.rows.length && spanOf(known, id)) || [known.floor, Infinity];
  }

  /** Whether nothing stands above the window. */
  async isWhole(view) {
    const part = this.partOf(view, view.first);
    return part[0] === 0 && !(await this.page(view, part, { before: view.first || Infinity, limit: 1 })).length;
  }

  /**
   * Fetches what lies around a row, or at the end (`Infinity`), if it is not here; false: it does not come, or not soon, where something
   * can be shown meanwhile.
   */
  async fetchAround(view, message_id) {
    const known = this.known(view);
    const isEnd = message_id === Infinity;
    if (!isEnd && spanOf(known, message_id)) return true;
    const [some] = await this.page(view, [known.floor, Infinity], { limit: 1 });
    if (isEnd && (some || known.floor === 0)) return true;
    const { history } = this.store;
    const fetched = (isEnd ? history.older(view.id) : history.around(view.id, message_id)).then(() => true, () => false);
    if (!some) return fetched;
    fetched.then(() => this.near(view));
    return Promise.race([fetched, new Promise((resolve) => { setTimeout(resolve, PATIENCE_MS, false); })]);
  }

  /** Fills the window with what lies around a row; `Infinity`: with the newest. `waiting`: what is in the outbox. */
  async fill(view, message_id, waiting) {
    const known = this.known(view);
    const part = spanOf(known, message_id) ?? [known.floor, Infinity];
    const isEnd = message_id === Infinity;
    const below = isEnd ? [] : await this.page(view, part, { after: message_id - 1, forward: true });
    const above = await this.page(view, part, { before: message_id, limit: isEnd ? PAGE : PAGE / 2 });
    view.waiting = waiting;
    view.fill([...above, ...below], isEnd || (below.length < PAGE && part[1] === Infinity));
  }

  /** Takes in what lies beyond an edge of the window that is near. */
  near(view) {
    if (!this.isOpen(view)) return;
    const { history } = this.store;
    if (this.log.isNearTop() && !view.isWhole) this.turn(view, () => this.above(view), ([from]) => history.older(view.id, from));
    else if (this.log.isNearEnd() && !view.atTail) this.turn(view, () => this.below(view), ([, to]) => history.newer(view.id, to));
  }

  /** `take` takes rows in from the database, or answers the part beyond which the server has to be asked; nothing else waits for that. */
  async turn(view, take, fetch) {
    if (view.isTurning) return;
    view.isTurning = true;
    const { first, last } = view;
    try {
      for (let page = 0; page < MOST_PAGES; page++) {
        const part = await this.inOrder(view, take);
        if (!part || !this.isOpen(view)) break;
        await fetch(part);
        view.hasFailed = false;
      }
    } catch {
      // Whoever scrolls on asks again.
      return;
    } finally {
      view.isTurning = false;
    }
    if (first !== view.first || last !== view.last) this.near(view);
  }

  async above(view) {
    const part = this.partOf(view, view.first);
    const rows = await this.page(view, part, { before: view.first || Infinity });
    view.above(rows, this.log.readId);
    await this.draw(view);
    return rows.length || part[0] === 0 ? null : part;
  }

  async below(view) {
    const part = this.partOf(view, view.last);
    const rows = await this.page(view, part, { after: view.last, forward: true });
    const isTail = part[1] === Infinity;
    view.below(rows, isTail && rows.length < PAGE, this.log.readId);
    await this.draw(view);
    return rows.length || isTail ? null : part;
  }
}
