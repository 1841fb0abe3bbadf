import assert from "node:assert/strict";
import { test } from "node:test";

import { openDb } from "../static/db.js";
import { Kept, databases } from "./indexeddb.js";

test("what a page of another version kept is dropped, and what this one kept is used", async () => {
  const ann = { uid: 10_001, account: "10001-5" };
  const name = "tidemark-10001-5";
  for (const version of [0.5, 99]) {
    databases[name] = { version, stores: { rows: new Kept(), gone: new Kept() } };
    const db = await openDb(ann);
    assert.deepEqual([databases[name].version, databases[name].stores.gone], [1, undefined]);
    assert.deepEqual(await db.position(), { cursor: 0, base: 0 });
    await db.write(["meta"], (meta) => { meta.put({ cursor: 4, history: "one", base: 5 }, "position"); });
    assert.equal((await (await openDb(ann)).position()).cursor, 4);
    delete databases[name];
  }
});

test("what the page of 0.1.0 kept under the name is taken over, once, and what is newer stays", async () => {
  const ann = { uid: 10_001, name: "Ann", account: "10001-5" };
  indexedDB.databases = async () => Object.keys(databases).map((name) => ({ name }));
  const earlier = await openDb({ account: "10001-Ann" });
  const item = (client_id) => ({ client_id, conversation: "u:10002", body: { text: client_id }, state: "waiting" });
  const put = (db, drafts, outbox) => db.write(["drafts", "outbox"], (texts, waiting) => {
    for (const [id, text] of Object.entries(drafts)) texts.put({ id, text });
    for (const client_id of outbox) waiting.add(item(client_id));
  });
  await put(earlier, { "u:10002": "half a", "u:10003": "old" }, ["a", "b"]);
  delete databases["tidemark-10001-5"];
  await put(await openDb({ account: "10001-5" }), { "u:10003": "new" }, ["b"]);
  const db = await openDb(ann);
  const { drafts, outbox } = await db.overview();
  assert.deepEqual([...drafts], [["u:10002", "half a"], ["u:10003", "new"]]);
  assert.deepEqual(outbox.map(({ client_id }) => client_id).sort(), ["a", "b"]);
  assert.deepEqual(Object.keys(databases).filter((name) => name.startsWith("tidemark-10001-")), ["tidemark-10001-5"]);
  assert.equal((await (await openDb(ann)).overview()).outbox.length, 2);
  delete databases["tidemark-10001-5"];
  delete indexedDB.databases;
});

test("a row of an unknown kind is kept and shown nowhere, and the cursor goes on", async () => {
  const db = await openDb({ uid: 10_001, account: "10001-5" });
  await db.write(["meta"], (meta) => { meta.put({ cursor: 4, history: "one", base: 5 }, "position"); });
  const row = (message_id, kind, body) => ({ message_id, kind, conversation: "u:10002", sender: 10_002, client_id: `k${message_id}`, body });
  const unknown = row(6, "of a later version", { of: { sender: 10_002, client_id: "k5" }, text: "hm" });
  const answer = await db.entries([row(5, "message", { text: "hi" }), unknown], 4, 6);
  assert.deepEqual([answer.cursor, answer.arrived.map(({ message_id }) => message_id)], [6, [5]]);
  assert.equal((await db.position()).cursor, 6);
  assert.deepEqual(await db.row(6), unknown);
  assert.deepEqual((await db.page("u:10002", { limit: 9 })).map(({ message_id, body }) => [message_id, body.text]), [[5, "hi"]]);
  assert.deepEqual(await db.moments(9), []);
  const { last, unread } = (await db.overview()).conversations.get("u:10002");
  assert.deepEqual([last.message_id, unread], [5, 1]);
  const more = await db.entries([row(7, "message", { text: "ho" })], 6, 7);
  assert.deepEqual([more.cursor, more.arrived.length], [7, 1], "what follows comes");
});

