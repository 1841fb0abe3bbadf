import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { settled } from "./page.js";
import { HISTORY, db, receive, sends, start, sync, welcome, world } from "./syncing.js";

beforeEach(start);

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

/** Writes a message as a page does. */
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

test("behind a message whose files are on their way those of its conversation wait, and others pass", async () => {
  await welcome();
  const begun = [];
  sync.uploads.isUp = (item) => !item.files || Boolean(item.up) || (begun.push(item.client_id), false);
  db.post("a1", "u:1");
  db.outbox[0].files = [{ name: "pier.jpg", size: 3 }];
  db.post("a2", "u:1");
  db.post("b1", "u:2");
  db.outbox.push({ n: 4, client_id: "e1", conversation: "u:1", state: "waiting", frame: { type: "edit", message_id: 4, body: { text: "better" } } });
  sync.nudge();
  await settled();
  assert.deepEqual([sends(), begun], [["b1"], ["a1"]]);
  assert.equal(world.last.sent.at(-1).type, "edit");
  assert.equal(sync.send({ client_id: "a3", to: { user: 1 }, body: { text: "hi" } }), false, "it would overtake them");
  await sync.uploaded("a1", { up: [{ id: "f1" }] });
  await settled();
  assert.deepEqual(sends(), ["b1", "a1", "a2"]);
  assert.deepEqual(world.last.sent.find(({ client_id }) => client_id === "a1").body, { text: "a1", files: [{ id: "f1" }] });
});

test("behind a file that is refused the others go on", async () => {
  await welcome();
  sync.uploads.isUp = (item) => !item.files;
  db.post("a1", "u:1");
  db.outbox[0].files = [{ name: "pier.jpg", size: 3 }];
  db.post("a2", "u:1");
  sync.nudge();
  await settled();
  assert.deepEqual(sends(), []);
  await sync.uploaded("a1", { state: "failed", code: "file_too_large", reason: "no", up: null });
  await settled();
  assert.deepEqual(sends(), ["a2"]);
});

test("a moment with files is posted when they are up", async () => {
  await welcome();
  const calls = [];
  sync.call = async (method, path, body) => {
    calls.push([path, body]);
    return { message_id: 9 };
  };
  sync.uploads.isUp = (item) => !item.files || Boolean(item.up);
  const moment = { n: 1, client_id: "m1", conversation: "u:0", state: "waiting", files: [{ name: "pier.jpg", size: 3 }], call: { method: "POST", path: "/moments", body: { text: "" } } };
  const like = { n: 2, client_id: "l1", conversation: "u:0", state: "waiting", call: { method: "PUT", path: "/moments/4/like", body: { liked: true } } };
  db.outbox.push(moment, like);
  sync.nudge();
  await settled();
  assert.deepEqual(calls.map(([path]) => path), ["/moments/4/like"]);
  await sync.uploaded("m1", { up: [{ id: "f1" }] });
  await settled();
  assert.deepEqual(calls.at(-1), ["/moments", { text: "", files: [{ id: "f1" }], client_id: "m1" }]);
});
