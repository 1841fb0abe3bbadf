// Notifications of the browser, while a tab is open and nobody looks at one. Asked for in the settings and never by itself;
// the tab that leads shows them.

import { $ } from "./dom.js";
import { mentions } from "./state.js";
import { t } from "./texts.js";

// Where this browser keeps whether they are wanted.
const WANTED = "notifications";
// The lock that a tab holds while somebody looks at it; any number of tabs hold it at once.
const LOOKED_AT = "looked at";
// The most that come at once, as after a sleep: one for each conversation.
const MOST = 3;

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

export class Notifier {
  /** `go(id)` opens a conversation. */
  constructor(store, go) {
    Object.assign(this, { store, go, shown: new Map() });
    tellLooks();
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
    // A mention is told of also where the conversation is muted.
    const isTold = (row) => row.kind === "message" && (!store.isMuted(row.conversation) || mentions(row, store.self.uid));
    const newest = new Map(rows.filter(isTold).map((row) => [row.conversation, row]));
    const unread = [...newest].filter(([id]) => store.unread(id));
    for (const [id, row] of unread.slice(-MOST)) this.show(id, store.title(id), store.line(row, id.startsWith("g:")));
  }

  show(id, title, body) {
    const notification = new Notification(title, { body, tag: id, renotify: true });
    this.shown.set(id, notification);
    notification.onclick = () => {
      notification.close();
      window.focus();
      this.go(id);
    };
    notification.onclose = () => { if (this.shown.get(id) === notification) this.shown.delete(id); };
  }

  /** The session is over: nothing of it is shown any more. */
  end() {
    for (const notification of this.shown.values()) notification.close();
  }

  /** Rows that were read, here or on another device, need no notification. */
  clear() {
    for (const [id, notification] of this.shown) if (!this.store.unread(id)) notification.close();
  }
}
