import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { eventOf, muteIn, waitIn } from "../static/groups.js";
import { keptIn } from "../static/keep.js";
import { itemsOf } from "../static/rows.js";
import { isStarred, starredIds } from "../static/starred.js";
import { authorOf } from "../static/state.js";
import { Store, uuid } from "../static/store.js";
import { settled } from "./page.js";

const ME = { uid: 10_001, name: "Ann" };

let asked;
let store;

beforeEach(() => {
  asked = [];
  const call = async (_, path) => {
    asked.push(path);
    throw { status: 404, retryable: false };
  };
  store = new Store({ db: {}, call, self: ME, nudge: () => {} });
  store.base = 1;
  Object.assign(store, { conversations: new Map(), names: new Map([[10_002, "Bob"]]), drafts: new Map(), outbox: [], settings: new Map(), friends: new Map(), stars: new Map() });
});

const row = (message_id, fields = {}) => ({
  message_id, kind: "message", sender: 10_002, sent_at: `2026-03-04T10:00:0${message_id % 10}Z`, body: { text: "hi" }, ...fields,
});

test("the conversation with the latest message comes first, and one with a waiting message before all", () => {
  store.conversations.set("u:1", { last: row(3) }).set("u:2", { last: row(9) }).set("g:3", { last: row(4) });
  assert.deepEqual(store.sorted(), ["u:2", "g:3", "u:1"]);
  store.outbox.push({ n: 1, conversation: "u:1", state: "waiting" });
  assert.deepEqual(store.sorted(), ["u:1", "u:2", "g:3"]);
  store.outbox[0].state = "sent";
  assert.deepEqual(store.sorted(), ["u:2", "g:3", "u:1"]);
});

test("a setting that was refused is as it was and is told, but for a draft", () => {
  store.settings.set("mute u:1", {});
  const refused = (fields) => ({ conversation: "u:1", state: "failed", ...fields });
  store.outbox.push(refused({ frame: { type: "setting", name: "draft", value: {} } }), refused({ frame: { type: "edit", message_id: 3 } }),
    refused({ call: { path: "/friends/1" } }));
  assert.equal(store.refusedSetting(), undefined);
  const mute = refused({ frame: { type: "setting", name: "mute", value: null } });
  store.outbox.push(mute, refused({ conversation: "u:10001", call: { path: "/settings/privacy", body: { value: { quiet: true } } } }));
  assert.equal(store.refusedSetting(), mute);
  assert.deepEqual([store.setting("mute", "u:1"), store.setting("privacy")], [{}, null]);
  store.outbox.splice(3, 1);
  assert.equal(store.refusedSetting().call.path, "/settings/privacy");
  store.outbox.at(-1).state = "waiting";
  assert.equal(store.refusedSetting(), undefined);
});

test("a message that an administrator removed says so, also in its quotes, until the name is known and after", () => {
  store.conversations.set("g:5", { role: "administrator" });
  const removed = row(1, { conversation: "g:5", client_id: "a", kind: "recalled", body: { by: 10_003 } });
  const reply = row(2, { conversation: "g:5", client_id: "b", body: { text: "what?", reply_to: { of: { sender: 10_002, client_id: "a" } } } });
  const items = () => itemsOf(store, [removed, reply], [], null, "", new Map([["10002 a", removed]])).filter(({ row }) => row);
  const [unnamed] = items();
  store.names.set(10_003, "Cat");
  const [named, quoting] = items();
  for (const text of [named.recalled, quoting.said.text]) assert.match(text, /^Message removed by .?Cat.?$/);
  assert.notEqual(named.sig, unnamed.sig);
  assert.equal(store.recalled(row(3, { body: { by: ME.uid } })), "You removed this message");
  assert.match(store.recalled(row(3, { body: {} })), /Bob.? took a message back$/);
  assert.deepEqual([store.governs("g:5"), store.governs("g:6"), store.governs("u:10002")], [true, false, false]);
});

