// Sync over a database in memory and a connection that the test holds, for the tests of what goes out and of all else.

import { Sync } from "../static/sync.js";
import { page, settled } from "./page.js";

export const UID = 10_001;
export const HISTORY = "6f1c1f9e-0000-4000-8000-000000000001";

/** The parts of a browser's database that sync uses, in memory; the real one is tested in browsers. */
class Kept {
  constructor() {
    Object.assign(this, { uid: UID, cursor: 5, history: HISTORY, outbox: [], conversations: [], begun: 0 });
  }
  async position() { return { cursor: this.cursor, history: this.history }; }
  async begin(cursor, history) {
    this.begun += 1;
    const isOther = history !== this.history || cursor < this.cursor;
    Object.assign(this, { cursor, history });
    return isOther;
  }
  async learnState() {}
  async keepHistory() {}
  async patch() {}
  async recount() { this.recounted = (this.recounted ?? 0) + 1; }
  async isQuiet() { return false; }
  async lastOfOther() { return null; }
  async expire(time, asks) {
    this.expired = time;
    this.asked = (this.asked ?? 0) + 1;
    const old = this.outbox.filter((item) => item.sent_at < time);
    for (const item of old) item.state = "failed";
    return { changed: old.map(({ conversation }) => conversation), stale: asks && this.unknown };
  }
  async all(store) { return this[store].map((item) => ({ ...item })); }
  async entries(rows, after, synced) {
    if (rows.some((row) => row.broken)) throw new Error("it cannot be stored");
    this.cursor = synced;
    return { cursor: synced, changed: rows.map((row) => row.conversation), stale: false };
  }
  async outgoing(clientId, fields) {
    const item = this.outbox.find((one) => one.client_id === clientId);
    if (!item) return null;
    if (fields) Object.assign(item, fields);
    else this.outbox.splice(this.outbox.indexOf(item), 1);
    return item;
  }
  post(clientId, conversation) {
    this.outbox.push({
      n: this.outbox.length, client_id: clientId, conversation, to: { user: 1 }, body: { text: clientId }, state: "waiting",
    });
  }
}

export let world;
export let db;
export let sync;
/** The conversations that sync has told of as changed. */
export let told;
/** The rows that were told of before they were stored. */
export let ahead;
let refusal;

/** Begins anew, connected, before the first frame. */
export async function start() {
  world = page();
  db = new Kept();
  refusal = null;
  const call = async (_, path) => {
    if (refusal) throw refusal;
    const empty = { rows: [], friends: [], next_after: null, next_before: null, read_to: 0 };
    if (path === "/seq") return { seq: 9, history: HISTORY };
    return path === "/conversations" ? [] : empty;
  };
  [ahead, told] = [[], []];
  const arriving = (rows) => ahead.push(...rows.map(({ message_id }) => message_id));
  sync = new Sync({ db, call, changed: (ids) => told.push(ids), notified: () => {}, arriving });
  await sync.start();
}

/** Every call is refused with this from now on. */
export const refuse = (why) => { refusal = why; };

/** The texts of all that was sent on the last connection, in order. */
export const sends = () => world.last.sent.filter(({ type }) => type === "send").map(({ client_id }) => client_id);
export const receive = async (frame) => {
  world.last.receive(frame);
  await settled();
};
export const welcome = (fields = {}) =>
  receive({ type: "welcome", uid: UID, seq: 5, history: HISTORY, heartbeat_seconds: 20, ...fields });
