import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { databases } from "./indexeddb.js";
import "./page.js";
import { openDb } from "../static/db.js";
import { keepDevice, keptDevice } from "../static/device.js";
import { pushed, renewed } from "../static/push.js";

const ANN = 10_001;
const BEN = 10_002;
const SELF = { uid: ANN, name: "Ann", account: "10001-5", textCharacters: 8_000 };
const HISTORY = "one";
const texts = globalThis.tidemarkTexts;

/** The inbox of the server, and what it knows of the device. */
let inbox;
let server;
/** Calls but those that read. */
let asked;
/** The notifications that stand there, by tag. */
let standing;
let pages;
let subscription;
/** What other pages were told. */
let told;

const message = (message_id, text, { conversation = `u:${BEN}`, sender = BEN, ...more } = {}) =>
  ({ kind: "message", message_id, conversation, sender, client_id: `c${message_id}`, body: { text, ...more }, sent_at: new Date(message_id).toISOString() });
const setting = (message_id, name, conversation, value) =>
  ({ kind: "setting", message_id, conversation, sender: ANN, client_id: `c${message_id}`, body: { name, value }, sent_at: new Date(message_id).toISOString() });
const receipt = (message_id, read_to, conversation = `u:${BEN}`) =>
  ({ kind: "receipt", message_id, conversation, sender: ANN, body: { read_to }, sent_at: new Date(message_id).toISOString() });

globalThis.fetch = async (address, { method, body }) => {
  const { pathname, searchParams } = new URL(address, "https://chat.example");
  const path = pathname.replace("/api/v1", "");
  if (server.isDown) throw new TypeError("no network");
  if (server.isOver) return Response.json({ code: "unauthorized", detail: "over" }, { status: 401 });
  if (method !== "GET") {
    asked.push([method, path, JSON.parse(body)]);
    return new Response(null, { status: 204 });
  }
  if (path === "/sessions/current/push") {
    const { key, endpoint, history, expired_to } = server;
    return Response.json({ key, endpoint, history, expired_to, seq: inbox.at(-1)?.message_id ?? 0 });
  }
  if (path === "/profiles") return Response.json(searchParams.get("uids").split(",").map((uid) => ({ uid: Number(uid), name: `No. ${uid}` })));
  const from = Number(searchParams.get("start"));
  const rows = inbox.filter(({ message_id }) => message_id >= from).slice(0, server.page);
  const more = inbox.some(({ message_id }) => message_id > (rows.at(-1)?.message_id ?? Infinity));
  return Response.json({ rows, next_start: more ? rows.at(-1).message_id + 1 : null });
};
globalThis.BroadcastChannel = class {
  constructor(name) { this.name = name; }
  postMessage(said) { told.push([this.name, said]); }
};

class Caches {
  all = new Map();
  async open(name) { return { put: async (key, value) => { this.all.set(`${name} ${key}`, value); } }; }
  async match(key, { cacheName }) { return this.all.get(`${cacheName} ${key}`)?.clone(); }
  async delete(name) { for (const key of this.all.keys()) if (key.startsWith(`${name} `)) this.all.delete(key); }
}

const worker = () => ({
  navigator: {},
  clients: { matchAll: async () => pages },
  registration: {
    pushManager: {
      getSubscription: async () => subscription,
      subscribe: async (how) => (subscription = subscribed(how.applicationServerKey)),
    },
    getNotifications: async ({ tag } = {}) => [...standing.values()].filter((each) => !tag || each.tag === tag),
    showNotification: async (title, what) => {
      standing.set(what.tag, { title, ...what, close: () => standing.delete(what.tag) });
    },
  },
});

const subscribed = (name) => ({
  toJSON: () => ({ endpoint: `https://push.example/${name}`, expirationTime: null, keys: { p256dh: "B", auth: "a" } }),
  unsubscribe: async () => { subscription = null; },
});

/** What stands there: tag, title and text. */
const shown = () => [...standing.values()].map(({ tag, title, body }) => [tag, title, body]);
const acknowledged = () => asked.filter(([method]) => method === "PUT").map(([, , { seq }]) => seq);

async function push(shows = "text") {
  await keepDevice({ self: SELF, shows, texts });
  await pushed(worker());
}

beforeEach(async () => {
  for (const name of Object.keys(databases)) delete databases[name];
  globalThis.caches = new Caches();
  [inbox, asked, told, pages] = [[], [], [], []];
  standing = new Map();
  subscription = subscribed("ann");
  server = { key: "K", endpoint: "https://push.example/ann", history: HISTORY, expired_to: 0, page: 500 };
  const db = await openDb(SELF);
  await db.begin(0, HISTORY, []);
  await db.learn([{ uid: BEN, name: "Ben" }]);
});

test("a push takes the rows, shows the message, and tells the server and open pages how far it has come", async () => {
  inbox = [message(1, "**hello**")];
  await push();
  assert.deepEqual(shown(), [[`u:${BEN}`, "Ben", "hello"]]);
  assert.deepEqual(standing.get(`u:${BEN}`).data, { path: `/c/u:${BEN}/m/1` });
  assert.deepEqual(asked, [["PUT", "/sessions/current/push", { endpoint: "https://push.example/ann", keys: { p256dh: "B", auth: "a" }, seq: 1 }]]);
  assert.deepEqual(told, [["tidemark-10001", ["changed", [`u:${BEN}`]]]]);
  const db = await openDb(SELF);
  assert.equal((await db.position()).cursor, 1);
  assert.equal((await db.row(1)).body.text, "**hello**");
});