test("a mute holds until its end, and not for the owner", () => {
  const at = (muted, role = "member") => {
    store.conversations.set("g:5", { muted, role });
    return muteIn(store, "g:5");
  };
  const [past, coming] = [-1_000, 60_000].map((ms) => ({ until: new Date(Date.now() + ms).toISOString() }));
  assert.deepEqual([at(null), at(past), at(coming), at({}), at({}, "owner"), at({}, "administrator")], [null, null, coming, {}, null, {}]);
  assert.equal(muteIn(store, "g:6"), null);
});

test("a conversation lies in the archive until something newer comes, and as long as it is muted", () => {
  store.conversations.set("u:1", { id: "u:1", last: row(3), unread: 2 }).set("u:2", { id: "u:2", last: row(9), unread: 1, mentions: 1 });
  store.settings.set("archive u:1", { up_to: 3 });
  store.open = "u:1";
  assert.deepEqual([store.sorted(), store.archived(), store.unreadTotal()], [["u:2"], ["u:1"], 1]);
  store.drafts.set("u:1", "half a");
  assert.deepEqual([store.sorted(), store.archived()], [["u:2"], ["u:1"]]);
  store.conversations.get("u:1").last = row(10);
  assert.deepEqual([store.sorted(), store.archived(), store.unreadTotal()], [["u:1", "u:2"], [], 3]);
  store.settings.set("mute u:1", {});
  assert.deepEqual([store.sorted(), store.archived(), store.unreadTotal()], [["u:2"], ["u:1"], 1]);
});

test("what the page of 0.1.0 took out of the list lies in the archive, and can be taken out of it", async () => {
  store.conversations.set("u:1", { id: "u:1", last: row(3), unread: 0 });
  store.settings.set("hide u:1", { up_to: 3 });
  assert.deepEqual(store.archived(), ["u:1"]);
  const queued = [];
  store.db = { queue: async (item) => queued.push(item.frame), overview: async () => ({}) };
  await store.archive("u:1", false);
  assert.deepEqual(queued.map(({ name, value }) => [name, value]), [["archive", null], ["hide", null]]);
});

test("a conversation that is marked as unread counts as one until it is opened", async () => {
  store.conversations.set("u:1", { id: "u:1", last: row(3), unread: 0 });
  const queued = [];
  store.db = { queue: async (item) => queued.push(item.frame), overview: async () => ({}) };
  await store.unmark("u:1");
  assert.deepEqual(queued, []);
  store.settings.set("unread u:1", { unread: true });
  assert.deepEqual([store.isFresh("u:1"), store.unread("u:1"), store.unreadTotal()], [true, 0, 1]);
  await store.unmark("u:1");
  assert.deepEqual(queued, [{ type: "setting", name: "unread", value: null }]);
});

test("in slow mode the next message waits for the last one, also for one that is on its way", () => {
  const now = Date.now();
  const wait = (fields) => {
    store.conversations.set("g:5", { slow: 30, role: "member", ...fields });
    return Math.ceil(waitIn(store, "g:5") / 1_000);
  };
  assert.deepEqual([wait({}), wait({ spoke: now - 10_000 }), wait({ spoke: now - 30_000 }), wait({ spoke: now + 60_000 })], [0, 20, 0, 30]);
  assert.deepEqual([wait({ spoke: now, role: "administrator" }), wait({ spoke: now, slow: 0 })], [0, 0]);
  store.outbox.push({ n: 1, conversation: "g:5", state: "failed", sent_at: new Date(now).toISOString() });
  assert.equal(wait({}), 0);
  store.outbox.push({ n: 2, conversation: "g:5", state: "waiting", sent_at: new Date(now - 5_000).toISOString() });
  assert.equal(wait({}), 25);
});

test("a mute and slow mode are told in sentences", () => {
  const event = (body) => eventOf(store, { body: { by: 10_002, by_name: "Bob", uid: ME.uid, user_name: "Ann", ...body } });
  assert.match(event({ action: "muted" }), /Bob.? muted you$/);
  assert.match(event({ action: "muted", until: "2026-03-04T10:00:00Z" }), /Bob.? muted you until .*2026/);
  assert.match(event({ action: "slow", slow_seconds: 60 }), /Bob.? turned slow mode on: one message of each member every 1 minute$/);
  assert.equal(event({ action: "slow", slow_seconds: 0, by: ME.uid }), "You turned slow mode off");
  assert.match(event({ action: "unmuted", by: ME.uid, uid: 10_002, user_name: "Bob" }), /^You lifted the mute of .?Bob/);
});

