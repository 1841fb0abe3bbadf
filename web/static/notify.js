// Notifications of the browser, while a tab is open and nobody looks at one. Asked for in the settings and never by itself;
// the tab that leads shows them. The service worker shows them where there is one: phones know no others.

import { pathOf } from "./address.js";
import { $ } from "./dom.js";
import { t } from "./texts.js";
import { lineToTell, newestToTell } from "./told.js";

// Where this browser keeps whether they are wanted.
const WANTED = "notifications";
// The lock that a tab holds while somebody looks at it; any number of tabs hold it at once.
const LOOKED_AT = "looked at";

const looking = () => !document.hidden && document.hasFocus();

/** Lets the other tabs know from now on whether somebody looks at this one. Notifications and locks are there in the same pages. */
function tellLooks() {
  let release = null;
  const tell = () => {
    if (looking() === Boolean(release)) return;
    release?.();
    release = null;
    if (!looking()) return;
    const until = new Promise((resolve) => { release = resolve; });
    navigator.locks?.request(LOOKED_AT, { mode: "shared" }, () => until);
  };
  for (const change of ["focus", "blur", "visibilitychange"]) addEventListener(change, tell);
  tell();
}

const somebodyLooks = async () => (await navigator.locks.query()).held.some(({ name }) => name === LOOKED_AT);

/** The registration of a service worker that runs; nothing without one. */
async function worker() {
  // Refused where the browser keeps nothing, as in some private windows.
  const registration = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
  return registration?.active ? registration : undefined;
}

/** Closes what the service worker has shown for a conversation. */
async function closeAt(tag) {
  for (const notification of await (await worker())?.getNotifications({ tag }) ?? []) notification.close();
}

export class Notifier {
  /** `visit(path)` opens a message. */
  constructor(store, visit) {
    // `shown`: what closes a notification, by conversation.
    Object.assign(this, { store, visit, shown: new Map() });
    tellLooks();
    navigator.serviceWorker?.addEventListener("message", ({ data }) => { if (data.open) visit(data.open); });
    // One that an earlier page has shown may still stand there.
    worker().then((registration) => registration?.getNotifications()).then((all) => {
      for (const { tag } of all ?? []) this.shown.set(tag, () => closeAt(tag));
    });
    store.watch(() => this.clear());
    this.button = $("notify");
    $("notifications").hidden = !globalThis.Notification;
    this.button.addEventListener("click", () => this.toggle());
    this.render();
  }

  get on() { return globalThis.Notification?.permission === "granted" && localStorage.getItem(WANTED) === "on"; }

  async toggle() {
    const on = !this.on;
    if (on) await Notification.requestPermission();
    localStorage.setItem(WANTED, on ? "on" : "off");
    this.render();
  }

  render() {
    const blocked = globalThis.Notification?.permission === "denied";
    this.button.textContent = this.on ? t("notify.turn_off") : t("notify.turn_on");
    this.button.hidden = blocked;
    $("notify-note").textContent = blocked ? t("notify.blocked") : t("notify.about");
  }

  /** New rows of others. */
  async arrived(rows) {
    const { store } = this;
    if (!this.on || !rows.length || looking() || await somebodyLooks()) return;
    for (const row of newestToTell(store, rows)) {
      const { conversation: id } = row;
      this.show(id, store.title(id), { body: lineToTell(store, row), data: { path: pathOf(id, row) } }).catch((problem) => console.error(problem));
    }
  }

  async show(id, title, more) {
    const what = { ...more, tag: id, renotify: true };
    const registration = await worker();
    if (registration) {
      this.shown.set(id, () => closeAt(id));
      return registration.showNotification(title, what);
    }
    const notification = new Notification(title, what);
    this.shown.set(id, () => notification.close());
    notification.onclick = () => {
      notification.close();
      window.focus();
      this.visit(more.data.path);
    };
  }

  close(id) {
    const close = this.shown.get(id);
    this.shown.delete(id);
    return close();
  }

  /** The session is over: nothing of it is shown any more. */
  end() { return Promise.all([...this.shown.keys()].map((id) => this.close(id))); }

  /** Rows that were read, here or on another device, need no notification. */
  clear() {
    for (const id of this.shown.keys()) if (!this.store.unread(id)) this.close(id);
  }
}
