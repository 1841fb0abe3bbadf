import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Store } from "../static/store.js";

const ME = { uid: 10_001, name: "Ann" };
const row = (message_id) => ({ message_id, kind: "message", sender: 10_002, sent_at: "2026-03-04T10:00:00Z", body: { text: "hi" } });

let store;

beforeEach(() => {
  store = new Store({ db: {}, call: async () => { throw { status: 404, retryable: false }; }, self: ME, nudge: () => {} });
  Object.assign(store, { conversations: new Map(), names: new Map([[10_002, "Bob"]]), drafts: new Map(), outbox: [], settings: new Map(), friends: new Map(), stars: new Map() });
});

/** A database that refuses to keep messages, and drafts if `drafts` says so. */
function full(drafts = new Map()) {
  const problem = new Error("no room");
  const rows = { conversations: new Map(), outbox: [] };
  const draft = async (id, text) => {
    if (!drafts) throw problem;
    text ? drafts.set(id, text) : drafts.delete(id);
  };
  const overview = async () => ({ ...rows, conversations: new Map(rows.conversations), outbox: [...rows.outbox], drafts: new Map(drafts) });
  store.db = { post: async () => { throw problem; }, overview, draft, queue: async () => {} };
  return { problem, rows };
}

test("a message that the browser refuses to keep and that is not under way is not sent", async () => {
  const { problem } = full();
  const held = [];
  Object.assign(store.sending, { send: () => false, hold: (item) => held.push(item) });
  store.drafts.set("u:10002", "h");
  await assert.rejects(store.post("u:10002", "hi"), problem);
  assert.deepEqual(held, []);
  assert.deepEqual(store.pending("u:10002"), []);
  assert.equal(store.drafts.has("u:10002"), false, "half of it is no draft of another one");
});

test("a message that was under way when the browser refused to keep it is one message until it is answered", async () => {
  const { rows } = full();
  const held = [];
  const unsent = [];
  Object.assign(store.sending, { send: () => true, hold: (item) => held.push(item.client_id), unsent: (item, reason) => unsent.push([item.body.text, reason]) });
  let doubled = 0;
  store.watch(() => { doubled += store.outbox.length - new Set(store.outbox.map(({ client_id }) => client_id)).size; });
  await store.post("u:10002", "hi");
  await store.post("u:10002", "ho");
  assert.equal(doubled, 0, "each is shown once at any time");
  const [hi, ho] = store.pending("u:10002");
  assert.deepEqual([hi.body.text, hi.state, ho.body.text, ho.state], ["hi", "waiting", "ho", "waiting"]);
  assert.deepEqual(held, [hi.client_id, ho.client_id]);
  store.sending.sent(hi.client_id, 9);
  await store.load([]);
  assert.deepEqual(store.pending("u:10002").map(({ state }) => state), ["sent", "waiting"]);
  rows.conversations.set("u:10002", { last: row(9) });
  await store.load([]);
  assert.deepEqual(store.pending("u:10002").map(({ body }) => body.text), ["ho"], "its row is here");
  await store.sending.notSent(ho.client_id, { code: "blocked" });
  assert.deepEqual(store.pending("u:10002"), []);
  assert.deepEqual(unsent, [["ho", { code: "blocked" }]]);
  // The answer may come before the refusal.
  store.sending.send = ({ client_id }) => {
    store.sending.sent(client_id, 10);
    return true;
  };
  await store.post("u:10002", "he");
  assert.deepEqual(store.pending("u:10002").map(({ state }) => state), ["sent"]);
  assert.equal(held.length, 2);
});

test("a draft that the browser refuses to keep is there as long as the page is", async () => {
  const { problem } = full(null);
  await assert.rejects(store.draft("u:10002", "half"), problem);
  await store.load([]);
  assert.equal(store.drafts.get("u:10002"), "half");
  store.db.draft = async () => {};
  await store.draft("u:10002", "half a");
  await store.load([]);
  assert.equal(store.drafts.has("u:10002"), false, "what is kept counts again");
});

/** A database that stores a message when `store()` says so. */
function slow() {
  const outbox = [];
  let finish;
  const written = new Promise((resolve) => { finish = resolve; });
  store.db = {
    post: async (item) => {
      await written;
      outbox.push({ ...item, n: 7, state: "waiting" });
    },
    told: async () => {},
    overview: async () => ({ conversations: new Map(), names: new Map(), settings: new Map(), friends: new Map(), drafts: new Map(), outbox: [...outbox] }),
  };
  return finish;
}

test("a message is shown when it is sent, once, whether it is stored or not", async () => {
  const finish = slow();
  const seen = [];
  const texts = () => store.pending("u:10002").map(({ body, state }) => [body.text, state]);
  Object.assign(store.sending, { send: () => true, posted: ({ conversation }) => seen.push([conversation, ...texts()]) });
  store.drafts.set("u:10002", "hi");
  const posting = store.post("u:10002", "hi");
  assert.deepEqual(seen, [["u:10002", ["hi", "waiting"]]], "before anything is awaited");
  assert.deepEqual(store.sorted(), ["u:10002"]);
  // Something else changes meanwhile, and the server answers.
  await store.load([]);
  assert.deepEqual(texts(), [["hi", "waiting"]]);
  assert.equal(store.drafts.has("u:10002"), false);
  store.sending.sent(store.pending("u:10002")[0].client_id, 9);
  assert.deepEqual(texts(), [["hi", "sent"]]);
  finish();
  await posting;
  assert.deepEqual(store.outbox.map(({ n }) => n), [7], "the stored one is the one that is shown");
  assert.equal(store.sending.leaving.size, 0);
});

test("a message that is stored stays sent although the page could not be read anew", async () => {
  const finish = slow();
  store.sending.send = () => false;
  const posting = store.post("u:10002", "hi");
  store.db.overview = async () => { throw new Error("closed"); };
  finish();
  await posting;
});
