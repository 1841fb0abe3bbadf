// Being told while no tab is open, in the settings: this browser's subscription to push, and what a notification shows then. Where it
// cannot be, it says why. The service worker does the rest (push.js).

import { forgetDevice, keepDevice, keptDevice, subscribe, toServer } from "./device.js";
import { $ } from "./dom.js";
import { t } from "./texts.js";

const PUSH = "/sessions/current/push";
// How long a browser may take to subscribe; one that does not reach its push service tries for ever.
const PATIENCE_MS = 20_000;
// The texts that the service worker needs.
const NEEDED = /^(push|title)\.|^list\.of$/;

/** The bytes of a base64url text. */
const bytesOf = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
const isSame = (one, other) => one?.byteLength === other.length && new Uint8Array(one).every((byte, at) => byte === other[at]);

/** The result of work, if it comes in time. */
const inTime = (work) => new Promise((resolve, reject) => {
  work.then(resolve, reject);
  setTimeout(() => reject(new Error("the push service does not answer")), PATIENCE_MS);
});

/** The thing that is missing for this browser to be told; null: nothing is. `key`: that of the server; null: the operator has switched it off. */
export function lacks(key, { isSecureContext, navigator, PushManager, Notification } = globalThis) {
  if (!isSecureContext) return "secure";
  if (!navigator.serviceWorker) return "worker";
  if (!PushManager || !Notification) return "service";
  if (Notification.permission === "denied") return "blocked";
  return key === null ? "on" : null;
}

export class Subscription {
  constructor(call, self) {
    Object.assign(this, { call, self, key: undefined, trouble: null, shows: "text", isOn: false });
    $("push-switch").addEventListener("click", () => this.change(this.isOn ? () => this.turnOff() : () => this.turnOn()));
    $("push-shows").addEventListener("change", ({ target }) => this.choose(target.value));
    this.render();
    this.ready = this.begin().catch((problem) => console.error(problem));
  }

  /** Takes up what was chosen before: the server may have forgotten the device, or have another key. */
  async begin() {
    const kept = await keptDevice().catch(() => undefined);
    if (!kept) return;
    if (kept.self.uid !== this.self.uid) return this.end();
    Object.assign(this, { isOn: true, shows: kept.shows });
    this.render();
    const { key, endpoint } = await this.call("GET", PUSH);
    const registration = await navigator.serviceWorker.ready;
    const subscription = await registration.pushManager.getSubscription();
    if (lacks(key) || !subscription) return this.turnOff();
    this.key = key;
    if (!isSame(subscription.options.applicationServerKey, bytesOf(key))) return this.turnOn();
    if (subscription.endpoint !== endpoint) await this.call("PUT", PUSH, toServer(subscription));
    // The texts of this version, in the language of now.
    await this.keep();
  }

  /** The settings are opened. */
  async open() {
    await this.ready;
    if (this.key === undefined) this.key = await this.call("GET", PUSH).then(({ key }) => key, () => undefined);
    this.render();
  }

  /** Does one thing at a time, and says what went wrong. */
  async change(work) {
    $("push-switch").disabled = true;
    this.trouble = null;
    await work().catch((problem) => {
      console.error(problem);
      this.trouble = problem.status === undefined ? t("push.unreachable") : problem.message;
    });
    $("push-switch").disabled = false;
    this.render();
  }

  async turnOn() {
    if (await Notification.requestPermission() !== "granted") return;
    const { key } = await this.call("GET", PUSH);
    this.key = key;
    if (lacks(key)) return;
    const registration = await navigator.serviceWorker.ready;
    const before = await registration.pushManager.getSubscription();
    // A subscription keeps the key with which it was made.
    if (before && !isSame(before.options.applicationServerKey, bytesOf(key))) await before.unsubscribe();
    const subscription = await inTime(subscribe(registration, key));
    await this.call("PUT", PUSH, toServer(subscription));
    this.isOn = true;
    await this.keep();
  }

  async turnOff() {
    await this.end();
    await this.call("DELETE", PUSH);
    this.render();
  }

  /** The session is over, or nobody wants it any more: nothing comes to this browser. */
  async end() {
    if (!this.isOn && !await keptDevice().catch(() => undefined)) return;
    this.isOn = false;
    await forgetDevice();
    const registration = await navigator.serviceWorker?.getRegistration().catch(() => undefined);
    const subscription = await registration?.pushManager?.getSubscription();
    // The server forgets it with the session; a push service that cannot be reached keeps it until a push tells that it is no more.
    await subscription?.unsubscribe().catch(() => {});
  }

  async choose(shows) {
    this.shows = shows;
    if (this.isOn) await this.keep();
  }

  keep() {
    const { self, shows } = this;
    const texts = Object.fromEntries(Object.entries(globalThis.tidemarkTexts).filter(([key]) => NEEDED.test(key)));
    return keepDevice({ self, shows, texts });
  }

  render() {
    const missing = lacks(this.key);
    const why = missing === "blocked" ? t("notify.blocked") : missing && t(`push.not.${missing}`);
    $("push-note").textContent = this.trouble ?? why ?? t("push.about");
    $("push-switch").hidden = Boolean(missing) && !this.isOn;
    $("push-switch").textContent = this.isOn ? t("push.turn_off") : t("push.turn_on");
    $("push-what").hidden = !this.isOn;
    $("push-shows").querySelector(`[value="${this.shows}"]`).checked = true;
  }
}
