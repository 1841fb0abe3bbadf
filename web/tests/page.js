// The few things of a browser that the modules without a page use: events of the window, a clock that the test moves, and a
// WebSocket that the test holds.

import { readFileSync } from "node:fs";
import { webcrypto } from "node:crypto";

// They are no globals of Node.js 18.
globalThis.crypto ??= webcrypto;
globalThis.navigator ??= {};
Map.groupBy ??= (items, keyOf) => {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...groups.get(keyOf(item)) ?? [], item]);
  return groups;
};

// The page's texts, as the server's script would bring them.
globalThis.tidemarkTexts = JSON.parse(readFileSync(new URL("../languages/en.json", import.meta.url), "utf8"));

/** Time that stands still until it is moved. */
class Clock {
  constructor() {
    Object.assign(this, { now: 1_000_000, timers: new Map(), made: 0 });
    Date.now = () => this.now;
    globalThis.setTimeout = (work, after) => this.add(work, after, null);
    globalThis.setInterval = (work, every) => this.add(work, every, every);
    globalThis.clearTimeout = globalThis.clearInterval = (id) => this.timers.delete(id);
  }

  add(work, after, every) {
    this.made += 1;
    this.timers.set(this.made, { work, due: this.now + after, every });
    return this.made;
  }

  /** Runs what falls due on the way, each at its time. */
  pass(milliseconds) {
    const end = this.now + milliseconds;
    for (;;) {
      const [next] = [...this.timers].sort(([, a], [, b]) => a.due - b.due);
      if (!next || next[1].due > end) break;
      const [id, timer] = next;
      this.now = Math.max(this.now, timer.due);
      if (timer.every === null) this.timers.delete(id);
      else timer.due = this.now + timer.every;
      timer.work();
    }
    this.now = end;
  }
}

/** Makes them anew. Returns what the test moves. */
export function page() {
  const clock = new Clock();
  const made = [];
  const window = new EventTarget();
  globalThis.addEventListener = window.addEventListener.bind(window);
  globalThis.document = Object.assign(new EventTarget(), { hidden: false });
  globalThis.location = { protocol: "http:", host: "localhost" };
  Object.defineProperty(globalThis, "navigator", { value: { onLine: true }, configurable: true, writable: true });
  globalThis.WebSocket = class {
    constructor(url) {
      Object.assign(this, { url, sent: [], closed: false });
      made.push(this);
    }
    send(text) { this.sent.push(JSON.parse(text)); }
    close() { this.closed = true; }
    /** The server sends a frame. */
    receive(frame) { this.onmessage({ data: JSON.stringify(frame) }); }
    /** The connection ends. */
    end(code) { this.onclose({ code }); }
  };
  return {
    /** Every connection so far. */
    made,
    get last() { return made.at(-1); },
    online(is) {
      navigator.onLine = is;
      window.dispatchEvent(new Event(is ? "online" : "offline"));
    },
    visible(is) {
      document.hidden = !is;
      document.dispatchEvent(new Event("visibilitychange"));
    },
    /** So much time passes. */
    pass(milliseconds) { clock.pass(milliseconds); },
    /** The machine sleeps: the clock moves and nothing runs meanwhile. */
    sleep(milliseconds) { clock.now += milliseconds; },
  };
}

/** Lets everything that waits for a promise go on. */
export async function settled() {
  for (let turn = 0; turn < 50; turn += 1) await null;
}