test("the time for messages is told in sentences, and what is still to go out counts", () => {
  const said = (seconds, sender) => eventOf(store, { kind: "keep", sender, body: { keep: { seconds } } });
  store.names.set(10_002, "Bob");
  assert.match(said(604_800, 10_002), /Bob.? set messages to disappear after 1 week$/);
  assert.match(said(4 * 604_800, ME.uid), /^You set messages to disappear after 4 weeks$/);
  assert.equal(said(0, ME.uid), "You turned disappearing messages off");
  const group = { kind: "membership", sender: 10_002, body: { action: "keep", by: 10_002, by_name: "Bob", keep: { seconds: 86_400 } } };
  assert.match(eventOf(store, group), /Bob.? set messages to disappear after 1 day$/);
  assert.equal(keptIn(store, "u:10002"), 0);
  store.conversations.set("u:10002", { keep: { seconds: 60 } });
  assert.equal(keptIn(store, "u:10002"), 60);
  const call = { path: "/conversations/u:10002/keep", body: { keep_seconds: 0 } };
  store.outbox.push({ n: 1, conversation: "u:10002", state: "waiting", call });
  assert.equal(keptIn(store, "u:10002"), 0);
  store.outbox[0].state = "failed";
  assert.deepEqual([keptIn(store, "u:10002"), store.refusedSetting()?.call], [60, call]);
});

test("drafts and the open conversation are listed without a message", () => {
  store.conversations.set("u:1", { last: row(3) });
  store.drafts.set("u:8", "half a");
  store.open = "u:7";
  assert.deepEqual(store.sorted(), ["u:1", "u:7", "u:8"]);
});

test("a line is one line, and says who spoke", () => {
  const two = row(1, { body: { text: "one\n  two" } });
  assert.equal(store.line(two, false), "one two");
  assert.equal(store.line(two, true), "Bob: one two");
  assert.equal(store.line({ ...two, sender: ME.uid }, true), "You: one two");
  assert.equal(store.line(row(1, { body: { text: "x".repeat(900) } }), false).length, 200);
  assert.equal(store.line(row(1, { body: null }), false), "");
});

test("a change of a group is a sentence", () => {
  const event = (body) => eventOf(store, { body });
  assert.equal(event({ action: "created", by: ME.uid }), "You created the group");
  assert.equal(event({ action: "added", by: 10_002, uid: ME.uid }), "Bob added you");
  assert.equal(event({ action: "left", by: 10_002, uid: 10_002 }), "Bob left");
  assert.equal(event({ action: "of a later version", by: 10_002 }), "The group changed");
});

test("every change of a group has a sentence, whoever did it to whom", () => {
  const [me, ben, cleo] = [ME.uid, 10_002, 10_003];
  store.names.set(cleo, "Cleo");
  const told = new Set();
  for (const action of ["created", "added", "removed", "left", "renamed", "topic", "role", "banned", "unbanned"]) {
    for (const [by, uid] of [[me, ben], [ben, me], [ben, cleo], [me, me], [ben, ben]]) {
      for (const more of [{}, { role: "owner", topic: "Boats", owner: me }, { role: "administrator", owner: cleo }]) {
        const text = eventOf(store, { body: { action, by, uid, name: "Walk", ...more } });
        assert.doesNotMatch(text, /event\.|[{}]|undefined/, `${action} ${by} ${uid}`);
        told.add(text);
      }
    }
  }
  assert.ok(told.has("Bob left. You are the owner now.") && told.has("Bob made you an administrator"), [...told].join("\n"));
});

test("the name of a stranger is asked for once", async () => {
  assert.equal(store.name(10_009), "#10009");
  assert.equal(store.name(10_009), "#10009");
  await settled();
  assert.equal(store.name(10_009), "#10009");
  assert.deepEqual(asked, ["/users/10009"]);
});

test("a new browser asks for no names before it has the list of conversations", () => {
  store.base = 0;
  assert.equal(store.name(10_009), "#10009");
  assert.deepEqual(asked, []);
});

