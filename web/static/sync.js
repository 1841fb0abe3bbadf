// Keeps this browser in step: pulls rows by cursor, sends the outbox, tells how far was read.
// Owns the connection; all else lives in the database. Knows nothing of the page.

import { conversationsOf, pagesOf } from "./lists.js";
import { Socket } from "./socket.js";
import { MOMENTS, counts, keeping } from "./state.js";
import { Uploads } from "./uploads.js";

// How long the answer to a send may take, before the same is sent again.
const PATIENCE_MS = 20_000;
// Refusals of one message that say "try again", before the person is asked.
const MOST_TRIES = 6;
// Refusals by a server that stops, or has lost its storage: behind the same address there may be another.
const OF_THE_SERVER = ["unavailable", "stopping"];
// Messages that are on their way at once; a server takes 64 of a connection.
const MOST_IN_FLIGHT = 32;
// Heartbeats that are kept for those who look.
const BEATS = 6;

/** Whether it is a message or a moment, rather than something said about one. */
const isPost = ({ to, call }) => to || call?.path === "/moments";

/**
 * A browser client of its own:
 *
 *     const db = await openDb({ uid, name, account });   // db.js
 *     const sync = new Sync({ db, call,                  // api.js
 *       changed: (conversations) => { … read db.page(id, { limit: 50 }) … },
 *       notified: ({ phase }) => { … } });
 *     await sync.start();
 *     await db.post({ client_id, conversation: "u:10002", to: { user: 10002 }, body: { text }, sent_at });
 *     sync.nudge();
 *
 * `changed(conversations | null, arrived)`: these are different in the database now (null: all, since it began anew; [null]: what is not of
 * one conversation); `arrived`: new messages of others.
 * `notified(state)`: {phase, retryAt, cursor, latest, history, beats}, for whoever is curious.
 * `arriving(rows)`: rows that follow what is in the database. They are stored after this call, or after the promise that it answers;
 * `changed` then tells of them.
 * `blobs`: the bytes of files that messages of the outbox name (blobs.js).
 * `sent(client_id, message_id)`: the server has stored this message. `notSent(client_id, reason)`: it has refused one that is not in the outbox.
 * `passed(frame)`: who is typing, who is online of those whom one `watch`es, and of whom something else is to be seen; none of it is
 * stored. `watching(people)`: changes of these are told from now on, so what was asked before may have changed unseen.
 */
export class Sync {
  constructor({ db, call, blobs, changed, notified, arriving = () => {}, sent = () => {}, notSent = () => {}, passed = () => {}, watching = () => {} }) {
    Object.assign(this, { db, call, changed, notified, arriving, passed, watching, notSent, stored: sent });
    this.uploads = new Uploads({
      blobs,
      settled: (client_id, fields) => this.uploaded(client_id, fields),
      progressed: (client_id, share) => passed({ type: "uploading", client_id, share }),
    });
    this.state = { phase: "connecting", cursor: 0, beats: [] };
    this.work = Promise.resolve();
    // By client_id: since when it is under way.
    this.inFlight = new Map();
    // By client_id: messages that were under way when the browser refused to keep them; as many as were in flight.
    this.held = new Map();
    // By client_id: refusals so far.
    this.tries = new Map();
    // `left` grows whenever something may wait in the outbox; `flushed` is what it was when the last complete flush began. While
    // they differ, no message goes ahead of the outbox.
    this.left = 1;
    this.flushed = 0;
    // The end of the last rows of this connection that were shown before they were stored.
    this.ahead = 0;
    // Pauses after refusals that have not ended: until then no message goes out, so that none overtakes a refused one.
    this.pauses = 0;
    // By conversation: the read marker that was sent on this connection.
    this.reported = new Map();
    // By conversation and state: the last `seen`; those that may be lost, since only the answer to a later heartbeat says that they are not.
    this.seen = new Map();
    this.unproven = new Set();
    // People of whom one wants to know whether they are online, and those of whom the server was told on this connection.
    this.people = [];
    this.watched = [];
    // Those of them for whom the server has not answered yet.
    this.newly = [];
    this.socket = new Socket({
      url: `${location.protocol.replace("http", "ws")}//${location.host}/ws`,
      onFrame: (frame) => {
        const shown = this.showAhead(frame);
        this.inOrder(async () => {
          await shown;
          await this.frame(frame);
        });
      },
      onState: (state) => this.tell(state),
      onFail: () => this.stillWelcome(),
      beat: () => {
        this.beaten = { at: Date.now(), seq: this.state.cursor };
        this.proving = [...this.unproven];
        return { type: "heartbeat", seq: this.state.cursor };
      },
    });
  }

