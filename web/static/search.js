// One search: in this browser at once, and on the server. Hits of both are one list, newest first, in which nothing stands twice; an
// answer to what was asked before changes nothing. No document.

import { asKnown, asShown, fits, lookHere } from "./search_here.js";
import { read } from "./sought.js";

// Milliseconds after the last key, before anything is read or asked.
const SETTLE_MS = 200;
// Hits of a page.
const PAGE = 50;
// Pages that are asked for one after the other, where they bring little.
const MOST_PAGES = 5;
// Hits beyond which nothing more is fetched: nobody reads so many.
const MOST_HITS = 1_000;

export class Search {
  /** `changed()`: `hits`, or how far the search is, may be others now. */
  constructor(store, call, { changed, limit = PAGE }) {
    Object.assign(this, { store, call, changed, limit });
    this.begin({ text: "" });
  }

  /** Nothing is looked for, and nothing is kept. */
  clear() { this.begin({ text: "" }); }

  /** Looks for {text, conversation, sender, from, to}: what is typed, and what else a hit has (search_here.js); null: anything. */
  ask({ text, ...wanted }) {
    const { found } = this;
    this.begin({ text, ...wanted });
    if (!this.problem) {
      // Hits that still fit are shown until that has been looked for.
      for (const [id, { row }] of found) this.found.set(id, { row, isGuess: true });
      this.timer = setTimeout(() => this.now(), SETTLE_MS);
    }
    this.changed();
  }

  begin({ text, ...wanted }) {
    this.stop();
    const { sought = null, problem = null } = read(text);
    const isAny = wanted.sender || wanted.from || wanted.to;
    this.query = { text, ...wanted, sought };
    // Why nothing is looked for (sought.js); null: something is.
    this.problem = problem === "empty" && isAny ? null : problem;
    // By id: {row, isHere, isGuess, marks, text}; `isHere`: it lies in the database; `isGuess`: it is of an earlier search; `marks`: those
    // that the server has counted in `text`.
    this.found = new Map();
    // Ids from which on the database was looked through, and the server has told all; null: to the end.
    Object.assign(this, { here: Infinity, there: Infinity, isLooking: false, isAsking: false, refusal: null, isComplete: true });
  }

  /** Nothing more is looked for. */
  stop() {
    clearTimeout(this.timer);
    this.timer = null;
    this.turn?.abort();
    this.turn = null;
  }

  /** Does not wait for another key. */
  now() {
    clearTimeout(this.timer);
    this.timer = null;
    this.turn = new AbortController();
    return Promise.all([this.look(), this.request()]);
  }

  get isBusy() { return Boolean(this.timer) || this.isAsking || this.isLooking; }
  /** Whether there is more behind the last hit, as far as that is known. */
  get isMore() { return this.problem === null && (this.refusal ? this.here !== null : this.there !== null); }
  get isFull() { return this.found.size >= MOST_HITS; }

  rows() { return [...this.found.values()].map(({ row }) => row); }

  /** The hits, newest first: {row, marks}. Below what the server has told so far others may be missing, unless it tells nothing more. */
  get hits() {
    if (this.problem) return [];
    const from = this.refusal || this.there === Infinity ? 0 : this.there ?? 0;
    return asShown(this.store, this.rows()).filter((row) => row.message_id >= from && this.isHit(row))
      .sort((a, b) => b.message_id - a.message_id).map((row) => ({ row, marks: this.found.get(row.message_id).marks }));
  }

  /** Words in a text that has not changed since are where the server has found them, whatever this browser knows of their letters. */
  isHit(row) {
    const { marks, text } = this.found.get(row.message_id);
    return fits(row, marks && text === row.body?.text ? { ...this.query, sought: null } : this.query);
  }

  /** Looks further through the database. */
  async look() {
    const { turn } = this;
    this.isLooking = true;
    this.changed();
    const before = Math.min(this.here, this.there ?? Infinity);
    const { rows, next } = await lookHere(this.store.db, this.query, { before, limit: this.limit, signal: turn.signal })
      .catch((problem) => console.error(problem) ?? { rows: [], next: null });
    if (turn !== this.turn) return;
    for (const row of rows) this.found.set(row.message_id, { ...this.found.get(row.message_id), row, isHere: true, isGuess: false });
    Object.assign(this, { here: next, isLooking: false });
    this.settle();
  }

  /** Asks the server for more. */
  async request() {
    const { turn } = this;
    Object.assign(this, { isAsking: true, refusal: null });
    this.changed();
    try {
      for (let page = 0, count = 0; page < MOST_PAGES && count < this.limit / 2 && this.there !== null; page++) {
        const { hits, next_before, complete } = await this.call("GET", `/search?${this.asked()}`, undefined, undefined, turn.signal);
        if (turn !== this.turn) return;
        const known = await asKnown(this.store.db, hits.map(({ row }) => row));
        if (turn !== this.turn) return;
        known.forEach((one, at) => this.found.set(one.row.message_id, { ...one, marks: hits[at].marks, text: hits[at].row.body.text }));
        Object.assign(this, { there: next_before, isComplete: this.isComplete && complete });
        count += hits.length;
        this.changed();
      }
    } catch (refusal) {
      if (turn !== this.turn) return;
      this.refusal = refusal;
    }
    this.isAsking = false;
    this.settle();
  }

  settle() {
    if (!this.isBusy) for (const [id, { isGuess }] of this.found) if (isGuess) this.found.delete(id);
    this.changed();
  }

  asked() {
    const { text, sought, conversation, sender, from, to } = this.query;
    const before = this.there === Infinity ? null : this.there;
    const all = { q: sought && text, conversation, sender, from, to, before, limit: this.limit };
    return new URLSearchParams(Object.entries(all).filter(([, value]) => value));
  }

  /** Brings what follows the last hit, from the server, or from here where that does not answer. */
  async more() {
    if (this.timer) return this.now();
    if (this.isBusy || !this.isMore || this.isFull || !this.turn) return;
    await (this.refusal ? this.look() : this.request());
  }

  /** Asks the server again that has refused. */
  async again() { if (this.refusal && this.turn && !this.isAsking) await this.request(); }

  /** Something in the database has changed: hits may be others, or gone. A change during that is seen right after it. */
  async renew() {
    this.isOld = true;
    if (this.isRenewing) return;
    this.isRenewing = true;
    try {
      while (this.isOld) {
        this.isOld = false;
        await this.readAgain();
      }
    } finally {
      this.isRenewing = false;
    }
  }

  async readAgain() {
    const { turn } = this;
    const known = await asKnown(this.store.db, this.rows());
    if (turn !== this.turn) return;
    for (const { row, isHere } of known) {
      const before = this.found.get(row.message_id);
      // A guess that has gone meanwhile.
      if (!before) continue;
      before.isHere && !isHere ? this.found.delete(row.message_id) : this.found.set(row.message_id, { ...before, row, isHere });
    }
    this.changed();
  }
}
