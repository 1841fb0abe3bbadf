import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { page, settled } from "./page.js";
import { Refusal } from "../static/api.js";
import { Search } from "../static/search.js";
import { nameOf } from "../static/state.js";
import { Store } from "../static/store.js";

const ME = { uid: 10_001, name: "Ann" };
const BOB = 10_002;

globalThis.IDBKeyRange = {
  bound: (from, to, isOpen) => (key) => (isOpen ? order(from, key) < 0 && order(key, to) < 0 : order(from, key) <= 0 && order(key, to) <= 0),
  upperBound: (to) => (key) => order(key, to) < 0,
};
const order = (one, other) => {
  const [a, b] = [one, other].map((key) => [key].flat());
  const at = a.findIndex((part, index) => part !== b[index]);
  return at < 0 ? 0 : a[at] < b[at] ? -1 : 1;
};

/** A request of IndexedDB that answers a moment later. */
function request(result) {
  const made = {};
  queueMicrotask(() => {
    made.result = result;
    made.onsuccess();
  });
  return made;
}

/** As much of the database as a search uses. */
class Kept {
  rows = new Map();
  early = new Map();
  reads = 0;
  put(...rows) { for (const row of rows) this.rows.set(row.message_id, row); }
  read(names, work) {
    this.reads += 1;
    const all = (keyOf) => (range) => [...this.rows.values()].filter((row) => range(keyOf(row))).sort((a, b) => a.message_id - b.message_id);
    const of = (keyOf) => ({
      getAllKeys: (range) => request(all(keyOf)(range).map(({ message_id }) => message_id)),
      getAll: (range) => request(all(keyOf)(range)),
    });
    const rows = { ...of(({ message_id }) => message_id), get: (id) => request(this.rows.get(id)),
      index: () => of(({ conversation, message_id }) => [conversation, message_id]) };
    return work(rows, { get: (name) => request(this.early.get(name)) });
  }
}

const row = (message_id, text, fields = {}) => ({
  message_id, kind: "message", conversation: `u:${BOB}`, sender: BOB, client_id: `c${message_id}`, body: { text },
  sent_at: new Date(1_700_000_000_000 + message_id * 1_000).toISOString(), ...fields,
});

let world;
let db;
let store;
let search;
// The questions to the server, each with `answer(value)`, `refuse(why)` and the signal.
let asked;

beforeEach(() => {
  world = page();
  db = new Kept();
  asked = [];
  const call = (method, path, body, key, signal) => new Promise((answer, refuse) => {
    asked.push({ query: Object.fromEntries(new URLSearchParams(path.split("?")[1])), answer, refuse, signal });
  });
  store = new Store({ db, call, self: ME, nudge: () => {} });
  Object.assign(store, { conversations: new Map(), names: new Map(), drafts: new Map(), outbox: [], settings: new Map(), friends: new Map() });
  search = new Search(store, call, { changed: () => {}, limit: 4 });
});

const pass = async () => {
  world.pass(1_000);
  for (let turn = 0; turn < 20; turn += 1) await settled();
};
const ask = (text, wanted) => {
  search.ask({ text, conversation: null, sender: null, from: null, to: null, ...wanted });
  return pass();
};
const answer = async (rows, next_before = null, at = asked.length - 1) => {
  asked[at].answer({ hits: rows.map((each) => ({ row: each, marks: [[0, 1]] })), next_before, complete: true });
  await pass();
};
const ids = () => search.hits.map((hit) => hit.row.message_id);

test("what is here is shown at once, and the server's hits among it, none twice and the newest first", async () => {
  db.put(row(9, "Low tide"), row(7, "no"), row(3, "Tide"));
  await ask("tide");
  assert.deepEqual([ids(), search.isBusy], [[9, 3], true]);
  assert.deepEqual(asked[0].query, { q: "tide", limit: "4" });
  await answer([row(9, "Low tide"), row(5, "tides"), row(3, "Tide")]);
  assert.deepEqual([ids(), search.isBusy, search.isMore, asked.length], [[9, 5, 3], false, false, 1]);
});

test("one question goes out when somebody has stopped typing, and an old answer changes nothing", async () => {
  for (const text of ["ti", "tid", "tide"]) search.ask({ text });
  await pass();
  assert.deepEqual(asked.map(({ query }) => query.q), ["tide"]);
  await ask("boots");
  assert.ok(asked[0].signal.aborted);
  await answer([row(5, "boots")]);
  await answer([row(9, "tide and boots")], null, 0);
  assert.deepEqual(ids(), [5]);
});

test("hits that fit what is typed on stay until there are others", async () => {
  await ask("tide");
  await answer([row(9, "low tide"), row(8, "tides")]);
  search.ask({ text: "tides" });
  assert.deepEqual([ids(), search.isBusy], [[8], true]);
  await pass();
  await answer([row(7, "tides")]);
  assert.deepEqual(ids(), [7], "what is not found again has been taken back, or deleted");
  search.ask({ text: "t" });
  assert.deepEqual([ids(), search.problem, search.isBusy], [[], "short", false]);
});

