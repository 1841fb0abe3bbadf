// The conversation pane: opens a conversation, keeps the window on it (window.js) in step with the database, fetches what somebody
// scrolls or is led to, and has it drawn (log.js, header.js).

import { $ } from "./dom.js";
import { showAbout, showHeader } from "./header.js";
import { Log } from "./log.js";
import { treeOf, withFiles, words } from "./markdown.js";
import { Pages } from "./pages.js";
import { Reader } from "./reader.js";
import { nameOf, shown } from "./state.js";
import { many } from "./store.js";
import { t } from "./texts.js";
import { isTouch } from "./touch.js";
import { MOST, Window, ofOthers } from "./window.js";

// The longest wait for a frame.
const FRAME_MS = 50;
// How long what was announced, or could not be done, stays in the document.
const HEARD_MS = 10_000;
/** Kept after the next frame; a page that nobody sees has none. */
const painted = () => document.hidden ? null : new Promise((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve));
  setTimeout(resolve, FRAME_MS);
});

export class Pane {
  /** `acts`: what the buttons of a message do (rows.js); `placed(place)`: somebody rests there (log.js); null: at the end. */
  constructor(store, acts, placed) {
    this.store = store;
    // The window on the open conversation. Whatever was begun for an earlier one is let go.
    this.view = null;
    // The id up to which rows are stored, and whether there is a connection.
    this.settled = 0;
    this.phase = null;
    this.log = new Log(acts, () => this.scrolled());
    this.reader = new Reader(store, this.log, placed);
    this.pages = new Pages(store, this.log, {
      inOrder: (view, job) => this.inOrder(view, job), isOpen: (view) => view === this.view && view.isOpen, draw: (view) => this.draw(view),
    });
    $("jump").addEventListener("click", () => this.toNewest().then(() => isTouch() || $("text").focus()));
    for (const event of ["focus", "visibilitychange"]) addEventListener(event, () => this.reader.look(this.view), true);
    addEventListener("pagehide", () => this.reader.leave(this.view));
    store.watch((ids) => {
      if (!ids) this.showAnew();
      // What is set for all conversations changes under one's own.
      else if (ids.some((id) => id === this.id || id === null || id === `u:${store.self.uid}`)) this.renew();
    });
  }

  /** The message of this row as it is shown, if it is. */
  message(id) { return this.view?.items(this.store).find(({ row }) => row?.message_id === id)?.row; }

  /** The id of the open conversation; null: none is open. */
  get id() { return this.view?.id ?? null; }

  /** What sync tells: how far rows are stored, and whether there is a connection. */
  told({ cursor, phase }) {
    this.settled = cursor;
    const isBack = phase === "open" && this.phase !== "open";
    this.phase = phase;
    if (isBack && this.view) this.pages.near(this.view);
  }

  /** Jobs on one window run one after the other; those on one that is not open any more are left out. */
  inOrder(view, job) {
    view.work = view.work.then(() => (view === this.view ? job() : undefined)).catch((problem) => console.error(problem));
    return view.work;
  }

  /** Something has changed. A refresh that has not begun yet sees it, too. */
  renew() {
    const { view } = this;
    if (!view || view.isRenewing) return;
    view.isRenewing = true;
    this.inOrder(view, () => {
      view.isRenewing = false;
      return this.refresh(view);
    });
  }

  /**
   * Opens a conversation: at once its header and an empty log, then what is here, or comes. `at`: {message_id} or {sender, client_id} of a
   * message, or {place} of log.js; else it opens where somebody was, at the first unread row, or at the end.
   */
  show(id, at = null) {
    this.reader.leave(this.view);
    this.open(id, at, null);
  }

  /** The data begin anew, and ids may mean other rows; what was new is new still. */
  showAnew() {
    this.reader.forget();
    const { isOpen = true, at, freshAfter = null } = this.view ?? {};
    this.open(this.id, isOpen ? null : at, freshAfter);
  }

  open(id, at, freshAfter) {
    this.view = id ? new Window(id, freshAfter) : null;
    this.log.clear();
    this.showJump();
    if (!id) return;
    showHeader(this.store, id);
    this.start(this.view, at).catch((problem) => console.error(problem));
  }

