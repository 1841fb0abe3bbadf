// The window on one conversation as plain values: which of its rows stand in the document, and which items they make. It never holds the
// whole conversation. No document and no database here: pages.js fills it, log.js draws it.

import { isolate } from "./dom.js";
import { itemsOf, withAmendments } from "./rows.js";
import { counts } from "./state.js";
import { t } from "./texts.js";

// The most rows in the document.
export const MOST = 240;
// The most messages of one frame that are shown before they are stored.
const MOST_AHEAD = 20;

export class Window {
  /** `freshAfter`: the row below which "New" stands; null: nowhere. */
  constructor(id, freshAfter = null) {
    Object.assign(this, { id, freshAfter, rows: [], ahead: [], waiting: { messages: [], changes: [] }, quoted: new Map() });
    // Whether the newest row of the conversation is the last one here, and whether the oldest is the first.
    Object.assign(this, { atTail: true, isWhole: false });
    // Whether all that stands below "New" has been read.
    this.hasCaughtUp = false;
    // Whether the rows have been found; until then nothing is known of them. And whether there are some that could not be fetched.
    Object.assign(this, { isOpen: false, hasFailed: false });
    // What pane.js, pages.js and reader.js keep with it: where it is to open, the last of the jobs on it, whether one of them is to come
    // or fetches, and the newest row that somebody has seen.
    Object.assign(this, { at: null, work: Promise.resolve(), isRenewing: false, isTurning: false, seenTo: 0 });
  }

  get first() { return this.rows[0]?.message_id ?? 0; }
  get last() { return this.rows.at(-1)?.message_id ?? 0; }

  has(message_id) { return this.rows.some((row) => row.message_id === message_id); }

  /** Shows these rows instead. */
  fill(rows, atTail) {
    Object.assign(this, { rows, atTail });
    // A server that was restored has less than what stood below the line.
    if (atTail && rows.length && this.freshAfter >= this.last) this.freshAfter = null;
  }

  /** Takes rows in above. `at`: the row that is being read. */
  above(rows, at) {
    this.rows.unshift(...rows);
    this.trim(at);
  }

  /** Takes rows in below; `isTail`: the newest is one of them, or is here already. */
  below(rows, isTail, at) {
    this.rows.push(...rows);
    this.atTail = isTail;
    this.trim(at);
  }

  /**
   * Takes in what the database has now: the `same` rows, and `fresh` ones behind them, where the end is in the window. `settled`: the id up
   * to which rows are stored.
   */
  renew({ same, fresh, isTail }, settled, at) {
    this.rows = [...same, ...fresh];
    this.ahead = this.ahead.filter(({ message_id }) => message_id > settled);
    this.atTail &&= isTail;
    this.trim(at);
  }

  /** Keeps the number of rows bounded: those far from the row `at`, which is being read, go. Null: the end is being read. */
  trim(at) {
    const extra = this.rows.length - MOST;
    if (extra <= 0) return;
    const place = at === null ? -1 : this.rows.findIndex(({ message_id }) => message_id >= at);
    const above = Math.min(extra, Math.max(0, (place < 0 ? this.rows.length : place) - MOST / 2));
    this.rows.splice(0, above);
    if (above) this.isWhole = false;
    if (this.rows.splice(MOST).length) this.atTail = false;
  }

  /**
   * Takes in rows that are about to be stored, if they are plain messages that stand at the end; false otherwise. Whatever else comes waits
   * until it is stored.
   */
  takeAhead(rows) {
    const isPlain = ({ kind, body, client_id }) => kind === "message" && client_id && !body.reply_to;
    if (!rows.length || rows.length > MOST_AHEAD || !this.atTail || !this.isOpen || !rows.every(isPlain)) return false;
    this.ahead.push(...rows);
    return true;
  }

  /** All rows to show, with those that are about to be stored. */
  all() { return this.atTail ? [...this.rows, ...this.ahead.filter(({ message_id }) => message_id > this.last)] : this.rows; }

  /** What the messages here reply to is asked for these. */
  replies() { return [...this.rows, ...this.atTail ? this.waiting.messages : []]; }

  /**
   * Unread rows stand below the line "New". It moves to the read marker when rows come that nobody sees: where nobody is there, and
   * where somebody reads further up who has read all that stood below it.
   */
  markFresh(readTo, { isThere, isAtEnd }) {
    if (isThere && (isAtEnd || (this.freshAfter !== null && !this.hasCaughtUp))) return;
    this.freshAfter = Math.max(this.freshAfter ?? 0, readTo);
    this.hasCaughtUp = false;
  }

  /** Whether these rows can be put below what is shown, since nothing else is different. */
  isSimple(rows, uid) {
    return this.all().length > rows.length && !this.waiting.messages.length && rows.every(({ sender }) => sender !== uid);
  }

  /** The items that the rows make. */
  items(store) {
    const rows = withAmendments(this.all(), this.waiting.changes, store.self.uid);
    return itemsOf(store, rows, this.atTail ? this.waiting.messages : [], this.freshAfter, this.start(store), this.quoted);
  }

  /** Those that follow the row `below`; null: it does not stand there. `hasLine`: "New" stands above already. */
  itemsBelow(store, below, hasLine) {
    const all = this.all();
    const from = all.findIndex(({ message_id }) => message_id === below.message_id);
    const rows = withAmendments(all.slice(Math.max(0, from)), this.waiting.changes, store.self.uid);
    const items = itemsOf(store, rows, this.atTail ? this.waiting.messages : [], hasLine ? null : this.freshAfter, "", this.quoted);
    const at = items.findIndex(({ id }) => id === below.message_id);
    return at < 0 ? null : items.slice(at + 1);
  }

  /** The text above the oldest row. A group has rows from when the person came in, and the newest from before where it shows them. */
  start(store) {
    if (store.nobody.has(this.id)) return this.id.startsWith("u:") ? t("pane.nobody") : t("pane.no_group");
    if (!this.isWhole) return this.hasFailed ? t("pane.not_loaded") : "";
    const title = isolate(store.title(this.id));
    if (this.id.startsWith("u:")) return t("pane.begins_with", { name: title });
    const [first] = this.rows;
    if (first && first.kind !== "membership") return t("pane.newest_before");
    return first?.body.action === "created" ? t("pane.begins", { group: title }) : t("pane.joined");
  }
}

/** Rows of others that count as unread. */
export const ofOthers = (rows, uid) => rows.filter((row) => counts(row, uid));