  async start() {
    const { cursor, history, learned } = await this.db.position();
    this.tell({ cursor, history });
    this.learned = learned;
    this.socket.start();
  }

  /** The browser has lost all that was kept: it is fetched again over a new connection. */
  anew() {
    this.learned = false;
    this.tell({ cursor: 0, history: undefined });
    this.socket.connect();
  }

  stop() {
    this.socket.stop();
    this.uploads.stop();
  }

  /** Connects at once instead of waiting. */
  now() { this.socket.connect(); }

  /** The outbox or a read marker changed, here or in another tab. */
  nudge() {
    this.left++;
    this.inOrder(() => this.flush());
  }

  /**
   * Sends a message that is put into the outbox in the same step, without waiting until it is stored there: if this page dies meanwhile, the
   * server has the message or nobody has, as without this. Behind others that wait, or for its files, it waits, too, for `nudge`. True: it
   * is under way.
   */
  send({ client_id, to, body, files }) {
    const waits = files || this.left > this.flushed || this.pauses || this.inFlight.size >= MOST_IN_FLIGHT;
    const isOut = !waits && this.socket.send({ type: "send", client_id, to, body });
    isOut ? this.markOut(client_id) : this.left++;
    return isOut;
  }

  /** The browser has refused to keep a message that is under way: it comes again from memory until it is answered. */
  hold(item) {
    this.held.set(item.client_id, { ...item, state: "waiting" });
    this.nudge();
  }

  /** The items that wait to go out, in their order. */
  async waiting() {
    const all = await this.db.all("outbox");
    for (const item of this.held.values()) {
      const next = all.findIndex(({ sent_at }) => sent_at > item.sent_at);
      all.splice(next < 0 ? all.length : next, 0, item);
    }
    return all;
  }

  /** It is under way, and comes again when nothing answers. */
  markOut(clientId) {
    this.inFlight.set(clientId, Date.now());
    setTimeout(() => this.nudge(), PATIENCE_MS);
  }

  /** Tells of rows that follow those which are here, before they have their turn. They are stored when they have been shown. */
  showAhead({ type, entries, after, synced }) {
    const known = Math.max(this.ahead, this.state.cursor);
    if (type !== "entries" || after > known) return;
    this.ahead = synced;
    return this.arriving(entries.filter((row) => row.message_id > known));
  }

  /** Sends what nobody stores, if there is a connection now. */
  say(frame) { this.socket.send(frame); }

  /** Wants to be told who of these people is online. */
  watch(people) {
    this.people = people;
    if (people.join() === this.watched.join() || !this.socket.send({ type: "presence", of: people })) return;
    this.newly.push(...people.filter((uid) => !this.watched.includes(uid)));
    this.watched = people;
  }

  tell(part) {
    Object.assign(this.state, part);
    this.notified(this.state);
  }

  /** Frames are worked one after the other; one that fails costs the connection, never the cursor. */
  inOrder(job) {
    this.work = this.work.then(job).catch((problem) => {
      console.error(problem);
      this.socket.retry(1_000);
    });
  }

  frame(frame) {
    switch (frame.type) {
      case "welcome": return this.welcome(frame);
      case "alive": return this.alive(frame);
      case "entries": return this.entries(frame);
      case "sent": return this.sent(frame);
      case "presence":
        if (this.newly.length) this.watching(this.newly.splice(0));
        return this.passed(frame);
      case "typing": case "person": return this.passed(frame);
      case "error": return frame.client_id ? this.refused(frame) : frame.conversation ? this.unmarked(frame) : this.unanswered(frame);
    }
  }

  async welcome({ uid, seq, history, heartbeat_seconds, keep_seconds }) {
    if (uid !== this.db.uid) return this.socket.end();
    if (history !== this.state.history) await this.begin(seq, history);
    this.keep = keep_seconds;
    this.countsFrom = 0;
    await this.expire();
    this.inFlight.clear();
    this.left++;
    this.ahead = 0;
    this.reported.clear();
    this.socket.opened(heartbeat_seconds);
    this.tell({ latest: seq });
    if (this.unproven.size && await this.db.isQuiet()) this.unproven.clear();
    for (const word of this.unproven) this.socket.send(word);
    this.socket.heartbeat();
    this.watched = [];
    this.newly = [];
    this.watch(this.people);
    this.uploads.wake();
    await this.flush();
    if (!this.learned) await this.learn();
  }