test("what is new in the feed is counted from what is here, where the read marker lies below that", async () => {
  const db = await openDb({ uid: 10_001, account: "10001-5" });
  const feed = { id: "u:0", title: null, last: null, unread: 9, mentions: 0, counted: 0, read_to: 3, acked: 3, floor: 40 };
  await db.write(["meta", "conversations"], (meta, conversations) => {
    meta.put({ cursor: 40, history: "one", base: 40 }, "position");
    conversations.put(feed);
  });
  const row = (message_id, kind, body) => ({ message_id, kind, conversation: "u:0", sender: 10_002, client_id: `k${message_id}`, body });
  await db.entries([row(41, "moment", { text: "hi" }), row(42, "moment", { text: "ho" })], 40, 42);
  const { stale } = await db.entries([row(43, "receipt", { read_to: 30 })], 42, 43);
  assert.equal(stale, false, "no list has a count of the feed, so none is asked for");
  const { unread, read_to } = (await db.overview()).conversations.get("u:0");
  assert.deepEqual([unread, read_to], [2, 30]);
  assert.equal((await db.entries([row(44, "moment", { text: "ha" })], 43, 44)).stale, false);
  assert.equal((await db.overview()).conversations.get("u:0").unread, 3);
});

test("what was taken back before it was ever here is counted anew", async () => {
  const db = await openDb({ uid: 10_001, account: "10001-5" });
  const row = (message_id, kind, body) => ({ message_id, kind, conversation: "g:7", sender: 10_002, client_id: `k${message_id}`, body });
  const of = (n) => ({ of: { sender: 10_002, client_id: `k${n}` } });
  const last = row(40, "message", { text: "hi" });
  const line = { id: "g:7", title: "Walk", last, unread: 3, mentions: 0, read_to: 20, acked: 20, counted: 40, floor: 41 };
  await db.write(["meta", "conversations"], (meta, conversations) => {
    meta.put({ cursor: 40, history: "one", base: 41 }, "position");
    conversations.put(line);
  });
  assert.equal((await db.entries([row(41, "reaction", { ...of(30), emoji: ["👍"] })], 40, 41)).stale, false);
  assert.equal((await db.entries([row(42, "recall", of(30))], 41, 42)).stale, true);
  await db.recount([{ id: "g:7", last, unread: 2, mentions: 0, read_to: 20 }]);
  assert.equal((await db.overview()).conversations.get("g:7").unread, 2);
  assert.equal((await db.entries([row(43, "delete", of(31))], 42, 43)).stale, true);
  await db.recount([{ id: "g:7", last, unread: 1, mentions: 0, read_to: 20 }]);
  // The newest is known from the list: there is nothing to ask.
  const { stale } = await db.entries([row(44, "recall", of(40))], 43, 44);
  assert.deepEqual([stale, (await db.overview()).conversations.get("g:7").unread], [false, 0]);
});

test("what was read of a part in the middle is taken off the count, and a marker elsewhere has it asked for", async () => {
  const db = await openDb({ uid: 10_001, account: "10001-5" });
  const row = (message_id, fields = {}) => ({ message_id, kind: "message", conversation: "g:8", sender: 10_002, client_id: `k${message_id}`,
    body: { text: "hi", ...(message_id % 10 === 0 && { mentions: { all: true } }) }, ...fields });
  const line = { id: "g:8", last: row(400), unread: 300, mentions: 30, read_to: 100, acked: 100, counted: 400, floor: 401 };
  await db.write(["meta", "conversations"], (meta, conversations) => {
    meta.put({ cursor: 400, history: "one", base: 401 }, "position");
    conversations.put(line);
  });
  const of = async () => {
    const { unread, mentions, read_to, stale = false } = (await db.overview()).conversations.get("g:8");
    return { unread, mentions, read_to, stale };
  };
  const page = Array.from({ length: 100 }, (_, at) => row(80 + at)).reverse();
  await db.keepHistory("g:8", page, { from: 80, to: 179, life: "another" });
  assert.equal(await db.row(150), undefined, "that was another life of the data");
  await db.keepHistory("g:8", page, { from: 80, to: 179, life: "one" });
  assert.equal(await db.markRead("g:8", 150), true);
  assert.deepEqual(await of(), { unread: 250, mentions: 25, read_to: 150, stale: false });
  assert.equal(await db.markRead("g:8", 140), false, "it never goes back");
  await db.markRead("g:8", 200);
  assert.deepEqual(await of(), { unread: 250, mentions: 25, read_to: 200, stale: true });
  await db.recount([{ id: "g:8", last: row(400), unread: 200, mentions: 20, read_to: 200 }]);
  await db.markRead("g:8", 400);
  assert.deepEqual(await of(), { unread: 0, mentions: 0, read_to: 400, stale: false });
  await db.keepPlace("g:8", { id: 150, offset: 12 });
  assert.deepEqual((await db.overview()).conversations.get("g:8").place, { id: 150, offset: 12 });
});

