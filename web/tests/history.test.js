import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { History } from "../static/history.js";
import { addSpan, spanOf } from "../static/spans.js";

// A conversation of 1,000 rows on a server that answers as the real one; rows from 901 up were synced.
const NEWEST = 1_000;
const row = (message_id) => ({ message_id, kind: "message", conversation: "u:5", sender: 5, client_id: `k${message_id}`,
  sent_at: new Date(message_id * 1_000).toISOString() });
const all = Array.from({ length: NEWEST }, (_, at) => row(at + 1));

let asked;
let here;
let history;
let conversation;

beforeEach(() => {
  asked = [];
  conversation = { id: "u:5", floor: 901 };
  here = new Map(all.slice(900).map((each) => [each.message_id, each]));
  const call = async (_, path) => {
    const query = Object.fromEntries([...new URLSearchParams(path.split("?")[1])].map(([name, value]) => [name, Number(value) || value]));
    asked.push(query);
    const below = all.filter(({ message_id }) => message_id < (query.before ?? Infinity));
    const first = query.client_id ? all.findIndex(({ client_id }) => client_id === query.client_id) + 1 : query.since ? Math.ceil(query.since / 1_000) : query.around;
    const at = first ? first - Math.floor(query.limit / 2) - 1 : query.after ?? Math.max(0, below.length - query.limit);
    const rows = below.slice(Math.max(0, at), at + query.limit);
    const [oldest, newest] = [rows.at(0)?.message_id, rows.at(-1)?.message_id];
    return { rows: rows.toReversed(), next_before: oldest > 1 && query.after === undefined ? oldest : null,
      next_after: newest < below.length && (first || query.after !== undefined) ? newest : null };
  };
  const sorted = () => [...here.values()].sort((a, b) => a.message_id - b.message_id);
  const db = {
    position: async () => ({ base: 901, cursor: NEWEST, history: "one" }),
    keepHistory: async (_, rows, { from, to }) => {
      for (const each of rows) here.set(each.message_id, each);
      addSpan(conversation, from, to);
    },
    message: async ({ client_id }) => sorted().find((each) => each.client_id === client_id),
    page: async (_, { after, limit }) => sorted().filter(({ message_id }) => message_id > after).slice(0, limit),
  };
  history = new History({ db, call, conversations: new Map([["u:5", conversation]]), load: async () => {} });
});

/** What is said to be here is here. */
const check = () => {
  for (const { message_id } of all) assert.equal(Boolean(spanOf(conversation, message_id)), here.has(message_id), `${message_id}`);
};

test("one request brings what lies around a row, and both sides of it page by page", async () => {
  await history.around("u:5", 300);
  assert.deepEqual(conversation.spans, [[250, 349]]);
  await history.around("u:5", 300);
  assert.equal(asked.length, 1, "it is here");
  await history.older("u:5", 250);
  await history.newer("u:5", 349);
  check();
  assert.deepEqual(conversation.spans, [[50, 549]]);
  await history.older("u:5", 50);
  await history.newer("u:5", 549);
  await history.newer("u:5", 749);
  assert.deepEqual([conversation.floor, conversation.spans], [0, []]);
  check();
  assert.equal(await history.older("u:5"), false, "there is nothing older");
});

test("a message is found by the name that all copies share", async () => {
  assert.equal((await history.named("u:5", { sender: 5, client_id: "k40" })).message_id, 40);
  assert.equal((await history.named("u:5", { sender: 5, client_id: "k950" })).message_id, 950);
  assert.equal(asked.length, 1);
  check();
});

test("the first message of a time is asked for only where it may lie below what is here", async () => {
  assert.equal((await history.since("u:5", 950_000)).message_id, 950);
  assert.equal((await history.since("u:5", 999_999_000)), undefined);
  assert.equal(asked.length, 0);
  assert.equal((await history.since("u:5", 400_500)).message_id, 401);
  check();
  assert.equal((await history.since("u:5", 900_500)).message_id, 901);
});
