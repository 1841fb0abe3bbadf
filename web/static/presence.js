// People who are typing or online: told by frames that are never stored, so nothing of it is in the database.
// One in each tab; only the tab that leads hears the server, and passes it on.

import { isolate } from "./dom.js";
import { MOMENTS } from "./state.js";
import { lastSeenOf, listOf, t } from "./texts.js";

// For how long it is shown that somebody is typing; whoever types on says so again.
const SHOWN_MS = 6_000;
// Between two words to the server that one is typing.
const AGAIN_MS = 4_000;
// People whom a server lets one connection watch.
const MOST_WATCHED = 200;
// After a change of the list of people, before the server is told.
const REST_MS = 500;
// For how long what is known of when somebody was online last is taken as right.
const SEEN_MS = 60_000;
// People of whom that is kept.
const MOST_SEEN = 100;
// Names of people who are typing in a group.
const MOST_NAMES = 2;

export class Presence {
  /** `say(frame)`: to the server, if there is a connection; `watch(people)`: be told of these; `changed()`: shows it. */
  constructor(store, { say, watch, changed }) {
    Object.assign(this, { store, say, watch, changed });
    this.online = new Set();
    // By person: when they were online last, and when that was asked for.
    this.seen = new Map();
    // By conversation and person: what ends it.
    this.typing = new Map();
    // By conversation: when the server was told last that one is typing.
    this.told = new Map();
    // People whose conversation another tab has open.
    this.opened = new Set();
    store.watch(() => {
      clearTimeout(this.resting);
      this.resting = setTimeout(() => this.watch(this.people()), REST_MS);
    });
  }

  /** Whether others are shown this, and so this person, too; `what`: typing or presence. */
  shows(what) { return this.store.setting("privacy")?.[what] !== false; }

  /** The people to watch: of the open conversation, of those in the list, and friends. One is told of their names, too. */
  people() {
    const { store } = this;
    const ids = [store.open, ...[...this.opened].map((uid) => `u:${uid}`), ...store.sorted(), ...[...store.friends.keys()].map((uid) => `u:${uid}`)];
    const isOther = (id) => id?.startsWith("u:") && id !== MOMENTS && id !== `u:${store.self.uid}` && !store.nobody.has(id);
    const people = new Set(ids.filter(isOther).map((id) => Number(id.slice(2))));
    return [...people].slice(0, MOST_WATCHED).sort((a, b) => a - b);
  }

  /** The person has typed something in a conversation. */
  typed(id) {
    if (!this.shows("typing") || id === `u:${this.store.self.uid}`) return;
    const now = Date.now();
    if (now - (this.told.get(id) ?? 0) < AGAIN_MS) return;
    this.told.set(id, now);
    this.say({ type: "typing", conversation: id });
  }

  /** The person has sent it: what is typed next is told at once. */
  sent(id) { this.told.delete(id); }

  /** A frame of the server, or what another tab has heard: messages that `arrived`, all who are online. */
  hear({ type, conversation, sender, online, rows }) {
    if (type === "typing") this.begin(conversation, sender);
    else if (type === "arrived") {
      const ended = rows.filter((row) => this.end(row.conversation, row.sender));
      if (!ended.length) return;
    } else {
      // Those who have gone since were there until now.
      for (const uid of this.online) if (!online.includes(uid)) this.seen.delete(uid);
      this.online = new Set(online);
    }
    this.changed();
  }

  begin(conversation, sender) {
    this.end(conversation, sender);
    this.typing.set(`${conversation} ${sender}`, setTimeout(() => {
      this.end(conversation, sender);
      this.changed();
    }, SHOWN_MS));
  }

  end(conversation, sender) {
    const key = `${conversation} ${sender}`;
    clearTimeout(this.typing.get(key));
    return this.typing.delete(key);
  }

  /** Without a connection nobody is known to be online. */
  lost() {
    if (!this.online.size) return;
    this.online.clear();
    this.changed();
  }

  /** That somebody is typing in a conversation, as a sentence; empty: nobody is. */
  typingIn(id) {
    const who = [...this.typing.keys()].filter((key) => key.startsWith(`${id} `)).map((key) => Number(key.slice(id.length + 1)));
    if (!who.length) return "";
    const names = who.slice(0, MOST_NAMES).map((uid) => isolate(this.store.name(uid)));
    return who.length > MOST_NAMES ? t("presence.many") : t("presence.typing", { count: who.length, names: listOf(names) });
  }

  /** When a person was online last, as a sentence; empty where it is not known or not shown. Asked for when that is old. */
  lastSeen(uid) {
    if (!this.shows("presence") || !this.shows("last_seen")) return "";
    const known = this.seen.get(uid);
    if (!known || known.asked < Date.now() - SEEN_MS) this.askLastSeen(uid, known?.time ?? null);
    return this.seen.get(uid).time ? lastSeenOf(this.seen.get(uid).time) : "";
  }

  async askLastSeen(uid, before) {
    const known = { time: before, asked: Date.now() };
    this.seen.delete(uid);
    this.seen.set(uid, known);
    if (this.seen.size > MOST_SEEN) this.seen.delete(this.seen.keys().next().value);
    const { last_seen: time } = await this.store.call("GET", `/users/${uid}/last-seen`).catch(() => ({ last_seen: before }));
    if (time === before || this.seen.get(uid) !== known) return;
    known.time = time;
    this.changed();
  }

  /** Whether a person is known to be online. */
  isOnline(uid) { return this.online.has(uid); }
}