test("what the server keeps no longer goes, and its conversation stays in the list", async () => {
  const db = await openDb({ uid: 10_001, account: "10001-6" });
  const day = (n) => `2026-11-0${n}T00:00:00.000Z`;
  const row = (message_id, conversation, n, kind = "message") =>
    ({ message_id, kind, conversation, sender: 10_002, client_id: `k${message_id}`, body: { text: "hi" }, sent_at: day(n) });
  const quiet = [row(1, "g:7", 1, "membership"), row(2, "u:2", 1), row(3, "g:7", 2), row(5, "u:2", 2)];
  const busy = [row(6, "g:7", 4), row(7, "g:7", 2), row(8, "g:7", 5)];
  const waiting = { conversation: "u:2", to: { user: 2 }, body: { text: "late" }, state: "waiting" };
  await db.write(["meta", "rows", "conversations", "outbox", "stars"], (meta, rows, conversations, outbox, stars) => {
    meta.put({ cursor: 8, history: "one", base: 1 }, "position");
    for (const each of [...quiet, ...busy]) rows.put(each);
    const line = { unread: 0, mentions: 0, read_to: 0, acked: 0, counted: 0, floor: 1 };
    conversations.put({ ...line, id: "u:2", last: quiet[3], unread: 2 });
    conversations.put({ ...line, id: "g:7", last: busy[2], unread: 4, pins: [quiet[2], busy[0]] });
    conversations.put({ ...line, id: "g:9", last: row(4, "g:9", 1, "membership") });
    outbox.put({ ...waiting, n: 1, client_id: "a", sent_at: day(2) });
    outbox.put({ ...waiting, n: 2, client_id: "b", sent_at: day(3) });
    stars.put({ message_id: 3, starred: true });
    stars.put({ message_id: 8, starred: true });
  });
  const { changed, stale } = await db.expire(day(3));
  assert.deepEqual([changed.sort(), stale], [["g:7", "u:2", "u:2"], false]);
  const { conversations, outbox, stars } = await db.overview();
  assert.deepEqual((await db.all("rows")).map(({ message_id }) => message_id), [1, 6, 7, 8], "row 7 lies behind a younger one");
  const { last, unread } = conversations.get("u:2");
  assert.deepEqual([last, unread], [{ message_id: 5, kind: "deleted", conversation: "u:2", sender: 10_002, body: {}, sent_at: day(2) }, 0]);
  const group = conversations.get("g:7");
  assert.deepEqual([group.last.message_id, group.unread, group.floor, group.pins.length], [8, 3, 4, 1]);
  assert.equal(conversations.get("g:9").last.kind, "membership");
  assert.deepEqual([...stars.keys()], [8]);
  assert.deepEqual(outbox.map(({ state, code }) => [state, code]).sort(), [["failed", "expired"], ["waiting", undefined]]);
  assert.deepEqual(await db.expire(day(3), false), { changed: [], stale: false });
  // Of the group some lie below what is here.
  assert.deepEqual(await db.expire(day(3), true), { changed: ["g:7"], stale: true });
  await db.recount([{ id: "g:7", last: busy[2], unread: 2, read_to: 0 }]);
  assert.equal((await db.overview()).conversations.get("g:7").unread, 2);
  await db.keepHistory("u:2", [], { from: 0, to: 5, life: "one" });
  assert.equal((await db.overview()).conversations.get("u:2").last.message_id, 5);
});

