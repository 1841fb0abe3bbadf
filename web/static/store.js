// The state that the page shows, read from the database and read again when it changed: conversations, names, drafts, the outbox.
// Writes go to the database first, but for a message (`sending`). Other tabs are notified through `nudge`.

import { dress, isolate } from "./dom.js";
import { Drafts } from "./drafts.js";
import { called, eventOf } from "./groups.js";
import { History } from "./history.js";
import { Listed } from "./listed.js";
import { lineOf } from "./markdown.js";
import { Sending } from "./sending.js";
import { authorOf, isEvent } from "./state.js";
import { t } from "./texts.js";

// For how long what is known of a person is taken as right, and how long others are waited for to be asked about together.
const PROFILE_MS = 600_000;
const GATHER_MS = 50;
// People of one question.
const MOST_PROFILES = 100;
// Questions for what is pinned, while it changes.
const MOST_TRIES = 3;

export class Store extends Listed {
  /**
   * `blobs`: the bytes of files that wait (blobs.js). `nudge(conversations)`: something was written here that sync and other tabs should know. `send` and `hold`: those of sending.js.
   */
  constructor({ db, blobs, call, self, nudge, send, hold }) {
    super();
    Object.assign(this, { db, blobs, call, self, nudge });
    // Rows below this id were never synced (db.js).
    this.base = 0;
    // The id of the open conversation.
    this.open = null;
    // What is looked for (sought.js): it is marked wherever it stands in messages and moments; null: nothing is.
    this.sought = null;
    this.asked = new Set();
    // People whose profile was asked for, and when; and people to ask for.
    this.profiled = new Map();
    this.unknown = new Set();
    // Conversations with nobody: no user has the number, or no group that one may see.
    this.nobody = new Set();
    this.box = new Drafts(this);
    this.history = new History(this);
    this.sending = new Sending(this, { send, hold });
    this.watchers = new Set();
    this.loading = Promise.resolve();
    // The load that has not begun yet.
    this.next = null;
  }