test("nothing is asked for what cannot be looked for, and a person or a day is enough", async () => {
  for (const text of ["", "a", "...", "字".repeat(300)]) await ask(text);
  assert.deepEqual([asked.length, db.reads, search.problem], [0, 0, "search_too_long"]);
  db.put(row(9, "one"), row(8, "two", { sender: ME.uid }), row(2, "three"));
  await ask("", { sender: BOB, conversation: `u:${BOB}`, from: Date.parse(row(3, "").sent_at), to: Date.parse(row(10, "").sent_at) });
  assert.deepEqual(ids(), [9]);
  assert.deepEqual(asked[0].query, { conversation: `u:${BOB}`, sender: `${BOB}`, from: "1700000003000", to: "1700000010000", limit: "4" });
});

test("pages follow each other, also short and empty ones, and what the server has not told of waits", async () => {
  db.put(row(20, "tide"), row(2, "tide"));
  await ask("tide");
  assert.deepEqual(ids(), [20, 2]);
  await answer([row(20, "tide")], 15);
  assert.deepEqual([ids(), asked.length, asked[1].query.before], [[20], 2, "15"]);
  await answer([], 10);
  await answer([row(9, "tide"), row(8, "tide")], 8);
  assert.deepEqual([ids(), search.isBusy, search.isMore, asked.length], [[20, 9, 8], false, true, 3]);
  search.more();
  await pass();
  assert.equal(asked[3].query.before, "8");
  await answer([row(2, "tide")]);
  assert.deepEqual([ids(), search.isMore], [[20, 9, 8, 2], false]);
});

test("a server that finds nothing page after page is not asked without end", async () => {
  await ask("tide");
  for (let at = 0; at < 5; at++) await answer([], 100 - at);
  assert.deepEqual([asked.length, search.isBusy, search.isMore], [5, false, true]);
});

test("without the server all that is here is found, page by page, until it answers", async () => {
  db.put(...Array.from({ length: 9 }, (_, at) => row(at + 1, `tide ${at}`)));
  await ask("tide");
  asked[0].refuse(new Refusal(0));
  await pass();
  assert.deepEqual([ids(), search.refusal.code, search.isMore], [[9, 8, 7, 6], "unreachable", true]);
  await search.more();
  await search.more();
  assert.deepEqual([ids().length, search.isMore, asked.length], [9, false, 1]);
  search.again();
  await pass();
  await answer([row(9, "tide 8"), row(4, "tide 3")], 4);
  assert.deepEqual([ids(), search.refusal, search.isMore], [[9, 8, 7, 6, 5, 4], null, true]);
});

test("a hit that is edited, taken back, deleted or removed goes, also where its row is not here", async () => {
  db.put(row(9, "tide"), row(8, "tide"), row(7, "tide"));
  await ask("tide");
  await answer([9, 8, 7, 6, 5].map((id) => row(id, "tide")));
  assert.deepEqual(ids(), [9, 8, 7, 6, 5]);
  db.put(row(9, "boots"), row(8, "", { kind: "recalled", body: {} }));
  db.rows.delete(7);
  db.early.set(nameOf(row(6, "")), { change: { kind: "delete", body: {} } });
  await search.renew();
  assert.deepEqual(ids(), [5]);
  // Messages that wait to go out count, too.
  store.outbox.push({ conversation: `u:${BOB}`, state: "waiting", frame: { type: "recall", message_id: 5 } });
  assert.deepEqual(ids(), []);
});

test("a hit of the server that this browser would not find is one until its text changes", async () => {
  await ask("tide");
  await answer([row(9, "ebb"), row(8, "tide")]);
  assert.deepEqual(ids(), [9, 8]);
  db.put(row(9, "flood"));
  await search.renew();
  assert.deepEqual(ids(), [8]);
});

test("moments of friends are found, and what a conversation no longer keeps is not", async () => {
  const moment = { kind: "moment", conversation: "u:0" };
  const [friend, stranger] = [10_003, 10_004];
  store.friends.set(friend, { mine: true, theirs: true });
  store.conversations.set(`u:${BOB}`, { keep: { gone_before: Date.parse(row(5, "").sent_at), seconds: 0 } });
  await ask("tide");
  await answer([row(9, "tide", { ...moment, sender: friend }), row(8, "tide", { ...moment, sender: stranger }), row(7, "tide"), row(4, "tide")]);
  assert.deepEqual(ids(), [9, 7]);
});

test("many rows are read in pieces, and no longer than somebody waits for them", async () => {
  db.put(...Array.from({ length: 2_000 }, (_, at) => row(at + 1, at === 0 ? "tide" : "low")));
  await ask("tide");
  assert.deepEqual([ids(), db.reads], [[1], 5]);
  search.ask({ text: "lower" });
  world.pass(1_000);
  search.stop();
  await pass();
  assert.ok(db.reads < 8, `${db.reads} reads`);
});
