import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Sync } from "../static/sync.js";
import { page, settled } from "./page.js";

const UID = 10_001;
const HISTORY = "6f1c1f9e-0000-4000-8000-000000000001";

/** What sync asks of a browser's database, in memory; the real one is tested in browsers. */
class Kept {
  constructor() {
    Object.assign(this, { uid: UID, cursor: 5, history: HISTORY, outbox: [], conversations: [], begun: 0 });
  }
  async position() { return { cursor: this.cursor, history: this.history }; }
  async begin(cursor, history) {
    this.begun += 1;
    Object.assign(this, { cursor, history });
  }
  async learnState() {}
  async older() {}
  async patch() {}
  async isQuiet() { return false; }
  async lastOfOther() { return null; }
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

let world;
let db;
let sync;
let refusal;
/** What sync has told of as changed. */
let told;
/** The rows that were told of before they were stored. */
let ahead;

/** The texts of all that was sent on the last connection, in order. */
const sends = () => world.last.sent.filter(({ type }) => type === "send").map(({ client_id }) => client_id);
const receive = async (frame) => {
  world.last.receive(frame);
  await settled();
};
const welcome = (fields = {}) =>
  receive({ type: "welcome", uid: UID, seq: 5, history: HISTORY, heartbeat_seconds: 20, ...fields });

beforeEach(async () => {
  world = page();
  db = new Kept();
  refusal = null;
  const call = async (_, path) => {
    if (refusal) throw refusal;
    const empty = { rows: [], friends: [], next_after: null, next_before: null, read_to: 0 };
    return path === "/seq" ? { seq: 40, history: "another" } : path === "/conversations" ? [] : empty;
  };
  [ahead, told] = [[], []];
  const arriving = (rows) => ahead.push(...rows.map(({ message_id }) => message_id));
  sync = new Sync({ db, call, changed: (ids) => told.push(ids), notified: () => {}, arriving });
  await sync.start();
});

test("a welcome is answered with the cursor", async () => {
  await welcome();
  assert.deepEqual(world.last.sent, [{ type: "heartbeat", seq: 5 }]);
  assert.equal(db.begun, 0);
});

test("only a new beginning opens every conversation anew, not what is learnt after it", async () => {
  await welcome({ history: "another" });
  assert.equal(db.begun, 1);
  assert.deepEqual(told, [null, [null]]);
});

/** What a new browser has of the list; `call` answers what it asks. */
const listed = async (call) => {
  const fresh = new Sync({ db, call, changed: () => {}, notified: () => {} });
  return (await fresh.conversations()).map(({ id, last }) => [id, last.message_id]);
};

test("a new browser takes the list of conversations page by page", async () => {
  const pages = {
    "/conversations": [{ id: "u:1", last: { message_id: 9 } }, { id: "g:2", last: { message_id: 7 } }],
    "/conversations?after=7": [{ id: "u:3", last: { message_id: 4 } }],
    "/conversations?after=4": [],
  };
  const asked = [];
  const call = async (_, path) => {
    asked.push(path);
    return pages[path] ?? pages["/conversations"];
  };
  assert.deepEqual(await listed(call), [["u:1", 9], ["g:2", 7], ["u:3", 4]]);
  assert.deepEqual(asked, [...Object.keys(pages), "/conversations"]);
  // A server of an earlier version knows no pages.
  delete pages["/conversations?after=7"];
  assert.equal((await listed(call)).length, 2);
  // One page is whole.
  pages["/conversations?after=7"] = [];
  asked.length = 0;
  assert.equal((await listed(call)).length, 2);
  assert.deepEqual(asked, ["/conversations", "/conversations?after=7"]);
});

test("a conversation that moves to the top while the list is taken is in it", async () => {
  const newest = new Map([["u:1", 9], ["g:2", 7], ["u:3", 4], ["u:4", 2]]);
  let pages = 0;
  const call = async (_, path) => {
    const before = Number(new URL(path, "http://a").searchParams.get("after") ?? Infinity);
    const lines = [...newest].filter(([, id]) => id < before).sort(([, one], [, next]) => next - one);
    const page = lines.slice(0, 2).map(([id, message_id]) => ({ id, last: { message_id } }));
    pages++;
    // Before the second page, and again before the first one of the second walk.
    if (pages === 1) newest.set("u:4", 10);
    if (pages === 3) newest.set("u:3", 11);
    return page;
  };
  const list = new Map(await listed(call));
  assert.deepEqual(list, new Map([["u:1", 9], ["g:2", 7], ["u:3", 11], ["u:4", 10]]));
});

test("a welcome to somebody else ends", async () => {
  await welcome({ uid: UID + 1 });
  assert.equal(sync.state.phase, "ended");
  assert.deepEqual(world.last.sent, []);
});

test("in another history it begins anew, before it says how far it is", async () => {
  await welcome({ history: "another" });
  assert.equal(db.begun, 1);
  assert.deepEqual(world.last.sent, [{ type: "heartbeat", seq: 40 }]);
});

test("an end before the cursor is another history, too", async () => {
  await welcome();
  await receive({ type: "alive", seq: 3, history: HISTORY });
  assert.equal(db.begun, 1);
  assert.equal(sync.state.cursor, 40);
});

test("what was written offline goes out at once, in its order, and no more of it than is well answered", async () => {
  const ids = Array.from({ length: 100 }, (_, at) => `a${at}`);
  for (const id of ids) db.post(id, "u:1");
  await welcome();
  assert.deepEqual(sends(), ids.slice(0, 32));
  const sent = async (id) => receive({ type: "sent", client_id: id, message_id: 6, sent_at: "now" });
  for (const id of ids.slice(0, 16)) await sent(id);
  assert.deepEqual(sends(), ids.slice(0, 32), "half of it is under way");
  await sent("a16");
  assert.deepEqual(sends(), ids.slice(0, 49));
  for (const id of ids.slice(17)) await sent(id);
  assert.deepEqual(sends(), ids);
  assert.deepEqual([...new Set(db.outbox.map(({ state }) => state))], ["sent"]);
});

/** What a page does with a message. */
const write = (id) => {
  const item = { client_id: id, to: { user: 1 }, body: { text: id } };
  sync.send(item);
  db.post(id, "u:1");
};

test("a message goes out before it is stored, once", async () => {
  write("offline");
  assert.deepEqual(world.last.sent, []);
  await welcome();
  write("a1");
  write("a2");
  assert.deepEqual(sends(), ["offline", "a1", "a2"]);
  sync.nudge();
  await settled();
  assert.deepEqual(sends(), ["offline", "a1", "a2"]);
});

test("a message waits behind others that wait", async () => {
  await welcome();
  write("a1");
  await receive({ type: "error", client_id: "a1", code: "busy", detail: "Busy.", retryable: true });
  write("a2");
  assert.deepEqual(sends(), ["a1"]);
  // Written by another tab, which has not said so yet.
  db.post("b1", "u:1");
  world.pass(2_000);
  await settled();
  assert.deepEqual(sends(), ["a1", "a1", "a2", "b1"]);
  const many = Array.from({ length: 40 }, (_, at) => `c${at}`);
  many.forEach(write);
  assert.equal(sends().length, 33, "no more than are well answered");
  await receive({ type: "sent", client_id: "a1", message_id: 6, sent_at: "now" });
  write("last");
  assert.equal(sends().includes("last"), false);
});

test("a message that is not in the outbox comes again in its place until it is answered", async () => {
  const refusals = [];
  sync.notSent = (...of) => refusals.push(of);
  await welcome();
  const at = (n) => ({ client_id: `a${n}`, to: { user: 1 }, body: { text: "hi", reply_to: 4 }, sent_at: `2026-03-04T10:00:0${n}Z` });
  const post = (n) => {
    assert.equal(sync.send(at(n)), true);
    db.post(`a${n}`, "u:1");
    Object.assign(db.outbox.at(-1), at(n));
  };
  post(1);
  assert.equal(sync.send(at(2)), true);
  sync.hold(at(2));
  await settled();
  assert.deepEqual(sends(), ["a1", "a2"], "it is under way");
  assert.equal(sync.send(at(3)), true);
  sync.hold(at(3));
  db.post("a4", "u:1");
  Object.assign(db.outbox.at(-1), at(4));
  await settled();
  world.last.end(1006);
  world.pass(60_000);
  await welcome({ history: "another" });
  assert.deepEqual(sends(), ["a1", "a2", "a3", "a4"]);
  assert.equal(world.last.sent.find(({ client_id }) => client_id === "a2").body.reply_to, undefined, "that id may mean another row now");
  await receive({ type: "sent", client_id: "a2", message_id: 41 });
  await receive({ type: "error", client_id: "a3", code: "blocked", detail: "no", retryable: false });
  assert.deepEqual(refusals, [["a3", { state: "failed", code: "blocked", reason: "no" }]]);
  world.pass(30_000);
  await settled();
  assert.deepEqual(sends().slice(4), ["a1", "a4"]);
});

test("rows are told of before they are stored, if they follow, and once", async () => {
  await welcome();
  const row = (message_id) => ({ message_id, conversation: "u:1" });
  world.last.receive({ type: "entries", entries: [row(6), row(7)], after: 5, synced: 7 });
  world.last.receive({ type: "entries", entries: [row(7), row(8)], after: 6, synced: 8 });
  world.last.receive({ type: "entries", entries: [row(11)], after: 10, synced: 11 });
  assert.deepEqual([db.cursor, ahead], [5, [6, 7, 8]]);
  await settled();
});

test("messages behind one that was refused for the moment come again behind it", async () => {
  for (const id of ["a1", "a2", "b1"]) db.post(id, id.startsWith("a") ? "u:1" : "u:2");
  await welcome();
  const refused = (id, code) => receive({ type: "error", client_id: id, code, detail: "Busy.", retryable: true });
  await refused("a1", "busy");
  await refused("a2", "out_of_order");
  await refused("b1", "out_of_order");
  world.pass(2_000);
  await settled();
  assert.deepEqual(sends(), ["a1", "a2", "b1", "a1", "a2", "b1"]);
});

test("an amendment goes out as its own frame, behind what was written before it", async () => {
  db.post("a1", "u:1");
  db.outbox.push({ n: 2, client_id: "e1", conversation: "u:1", state: "waiting",
    frame: { type: "edit", message_id: 4, body: { text: "better" } } });
  await welcome();
  assert.deepEqual(world.last.sent.slice(1), [
    { type: "send", client_id: "a1", to: { user: 1 }, body: { text: "a1" } },
    { type: "edit", message_id: 4, body: { text: "better" }, client_id: "e1", conversation: "u:1" },
  ]);
});

test("after a refusal nothing goes out until the pause is over, and the refused one goes first", async () => {
  db.post("a1", "u:1");
  await welcome();
  await receive({ type: "error", client_id: "a1", code: "busy", detail: "Busy.", retryable: true });
  db.post("a2", "u:1");
  db.post("b1", "u:2");
  sync.nudge();
  await settled();
  assert.deepEqual(sends(), ["a1"]);
  world.pass(2_000);
  await settled();
  assert.deepEqual(sends(), ["a1", "a1", "a2", "b1"]);
});

test("a message is tried six times, and what only waited for another one was not tried", async () => {
  db.post("a1", "u:1");
  await welcome();
  const refused = async (code) => {
    await receive({ type: "error", client_id: "a1", code, detail: "The queue is full.", retryable: true });
    // Beats are answered meanwhile, so that the connection stays.
    for (let seconds = 0; seconds < 40; seconds += 1) {
      world.pass(1_000);
      await receive({ type: "alive", seq: 5, history: HISTORY });
    }
  };
  for (let times = 0; times < 10; times += 1) await refused("out_of_order");
  assert.equal(db.outbox[0].state, "waiting");
  for (let times = 0; times < 6; times += 1) await refused("busy");
  assert.deepEqual([db.outbox[0].state, db.outbox[0].reason], ["failed", "The queue is full."]);
});

test("what can never be stored is not tried again", async () => {
  db.post("a1", "u:1");
  await welcome();
  await receive({ type: "error", client_id: "a1", code: "no_such_user", detail: "Nobody.", retryable: false });
  assert.equal(db.outbox[0].state, "failed");
});

test("an unanswered message goes out again on the next connection, under the same key", async () => {
  db.post("a1", "u:1");
  await welcome();
  world.last.end(1006);
  world.pass(2_000);
  assert.equal(world.made.length, 2);
  await welcome();
  assert.deepEqual(sends(), ["a1"]);
});

test("a server that stays without storage is left, and the message goes to the next under the same key", async () => {
  db.post("a1", "u:1");
  await welcome();
  const refused = () =>
    receive({ type: "error", client_id: "a1", code: "unavailable", detail: "No storage.", retryable: true });
  await refused();
  assert.equal(world.made[0].closed, false, "it may have been a moment");
  world.pass(2_000);
  await settled();
  assert.deepEqual(sends(), ["a1", "a1"]);
  await refused();
  assert.equal(world.made[0].closed, true);
  world.pass(1_500);
  await welcome();
  world.pass(2_000);
  await settled();
  assert.deepEqual(sends(), ["a1"]);
});

test("a heartbeat that the server cannot answer costs the connection, a wrong frame does not", async () => {
  await welcome();
  await receive({ type: "error", code: "not_in_conversation", detail: "No such row.", retryable: false });
  assert.equal(world.made[0].closed, false);
  await receive({ type: "error", code: "unavailable", detail: "No storage.", retryable: true });
  assert.equal(world.made[0].closed, true);
});

test("rows that cannot be stored cost the connection and not the cursor", async (context) => {
  context.mock.method(console, "error", () => {});
  await welcome();
  await receive({ type: "entries", entries: [{ broken: true }], after: 5, synced: 6 });
  assert.equal(sync.state.cursor, 5);
  assert.equal(world.made[0].closed, true);
  world.pass(3_000);
  await welcome();
  assert.deepEqual(world.last.sent, [{ type: "heartbeat", seq: 5 }]);
});

test("rows move the cursor, and the next heartbeat says so", async () => {
  await welcome();
  await receive({ type: "entries", entries: [{ conversation: "u:1" }], after: 5, synced: 6 });
  assert.deepEqual(world.last.sent.at(-1), { type: "heartbeat", seq: 6 });
});

test("how far was read is reported once a connection", async () => {
  db.conversations.push({ id: "u:1", read_to: 5, acked: 3 });
  await welcome();
  sync.nudge();
  await settled();
  const reported = () => world.last.sent.filter(({ type }) => type === "read").length;
  assert.equal(reported(), 1);
  world.last.end(1006);
  world.pass(2_000);
  await welcome();
  assert.equal(reported(), 1, "on the new connection");
});

/** What others were told of how far their messages have come, on this connection, and which read markers went out. */
const marks = () => world.last.sent.filter(({ type }) => type === "seen" || type === "read")
  .map(({ type, conversation, message_id, state = type }) => `${state} ${conversation} ${message_id}`);
/** The connection ends and comes back. */
const comeBack = async (fields) => {
  world.last.end(1006);
  world.pass(2_000);
  await welcome(fields);
};

test("others are told what was read before the server has the marker, and both come again until it has it", async () => {
  db.conversations.push({ id: "u:1", read_to: 5, acked: 3 });
  db.lastOfOther = async () => ({ message_id: 4 });
  await welcome();
  assert.deepEqual(marks(), ["read u:1 4", "read u:1 5"]);
  assert.deepEqual(world.last.sent.slice(1).map(({ type }) => type), ["seen", "read"]);
  await comeBack();
  assert.ok(marks().includes("read u:1 4") && marks().includes("read u:1 5"), marks().join());
});

/** A message of somebody else comes. */
const arrive = (message_id, sender) => receive({ type: "entries", after: message_id - 1, synced: message_id,
  entries: [{ message_id, kind: "message", client_id: `k${message_id}`, conversation: `u:${sender}`, sender }] });

test("what others were told comes again on the next connection, until a heartbeat after it is answered", async () => {
  await welcome();
  await arrive(6, 1);
  await arrive(7, 1);
  await arrive(8, 2);
  await comeBack();
  assert.deepEqual(marks(), ["delivered u:1 7", "delivered u:2 8"], "each the newest alone");
  const answered = () => receive({ type: "alive", seq: 9, history: HISTORY });
  // Its heartbeat stood before what was told.
  await arrive(9, 2);
  await answered();
  await comeBack();
  assert.deepEqual(marks(), ["delivered u:2 9"]);
  await answered();
  await comeBack();
  assert.deepEqual(marks(), []);
  // Whoever has become quiet meanwhile tells nothing more.
  await arrive(10, 2);
  db.isQuiet = async () => true;
  await comeBack();
  assert.deepEqual(marks(), []);
  // In another history the ids mean other rows.
  db.isQuiet = async () => false;
  await arrive(11, 2);
  await comeBack({ history: "another" });
  assert.deepEqual(marks(), []);
});

test("what is refused for the moment comes again after a pause, what is refused for good does not", async () => {
  db.conversations.push({ id: "u:1", read_to: 5, acked: 3 });
  db.lastOfOther = async () => ({ message_id: 4 });
  await welcome();
  await receive({ type: "alive", seq: 5, history: HISTORY });
  const refused = (message_id, retryable) =>
    receive({ type: "error", conversation: "u:1", message_id, code: "busy", detail: "Busy.", retryable });
  const later = async () => {
    for (let seconds = 0; seconds < 25; seconds += 1) {
      world.pass(1_000);
      await receive({ type: "alive", seq: 5, history: HISTORY });
    }
  };
  await refused(4, false);
  await later();
  assert.equal(marks().length, 2);
  // The server has the marker: what it has not is told all the same.
  db.conversations[0].acked = 5;
  await refused(4, true);
  await later();
  assert.deepEqual(marks().slice(2), ["read u:1 4"]);
  db.conversations[0].acked = 3;
  await refused(5, true);
  await later();
  assert.deepEqual(marks().slice(3), ["read u:1 4", "read u:1 5"]);
});

test("a connection that never opens ends only when the session is over", async () => {
  refusal = { status: 0 };
  world.last.end(1006);
  await settled();
  assert.equal(sync.state.phase, "waiting");
  refusal = { status: 401 };
  world.pass(2_000);
  world.last.end(1006);
  await settled();
  assert.equal(sync.state.phase, "ended");
});
