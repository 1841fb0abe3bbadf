// History from the server, page by page, kept in the database; only what is not here is asked for.

import { nextAbove, spanOf } from "./spans.js";
import { nameOf, shown } from "./state.js";

// Rows of a page that somebody scrolls to, and of one that is opened: the first has to be here before anything is seen.
const PAGE = 200;
const FIRST = 100;

export class History {
  constructor(store) { this.store = store; }

  /** What is here of a conversation. */
  async known(id) {
    const { base, history } = await this.store.db.position();
    return { floor: base, ...this.store.conversations.get(id), life: history };
  }

  /** Fetches the page below the row `from`, the oldest of its part; without it, below all that is here to the end. False: there is none. */
  async older(id, from) {
    const { floor, life } = await this.known(id);
    const before = from ?? floor;
    return before > 0 && Boolean(life) && (await this.fetch(id, { before, limit: PAGE }, { to: before - 1, life })).length > 0;
  }

  /** Fetches the page above the row `to`, the newest of its part. */
  async newer(id, to) {
    const known = await this.known(id);
    const before = nextAbove(known, to);
    if (!known.life || before <= to) return;
    await this.fetch(id, { after: to, before, limit: PAGE }, { from: to + 1, to: before - 1, life: known.life });
  }

  /** Fetches what lies around a row of the person's inbox, if it is not here. */
  async around(id, message_id) {
    const known = await this.known(id);
    if (spanOf(known, message_id)) return;
    await this.fetch(id, { around: message_id, before: known.floor, limit: FIRST }, { to: known.floor - 1, life: known.life });
  }

  /** The message with this name, and what lies around it, fetched if it is not here; undefined: the person has no copy of it there. */
  async named(id, of) {
    const known = await this.known(id);
    const here = await this.store.db.message(of);
    if (here && spanOf(known, here.message_id)) return here.conversation === id ? here : undefined;
    const query = { ...of, before: known.floor, limit: FIRST };
    const rows = await this.fetch(id, query, { to: known.floor - 1, life: known.life });
    return rows.find((row) => nameOf(row) === nameOf(of));
  }

  /** The first row to show that was sent at `time` (milliseconds since 1970 UTC) or later; undefined: nothing was. */
  async since(id, time) {
    const known = await this.known(id);
    const isLater = (row) => shown(row) && new Date(row.sent_at) >= time;
    const [oldest] = await this.store.db.page(id, { after: known.floor - 1, limit: 1, forward: true });
    if (known.floor > 0 && (!oldest || isLater(oldest))) {
      const query = { since: time, before: known.floor, limit: FIRST };
      const rows = await this.fetch(id, query, { to: known.floor - 1, life: known.life });
      const first = rows.findLast(isLater);
      if (first) return first;
    }
    return this.firstHere(id, known.floor, isLater);
  }

  /** The same among the rows that are here from `floor` up: times grow with ids, but for rows from before one joined. */
  async firstHere(id, floor, isLater) {
    const { cursor } = await this.store.db.position();
    let found;
    for (let [low, high] = [floor, cursor + 1]; low < high;) {
      const middle = Math.floor((low + high) / 2);
      const [row] = await this.store.db.page(id, { after: middle - 1, limit: 1, forward: true });
      if (row && !isLater(row)) low = row.message_id + 1;
      else [found, high] = [row ?? found, middle];
    }
    return found;
  }

  /**
   * Takes one page, newest first, and keeps it. `part`: the ids that it covers, as far as they are known before: `to` where it may reach
   * less far (`next_after`), `from` where it may reach further down (`next_before`).
   */
  async fetch(id, query, { from, to, life }) {
    const { rows, next_before, next_after } = await this.store.call("GET", `/conversations/${id}/messages?${new URLSearchParams(query)}`);
    await this.store.db.keepHistory(id, rows, { from: from ?? next_before ?? 0, to: next_after ?? to, life });
    await this.store.load([]);
    return rows;
  }
}
