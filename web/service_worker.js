// The service worker: the chat opens without the server. Rows come from IndexedDB as always; this keeps the files of one
// version and the page of whoever is logged in, and takes pushes. Before it stand HASH, the version of the static files, FILES, the
// addresses of all that the chat needs, and of a few more, and the modules by which pushes are taken (web/src/installable.rs).

const ASSETS = `assets-${HASH}`;
// By version, since a page names the files of its own.
const PAGE = `page-${HASH}`;
const PAGE_ADDRESS = "/";
// What is kept for pushes (web/static/device.js), in all versions.
const DEVICE = "push";
// The addresses of the chat.
const CHAT = /^\/(c\/[ug]:\d+(\/m\/[\da-f:-]+)?|moments|contacts)?$/;

self.addEventListener("install", (event) => event.waitUntil(install()));
self.addEventListener("activate", (event) => event.waitUntil(activate()));
self.addEventListener("push", (event) => event.waitUntil(module_push.pushed(self)));
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(module_push.renewed(self)));
self.addEventListener("notificationclick", (event) => event.waitUntil(opened(event.notification)));
self.addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (origin !== location.origin) return;
  // A form may change the page, as that of the language does.
  if (method !== "GET") return void (mode === "navigate" && event.waitUntil(caches.delete(PAGE)));
  if (mode === "navigate") {
    if (CHAT.test(pathname)) event.respondWith(page(event));
    else if (["/login", "/sign-up", "/recover"].includes(pathname)) event.respondWith(card(event));
  } else if (pathname.startsWith(`/static/${HASH}/`)) event.respondWith(file(event.request));
});

async function install() {
  const cache = await caches.open(ASSETS);
  await cache.addAll(FILES);
  await fetch(PAGE_ADDRESS).then(keep).catch(() => {});
  await self.skipWaiting();
}

async function activate() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => ![ASSETS, PAGE, DEVICE].includes(name)).map((name) => caches.delete(name)));
  // Those that an earlier version has given their page.
  for (const client of await self.clients.matchAll({ type: "window" })) client.postMessage({ renewed: true });
  await self.clients.claim();
}

/** Opens what a notification is about: in a page of the chat that is there, first in one that somebody sees. */
async function opened(notification) {
  // Those of 0.1.0 name their conversation alone.
  const path = notification.data?.path ?? `/c/${notification.tag}`;
  notification.close();
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const chats = pages.filter(({ url }) => CHAT.test(new URL(url).pathname));
  const page = chats.find(({ visibilityState }) => visibilityState === "visible") ?? chats[0];
  if (!page) return void await self.clients.openWindow(path);
  page.postMessage({ open: path });
  await page.focus();
}

/** The page that is kept, at once; the server's is then for the next time. Without one, the server's. */
async function page(event) {
  const answer = fetch(event.request);
  const copy = answer.then((response) => response.clone());
  const kept = await caches.match(PAGE_ADDRESS, { cacheName: PAGE, ignoreVary: true });
  event.waitUntil(renew(copy, await kept?.clone().text(), event.resultingClientId).catch(() => {}));
  return kept ?? answer;
}

/** Keeps the server's answer, and tells the page that was shown (`text`) if it is another one. */
async function renew(answer, text, shown) {
  const newer = await keep(await answer);
  if (text === undefined || !newer || newer === text) return;
  const client = await self.clients.get(shown);
  client?.postMessage({ renewed: true });
}

/** A person who sees the card is no longer logged in. */
async function card(event) {
  const response = await fetch(event.request);
  if (response.ok) await caches.delete(PAGE);
  return response;
}

/** Keeps a page of this version, and answers its text; being sent elsewhere means that nobody is logged in. */
async function keep(response) {
  if (response.type === "opaqueredirect" || response.redirected) return void await caches.delete(PAGE);
  if (!response.ok) return;
  const text = await response.clone().text();
  if (!text.includes(`/static/${HASH}/chat.js`)) return;
  const cache = await caches.open(PAGE);
  await cache.put(PAGE_ADDRESS, response);
  return text;
}

/** A static file; those that few need are kept when they were asked for. */
async function file(request) {
  const kept = await caches.match(request, { cacheName: ASSETS, ignoreVary: true });
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) {
    const cache = await caches.open(ASSETS);
    await cache.put(request, response.clone());
  }
  return response;
}