  /** Removes what the server keeps no longer. */
  async expire() {
    if (!this.keep && !(await this.db.all("conversations")).some(({ keep }) => keep)) return;
    const now = Date.now();
    const asks = now >= this.countsFrom;
    const { changed, stale } = await this.db.expire(this.keep && new Date(now - 1_000 * this.keep).toISOString(), asks);
    // Rows may stay there for so much longer.
    if (asks) this.countsFrom = now + 50 * (this.keep ?? 86_400);
    if (stale) await this.db.recount(await conversationsOf(this.call));
    if (changed.length) this.changed(changed);
  }

  /** A new browser, or a new life of the data (I14): forget the rows, take the list, go on from what was the latest id before that. */
  async begin(seq, history) {
    const isOther = await this.db.begin(seq, history, await conversationsOf(this.call));
    if (isOther) for (const { body } of this.held.values()) delete body.reply_to;
    this.seen.clear();
    this.unproven.clear();
    this.tell({ cursor: seq, history });
    this.learned = false;
    this.changed(null);
  }

  /** Takes settings, stars, times for messages, friends and the newest moments, whose rows may lie below the cursor. The next connection retries a failure. */
  async learn() {
    try {
      await this.learnState();
      this.learned = true;
      // Not all: who reads a conversation meanwhile stays where they are.
      this.changed([null]);
    } catch (problem) {
      console.error(problem);
    }
  }

  async learnState() {
    const rows = [];
    for (const list of ["settings", "stars", "keeps"]) rows.push(...await pagesOf(this.call, list, "rows"));
    const friends = await pagesOf(this.call, "friends", "friends");
    const moments = await this.call("GET", "/moments");
    await this.db.learnState(rows, friends);
    await this.db.keepHistory(MOMENTS, moments.rows, { from: moments.next_before ?? 0, to: Infinity, life: this.state.history });
    await this.db.patch(MOMENTS, { read_to: moments.read_to, acked: moments.read_to, unread: this.unreadOf(moments),
      counted: moments.rows[0]?.message_id ?? 0 });
  }

  unreadOf({ rows, read_to }) {
    return rows.filter((row) => row.message_id > read_to && counts(row, this.db.uid)).length;
  }

  async alive({ seq, history }) {
    this.beat({ rows: 0 });
    if (history === this.state.history && seq >= this.state.cursor) {
      for (const word of this.proving) this.unproven.delete(word);
      this.socket.works();
      this.tell({ latest: seq });
      return this.expire();
    }
    // It is another history, or one that ends before our cursor; or rows have expired that never came, and 0 is nobody's latest id.
    await this.begin(seq || (await this.call("GET", "/seq")).seq, history);
    this.socket.heartbeat();
  }

  async entries({ entries, after, synced }) {
    const { cursor, changed, arrived, stale } = await this.db.entries(entries, after, synced);
    this.beat({ rows: entries.length, synced });
    this.tell({ cursor, latest: Math.max(synced, this.state.latest) });
    this.socket.heartbeat();
    this.changed(changed, arrived);
    await this.received(entries, cursor);
    if (entries.some((row) => keeping({}, row))) await this.expire();
    if (!stale) return;
    await this.db.recount(await conversationsOf(this.call));
    this.changed(changed);
  }

  /** Tells others that their messages have come, unless the person wants that to be nobody's business. */
  async received(entries, cursor) {
    const last = new Map();
    for (const row of entries) {
      const isOthers = row.kind === "message" && row.client_id && row.conversation === `u:${row.sender}`;
      if (isOthers && row.sender !== this.db.uid && row.message_id <= cursor) last.set(row.conversation, row.message_id);
    }
    if (!last.size || await this.db.isQuiet()) return;
    for (const [conversation, message_id] of last) this.see({ type: "seen", conversation, message_id, state: "delivered" });
  }

  /** Tells somebody how far their messages have come; again on the next connection if it may be lost with this one. */
  see(word) {
    const of = `${word.conversation} ${word.state}`;
    this.unproven.delete(this.seen.get(of));
    this.seen.set(of, word);
    this.unproven.add(word);
    this.socket.send(word);
  }

  /** A `read` or `seen` was refused: if only for the moment, it comes again. */
  unmarked({ code, conversation, message_id, retryable }) {
    this.unanswered({ code });
    if (retryable) setTimeout(() => {
      this.reported.delete(conversation);
      for (const word of this.seen.values()) if (word.conversation === conversation && word.message_id === message_id) this.see(word);
      this.nudge();
    }, PATIENCE_MS);
  }

  beat(answer) {
    this.tell({ beats: [{ ...this.beaten, ...answer }, ...this.state.beats].slice(0, BEATS) });
  }

