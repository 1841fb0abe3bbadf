import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Presence } from "../static/presence.js";
import { Sync } from "../static/sync.js";
import { page, settled } from "./page.js";

const ME = 10_001;

let world;
let store;
let presence;
let said;
let shown;

beforeEach(() => {
  world = page();
  said = [];
  shown = 0;
  store = {
    self: { uid: ME }, open: null, friends: new Map(), nobody: new Set(), list: [], privacy: null, watchers: [],
    watch(watcher) { this.watchers.push(watcher); },
    sorted() { return this.list; },
    setting() { return this.privacy; },
    name: (uid) => ({ 2: "Bob", 3: "Cleo" })[uid] ?? `#${uid}`,
  };
  presence = new Presence(store, {
    say: (frame) => said.push(frame),
    watch: (people) => said.push(people),
    changed: () => { shown += 1; },
  });
});

test("that one is typing is told at most every four seconds, and anew after a message", () => {
  for (const _ of [1, 2, 3]) presence.typed("u:2");
  presence.typed("g:7");
  assert.deepEqual(said, [{ type: "typing", conversation: "u:2" }, { type: "typing", conversation: "g:7" }]);
  world.pass(4_000);
  presence.typed("u:2");
  presence.sent("u:2");
  presence.typed("u:2");
  assert.equal(said.length, 4);
  store.privacy = { typing: false };
  world.pass(60_000);
  presence.typed("u:2");
  store.privacy = null;
  presence.typed(`u:${ME}`);
  assert.equal(said.length, 4, "neither by choice nor to oneself");
});

test("who is typing is shown for six seconds, or until the message comes", () => {
  const typing = (sender, conversation = "g:7") => presence.hear({ type: "typing", conversation, sender });
  typing(2);
  assert.equal(presence.typingIn("g:7"), "Bob is typing…");
  typing(3);
  assert.equal(presence.typingIn("g:7"), "Bob and Cleo are typing…");
  typing(4);
  assert.equal(presence.typingIn("g:7"), "Several people are typing…");
  assert.equal(presence.typingIn("g:70"), "");
  presence.hear({ type: "arrived", rows: [{ conversation: "g:7", sender: 4 }, { conversation: "g:7", sender: 3 }] });
  world.pass(5_000);
  typing(2);
  world.pass(5_000);
  assert.equal(presence.typingIn("g:7"), "Bob is typing…", "said again, it lasts");
  const before = shown;
  world.pass(1_000);
  assert.equal(presence.typingIn("g:7"), "");
  presence.hear({ type: "arrived", rows: [{ conversation: "g:7", sender: 2 }] });
  assert.equal(shown, before + 1, "nothing is painted for what changes nothing");
});

test("watched are the open one, the list and friends, in this order and not too many", () => {
  store.open = "u:9";
  store.list = ["g:7", "u:0", `u:${ME}`, "u:5", "u:404"];
  store.nobody.add("u:404");
  for (let uid = 1_000; uid < 1_300; uid++) store.friends.set(uid, {});
  const people = presence.people();
  assert.equal(people.length, 200);
  assert.deepEqual(people.slice(0, 3), [5, 9, 1_000]);
  store.privacy = { presence: false };
  assert.equal(presence.people().length, 200, "one is told of their names all the same");
});

test("when somebody was there last is asked for once a minute, anew when they go, and not by whoever hides it", async () => {
  const asked = [];
  let time = new Date(Date.now()).toISOString();
  store.call = async (_, path) => {
    asked.push(path);
    return { last_seen: time };
  };
  assert.equal(presence.lastSeen(2), "", "it is not known yet");
  await settled();
  assert.match(presence.lastSeen(2), /^last seen today at /);
  assert.deepEqual([asked, shown], [["/users/2/last-seen"], 1]);
  presence.hear({ type: "presence", online: [2] });
  presence.hear({ type: "presence", online: [] });
  presence.lastSeen(2);
  await settled();
  assert.equal(asked.length, 2);
  time = null;
  world.pass(61_000);
  assert.match(presence.lastSeen(2), /^last seen today/, "meanwhile it is as it was");
  await settled();
  assert.equal(presence.lastSeen(2), "");
  store.privacy = { last_seen: false };
  world.pass(61_000);
  assert.equal(presence.lastSeen(2), "");
  assert.equal(asked.length, 3);
});

test("after each connection the server is told whom one watches, and nothing that it knows", async () => {
  const db = { uid: ME, position: async () => ({ cursor: 5, history: "h", learned: true }), all: async () => [] };
  const heard = [];
  const sync = new Sync({ db, call: async () => [], changed: () => {}, notified: () => {}, passed: (frame) => heard.push(frame),
    watching: (people) => heard.push(people) });
  await sync.start();
  const lists = () => world.last.sent.filter(({ type }) => type === "presence").map(({ of }) => of);
  sync.watch([2, 3]);
  for (const _ of [1, 2]) {
    await settled();
    world.last.receive({ type: "welcome", uid: ME, seq: 5, history: "h", heartbeat_seconds: 20 });
    await settled();
    sync.watch([2, 3]);
    assert.deepEqual(lists(), [[2, 3]]);
    sync.watch([]);
    assert.deepEqual(lists(), [[2, 3], []]);
    sync.watch([2, 3]);
    sync.socket.retry();
    sync.now();
  }
  world.last.receive({ type: "welcome", uid: ME, seq: 5, history: "h", heartbeat_seconds: 20 });
  world.last.receive({ type: "presence", online: [2] });
  await settled();
  assert.deepEqual(heard, [[2, 3], { type: "presence", online: [2] }], "it is answered for all of them");
  sync.watch([2, 3, 4]);
  world.last.receive({ type: "presence", online: [] });
  world.last.receive({ type: "presence", online: [4] });
  await settled();
  assert.deepEqual(heard.slice(2), [[4], { type: "presence", online: [] }, { type: "presence", online: [4] }]);
  sync.stop();
});
