// The work of the service worker when a push comes: it takes the rows that are new, as a page would, shows of which to tell, and says to
// the server how far it has come. A push carries the number of the newest row alone. Part of the service worker's script; no page has it.

import { named } from "./address.js";
import { call } from "./api.js";
import { openDb } from "./db.js";
import { forgetDevice, keptDevice, subscribe, toServer } from "./device.js";
import { Listed } from "./listed.js";
import { t } from "./texts.js";
import { noticesOf } from "./told.js";

// The call that knows of this device.
const PUSH = "/sessions/current/push";
// Rows of one call, and calls of one push; a browser that was away for longer takes the rest when it is opened.
const PAGE = 500;
const MOST_PAGES = 10;
// The tag of a notification that says nothing: browsers want one for each push.
const QUIET = "quiet";

/** The stored data, as notifications need them. */
class View extends Listed {
  constructor(self, overview) { super(); Object.assign(this, overview, { self }); }

  setting(name, id) { return this.settings.get(`${name} ${id}`) ?? null; }

  name(uid) { return this.names.get(uid) ?? `#${uid}`; }

  title(id) {
    const number = Number(id.slice(2));
    const { title } = this.conversations.get(id) ?? {};
    if (id.startsWith("u:")) return this.names.get(number) ?? title ?? this.name(number);
    return title ?? t("title.group", { number: `${number}` });
  }
}

/** A push has come. `worker`: the global object of the service worker. */
export async function pushed(worker) {
  const device = await keptDevice();
  globalThis.tidemarkTexts = device?.texts ?? {};
  const state = device && await call("GET", PUSH).catch((refusal) => ({ refusal }));
  if (!device || state.refusal?.status === 401) await over(worker);
  const news = state?.endpoint ? await fetched(device, state).catch((problem) => void console.error(problem)) : null;
  await show(worker, news ?? { notices: [], isWhole: false });
  if (!news) return;
  await closeRead(worker, news.view);
  await worker.navigator.setAppBadge?.(news.view.unreadTotal()).catch(() => {});
  const subscription = await worker.registration.pushManager.getSubscription();
  if (subscription) await call("PUT", PUSH, toServer(subscription, news.seq)).catch((problem) => console.error(problem));
}

/**
 * Takes the rows after those that are here. Answers {view, notices, seq, isWhole}: what is stored now, what to show, how far that goes, and
 * whether it is all that there is.
 */
async function fetched({ self, shows }, { seq, history, expired_to }) {
  const db = await openDb(self);
  try {
    const position = await db.position();
    const isBehind = position.cursor > 0 && position.cursor < expired_to;
    // The page starts over when it is opened: rows of another life of the data, or after a gap, do not fit those that are here.
    if (position.history !== history || position.cursor > seq || isBehind) return { ...await seen(db, self, [], shows), seq, isWhole: false };
    const [changed, arrived] = [new Set(), []];
    let [{ cursor }, isWhole] = [position, false];
    for (let page = 0; page < MOST_PAGES && !isWhole; page++) {
      const { rows, next_start } = await call("GET", `/range?start=${cursor + 1}&limit=${PAGE}`);
      const synced = rows.at(-1)?.message_id ?? cursor;
      const stored = await db.entries(rows, cursor, synced);
      for (const id of stored.changed) changed.add(id);
      arrived.push(...stored.arrived);
      cursor = synced;
      isWhole = next_start === null;
    }
    await meet(db, arrived);
    // Pages that are open, and asleep perhaps, show it.
    if (changed.size) new BroadcastChannel(`tidemark-${self.uid}`).postMessage(["changed", [...changed]]);
    return { ...await seen(db, self, arrived, shows), seq: Math.max(cursor, seq), isWhole };
  } finally {
    db.close();
  }
}

async function seen(db, self, arrived, shows) {
  const view = new View(self, await db.overview());
  return { view, notices: noticesOf(view, arrived, shows) };
}

/** Learns the names of people who have not written before. */
async function meet(db, arrived) {
  const { names } = await db.overview();
  const strangers = [...new Set(arrived.map(({ sender }) => sender))].filter((uid) => !names.has(uid)).slice(0, 100);
  if (strangers.length) await db.learn(await call("GET", `/profiles?uids=${strangers}`).catch(() => []));
}

/** Whether a page of the chat is there, and somebody looks at it. */
function isLookedAt({ url, visibilityState, focused }) {
  const { pathname } = new URL(url);
  const { id, page } = named(pathname);
  return Boolean(pathname === "/" || id || page) && visibilityState === "visible" && focused;
}

/** Shows them, unless somebody looks at the chat, which shows the messages themselves. Something is shown always, since browsers want that. */
async function show({ registration, clients }, { notices, isWhole }) {
  const pages = await clients.matchAll({ type: "window" });
  if (pages.some(isLookedAt)) return;
  for (const { tag, title, body, path } of notices) {
    await registration.showNotification(title, { tag, body, data: { path }, renotify: true });
  }
  const quiet = await registration.getNotifications({ tag: QUIET });
  if (notices.length) quiet.forEach((notification) => notification.close());
  else await registration.showNotification("Tidemark", { tag: QUIET, body: isWhole ? t("push.quiet") : t("push.news"), silent: true, data: { path: "/" } });
}

/** Closes what was read elsewhere. */
async function closeRead({ registration }, view) {
  for (const notification of await registration.getNotifications()) {
    const { tag } = notification;
    if (/^[ug]:/.test(tag) ? !view.unread(tag) : tag === "all" && !view.unreadTotal()) notification.close();
  }
}

/** The session has ended elsewhere: the device is told of nothing more. */
async function over({ registration }) {
  const subscription = await registration.pushManager.getSubscription();
  await subscription?.unsubscribe();
  await forgetDevice();
}

/** The browser has taken its subscription away, and gives another one. What the device has not fetched yet is told to it. */
export async function renewed(worker) {
  const device = await keptDevice();
  if (!device) return;
  const { key, history } = await call("GET", PUSH);
  if (!key) return;
  const db = await openDb(device.self);
  const position = await db.position().finally(() => db.close());
  const cursor = position.history === history ? position.cursor : undefined;
  await call("PUT", PUSH, toServer(await subscribe(worker.registration, key), cursor));
}