test("a conversation with a time of its own loses what is older, and a longer time brings nothing back", async () => {
  const db = await openDb({ uid: 10_001, account: "10001-9" });
  const hour = (n) => new Date(3_600_000 * n).toISOString();
  const at = (n) => ({ now: 3_600_000 * n });
  const row = (message_id, conversation, n, body = { text: "hi" }, kind = "message", sender = 2) =>
    ({ message_id, kind, conversation, sender, client_id: `k${message_id}`, body, sent_at: hour(n) });
  const keep = (message_id, n, seconds, gone_before, sender = 2) => row(message_id, "u:2", n, { keep: { seconds, gone_before } }, "keep", sender);
  await db.begin(0, "one", [{ id: "u:2", unread: 0, read_to: 0 }, { id: "u:3", unread: 0, read_to: 0 }]);
  const expire = async (n) => (await db.expire(undefined, false, at(n).now)).changed;
  const ids = async () => (await db.all("rows")).map(({ message_id }) => message_id);
  await db.entries([row(1, "u:2", 1), row(2, "u:3", 1), row(3, "u:2", 4)], 0, 3);
  assert.deepEqual(await expire(9), [], "nobody has said anything of it");
  await db.entries([keep(4, 5, 7_200)], 3, 4);
  assert.equal((await db.overview()).conversations.get("u:2").last.message_id, 4);
  assert.deepEqual([await expire(5), await ids()], [["u:2"], [2, 3, 4]]);
  // The other one's crossed it: it was sent before, and comes after.
  await db.entries([keep(5, 4, 0, 0, 10_001)], 4, 5);
  assert.deepEqual([await expire(7), await ids()], [["u:2"], [2, 4, 5]]);
  await db.entries([keep(6, 8, 0, 3_600_000 * 6)], 5, 6);
  await db.keepHistory("u:2", [row(3, "u:2", 4)], { from: 3, to: 3, life: "one" });
  assert.deepEqual([await expire(8), await ids()], [["u:2"], [2, 4, 5, 6]]);
});

test("a new browser takes the times for messages with its settings", async () => {
  const db = await openDb({ uid: 10_001, account: "10001-10" });
  await db.begin(9, "one", [{ id: "g:7", unread: 0, read_to: 0 }]);
  const joined = { kind: "membership", conversation: "g:7", sender: 2, sent_at: "2026-11-01T00:00:00Z", body: { action: "added", keep: { seconds: 60 } } };
  await db.learnState([joined, { ...joined, kind: "keep", conversation: "u:2" }], []);
  const { conversations } = await db.overview();
  assert.equal(conversations.get("g:7").keep.seconds, 60);
  assert.equal(conversations.has("u:2"), false, "the list had all that there are");
});

test("starting over in the same history keeps what waits as it is; in another one ids may mean other rows", async () => {
  const db = await openDb({ uid: 10_001, account: "10001-8" });
  const reply = { conversation: "u:2", to: { user: 2 }, body: { text: "yes", reply_to: 7 }, quote: { of: {} } };
  const waiting = [
    { ...reply, client_id: "a", state: "waiting" },
    { ...reply, client_id: "b", state: "sent", message_id: 8 },
    { client_id: "c", state: "waiting", frame: { message_id: 7 } },
  ];
  await db.write(["meta", "outbox"], (meta, outbox) => {
    meta.put({ cursor: 5, history: "one", base: 1 }, "position");
    for (const item of waiting) outbox.add(item);
  });
  assert.equal(await db.begin(9, "one", []), false);
  const kept = () => db.overview().then(({ outbox }) => outbox.map((item) => [item.client_id, item.state, item.body?.reply_to]).sort());
  assert.deepEqual(await kept(), [["a", "waiting", 7], ["c", "waiting", undefined]], "the row of the second is not sent again");
  assert.equal(await db.begin(8, "one", []), true, "it ends before the cursor");
  assert.deepEqual(await kept(), [["a", "waiting", undefined]]);
});