test("several messages of a conversation become one notification with a count", async () => {
  inbox = [message(1, "one"), message(2, "two")];
  await push();
  assert.deepEqual(shown(), [[`u:${BEN}`, "Ben", "two (and 1 more)"]]);
  inbox.push(message(3, "three"));
  await push();
  assert.deepEqual(shown(), [[`u:${BEN}`, "Ben", "three (and 2 more)"]]);
  assert.deepEqual(acknowledged(), [2, 3]);
});

test("what is shown is the person's choice", async () => {
  const one = [message(1, "secret"), message(2, "secret, too")];
  for (const [shows, expected] of [["name", [[`u:${BEN}`, "Ben", "2 new messages"]]], ["nothing", [["all", "Tidemark", texts["push.news"]]]]]) {
    const db = await openDb(SELF);
    await db.begin(0, HISTORY, []);
    await db.learn([{ uid: BEN, name: "Ben" }]);
    inbox = one;
    standing.clear();
    await push(shows);
    assert.deepEqual(shown(), expected);
  }
});

test("a muted conversation is told of quietly, but for who is named; mutes that end count no more", async () => {
  const group = { conversation: "g:7" };
  inbox = [setting(1, "mute", "g:7", {}), message(2, "hi all", group)];
  await push();
  assert.deepEqual(shown(), [["quiet", "Tidemark", texts["push.quiet"]]]);
  assert.equal(standing.get("quiet").silent, true);
  inbox.push(message(3, "hi @Ann", { ...group, mentions: { users: [ANN] } }));
  await push();
  assert.deepEqual(shown(), [["g:7", "Group 7", "Ben: hi @Ann (and 1 more)"]], "the quiet one has gone");
  inbox.push(setting(4, "mute", "g:7", { until: Date.now() - 1 }), message(5, "again", group));
  await push();
  assert.deepEqual(shown(), [["g:7", "Group 7", "Ben: again (and 2 more)"]]);
});

test("what was read elsewhere is closed at the next push, and is not shown", async () => {
  inbox = [message(1, "one")];
  await push();
  inbox.push(receipt(2, 1), message(3, "to the group", { conversation: "g:7" }));
  await push();
  assert.deepEqual(shown(), [["g:7", "Group 7", "Ben: to the group"]]);
  inbox.push(message(4, "seen on the phone"), receipt(5, 4));
  await push();
  assert.deepEqual(shown().map(([tag]) => tag), ["g:7", "quiet"]);
});

test("a message that was taken back before it was shown is not shown", async () => {
  inbox = [message(1, "oh"), { kind: "recall", message_id: 2, conversation: `u:${BEN}`, sender: BEN, client_id: "r", body: { of: { sender: BEN, client_id: "c1" } }, sent_at: new Date(2).toISOString() }];
  await push();
  assert.deepEqual(shown(), [["quiet", "Tidemark", texts["push.quiet"]]]);
});

test("somebody new is asked for by name", async () => {
  inbox = [message(1, "hello", { conversation: "u:10003", sender: 10_003 })];
  await push();
  assert.deepEqual(shown(), [["u:10003", "No. 10003", "hello"]]);
});

test("whoever looks at the chat is shown nothing, and the rows are taken all the same", async () => {
  pages = [{ url: "https://chat.example/c/u:10002", visibilityState: "visible", focused: true }];
  inbox = [message(1, "hello")];
  await push();
  assert.deepEqual(shown(), []);
  assert.deepEqual([acknowledged(), (await (await openDb(SELF)).position()).cursor], [[1], 1]);
  pages = [{ url: "https://chat.example/", visibilityState: "hidden", focused: false }, { url: "https://chat.example/docs", visibilityState: "visible", focused: true }];
  inbox.push(message(2, "and now"));
  await push();
  assert.equal(shown().length, 1);
});

test("pages of rows are taken one after the other, and no more than so many", async () => {
  server.page = 1;
  inbox = Array.from({ length: 12 }, (_, at) => message(at + 1, `${at + 1}`));
  await push();
  assert.equal((await (await openDb(SELF)).position()).cursor, 10);
  assert.deepEqual(acknowledged(), [12], "the page takes the rest; no push is needed for it");
  assert.deepEqual(shown(), [[`u:${BEN}`, "Ben", "10 (and 9 more)"]]);
});

test("rows of another life of the data, or behind a gap, are left to the page", async () => {
  inbox = [message(1, "hello")];
  server.history = "another";
  await push();
  assert.deepEqual(shown(), [["quiet", "Tidemark", texts["push.news"]]]);
  assert.deepEqual([acknowledged(), (await (await openDb(SELF)).position()).cursor], [[1], 0]);
  const db = await openDb(SELF);
  await db.begin(3, "another", []);
  [server.expired_to, inbox] = [5, [message(9, "late")]];
  await push();
  assert.deepEqual([shown().length, (await db.position()).cursor], [1, 3]);
});

test("without the server there is still something to show, and nothing is acknowledged", async () => {
  server.isDown = true;
  await push();
  assert.deepEqual([shown(), asked], [[["quiet", "Tidemark", texts["push.news"]]], []]);
});

test("a session that has ended ends the subscription, and what was kept for it goes", async () => {
  server.isOver = true;
  await push();
  assert.deepEqual([subscription, await keptDevice()], [null, undefined]);
  assert.equal(shown().length, 1);
});

test("a subscription that the browser has replaced is told to the server", async () => {
  await renewed(worker());
  assert.deepEqual(asked, [], "nobody wants it here");
  await keepDevice({ self: SELF, shows: "text", texts });
  await (await openDb(SELF)).begin(3, HISTORY, []);
  await renewed(worker());
  assert.deepEqual(asked.map(([method, , { endpoint, seq }]) => [method, endpoint, seq]), [["PUT", "https://push.example/K", 3]]);
});