  /** `watcher(conversations | null)` runs after every load; they are what `changed` of sync.js tells. Answers what ends it. */
  watch(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** One after the other, so that an older state never replaces a newer one; one that has not begun yet serves for all who ask. */
  load(ids = null) {
    if (this.next) {
      this.next.ids = this.next.ids && ids && [...new Set([...this.next.ids, ...ids])];
      return this.loading;
    }
    const next = this.next = { ids };
    this.loading = this.loading.catch(() => {}).then(async () => {
      this.next = null;
      Object.assign(this, await this.db.overview());
      this.sending.add(next.ids);
      this.box.show();
      this.names.set(this.self.uid, this.self.name);
      for (const [uid, { hue, picture }] of this.profiles ?? []) if (uid !== this.self.uid) dress(`u:${uid}`, hue, picture);
      for (const [id, { picture }] of this.conversations) if (id.startsWith("g:")) dress(id, undefined, picture ?? undefined);
      dress(`u:${this.self.uid}`, this.setting("profile")?.hue, this.ownPicture());
      // Asked for now: there may be no connection when they are shown.
      for (const uid of this.friends.keys()) this.name(uid);
      this.show(next.ids);
    });
    return this.loading;
  }

  /** Shows again what is in memory. */
  show(ids = []) { for (const watcher of this.watchers) watcher(ids); }

  /** Marks other words; null: none. */
  seek(sought) {
    if (sought?.key === this.sought?.key) return;
    this.sought = sought;
    this.show([this.open]);
  }

  /** Writes with `work`, then shows it here and tells the others. */
  async write(id, work) {
    const result = await work(this.db);
    // Sending does not wait for the page.
    this.nudge([id]);
    await this.load([id]);
    return result;
  }

  /** Whether the account of a person is deleted, as far as that is known here. */
  isDeleted(uid) { return Boolean(this.profiles?.get(uid)?.deleted || this.conversations.get(`u:${uid}`)?.deleted); }

  /** The name of a person; asked for once when it is not known yet. A new browser takes the list of conversations first, which has most of them. */
  name(uid) {
    if (this.isDeleted(uid)) return t("person.deleted");
    const known = this.names.get(uid);
    if (known === undefined && this.base && !this.asked.has(uid)) {
      this.asked.add(uid);
      this.call("GET", `/users/${uid}`).then(
        (person) => this.write(null, (db) => db.learn([person])),
        (refusal) => {
          if (refusal.retryable) this.asked.delete(uid);
          if (refusal.status === 404) this.addNobody(`u:${uid}`);
        });
    }
    return known === undefined ? `#${uid}` : called(known);
  }

  /** The profile of a person beside the name: {hue, about, picture}; asked for when it is not known or old. */
  profile(uid) {
    if (uid === this.self.uid) return this.setting("profile") ?? {};
    const known = this.profiles?.get(uid);
    const isFresh = (at) => at > Date.now() - PROFILE_MS;
    if (!isFresh(known?.at) && !isFresh(this.profiled.get(uid))) {
      if (!this.unknown.size) setTimeout(() => this.meetPeople(), GATHER_MS);
      this.unknown.add(uid);
    }
    return known ?? {};
  }

  /** Asks anew what is to be known of a person. Answers the name. */
  async meetAgain(uid) {
    this.unknown.add(uid);
    const people = await this.meetPeople();
    return people.find((person) => person.uid === uid)?.name;
  }

  /** The server tells of these people from now on. What it said of some before may have changed since. */
  meetAnew(uids) {
    for (const uid of uids) if (this.profiled.has(uid) || this.asked.has(uid)) this.unknown.add(uid);
    return this.meetPeople();
  }

  /** Asks what is to be known of people, of so many at once, and answers it. */
  async meetPeople() {
    const uids = [...this.unknown].slice(0, MOST_PROFILES);
    this.unknown.clear();
    if (!uids.length) return [];
    for (const uid of uids) this.profiled.set(uid, Date.now());
    const people = await this.call("GET", `/profiles?uids=${uids}`).catch(() => []);
    const isNews = ({ uid, name, hue, about, picture, deleted }) => {
      const known = this.profiles.get(uid);
      return !known || known.hue !== hue || known.about !== about || known.picture !== picture || known.deleted !== deleted || this.names.get(uid) !== name;
    };
    if (people.some(isNews)) await this.keepPeople(people);
    return people;
  }

  keepPeople(people) {
    return this.write(null, (db) => db.write(["names"], (names) => {
      for (const { uid, name, hue, about, picture, deleted } of people) {
        names.put(name, uid);
        names.put({ hue, about, picture, deleted, at: Date.now() }, `profile ${uid}`);
      }
    }));
  }

  addNobody(id) {
    this.nobody.add(id);
    this.show([id]);
  }

  title(id) {
    if (id.startsWith("u:") && this.isDeleted(Number(id.slice(2)))) return t("person.deleted");
    const { title } = this.conversations.get(id) ?? {};
    // The list has the name of a person from when it was fetched.
    if (id.startsWith("u:") && title) return called(this.names.get(Number(id.slice(2))) ?? title);
    if (title) return title;
    if (this.nobody.has(id)) return id.startsWith("u:") ? t("title.nobody") : t("title.no_group");
    return id.startsWith("u:") ? this.name(Number(id.slice(2))) : t("title.group", { number: id.slice(2) });
  }

  /** Messages that are on their way. */
  pending(id) { return this.outbox.filter((item) => item.conversation === id && !item.frame && !item.call); }

  /** Edits, recalls and reactions that are on their way. */
  amending(id) { return this.outbox.filter((item) => item.conversation === id && item.frame?.message_id); }

  /** A row in one line of plain text; in a group, with the name of its sender. */
  line(row, group) {
    if (isEvent(row)) return eventOf(this, row);
    if (row.kind === "recalled") return this.recalled(row);
    // What is left of one that expired has no name.
    if (row.kind === "deleted") return row.client_id ? t("row.deleted") : "";
    const text = lineOf(this, row);
    if (row.sender === this.self.uid) return t("list.own", { text: isolate(text) });
    return group ? t("list.of", { name: isolate(this.name(row.sender)), text: isolate(text) }) : isolate(text);
  }

  /** A message that was taken back, as a sentence. */
  recalled({ sender, body }) {
    if (body?.by) return body.by === this.self.uid ? t("row.you_removed") : t("row.removed", { name: isolate(this.name(body.by)) });
    return sender === this.self.uid ? t("row.you_recalled") : t("row.recalled", { name: isolate(this.name(sender)) });
  }

  /** Keeps what the server says of a group that the person is in. */
  learnGroup(id, { name, topic, picture, role, members, member_count, slow_seconds: slow }) {
    const { muted = null } = members.find(({ uid }) => uid === this.self.uid) ?? {};
    const people = members.map(({ uid }) => uid);
    return this.write(id, async (db) => {
      await db.learn(members);
      await db.patch(id, { title: name, topic, picture, role, left: false, members: member_count, people, slow, muted });
    });
  }

  /** Learns the people of a group, and whether the person still is one of them. */
  async meet(id) {
    try {
      await this.learnGroup(id, await this.call("GET", `/groups/${id.slice(2)}`));
    } catch (refusal) {
      if (refusal.status !== 404) return;
      if (this.conversations.get(id)?.last) await this.write(id, (db) => db.patch(id, { left: true }));
      else this.addNobody(id);
    }
  }

  /** The people that a message there may mention: the other members of a group, [{uid, name}]. */
  people(id) {
    const { people = [], left } = this.conversations.get(id) ?? {};
    return left ? [] : people.filter((uid) => uid !== this.self.uid).map((uid) => ({ uid, name: this.name(uid) }));
  }

  /**
   * Sends a message. `quoted`: the row that it replies to; `mentions`: whom it names; `forwarded`: the row whose text and files it has; `files`:
   * [{blob, name, size, type, …}] (tray.js).
   */
  post(id, text, quoted = null, mentions = null, forwarded = null, files = []) {
    const number = Number(id.slice(2));
    const to = id.startsWith("u:") ? { user: number } : { group: number };
    const about = { ...(quoted && { reply_to: quoted.message_id }), ...(forwarded && { forward: forwarded.message_id }) };
    const body = { text, ...about, ...(mentions && { mentions }) };
    const quote = quoted && { of: { sender: quoted.sender, client_id: quoted.client_id } };
    const carried = forwarded?.body.files && { message_id: forwarded.message_id, files: forwarded.body.files };
    const item = { client_id: uuid(), conversation: id, to, body, quote, forwarded_from: authorOf(forwarded), sent_at: new Date().toISOString(),
      ...(carried && { carried }), ...(files.length && { files: files.map(aboutFile) }) };
    return this.sending.post(item, quoted, files.length ? files.map(({ blob }) => blob) : null);
  }

  /** How far an own message has come, as far as the other person tells. */
  progress({ conversation, message_id }) {
    const { read = 0, delivered = 0 } = this.conversations.get(conversation)?.seen ?? {};
    return read >= message_id ? "read" : delivered >= message_id ? "delivered" : "sent";
  }

  /** How many members have read these messages of the person in a group, by client_id. A reader of one has read those before it. */
  readers(rows) {
    const by = new Map();
    let most = 0;
    for (const { conversation, sender, client_id } of rows.toReversed()) {
      if (sender !== this.self.uid || conversation?.[0] !== "g") continue;
      most = Math.max(most, this.conversations.get(conversation)?.readBy?.[client_id] ?? 0);
      by.set(client_id, most);
    }
    return by;
  }

  /** A setting of a conversation as it is here; one for all is with oneself. A change that is still to go out is newer. */
  setting(name, id = `u:${this.self.uid}`) {
    const waiting = this.outbox.findLast(({ conversation, frame, call, state }) =>
      conversation === id && state !== "failed" && (frame?.type === "setting" && frame.name === name || call?.path === `/settings/${name}`));
    if (waiting) return waiting.frame?.value ?? waiting.call?.body.value ?? null;
    return this.settings.get(`${name} ${id}`) ?? null;
  }

  /** The person's own picture, once the server has it: before that there is nothing to load. */
  ownPicture() { return this.settings.get(`picture u:${this.self.uid}`)?.file; }

  /** The oldest setting that the server has refused. Drafts are left out: they stay in this browser. */
  refusedSetting() {
    return this.outbox.find(({ frame, call, state }) => state === "failed"
      && (frame?.type === "setting" ? frame.name !== "draft" : /^\/settings\/|\/keep$/.test(call?.path)));
  }

  /** Sets a setting of a conversation on all devices of the person; `null` clears it. */
  set(name, id, value) {
    return this.write(id, (db) => db.queue({ client_id: uuid(), conversation: id, frame: { type: "setting", name, value } }));
  }

  /** Sets a setting that is the same for all conversations. */
  setForAll(name, value) { return this.later(`u:${this.self.uid}`, "PUT", `/settings/${name}`, { value }); }

  /** Asks somebody to be a friend, accepts, or ends it. */
  befriend(uid, wanted, text) { return this.later(`u:${uid}`, "PUT", `/friends/${uid}`, { wanted, ...(text && { text }) }); }

  /** How one stands with somebody; a wish that is still to go out counts. */
  friend(uid) {
    const known = this.friends.get(uid) ?? { uid, mine: false, theirs: false };
    const waiting = this.outbox.findLast(({ call }) => call?.path === `/friends/${uid}`);
    if (!waiting || waiting.state === "failed") return known;
    const { wanted } = waiting.call.body;
    return { ...known, mine: wanted, declined: !wanted };
  }

  /** Whether somebody is a friend, whose moments one sees. */
  isFriend(uid) {
    const { mine, theirs } = this.friend(uid);
    return mine && theirs;
  }

  /** People who want to be friends and wait for an answer. */
  requests() {
    const all = [...this.friends.keys()].map((uid) => this.friend(uid));
    return all.filter(({ uid, mine, theirs, declined }) => theirs && !mine && !declined && !this.isDeleted(uid) && !this.setting("block", `u:${uid}`));
  }

  /** A call of the API that is made as soon as there is a connection, and as soon as its `files` are up. */
  later(conversation, method, path, body, files = []) {
    const item = { client_id: uuid(), conversation, call: { method, path, body },
      ...(files.length && { files: files.map(aboutFile), sent_at: new Date().toISOString() }) };
    const keeping = files.length ? this.blobs.keep(item.client_id, files.map(({ blob }) => blob)) : null;
    return this.write(conversation, async (db) => {
      await Promise.all([db.queue(item), keeping]).catch(async (problem) => {
        await this.sending.discard(item);
        throw problem;
      });
    });
  }

  /** The messages that are pinned in a conversation, the oldest first, as far as that is known. */
  pins(id) { return this.conversations.get(id)?.pins ?? []; }

  /** Learns what is pinned, where that is not known. */
  async learnPins(id) {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { pins, pinsAt } = this.conversations.get(id) ?? {};
      if (pins) return;
      const { rows } = await this.call("GET", `/conversations/${id}/pins`);
      // Pins that have come meanwhile may be newer than the answer.
      if (await this.write(id, (db) => db.keepPins(id, rows, pinsAt))) return;
    }
  }

