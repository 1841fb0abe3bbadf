import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";

const source = readFileSync(new URL("../service_worker.js", import.meta.url), "utf8");
const ORIGIN = "https://chat.example";

/** A browser's caches, and a server whose answers the test chooses. */
let caches;
let server;
let listeners;
/** What was done with the pages that are open. */
let done;
let pages;

class Caches {
  all = new Map();
  async open(name) {
    if (!this.all.has(name)) this.all.set(name, new Map());
    const cache = this.all.get(name);
    return {
      put: async (key, response) => { cache.set(new URL(key.url ?? key, ORIGIN).pathname, response); },
      addAll: async (keys) => { for (const key of keys) cache.set(key, await server(key)); },
    };
  }
  async match(key, { cacheName }) { return this.all.get(cacheName)?.get(new URL(key.url ?? key, ORIGIN).pathname)?.clone(); }
  async keys() { return [...this.all.keys()]; }
  async delete(name) { return this.all.delete(name); }
}

function start(hash = "new") {
  listeners = {};
  const self = {
    addEventListener: (type, listener) => { listeners[type] = listener; },
    skipWaiting: async () => {}, registration: {},
    clients: {
      claim: async () => {}, matchAll: async () => pages, get: async (id) => pages.find((each) => each.id === id), openWindow: async (path) => { done.push(["opened", path]); },
    },
  };
  const push = { pushed: async (worker) => { done.push(["pushed", worker === self]); }, renewed: async () => { done.push("renewed"); } };
  const run = new Function("module_push", "self", "caches", "fetch", "location", "HASH", "FILES", source);
  run(push, self, caches, (request) => server(request.url ?? request), { origin: ORIGIN }, hash, [`/static/${hash}/chat.js`]);
}

async function happens(type, more = {}) {
  const waits = [];
  let answer = null;
  listeners[type]({ waitUntil: (work) => waits.push(work), respondWith: (response) => { answer = response; }, ...more });
  const response = await answer;
  await Promise.all(waits);
  return response;
}

const visit = (path, mode = "navigate", method = "GET") =>
  happens("fetch", { request: { method, mode, url: ORIGIN + path }, resultingClientId: "new" }).then((response) => response?.text() ?? null);
const page = (name, hash = "new") => new Response(`${name} /static/${hash}/chat.js`);

const tab = (path, visibilityState = "hidden") => ({
  url: ORIGIN + path, visibilityState,
  postMessage: (message) => done.push([path, message]), focus: async () => { done.push([path, "focus"]); },
});

beforeEach(async () => {
  [done, pages] = [[], []];
  caches = new Caches();
  server = async (path) => (path === "/" ? page("Ada") : new Response(path));
  start();
  await happens("install");
  await happens("activate");
});

const down = async () => { throw new TypeError("no network"); };

test("without the server the page that was last seen opens, at every address of the chat", async () => {
  server = down;
  for (const path of ["/", "/c/u:10002", "/c/g:7", "/moments", "/contacts"]) assert.equal(await visit(path), "Ada /static/new/chat.js");
  assert.equal(await visit("/static/new/chat.js", "cors"), "/static/new/chat.js");
  await assert.rejects(visit("/static/new/docs.css", "cors"));
});

test("what is not of the chat goes its own way", async () => {
  for (const path of ["/docs", "/api/v1/me", "/c/x", "/invites/ABC"]) assert.equal(await visit(path), null);
  assert.equal(await visit("/static/old/chat.js", "cors"), null, "of another version");
  assert.equal(await visit("/", "navigate", "POST"), null);
});

test("a proxy without a server behind it is no answer", async () => {
  server = async () => new Response("bad gateway", { status: 502 });
  assert.equal(await visit("/"), "Ada /static/new/chat.js");
});

const told = () => done.splice(0).filter(([, message]) => message.renewed).length;

test("the page that is kept comes at once, and the server's is the next one", async () => {
  pages = [Object.assign(tab("/c/u:1"), { id: "new" })];
  let answered = false;
  server = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    answered = true;
    return page("Ben");
  };
  const waits = [];
  let shown;
  listeners.fetch({ request: { method: "GET", mode: "navigate", url: `${ORIGIN}/c/u:1` }, resultingClientId: "new",
    waitUntil: (work) => waits.push(work), respondWith: (response) => { shown = response; } });
  assert.equal(await (await shown).text(), "Ada /static/new/chat.js");
  assert.equal(answered, false, "nobody waits for the server");
  await Promise.all(waits);
  assert.equal(told(), 1, "the page is another one");
  assert.equal(await visit("/"), "Ben /static/new/chat.js");
  assert.equal(told(), 0);
});

test("a form that is sent may change the page, so the next one is the server's", async () => {
  await visit("/language", "navigate", "POST");
  server = async () => page("Ben");
  assert.equal(await visit("/"), "Ben /static/new/chat.js");
});

test("being sent elsewhere, or seeing a card, means that no page is kept", async () => {
  for (const path of ["/", "/login", "/sign-up", "/recover"]) {
    server = async () => page("Ada");
    await visit("/");
    const elsewhere = { type: "opaqueredirect", status: 0, ok: false, clone() { return this; }, text: async () => "" };
    server = async () => (path === "/" ? elsewhere : new Response("a card"));
    await visit(path);
    server = down;
    await assert.rejects(visit("/"), path);
  }
});

test("a page of another version is not kept, since its files are not here", async () => {
  pages = [Object.assign(tab("/"), { id: "new" })];
  server = async () => page("Ada", "newer");
  assert.equal(await visit("/"), "Ada /static/new/chat.js");
  assert.equal(told(), 0);
  server = down;
  assert.equal(await visit("/"), "Ada /static/new/chat.js");
});

test("a new version drops what the one before kept, once it has all its own", async () => {
  server = async (path) => (path === "/" ? page("Ada", "newer") : new Response(path));
  start("newer");
  await happens("install");
  assert.deepEqual(await caches.keys(), ["assets-new", "page-new", "assets-newer", "page-newer"]);
  pages = [tab("/")];
  await happens("activate");
  assert.deepEqual(await caches.keys(), ["assets-newer", "page-newer"]);
  assert.equal(told(), 1, "a page of the version before");
  start("newest");
  server = down;
  await assert.rejects(happens("install"));
  assert.ok((await caches.keys()).includes("assets-newer"));
});

const PATH = "/c/u:10002/m/7";
const press = () => happens("notificationclick", { notification: { data: { path: PATH }, close: () => done.push("closed") } });

test("a push is taken before the worker may sleep again, and what is kept for pushes outlives a version", async () => {
  await happens("push");
  await happens("pushsubscriptionchange");
  assert.deepEqual(done.splice(0), [["pushed", true], "renewed"]);
  await caches.open("push");
  start("newer");
  await happens("install");
  await happens("activate");
  assert.ok((await caches.keys()).includes("push"));
});

test("a notification that is pressed opens its message, in a page that is there", async () => {
  pages = [tab("/docs", "visible"), tab("/moments"), tab("/c/u:7", "visible")];
  await press();
  assert.deepEqual(done.splice(0), ["closed", ["/c/u:7", { open: PATH }], ["/c/u:7", "focus"]]);
  pages = [tab("/docs"), tab("/")];
  await press();
  assert.deepEqual(done.splice(0), ["closed", ["/", { open: PATH }], ["/", "focus"]]);
  pages = [tab("/login", "visible")];
  await press();
  assert.deepEqual(done, ["closed", ["opened", PATH]]);
});
