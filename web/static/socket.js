// A WebSocket that comes back: backoff with jitter, close codes, silence, sleep, `online`.
// Knows frames only as JSON objects; what they mean is for the caller.

// The first wait before coming back; it doubles up to the longest.
const FIRST_MS = 500;
const LONGEST_MS = 30_000;
// How long the answer to a heartbeat may take.
const ANSWER_MS = 15_000;
// The same after a wake-up, when the connection is in doubt.
const PROBE_MS = 5_000;
const TICK_MS = 1_000;
// A tick this late means that the machine slept.
const SLEPT_MS = 15_000;

/**
 * `onFrame(frame)`; `onState({phase, retryAt})` with phase connecting, open, waiting, offline or ended;
 * `beat()` makes the heartbeat frame; `onFail()` is asked after a connection that never opened.
 */
export class Socket {
  constructor({ url, onFrame, onState, onFail, beat, random = Math.random }) {
    Object.assign(this, { url, onFrame, onState, onFail, beat, random });
    this.heartbeatMs = 20_000;
    this.tries = 0;
    this.phase = "ended";
  }

  start() {
    this.ticker = setInterval(() => this.tick(), TICK_MS);
    this.ticked = Date.now();
    this.listening = new AbortController();
    const { signal } = this.listening;
    addEventListener("online", () => this.probe(), { signal });
    addEventListener("offline", () => this.retry(), { signal });
    document.addEventListener("visibilitychange", () => document.hidden || this.probe(), { signal });
    this.connect();
  }

  /** Closes for good, without a word. */
  stop() {
    clearInterval(this.ticker);
    this.listening.abort();
    this.drop();
    this.phase = "ended";
  }

  /** Closes for good: the session is over. */
  end() {
    this.stop();
    this.tell("ended");
  }

  /** Sends a frame; false when there is no connection (nothing is kept here). */
  send(frame) {
    if (this.phase !== "open") return false;
    this.ws.send(JSON.stringify(frame));
    return true;
  }

  /** The first frame was understood: the connection counts, and beats every `seconds`. */
  opened(seconds) {
    this.heartbeatMs = seconds * 1000;
    this.tell("open");
  }

  /** The server does its work: the next wait is a short one again. One that only opens connections waits for this. */
  works() { this.tries = 0; }

  /** Says how far this browser is; without an answer within `patience` milliseconds the connection is dead. */
  heartbeat(patience = ANSWER_MS) {
    this.beatAt = Date.now();
    this.deadline = Math.min(this.deadline, this.beatAt + patience);
    this.send(this.beat());
  }

  /** Something woke the page: is the connection still there? Waiting ones try at once. */
  probe() {
    if (this.phase === "open") this.heartbeat(PROBE_MS);
    else if (this.phase !== "connecting") this.connect();
  }

  /** Gives up this connection and comes back later. `atLeastMs`: not sooner. */
  retry(atLeastMs = 0) {
    if (this.phase === "ended") return;
    this.drop();
    const ceiling = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.tries++);
    const wait = atLeastMs + ceiling * (0.5 + this.random() / 2);
    this.retryAt = Date.now() + wait;
    this.tell(navigator.onLine === false ? "offline" : "waiting");
  }

  connect() {
    this.drop();
    this.tell("connecting");
    const ws = (this.ws = new WebSocket(this.url));
    this.deadline = Date.now() + 10_000;
    ws.onmessage = ({ data }) => {
      this.deadline = Date.now() + 3 * this.heartbeatMs;
      this.onFrame(JSON.parse(data));
    };
    ws.onclose = ({ code }) => this.closed(code);
  }

  drop() {
    if (!this.ws) return;
    this.ws.onmessage = this.ws.onclose = null;
    this.ws.close();
    this.ws = null;
  }

  async closed(code) {
    const opened = this.phase === "open";
    this.ws = null;
    if (code === 4401) return this.end();
    if (code === 1012) this.retry(this.random() * 1500);
    else this.retry(code === 1008 ? 5_000 : 0);
    if (!opened) this.onFail();
  }

  tick() {
    const now = Date.now();
    const slept = now - this.ticked > SLEPT_MS;
    this.ticked = now;
    if (this.phase === "waiting" || this.phase === "offline") {
      if (now >= this.retryAt) this.connect();
    } else if (now > this.deadline) this.retry();
    else if (slept) this.probe();
    else if (this.phase === "open" && now - this.beatAt >= this.heartbeatMs) this.heartbeat();
  }

  tell(phase) {
    this.phase = phase;
    this.onState({ phase, retryAt: phase === "waiting" ? this.retryAt : null });
  }
}
