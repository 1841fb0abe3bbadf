// Uploads what messages in the outbox name, and tells sync.js when a message can go out. Belongs to the tab that leads. An upload goes on
// after a lost connection, a reload or a killed server: blobs.js has the bytes, the server says how far it is.

import { saidOf } from "./files.js";
import { end, upload } from "./tus.js";

// Messages whose files are on their way at once; of each, one file after the other.
const MOST_AT_ONCE = 2;
// Tries that the server refuses for the moment, before the person is asked. One that cannot be reached is tried for ever.
const MOST_TRIES = 8;
const LONGEST_WAIT_MS = 30_000;
// How long another tab may take to write the bytes of a message.
const WRITING_MS = 60_000;
// How often progress is told.
const TELL_MS = 100;

export class Uploads {
  /**
   * `settled(client_id, fields)` puts into the outbox how it ended: {up}, the files as the message names them, or {state, code, reason};
   * it answers nothing where the message is not there any more. `progressed(client_id, share)`: from 0 to 1. `send` makes the requests.
   */
  constructor({ blobs, settled, progressed, send }) {
    Object.assign(this, { blobs, settled, progressed, send });
    // By client_id: what is on its way. {controller, wake(), id: its upload, most: bytes that were there, tries: since that grew}.
    this.running = new Map();
  }

  /** Whether a message of the outbox can go out; else its files are sent, as soon as others make room. */
  isUp(item) {
    if (!item.files?.length || item.up) return true;
    if (!this.running.has(item.client_id) && this.running.size < MOST_AT_ONCE) {
      const run = { controller: new AbortController(), wake: () => {}, id: null, most: 0, tries: 0 };
      this.running.set(item.client_id, run);
      this.run(item, run).catch((problem) => console.error(problem)).finally(() => {
        if (this.running.get(item.client_id) === run) this.running.delete(item.client_id);
      });
    }
    return false;
  }

  /** Ends those that are not among the messages which wait: they were taken back. */
  only(items) {
    const wanted = new Set(items.filter(({ state }) => state === "waiting").map(({ client_id }) => client_id));
    for (const [client_id, { controller, id }] of this.running) {
      if (wanted.has(client_id)) continue;
      this.running.delete(client_id);
      controller.abort();
      if (id) end(id, this.send);
    }
  }

  /** There is a connection again. */
  wake() { for (const { wake } of this.running.values()) wake(); }

  /** This tab does not lead any more; another one goes on. */
  stop() { for (const { controller } of this.running.values()) controller.abort(); }

  async run(item, run) {
    const { client_id, files } = item;
    const { signal } = run.controller;
    const all = files.reduce((sum, { size }) => sum + size, 0);
    let before = 0;
    let told = -Infinity;
    const up = [];
    try {
      for (const [n, file] of files.entries()) {
        const progressed = (bytes) => {
          if (Date.now() - told < TELL_MS) return;
          told = Date.now();
          this.progressed(client_id, (before + bytes) / all);
        };
        Object.assign(run, { id: null, most: 0 });
        const id = await this.persist(run, () => this.one(item, n, run, progressed));
        up.push({ id, ...saidOf(file) });
        before += file.size;
      }
    } catch (refusal) {
      // The next session goes on.
      if (signal.aborted || refusal.status === 401) return;
      await this.settled(client_id, { state: "failed", code: refusal.code ?? "internal", reason: refusal.detail ?? refusal.message, up: null });
      return;
    }
    if (signal.aborted) return;
    this.progressed(client_id, 1);
    // It was taken back meanwhile.
    if (!await this.settled(client_id, { up })) for (const { id } of up) end(id, this.send);
  }

  async one({ client_id, files, sent_at }, n, run, progressed) {
    const blob = await this.blobs.blob(client_id, n);
    if (!blob) {
      const retryable = Date.now() - Date.parse(sent_at) < WRITING_MS;
      throw Object.assign(new Error("its bytes are not in this browser"), { code: "file_lost", status: 0, retryable });
    }
    run.id = await this.blobs.upload(client_id, n) ?? null;
    return upload(blob, {
      name: files[n].name,
      id: run.id,
      began: (id) => {
        run.id = id;
        return this.blobs.began(client_id, n, id);
      },
      progressed: (bytes) => {
        if (bytes > run.most) Object.assign(run, { most: bytes, tries: 0 });
        progressed(bytes);
      },
      signal: run.controller.signal,
      send: this.send,
    });
  }

  /** Does it again, after pauses, as long as that may help. */
  async persist(run, work) {
    const { signal } = run.controller;
    for (run.tries = 0; ; run.tries++) {
      try {
        return await work();
      } catch (refusal) {
        const isUnreached = !refusal.status && refusal.retryable;
        if (signal.aborted || !refusal.retryable || !isUnreached && run.tries >= MOST_TRIES) throw refusal;
        const wait = Math.max(1_000 * (refusal.seconds || 0), Math.min(LONGEST_WAIT_MS, 1_000 * 2 ** run.tries) * (0.5 + Math.random() / 2));
        await new Promise((resolve) => {
          run.wake = resolve;
          const timer = setTimeout(resolve, wait);
          signal.addEventListener("abort", () => {
            clearTimeout(timer);
            resolve();
          }, { once: true });
        });
        signal.throwIfAborted();
      }
    }
  }
}