  /**
   * Sends read markers, and what waits in the outbox, in its order. The server keeps that order: behind a message that it refuses for
   * the moment it refuses the others (`out_of_order`), and all of them come again. Behind one whose files are on their way those of the same
   * conversation wait, too.
   */
  async flush() {
    const { left } = this;
    let all = !this.pauses;
    const uploading = new Set();
    const waiting = this.pauses ? [] : await this.waiting();
    if (!this.pauses) this.uploads.only(waiting);
    for (const item of waiting) {
      if (item.state !== "waiting") continue;
      if (isPost(item) && (uploading.has(item.conversation) || !this.uploads.isUp(item))) {
        uploading.add(item.conversation);
        all = false;
        continue;
      }
      if (Date.now() - (this.inFlight.get(item.client_id) ?? -Infinity) < PATIENCE_MS) continue;
      if (this.inFlight.size >= MOST_IN_FLIGHT) {
        all = false;
        break;
      }
      const { client_id, conversation, to, frame, call, up: files } = item;
      if (call) {
        if (this.socket.phase !== "open") return;
        // One after the other, since each has a way of its own through the server.
        if (this.calling) continue;
        this.inFlight.set(client_id, Date.now());
        this.ask(client_id, { ...call, body: { ...call.body, ...(files && { files }) } });
        continue;
      }
      const body = { ...item.body, ...(files && { files }) };
      const sent = frame ? { ...frame, client_id, conversation } : { type: "send", client_id, to, body };
      if (!this.socket.send(sent)) return;
      this.markOut(client_id);
    }
    if (all) this.flushed = left;
    if (this.socket.phase !== "open") return;
    for (const { id, read_to, acked } of await this.db.all("conversations")) {
      if (read_to <= acked || this.reported.get(id) === read_to) continue;
      const last = /^u:[1-9]/.test(id) && await this.db.lastOfOther(id, read_to);
      // First: a server that has the marker is not told again.
      if (last?.message_id > acked && !await this.db.isQuiet()) this.see({ type: "seen", conversation: id, message_id: last.message_id, state: "read" });
      if (this.socket.send({ type: "read", conversation: id, message_id: read_to })) this.reported.set(id, read_to);
    }
  }

  /** The files of a message are up, or refused. Answers the message; nothing: it was taken back. */
  async uploaded(client_id, fields) {
    const item = await this.db.outgoing(client_id, fields);
    if (!item) return;
    this.changed([item.conversation]);
    this.nudge();
    return item;
  }

  /** Makes a call that waits in the outbox. Its answer comes as those of frames do. */
  ask(client_id, { method, path, body }) {
    this.calling = true;
    this.call(method, path, { ...body, client_id }).finally(() => { this.calling = false; }).then(
      (ack) => this.inOrder(() => this.sent({ client_id, ...ack })),
      (refusal) => this.inOrder(() => this.refused({ client_id, ...refusal, detail: refusal.message, retryable: refusal.retryable })));
  }

  /** It is stored; its row takes the item's place, or is there already, or lies below what was ever synced. */
  sent({ client_id, message_id, sent_at }) {
    this.stored(client_id, message_id);
    return this.answered(client_id, message_id > this.state.cursor ? { state: "sent", sent_at, message_id } : null);
  }

  /** One that only waits for an earlier one (`out_of_order`) has not been tried. */
  async refused({ client_id, code, detail, retryable }) {
    const tries = (this.tries.get(client_id) ?? 0) + (code === "out_of_order" ? 0 : 1);
    this.tries.set(client_id, tries);
    if (!retryable || tries >= MOST_TRIES) return this.answered(client_id, { state: "failed", code, reason: detail });
    const wait = 500 * 2 ** tries * (0.5 + Math.random() / 2);
    this.inFlight.delete(client_id);
    if (tries > 1) this.unanswered({ code });
    this.pauses += 1;
    setTimeout(() => {
      this.pauses -= 1;
      this.nudge();
    }, wait);
  }

  /** Something got no answer because of the server: the next connection may lead to another one. */
  unanswered({ code }) {
    if (OF_THE_SERVER.includes(code) && this.socket.phase === "open") this.socket.retry();
  }

  async answered(clientId, fields) {
    this.tries.delete(clientId);
    this.inFlight.delete(clientId);
    const isHeld = this.held.delete(clientId);
    const item = await this.db.outgoing(clientId, fields);
    if (item) this.changed([item.conversation]);
    else if (isHeld && fields?.state === "failed") this.notSent(clientId, fields);
    // More goes out when half of what was under way has been answered.
    if (this.inFlight.size < MOST_IN_FLIGHT / 2) await this.flush();
  }

  /** The connection was refused before it opened: is it the network, or is the session over? */
  async stillWelcome() {
    try {
      await this.call("GET", "/me");
    } catch (refusal) {
      if (refusal.status === 401) this.socket.end();
    }
  }
}
