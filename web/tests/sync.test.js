import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { conversationsOf } from "../static/lists.js";
import { settled } from "./page.js";
import { HISTORY, UID, ahead, db, receive, refuse, start, sync, told, welcome, world } from "./syncing.js";

beforeEach(start);

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

test("what the server keeps no longer goes before anything is sent, and again with each heartbeat", async () => {
  db.post("old", "u:1");
  db.outbox[0].sent_at = new Date(Date.now() - 120_000).toISOString();
  await welcome({ keep_seconds: 60 });
  assert.ok(Math.abs(Date.now() - 60_000 - Date.parse(db.expired)) < 20_000, db.expired);
  assert.deepEqual(told[0], ["u:1"]);
  assert.deepEqual(world.last.sent.filter(({ type }) => type === "send"), []);
  delete db.expired;
  await receive({ type: "alive", seq: 5, history: HISTORY });
  assert.ok(db.expired);
  assert.equal(db.begun, 0);
});

test("counts of what is not here are asked for on a new connection, and then once in a while", async () => {
  db.unknown = true;
  await welcome({ keep_seconds: 60 });
  assert.equal(db.recounted, 1);
  await receive({ type: "alive", seq: 5, history: HISTORY });
  assert.equal(db.recounted, 1);
  await welcome({ keep_seconds: 60 });
  assert.equal(db.recounted, 2);
});

test("a server that keeps everything has nothing removed", async () => {
  await welcome();
  assert.equal(db.expired, undefined);
});

test("what a conversation keeps no longer goes when a row says so, and with each heartbeat", async () => {
  await welcome();
  const keep = { message_id: 6, kind: "keep", conversation: "u:1", sender: 1, sent_at: "2026-11-01T00:00:00Z", body: { keep: { seconds: 60 } } };
  db.conversations.push({ id: "u:1", read_to: 0, acked: 0, keep: { seconds: 60 } });
  const expired = async (frame) => {
    db.asked = 0;
    await receive(frame);
    return db.asked;
  };
  assert.equal(await expired({ type: "entries", entries: [keep], after: 5, synced: 6, more: false }), 1);
  const app = { ...keep, message_id: 7, kind: "app.door" };
  assert.equal(await expired({ type: "entries", entries: [app], after: 6, synced: 7, more: false }), 0);
  assert.equal(await expired({ type: "alive", seq: 7, history: HISTORY }), 1);
});

test("a browser that may lack rows which have expired begins anew", async () => {
  await welcome({ keep_seconds: 60 });
  await receive({ type: "alive", seq: 0, history: HISTORY });
  assert.deepEqual([db.begun, db.cursor], [1, 9], "from the latest id on, not from the oldest row");
});

/** The list of a new browser; `call` answers its requests. */
const listed = async (call) => (await conversationsOf(call)).map(({ id, last }) => [id, last.message_id]);

test("a new browser takes the list of conversations page by page", async () => {
  const pages = {
    "/conversations": [{ id: "u:1", last: { message_id: 9 } }, { id: "g:2", last: { message_id: 7 } }],
    "/conversations?after=7": [{ id: "u:3", last: { message_id: 4 } }],
  };
  pages["/conversations"].next = "/conversations?after=7";
  const asked = [];
  const call = async (_, path) => {
    asked.push(path);
    return pages[path];
  };
  assert.deepEqual(await listed(call), [["u:1", 9], ["g:2", 7], ["u:3", 4]]);
  assert.deepEqual(asked, [...Object.keys(pages), "/conversations"]);
  // One page is whole.
  delete pages["/conversations"].next;
  asked.length = 0;
  assert.equal((await listed(call)).length, 2);
  assert.deepEqual(asked, ["/conversations"]);
});

test("a conversation that moves to the top while the list is taken is in it", async () => {
  const newest = new Map([["u:1", 9], ["g:2", 7], ["u:3", 4], ["u:4", 2]]);
  let pages = 0;
  const call = async (_, path) => {
    const before = Number(new URL(path, "http://a").searchParams.get("after") ?? Infinity);
    const lines = [...newest].filter(([, id]) => id < before).sort(([, one], [, next]) => next - one);
    const page = lines.slice(0, 2).map(([id, message_id]) => ({ id, last: { message_id } }));
    if (lines.length > 2) page.next = `/conversations?after=${page[1].last.message_id}`;
    pages++;
    // Before the second page, and again before the first one of the second walk.
    if (pages === 1) newest.set("u:4", 10);
    if (pages === 2) newest.set("u:3", 11);
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
  await welcome({ history: "another", seq: 40 });
  assert.equal(db.begun, 1);
  assert.deepEqual(world.last.sent, [{ type: "heartbeat", seq: 40 }]);
});

test("an end before the cursor is another history, too", async () => {
  await welcome();
  await receive({ type: "alive", seq: 3, history: HISTORY });
  assert.equal(db.begun, 1);
  assert.equal(sync.state.cursor, 3);
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

/** How far the messages of others have come, as told on this connection, and the read markers that went out. */
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
  // A person who has become quiet meanwhile tells nothing more.
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
  refuse({ status: 0 });
  world.last.end(1006);
  await settled();
  assert.equal(sync.state.phase, "waiting");
  refuse({ status: 401 });
  world.pass(2_000);
  world.last.end(1006);
  await settled();
  assert.equal(sync.state.phase, "ended");
});

test("a browser that has lost all that it kept begins anew over a new connection", async () => {
  const { length } = world.made;
  const { begun } = db;
  sync.anew();
  assert.equal(world.made.length, length + 1);
  await welcome({ seq: 40 });
  assert.equal(db.begun, begun + 1, "although the history is the same");
  assert.equal(sync.state.cursor, 40);
});