  /** Whether the person owns or administrates this group. */
  governs(id) { return id.startsWith("g:") && ["owner", "administrator"].includes(this.conversations.get(id)?.role); }

  pin(row, pinned) { return this.amend(row, { type: "pin", pinned }); }
  star(row, starred) { return this.amend(row, { type: "star", starred }); }
  edit(row, text) { return this.amend(row, { type: "edit", body: { text } }); }
  recall(row) { return this.amend(row, { type: "recall" }); }
  /** Deletes a message for the person alone. */
  remove(row) { return this.amend(row, { type: "delete" }); }
  react(row, emoji) { return this.amend(row, { type: "reaction", emoji }); }

  /** Puts something to be done to a stored message into the outbox. */
  amend({ conversation, message_id }, frame) {
    const item = { client_id: uuid(), conversation, frame: { ...frame, message_id } };
    return this.write(conversation, (db) => db.queue(item));
  }

  /** What is nowhere else, for a database that the browser has emptied. */
  kept() {
    const { drafts = new Map(), outbox = [] } = this;
    return { drafts, outbox: outbox.filter(({ client_id }) => !this.sending.has(client_id)) };
  }

  /** Keeps what somebody writes there. */
  draft(id, text) { return this.box.save(id, text); }

  retry = (item) => this.outgoing(item, { state: "waiting", ...(item.files && { up: null }) });
  discard = (item) => {
    if (item.files) this.blobs.drop(item.client_id).catch((problem) => console.error(problem));
    return this.outgoing(item, null);
  };
  outgoing(item, fields) { return this.write(item.conversation, (db) => db.outgoing(item.client_id, fields)); }

  async markRead(id, upTo) {
    // Nobody is told of what is no news.
    if (!await this.db.markRead(id, upTo)) return;
    await this.load([id]);
    this.nudge([id]);
  }
}

/** Unread messages as they are shown: the server counts up to 1,000. */
export const many = (count) => (count > 999 ? "999+" : String(count));

/** What the outbox keeps of a file beside its bytes. */
const aboutFile = ({ blob, picture, ...about }) => about;

/** A random UUID (version 4); `crypto.randomUUID` is missing on plain HTTP off this machine. */
export function uuid() {
  const random = () => crypto.getRandomValues(new Uint8Array(1))[0];
  const digit = (c) => (c ^ ((random() & 15) >> (c / 4))).toString(16);
  return "10000000-1000-4000-8000-100000000000".replace(/[018]/g, digit);
}
