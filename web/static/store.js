// The state that the page shows, read from the database and read again when it changed: conversations, names, drafts, the outbox.
// Writes go to the database first, but for a message, which goes out first (`post`). Other tabs are notified through `nudge`.

import { hues, isolate } from "./dom.js";
import { Drafts } from "./drafts.js";
import { Listed } from "./listed.js";
import { plain } from "./markdown.js";
import { t } from "./texts.js";

// For how long what is known of a person is taken as right, and how long others are waited for to be asked about together.
const PROFILE_MS = 600_000;
const GATHER_MS = 50;
// People of one question.
const MOST_PROFILES = 100;
// Questions for what is pinned, while it changes.
const MOST_TRIES = 3;

// The server's word for the name of a deleted account; nobody can take that name.
const DELETED = /^Deleted account$/;
const called = (name) => (DELETED.test(name) ? t("person.deleted") : name);

export class Store extends Listed {
  /**
   * `nudge(conversations)`: something was written here that sync and other tabs should know. `send(item)`: a message is about to be put
   * into the outbox; true: it is under way. `hold(item)`: such a one has to come again from memory until it is answered.
   */
  constructor({ db, call, self, nudge, send, hold }) {
    super();
    Object.assign(this, { db, call, self, nudge, send, hold });
    // The id of the open conversation.
    this.open = null;
    this.asked = new Set();
    // People whose profile was asked for, and when; and people to ask for.
    this.profiled = new Map();
    this.unknown = new Set();
    // Conversations with nobody: no user has the number, or no group that one may see.
    this.nobody = new Set();
    // Messages that are on their way into the outbox, by client_id: their ids, once the server has stored them.
    this.leaving = new Map();
    // Messages that were under way when the browser refused to keep them, by client_id: nobody but this page has them.
    this.unkept = new Map();
    this.box = new Drafts(this);
    /** `unsent(item, reason)`: the server has refused a message of `unkept`. */
    this.unsent = () => {};
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
      this.addUnkept(next.ids);
      this.names.set(this.self.uid, this.self.name);
      for (const [uid, { hue }] of this.profiles ?? []) hue === undefined ? hues.delete(uid) : hues.set(uid, hue);
      const own = this.setting("profile")?.hue;
      own === undefined ? hues.delete(this.self.uid) : hues.set(this.self.uid, own);
      // Asked for now: there may be no connection when they are shown.
      for (const uid of this.friends.keys()) this.name(uid);
      this.show(next.ids);
    });
    return this.loading;
  }

  /** Adds what only this page has. A message of `unkept` goes when its row is here; after a new beginning (no `ids`) it may never come. */
  addUnkept(ids) {
    for (const [client_id, { conversation, message_id }] of this.unkept) {
      const isHere = this.conversations.get(conversation)?.last?.message_id >= message_id;
      if (message_id && (isHere || !ids)) this.unkept.delete(client_id);
    }
    if (this.unkept.size) this.outbox.push(...this.unkept.values());
    this.box.show();
  }

  /** Shows again what is in memory. */
  show(ids = []) { for (const watcher of this.watchers) watcher(ids); }

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

  /** The name of a person; asked for once when it is not known yet. */
  name(uid) {
    if (this.isDeleted(uid)) return t("person.deleted");
    const known = this.names.get(uid);
    if (known === undefined && !this.asked.has(uid)) {
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

  /** The profile of a person beside the name: {hue, about}; asked for when it is not known or old. */
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

  /** Asks what is to be known of people, of so many at once, and answers it. */
  async meetPeople() {
    const uids = [...this.unknown].slice(0, MOST_PROFILES);
    this.unknown.clear();
    if (!uids.length) return [];
    for (const uid of uids) this.profiled.set(uid, Date.now());
    const people = await this.call("GET", `/profiles?uids=${uids}`).catch(() => []);
    const isNews = ({ uid, name, hue, about, deleted }) => {
      const known = this.profiles.get(uid);
      return !known || known.hue !== hue || known.about !== about || known.deleted !== deleted || this.names.get(uid) !== name;
    };
    if (people.some(isNews)) await this.keepPeople(people);
    return people;
  }

  keepPeople(people) {
    return this.write(null, (db) => db.write(["names"], (names) => {
      for (const { uid, name, hue, about, deleted } of people) {
        names.put(name, uid);
        names.put({ hue, about, deleted, at: Date.now() }, `profile ${uid}`);
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
    if (row.kind === "membership") return this.event(row);
    if (row.kind === "recalled") return this.recalled(row);
    if (row.kind === "deleted") return t("row.deleted");
    const text = plain(String(row.body?.text ?? "").slice(0, 600)).replace(/\s+/g, " ").slice(0, 200);
    if (row.sender === this.self.uid) return t("list.own", { text: isolate(text) });
    return group ? t("list.of", { name: isolate(this.name(row.sender)), text: isolate(text) }) : isolate(text);
  }

  /** A message that was taken back, as a sentence. */
  recalled({ sender }) {
    return sender === this.self.uid ? t("row.you_recalled") : t("row.recalled", { name: isolate(this.name(sender)) });
  }

  /** A membership row as a sentence. */
  event({ body: { action, name, topic, history, role, uid, user_name, by, by_name, owner, owner_name } }) {
    const me = this.self.uid;
    const nameOf = (number, name) => (number === me ? t("you")
      : isolate(name === undefined || this.isDeleted(number) ? this.name(number) : called(name)));
    const names = () => ({ by: nameOf(by, by_name), name: nameOf(uid, user_name) });
    // Some languages say "you" in a way of their own, so there is a sentence for each.
    const byMe = (what) => (by === me ? `you_${what}` : what);
    const of = (what) => (by !== me && uid === me ? `${what}_you` : byMe(what));
    switch (action) {
      case "created": return t(`event.${byMe("created")}`, { by: nameOf(by, by_name) });
      case "added": case "removed": case "banned": case "unbanned": return t(`event.${of(action)}`, names());
      case "joined": return t(`event.${of("joined")}`, names());
      case "left": return uid === me ? t("event.you_left") : !owner ? t("event.left", names())
        : owner === me ? t("event.left_to_you", names()) : t("event.left_to", { ...names(), owner: nameOf(owner, owner_name) });
      case "renamed": return t(`event.${byMe("renamed")}`, { by: nameOf(by, by_name), group: isolate(name) });
      case "topic": return t(`event.${byMe(topic ? "topic" : "no_topic")}`, { by: nameOf(by, by_name), topic: isolate(topic ?? "") });
      case "history": return t(`event.${byMe(history === "visible" ? "history_visible" : "history_hidden")}`, { by: nameOf(by, by_name) });
      case "role": return t(`event.${of(role === "owner" || role === "administrator" ? role : "member")}`, names());
      default: return t("event.other");
    }
  }

  /** Learns who is in a group, and whether we still are. */
  async meet(id) {
    try {
      const { name, topic, role, members, member_count } = await this.call("GET", `/groups/${id.slice(2)}`);
      await this.write(id, async (db) => {
        await db.learn(members);
        await db.patch(id, { title: name, topic, role, left: false, members: member_count, people: members.map(({ uid }) => uid) });
      });
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
   * Puts a message into the outbox; it is sent from there. `quoted`: the row that it replies to; `mentions`: whom it names. Where the
   * browser refuses to keep it, this fails, unless the message is under way: somebody may have it already, so nothing else is made of it.
   */
  async post(id, text, quoted = null, mentions = null) {
    const number = Number(id.slice(2));
    const to = id.startsWith("u:") ? { user: number } : { group: number };
    const body = { text, ...(quoted && { reply_to: quoted.message_id }), ...(mentions && { mentions }) };
    const quote = quoted && { of: { sender: quoted.sender, client_id: quoted.client_id } };
    const client_id = uuid();
    const item = { client_id, conversation: id, to, body, quote, sent_at: new Date().toISOString() };
    this.leaving.set(client_id, null);
    // Before anything else, since somebody waits for it.
    const isOut = this.send(item);
    this.box.put(id, "");
    try {
      await this.write(id, async (db) => {
        await db.post(item);
        this.box.written(id, "");
      });
    } catch (problem) {
      if (!isOut) throw problem;
      const message_id = this.leaving.get(client_id);
      this.unkept.set(client_id, { ...item, n: 0, state: message_id ? "sent" : "waiting", message_id, quoted });
      if (!message_id) this.hold(item);
      await this.box.keepEmpty(id);
      return void await this.load([id]);
    } finally {
      this.leaving.delete(client_id);
    }
    await this.box.tell(id)?.catch((problem) => console.error(problem));
  }

  /** The server has stored a message. */
  sent(client_id, message_id) {
    if (this.leaving.has(client_id)) this.leaving.set(client_id, message_id);
    const item = this.unkept.get(client_id);
    if (!item) return;
    Object.assign(item, { state: "sent", message_id });
    this.load([item.conversation]);
  }

  /** The server has refused a message that is not in the outbox. */
  async notSent(client_id, reason) {
    const item = this.unkept.get(client_id);
    if (!this.unkept.delete(client_id)) return;
    await this.load([item.conversation]);
    this.unsent(item, reason);
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

  /** The oldest setting that the server has refused. Drafts are left out: they stay in this browser. */
  refusedSetting() {
    return this.outbox.find(({ frame, call, state }) => state === "failed"
      && (frame?.type === "setting" ? frame.name !== "draft" : call?.path.startsWith("/settings/")));
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

  /** People who want to be friends and wait for an answer. */
  requests() {
    const all = [...this.friends.keys()].map((uid) => this.friend(uid));
    return all.filter(({ uid, mine, theirs, declined }) => theirs && !mine && !declined && !this.isDeleted(uid) && !this.setting("block", `u:${uid}`));
  }

  /** A call of the API that is made as soon as there is a connection. */
  later(conversation, method, path, body) {
    return this.write(conversation, (db) => db.queue({ client_id: uuid(), conversation, call: { method, path, body } }));
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

  /** Whether the person may pin messages there. */
  mayPin(id) { return id.startsWith("u:") || ["owner", "administrator"].includes(this.conversations.get(id)?.role); }

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

  /** Keeps what somebody writes there. */
  draft(id, text) { return this.box.save(id, text); }

  retry = (item) => this.outgoing(item, { state: "waiting" });
  discard = (item) => this.outgoing(item, null);
  outgoing(item, fields) { return this.write(item.conversation, (db) => db.outgoing(item.client_id, fields)); }

  async markRead(id, upTo) {
    // Nobody is told of what is no news.
    if (!await this.db.markRead(id, upTo)) return;
    await this.load([id]);
    this.nudge([id]);
  }

  /** Fetches one more page of history; false when there is no more. */
  async fetchOlder(id) {
    const { history, base } = await this.db.position();
    const floor = this.conversations.get(id)?.floor ?? base;
    if (!floor || !history) return false;
    const path = `/conversations/${id}/messages?before=${floor}&limit=200`;
    const { rows, next_before } = await this.call("GET", path);
    await this.db.older(id, rows, next_before ?? 0);
    await this.load([]);
    return rows.length > 0;
  }
}

/** Unread messages as they are shown: the server counts up to 1,000. */
export const many = (count) => (count > 999 ? "999+" : String(count));

/** A random UUID (version 4); `crypto.randomUUID` is missing on plain HTTP off this machine. */
export function uuid() {
  const random = () => crypto.getRandomValues(new Uint8Array(1))[0];
  const digit = (c) => (c ^ ((random() & 15) >> (c / 4))).toString(16);
  return "10000000-1000-4000-8000-100000000000".replace(/[018]/g, digit);
}