  /** Where somebody is in the open conversation (log.js); null: at its end. */
  place() { return this.view?.isOpen ? this.reader.place(this.view) : null; }

  about() { if (this.id) showAbout(this.store, this.id); }

  /** The pins are shown when they are known; the messages come first. */
  learnPins() { this.store.learnPins(this.id).catch(() => {}); }

  async start(view, at) {
    view.at = at;
    // A new browser shows something when it knows what there is.
    if (!(await this.store.db.position()).history || view !== this.view) return;
    if (view.id.startsWith("g:")) this.store.meet(view.id);
    if (at && !at.place && await this.lead(at)) return;
    const { unread, read_to, place: kept } = this.pages.known(view);
    if (unread) view.freshAfter = read_to;
    const place = at?.place ?? this.reader.placeIn(view.id, kept);
    const wanted = place?.id ?? (unread ? read_to + 1 : Infinity);
    const isHere = await this.pages.fetchAround(view, wanted);
    await this.inOrder(view, async () => {
      // Somebody has gone to the end meanwhile.
      if (view.isOpen) return;
      const from = isHere ? wanted : unread ? Math.max(read_to + 1, this.pages.known(view).floor) : Infinity;
      await this.pages.fill(view, from, this.outgoing(view));
      view.hasFailed = !isHere && !view.rows.length;
      await this.draw(view, { toEnd: true });
      if (isHere && place) this.log.goTo(place);
      else if (unread) this.log.toFresh();
      this.opened(view);
    });
  }

  opened(view) {
    if (view !== this.view) return;
    if (!view.isOpen) this.learnPins();
    view.isOpen = true;
    this.scrolled();
  }

  /** Shows a message in the middle of the window, and fetches it before if need be. False: it cannot be had. */
  async lead(at) {
    const { view, store } = this;
    try {
      if (!at.client_id) await store.history.around(view.id, at.message_id);
      const row = at.client_id ? await store.history.named(view.id, at) : await store.db.row(at.message_id);
      if (view !== this.view) return true;
      if (row?.conversation !== view.id || !shown(row)) throw new Error(t("error.unknown_message"));
      await this.inOrder(view, async () => {
        const { unread, read_to } = this.pages.known(view);
        if (!view.isOpen && unread) view.freshAfter = read_to;
        if (!view.has(row.message_id)) await this.pages.fill(view, row.message_id, this.outgoing(view));
        await this.draw(view);
        if (view !== this.view) return;
        this.log.lead(row.message_id);
        this.opened(view);
      });
      return true;
    } catch (problem) {
      if (view === this.view) this.note(problem.message);
      return false;
    }
  }

  /** Says for a while what could not be done. */
  note(text) {
    $("jump-note").textContent = text;
    clearTimeout(this.noted);
    this.noted = setTimeout(() => $("jump-note").replaceChildren(), HEARD_MS);
  }

  /** The items of a conversation in the outbox: messages, and changes of rows. */
  outgoing({ id }) { return { messages: this.store.pending(id), changes: this.store.amending(id) }; }

  /** Something changed in the database: takes new rows in at the end, if the end is in the window. */
  async refresh(view) {
    if (!view.isOpen) return showHeader(this.store, view.id);
    const { store, settled } = this;
    // Read before the rows and shown with them, so that a message or a change of one is never in neither.
    const waiting = this.outgoing(view);
    const hadRows = view.rows.length > 0;
    const { floor } = this.pages.known(view);
    const [first, last] = hadRows ? [view.first, view.last] : [floor, floor - 1];
    const found = await store.db.window(view.id, first, last, view.atTail ? MOST : 0);
    if (view !== this.view) return;
    // A message that was posted meanwhile is shown already, and stays.
    const posted = this.outgoing(view).messages.filter(({ client_id }) => !waiting.messages.some((one) => one.client_id === client_id));
    view.waiting = { ...waiting, messages: [...waiting.messages, ...posted] };
    view.renew(found, settled, this.log.atEnd() ? null : this.log.readId);
    const { unread, read_to, pins } = this.pages.known(view);
    if (pins === null) this.learnPins();
    if (unread) view.markFresh(read_to, this.reader.stands());
    else view.hasCaughtUp = true;
    if (found.fresh.some(({ kind }) => kind === "membership")) store.meet(view.id);
    await this.draw(view);
    if (view !== this.view) return;
    if (hadRows) this.announce(found.fresh);
    this.reader.look(view);
    this.pages.near(view);
  }