test("the name of whoever wishes to be a friend is asked for when that comes, not when it is shown", async () => {
  const learnt = [];
  const kept = { base: 1, friends: new Map([[10_002, { uid: 10_002, mine: true, theirs: true }]]), conversations: new Map(), names: new Map(store.names) };
  store.db = { overview: async () => ({ ...kept, names: new Map(kept.names) }), learn: async (people) => {
    learnt.push(...people);
    for (const { uid, name } of people) kept.names.set(uid, name);
  } };
  store.call = async (_, path) => {
    asked.push(path);
    return { uid: 10_007, name: "Cem" };
  };
  await store.load();
  assert.deepEqual(asked, [], "that of a friend is here");
  kept.friends.set(10_007, { uid: 10_007, mine: false, theirs: true });
  await store.load();
  await settled();
  assert.deepEqual([asked, learnt], [["/users/10007"], [{ uid: 10_007, name: "Cem" }]]);
  // The connection is gone when it is shown.
  store.call = async () => { throw { status: 0, retryable: true }; };
  assert.equal(store.name(10_007), "Cem");
});

test("a name that has changed is shown everywhere, and is asked for anew when the server says so", async () => {
  store.conversations.set("u:10002", { id: "u:10002", title: "Bob", last: row(3) });
  store.profiles = new Map([[10_002, { at: Date.now() }]]);
  const names = new Map();
  store.db = { write: async (_, work) => work({ put: (value, key) => names.set(key, value) }),
    overview: async () => ({ names: new Map([[10_002, names.get(10_002)]]) }) };
  store.call = async (_, path) => {
    asked.push(path);
    return [{ uid: 10_002, name: "Robert" }];
  };
  assert.equal(store.title("u:10002"), "Bob");
  assert.equal(await store.meetAgain(10_002), "Robert");
  assert.deepEqual(asked, ["/profiles?uids=10002"]);
  assert.deepEqual([store.title("u:10002"), store.line(row(3), true)], ["Robert", "Robert: hi"]);
});

test("another picture of a person is kept, and that of a group is told as a sentence", async () => {
  const kept = new Map();
  store.profiles = new Map([[10_002, { hue: 5, at: 0 }]]);
  store.db = { write: async (_, work) => work({ put: (value, key) => kept.set(key, value) }), overview: async () => ({}) };
  store.call = async () => [{ uid: 10_002, name: "Bob", hue: 5, picture: "one" }];
  store.load = async () => {};
  await store.meetAgain(10_002);
  assert.equal(kept.get("profile 10002").picture, "one");
  const event = (body) => eventOf(store, { kind: "membership", sender: 10_002, body: { action: "picture", by: 10_002, by_name: "Bob", ...body } });
  assert.equal(event({ picture: "one" }), "Bob changed the picture of the group");
  assert.equal(event({ picture: null, by: 10_001 }), "You removed the picture of the group");
});

test("people of whom one was told before they were watched are asked for again", async () => {
  store.names.delete(10_002);
  store.call = async (_, path) => {
    asked.push(path);
    return [];
  };
  store.write = async () => {};
  store.name(10_002);
  await store.meetAnew([10_002, 10_003]);
  assert.deepEqual(asked, ["/users/10002", "/profiles?uids=10002"]);
});