  /**
   * Rows that are about to be stored. New messages of this conversation are shown at once, if its end is in the window; the answer tells
   * when the browser has painted them.
   */
  arriving(rows) {
    const { view, store } = this;
    const newest = view?.all().at(-1);
    const here = rows.filter(({ conversation }) => conversation === view?.id);
    if (!view?.takeAhead(here)) return;
    if (ofOthers(here, store.self.uid).length) view.markFresh(this.pages.known(view).read_to, this.reader.stands());
    const added = view.isSimple(here, store.self.uid) && view.itemsBelow(store, newest, this.log.hasFreshLine);
    added ? this.log.append(added) : this.log.paint(view.items(store), false);
    this.showJump();
    return painted();
  }

  /** An own message has left the box: it stands there at once, if the end is in the window. */
  posted({ conversation, quoted }) {
    const { view } = this;
    if (conversation !== view?.id || !view.isOpen || !view.atTail) return;
    view.waiting = this.outgoing(view);
    if (quoted) view.quoted.set(nameOf(quoted), quoted);
    this.log.paint(view.items(this.store), true);
    this.showJump();
  }

  /** Shows the window. Stays at the end, or goes there (`toEnd`); else keeps what is being read where it is. */
  async draw(view, { toEnd = false } = {}) {
    const { store } = this;
    Object.assign(view, { isWhole: await this.pages.isWhole(view), quoted: await store.db.quoted(view.replies()) });
    if (view !== this.view) return;
    showHeader(store, view.id);
    this.log.paint(view.items(store), toEnd);
    this.showJump();
  }

  /** Shows the newest row; `read`: and nothing counts as new any more. */
  async toNewest(read = false) {
    const { view } = this;
    if (!view) return;
    await this.inOrder(view, async () => {
      if (read) view.freshAfter = null;
      if (!view.atTail || !view.isOpen) await this.pages.fill(view, Infinity, this.outgoing(view));
      await this.draw(view, { toEnd: true });
      if (view !== this.view) return;
      // Before anything else here: a conversation that is shown anew looks at what is unread.
      if (read) await this.reader.markAll(view);
      this.opened(view);
      if (view === this.view) this.reader.settle(view);
    });
  }

  /** Leads to the first message of a day or later; `time` in milliseconds since 1970 UTC. Answers it; undefined: there is none. */
  async firstSince(time) {
    try {
      const row = await this.store.history.since(this.id, time);
      if (!row) this.note(t("date.none"));
      return row;
    } catch (refusal) {
      this.note(refusal.message);
    }
  }

  scrolled() {
    const { view } = this;
    if (!view?.isOpen) return;
    this.log.settle(view.atTail);
    this.pages.near(view);
    this.showJump();
    this.reader.look(view);
  }

  showJump() {
    const unread = this.id ? this.store.unread(this.id) : 0;
    $("jump").hidden = !this.view?.isOpen || this.log.isFollowing;
    $("jump-text").textContent = unread ? t("pane.jump_new", { count: many(unread) }) : t("pane.jump");
  }

  /** New messages of others, politely, for those who listen to the page. */
  announce(rows) {
    const { store } = this;
    const heard = ofOthers(rows, store.self.uid).slice(-3);
    const lines = heard.map((row) => t("list.of", { name: store.name(row.sender), text: withFiles(row, words(treeOf(store, row))) }));
    if (!lines.length) return;
    $("announce").textContent = lines.join("\n");
    // It has been said; whoever searches the page should find the message alone.
    clearTimeout(this.hush);
    this.hush = setTimeout(() => $("announce").replaceChildren(), HEARD_MS);
  }
}