test("keys of messages are UUIDs of version 4, and none is like another", () => {
  const keys = new Set(Array.from({ length: 1_000 }, uuid));
  assert.equal(keys.size, 1_000);
  for (const key of keys) assert.match(key, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("a stored row takes the place of its outbox item, under one key", () => {
  const waiting = { n: 1, client_id: "k", conversation: "u:10002", state: "waiting", sent_at: row(1).sent_at, body: { text: "hi" } };
  const last = (items) => items.at(-1);
  const before = last(itemsOf(store, [], [waiting], null, null));
  const after = itemsOf(store, [row(1, { sender: ME.uid, client_id: "k" })], [waiting], null, null);
  assert.equal(before.key, last(after).key);
  assert.deepEqual([before.state, last(after).state], ["waiting", "sent"]);
  assert.equal(after.filter(({ row: shown }) => shown).length, 1);
});

test("the line \"New\" stands before the first unread message of somebody else", () => {
  const rows = [row(1), row(2, { sender: ME.uid }), row(3)];
  const keys = itemsOf(store, rows, [], 1, null).map(({ key }) => key);
  assert.equal(keys.indexOf("fresh"), keys.indexOf("r3") - 1);
  assert.ok(!itemsOf(store, rows, [], 3, null).some(({ key }) => key === "fresh"), "nothing is unread");
  assert.ok(!itemsOf(store, rows, [], null, null).some(({ key }) => key === "fresh"), "nobody asked");
});

test("messages of one person within five minutes stand together", () => {
  const at = (minute) => `2026-03-04T10:${minute}:00Z`;
  const rows = [row(1, { sent_at: at("00") }), row(2, { sent_at: at("04") }), row(3, { sent_at: at("10") })];
  const firsts = itemsOf(store, rows, [], null, null).filter((item) => item.row).map(({ first }) => first);
  assert.deepEqual(firsts, [true, false, true]);
});

test("each day has a line of its own, and whoever speaks first on it is named again", () => {
  // The days of this machine: a minute after a minute before midnight.
  const rows = [row(1, { sent_at: new Date(2026, 2, 4, 23, 59).toISOString() }), row(2, { sent_at: new Date(2026, 2, 5, 0, 0).toISOString() }),
    row(3, { sent_at: new Date(2026, 2, 5, 0, 1).toISOString() })];
  const items = itemsOf(store, rows, [], null, null);
  assert.deepEqual(items.map(({ line, id, first }) => (line ? [line] : [id, first])), [["day"], [1, true], ["day"], [2, true], [3, false]]);
  assert.deepEqual(items.filter(({ line }) => line).map(({ sig }) => sig), ["Wednesday, March 4, 2026", "Thursday, March 5, 2026"]);
});

test("a day that begins again behind another one has a line of its own, with a key of its own", () => {
  const at = (message_id, day) => row(message_id, { sent_at: new Date(2026, 2, day, 12).toISOString() });
  const lines = itemsOf(store, [at(1, 4), at(2, 5), at(3, 4), at(4, 5)], [], null, null).filter(({ line }) => line);
  assert.deepEqual(lines.map(({ sig }) => sig.match(/\d+(?=,)/)[0]), ["4", "5", "4", "5"]);
  assert.equal(new Set(lines.map(({ key }) => key)).size, 4);
});

test("a star is what waits to go out, or the row about the message", () => {
  const said = (message_id) => row(message_id, { conversation: "u:2" });
  const starred = () => [1, 2, 3, 4].filter((id) => isStarred(store, said(id)));
  store.conversations.set("u:2", { last: row(9) });
  store.stars.set(1, false).set(2, true).set(3, true);
  assert.deepEqual([starred(), starredIds(store)], [[2, 3], [3, 2]]);
  const waits = (n, message_id, starred, state = "waiting") => store.outbox.push({ n, conversation: "u:2", state, frame: { type: "star", message_id, starred } });
  waits(1, 3, false);
  waits(2, 2, false);
  waits(3, 2, true);
  waits(4, 4, true, "failed");
  assert.deepEqual([starred(), starredIds(store)], [[2], [2]]);
  store.outbox.length = 0;
  assert.deepEqual([starred(), starredIds(store)], [[2, 3], [3, 2]]);
});

test("a forwarded message names its first author, also while it waits", () => {
  const rows = [
    row(3, { body: { text: "a", forwarded_from: 10_002 } }),
    row(4, { body: { text: "b", forwarded_from: ME.uid } }),
    row(5),
  ];
  const item = { client_id: "c", conversation: "u:10002", body: { text: "d", forward: 3 }, forwarded_from: 10_002, sent_at: "2026-03-04T10:00:09Z" };
  const from = itemsOf(store, rows, [item], 9, "").flatMap(({ row, from }) => (row ? [from ?? null] : []));
  assert.deepEqual(from, ["Forwarded from Bob", "Forwarded from you", null, "Forwarded from Bob"]);
  assert.deepEqual([authorOf(rows[0]), authorOf(rows[2]), authorOf(null)], [10_002, 10_002, undefined]);
});
