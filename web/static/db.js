// The data that this browser keeps for one person: rows, cursor, outbox and drafts, in IndexedDB.
// Every rule that several tabs must agree on is checked inside the transaction that writes.

import { Database, drop } from "./database.js";
import { addMissing, takeOver } from "./earlier.js";
import { expire, prune } from "./expiry.js";
import { addSpan } from "./spans.js";
import {
  MOMENTS, amend, amends, arrived as hasArrived, blank, counts, done, isOvertaken, isState, keepState, keeping, learn, learnKeep, mentions, nameOf, newest,
  pinned, replaces, seen, shown, told, unpinned, withEarly, withoutComment,
} from "./state.js";
import { count, isHere, readTo } from "./unread.js";

// Rows beyond this are dropped, the oldest first, and fetched again when someone scrolls there.
const KEPT_ROWS = 100_000;

// Of the object stores below. Data of another version is dropped, and fetched anew.
const VERSION = 1;

export const inConversation = (id, from, to) => IDBKeyRange.bound([id, from], [id, to], true, true);

/** The database of one person. A new installation gives out the same uids, and a name may change, so neither is part of it alone. */
const called = ({ account }) => `tidemark-${account}`;

/** Puts the object stores into an empty database. */
function make(db) {
  const rows = db.createObjectStore("rows", { keyPath: "message_id" });
  rows.createIndex("message", ["sender", "client_id"]);
  rows.createIndex("conversation", ["conversation", "message_id"]);
  const outbox = db.createObjectStore("outbox", { keyPath: "n", autoIncrement: true });
  outbox.createIndex("client_id", "client_id", { unique: true });
  // `early`: what is said about messages that are not here. `friends`: who of two wants to be the other's friend.
  const keys = { conversations: "id", drafts: "id", early: "of", settings: ["name", "conversation"], friends: "uid", stars: "message_id" };
  for (const [name, keyPath] of Object.entries(keys)) db.createObjectStore(name, { keyPath });
  for (const name of ["names", "meta"]) db.createObjectStore(name);
}

/** Opens the database of {uid, name, account, textCharacters}, making it when it is new. */
export async function openDb(person) {
  const db = new Db(person);
  await db.open({ name: called(person), version: VERSION, make });
  await takeOver(db, person, { version: VERSION, make });
  return db;
}

/** Forgets everything that this browser kept for {uid, account}. */
export const forget = (person) => drop(called(person));

class Db extends Database {
  constructor({ uid, textCharacters }) {
    super();
    Object.assign(this, { uid, textCharacters });
    /** {drafts, outbox}: what a page has in memory of what is nowhere else. */
    this.kept = () => ({ drafts: new Map(), outbox: [] });
    /** The browser has closed the database, and it is open again; `isEmpty`: without what was in it. */
    this.lost = () => {};
  }

  async refill(write) {
    const { drafts, outbox } = this.kept();
    this.lost(await write(["meta", "drafts", "outbox"], async (meta, texts, waiting) => {
      if (await done(meta.get("position"))) return false;
      for (const [id, text] of drafts) texts.put({ id, text, untold: true });
      await addMissing(waiting, outbox);
      return true;
    }));
  }

  /**
   * {cursor, history, base, learned}: how far this browser is, in which history; rows below `base` were never synced; whether settings,
   * friends and stars are here, whose rows may lie below the cursor.
   */
  async position() {
    return (await this.read(["meta"], (meta) => done(meta.get("position")))) ?? { cursor: 0, base: 0 };
  }

  /**
   * Starts over in `history` at `seq`, with the server's list of conversations. Outbox and drafts stay. Answers whether the ids of rows may
   * mean others now: in another history, and where it ends before our cursor.
   */
  begin(seq, history, list) {
    const names = ["rows", "early", "conversations", "outbox", "names", "meta", "settings", "friends", "stars"];
    return this.write(names, async (rows, early, conversations, outbox, people, meta, settings, friends, stars) => {
      const before = await done(meta.get("position"));
      const isOther = before?.history !== history || seq < (before?.cursor ?? 0);
      for (const store of [rows, early, conversations, settings, friends, stars]) store.clear();
      meta.put({ cursor: seq, history, base: seq + 1 }, "position");
      for (const { id, title, last, unread, mentions = 0, read_to, seen: told = [], deleted, picture } of list) {
        // May be newer than `seq`: its row is still to come.
        const counted = last?.message_id ?? seq;
        const conversation = { id, title, deleted, picture, last, unread, mentions, counted, read_to, acked: read_to, floor: seq + 1 };
        if (last?.kind === "membership") learn(conversation, last.body, people, this.uid);
        for (const row of told) await seen(rows, conversation, row);
        conversations.put(conversation);
      }
      for (const item of await done(outbox.getAll())) {
        if (!isOther) {
          if (item.state === "sent" && item.message_id <= seq) outbox.delete(item.n);
        } else if (item.frame?.message_id || /\/moments\/\d/.test(item.call?.path)) outbox.delete(item.n);
        else if (!item.frame && !item.call) outbox.put({ ...item, body: { text: item.body.text, mentions: item.body.mentions }, quote: null, up: null, state: item.state === "sent" ? "waiting" : item.state });
      }
      return isOther;
    });
  }

  /** Forgets the names of people, and how they look. */
  forgetPeople() { return this.write(["names"], (people) => void people.clear()); }

  /**
   * Stores the rows of one `entries` frame and the cursor, together, if the frame continues what is here.
   * Answers {cursor, changed: [conversation], arrived: [row], stale}; the cursor is unchanged when the frame leaves a gap.
   * `arrived`: messages of others that were not here.
   */
  entries(entries, after, synced) {
    const names = ["rows", "early", "conversations", "outbox", "names", "meta", "settings", "friends", "drafts", "stars"];
    return this.write(names, async (rows, early, conversations, outbox, people, meta, settings, friends, drafts, stars) => {
      let [position, anyEarly] = await Promise.all([done(meta.get("position")), done(early.count())]);
      if (after > position.cursor) return { cursor: position.cursor, changed: [], arrived: [] };
      const arrived = [];
      const touched = new Map();
      for (const entry of entries) {
        if (entry.message_id <= position.cursor) continue;
        const row = anyEarly && entry.client_id ? await withEarly(early, entry) : entry;
        // A page of history has it from before it was deleted.
        if (row.kind === "deleted") await withoutComment(rows, early, await done(rows.get(row.message_id)));
        if (row.kind === "comment" || !amends(row) && !isState(row)) rows.put(row);
        const id = row.conversation;
        if (!touched.has(id)) {
          touched.set(id, (await done(conversations.get(id))) ?? blank(id, position.base));
        }
        const conversation = touched.get(id);
        if (row.kind === "seen") await seen(rows, conversation, row);
        else if (row.kind === "pin") await pinned(rows, conversation, row);
        // A change that is still to go out from here is newer.
        else if (isState(row) && !await isOvertaken(outbox, row)) {
          const isOwn = row.client_id && (await done(outbox.index("client_id").getKey(row.client_id))) !== undefined;
          await keepState(row, { settings, friends, drafts, people, stars }, this, isOwn);
        }
        if (shown(row)) conversation.last = row;
        keeping(conversation, row);
        if (row.sender === this.uid) hasArrived(conversation, row);
        if (amends(row)) {
          const { last } = conversation;
          // The newest message may be known from the list alone.
          const isLast = last && nameOf(last) === nameOf(row.body.of);
          const before = await amend(rows, early, row, isLast ? last : null);
          if (row.kind === "edit" || row.kind === "recall" || row.kind === "delete") unpinned(conversation, row);
          anyEarly = true; // The message may be further down in this frame.
          if (isLast && last.kind === "deleted") conversation.last = await newest(rows, conversation);
          const isTaken = row.kind === "recall" || row.kind === "delete";
          // It may be one of those that the server's list counted.
          if (isTaken && !before && conversation.unread && id !== MOMENTS && !isHere(conversation)) conversation.stale = true;
          if (isTaken && before) {
            const isNew = counts(before, this.uid) && before.message_id > conversation.read_to;
            if (isNew) conversation.unread = Math.max(0, conversation.unread - 1);
            if (isNew && mentions(before, this.uid)) conversation.mentions = Math.max(0, (conversation.mentions ?? 0) - 1);
            // A list that counted it may be newer than the row, which came without its text.
            if (!isNew && before.message_id <= conversation.counted && isHere(conversation)) await count(rows, conversation, this.uid);
            for (const item of await done(outbox.getAll())) {
              if (item.frame?.message_id === before.message_id) outbox.delete(item.n);
            }
          }
        }
        // A read marker may come before what it marks: what was said before one joined.
        if (counts(row, this.uid) && row.message_id > Math.max(conversation.counted, conversation.read_to)) {
          conversation.unread++;
          if (mentions(row, this.uid)) conversation.mentions = (conversation.mentions ?? 0) + 1;
          arrived.push(row);
        }
        if (row.kind === "receipt") await readTo(rows, conversation, row.body.read_to, true, this.uid);
        if (row.kind === "membership") learn(conversation, row.body, people, this.uid);
        if (row.sender === this.uid && row.client_id) {
          const n = await done(outbox.index("client_id").getKey(row.client_id));
          if (n !== undefined) outbox.delete(n);
        }
      }
      if (touched.has(MOMENTS)) await count(rows, touched.get(MOMENTS), this.uid);
      for (const conversation of touched.values()) conversations.put(conversation);
      position.cursor = Math.max(position.cursor, synced);
      meta.put(position, "position");
      // The row of an amendment may have made way for a later one and never comes.
      for (const item of await done(outbox.getAll())) {
        if (item.state === "sent" && item.message_id <= position.cursor) outbox.delete(item.n);
      }
      const stale = [...touched.values()].some((conversation) => conversation.stale);
      return { cursor: position.cursor, changed: [...touched.keys()], arrived, stale };
    });
  }

  /** The person has read `conversation` up to `id`; true when that was news. */
  markRead(id, upTo) {
    return this.write(["rows", "conversations"], async (rows, conversations) => {
      const conversation = await done(conversations.get(id));
      if (!conversation || conversation.read_to >= upTo) return false;
      await readTo(rows, conversation, upTo, false, this.uid);
      conversations.put(conversation);
      return true;
    });
  }

  /** Keeps where somebody was in a conversation: {id, offset} of log.js; null: at its end. */
  keepPlace(id, place) {
    return this.write(["conversations"], async (conversations) => {
      const conversation = await done(conversations.get(id));
      if (conversation) conversations.put({ ...conversation, place });
    });
  }

  /** Takes the server's counts for conversations whose own count is not known (`stale`), but for those that have been read further since. */
  recount(list) {
    return this.write(["conversations"], async (conversations) => {
      for (const { id, last, unread, mentions = 0, read_to } of list) {
        const conversation = await done(conversations.get(id));
        const counted = last?.message_id ?? 0;
        if (conversation?.stale && read_to >= conversation.read_to) conversations.put({ ...conversation, unread, mentions, counted, stale: false });
      }
    });
  }

  /** Rows of a conversation to show, in order: the `limit` next to `before` or `after`. */
  page(id, { before = Infinity, after = 0, limit, forward = false }) {
    return this.read(["rows"], (rows) => new Promise((resolve, reject) => {
      const found = [];
      const range = inConversation(id, after, before);
      const request = rows.index("conversation").openCursor(range, forward ? "next" : "prev");
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const cursor = request.result;
        if (!cursor || found.length === limit) return resolve(forward ? found : found.reverse());
        if (shown(cursor.value)) found.push(cursor.value);
        cursor.continue();
      };
    }));
  }

  /**
   * {same, fresh, isTail}: rows of a conversation to show, from `first` to `last` and of the next `limit` behind them; whether those
   * are the newest.
   */
  async window(id, first, last, limit) {
    const [same, fresh] = await this.read(["rows"], (rows) => {
      const index = rows.index("conversation");
      const asked = [index.getAll(inConversation(id, first - 1, last + 1))];
      if (limit) asked.push(index.getAll(inConversation(id, last, Infinity), limit));
      return Promise.all(asked.map(done));
    });
    return { same: same.filter(shown), fresh: (fresh ?? []).filter(shown), isTail: fresh?.length < limit };
  }

  /** A row of the person's inbox, if it is here. */
  row(message_id) { return this.read(["rows"], (rows) => done(rows.get(message_id))); }

  /** The message that a quote or an amendment names, if it is here. */
  message({ sender, client_id }) {
    return this.read(["rows"], (rows) => done(rows.index("message").get([sender, client_id])));
  }

  /** The messages that these rows reply to, as far as they are here, by `nameOf`. */
  quoted(replies) {
    const all = replies.map((row) => row.body?.reply_to?.of ?? row.quote?.of).filter(Boolean);
    if (!all.length) return new Map();
    return this.read(["rows"], async (rows) => {
      const index = rows.index("message");
      const found = await Promise.all(all.map(({ sender, client_id }) => done(index.get([sender, client_id]))));
      return new Map(found.filter(Boolean).map((row) => [nameOf(row), row]));
    });
  }

  /** Stores a page of history: the ids `from` to `to` are here now. It is dropped where another history (`life`) has begun since. */
  keepHistory(id, page, { from, to, life }) {
    const names = ["rows", "early", "conversations", "names", "meta"];
    return this.write(names, async (rows, early, conversations, people, meta) => {
      const { base, history } = await done(meta.get("position"));
      if (history !== life) return;
      const conversation = (await done(conversations.get(id))) ?? blank(id, base);
      for (const row of page.filter((each) => each.kind === "comment" || !amends(each) && !isState(each))) {
        // The row here may have been amended since the page was made.
        const here = await done(rows.get(row.message_id));
        if (here) row.kind = here.kind;
        else {
          rows.put(row.client_id ? await withEarly(early, row) : row);
          if (row.sender === this.uid) hasArrived(conversation, row);
        }
        if (row.kind === "membership") learn({}, row.body, people, this.uid);
      }
      // The server gives messages as they were edited.
      const about = page.filter(({ kind }) => kind === "reaction" || kind === "like" || kind === "comment");
      for (const row of about) await amend(rows, early, row);
      addSpan(conversation, from, to);
      if (!conversation.last || conversation.last.kind === "deleted") conversation.last = await newest(rows, conversation);
      // The server counts up to a limit, and moments by their first page.
      if ((conversation.unread || id === MOMENTS) && isHere(conversation)) await count(rows, conversation, this.uid);
      conversations.put(conversation);
    });
  }

  /** Changes fields of a conversation, making it when it is new. */
  patch(id, fields) {
    return this.write(["conversations", "meta"], async (conversations, meta) => {
      const base = (await done(meta.get("position")))?.base ?? 0;
      const conversation = (await done(conversations.get(id))) ?? blank(id, base);
      conversations.put(Object.assign(conversation, fields));
    });
  }

  /** Remembers who is called what: [{uid, name}]. */
  learn(people) {
    return this.write(["names"], (names) => people.forEach(({ uid, name }) => names.put(name, uid)));
  }

  /** Takes in settings, stars, times for messages and friends as the server has them: rows, and lines of the list of friends. */
  learnState(rows, list) {
    const names = ["outbox", "settings", "friends", "drafts", "names", "meta", "stars", "conversations"];
    return this.write(names, async (outbox, settings, friends, drafts, people, meta, stars, conversations) => {
      for (const row of rows) {
        await learnKeep(conversations, row);
        if (!await isOvertaken(outbox, row)) await keepState(row, { settings, friends, drafts, people, stars }, this);
      }
      for (const { uid, name, mine, theirs, declined, text } of list) {
        people.put(name, uid);
        friends.put({ uid, mine, theirs, declined, text });
      }
      meta.put({ ...await done(meta.get("position")), learned: true }, "position");
    });
  }

  /** The newest message of the other person in a one-to-one conversation, up to the row `upTo`, if it is here. */
  lastOfOther(id, upTo) {
    const other = Number(id.slice(2));
    return this.read(["rows"], (rows) => new Promise((resolve, reject) => {
      let looked = 0;
      const request = rows.index("conversation").openCursor(inConversation(id, 0, upTo + 1), "prev");
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const row = request.result?.value;
        if (!row || looked++ > 50) return resolve(null);
        if (row.kind === "message" && row.sender === other && row.client_id) return resolve(row);
        request.result.continue();
      };
    }));
  }

  /** Whether the person wants others not to know how far their messages have come. */
  async isQuiet() {
    const privacy = await this.read(["settings"], (settings) => done(settings.get(["privacy", `u:${this.uid}`])));
    return Boolean(privacy?.value.quiet);
  }

  /** Keeps what is pinned in a conversation, unless a row has changed that since it was at `pinsAt`; false: it has to be asked again. */
  keepPins(id, pins, pinsAt) {
    return this.write(["conversations"], async (conversations) => {
      const conversation = await done(conversations.get(id));
      if (conversation && conversation.pinsAt !== pinsAt) return false;
      if (conversation) conversations.put({ ...conversation, pins });
      return true;
    });
  }

  /** Moments with what is said about them, newest first: at most `limit`. */
  moments(limit) {
    return this.read(["rows"], (rows) => new Promise((resolve, reject) => {
      const found = [];
      const request = rows.index("conversation").openCursor(inConversation(MOMENTS, 0, Infinity), "prev");
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const cursor = request.result;
        if (!cursor || found.length === limit) return resolve(found);
        if (cursor.value.kind === "moment") found.push(cursor.value);
        cursor.continue();
      };
    }));
  }

  /** All but the rows, as maps by id: what a page keeps in memory. */
  overview() {
    const stores = ["conversations", "drafts", "outbox", "names", "settings", "friends", "stars", "meta"];
    return this.read(stores, async (conversations, drafts, outbox, names, settings, friends, stars, meta) => {
      // All asked at once: each answer is a way to another process and back.
      const asked = [conversations, drafts, outbox, settings, friends, stars, names].map((store) => store.getAll());
      asked.push(names.getAllKeys(), meta.get("position"));
      const [listed, drafted, waiting, set, known, starred, called, uids, position] = await Promise.all(asked.map(done));
      return {
        // Whether the server's list has ever come.
        isSynced: Boolean(position?.history),
        conversations: new Map(listed.map((each) => [each.id, each])),
        drafts: new Map(drafted.filter(({ text }) => text).map(({ id, text }) => [id, text])),
        untold: drafted.filter(({ untold }) => untold).map(({ id }) => id),
        outbox: waiting,
        base: position?.base ?? 0,
        settings: new Map(set.map((one) => [`${one.name} ${one.conversation}`, one.value])),
        friends: new Map(known.map((friend) => [friend.uid, friend])),
        stars: new Map(starred.map((star) => [star.message_id, star.starred])),
        names: new Map(uids.map((uid, at) => [uid, called[at]]).filter(([uid]) => typeof uid === "number")),
        profiles: new Map(uids.map((key, at) => [Number(`${key}`.slice(8)), called[at]]).filter(([, { at }]) => typeof at === "number")),
      };
    });
  }

  /**
   * Keeps a draft, also when the page is being left: what a transaction has not committed by then is undone. Until other devices are told
   * (`told`, `queue`), none of theirs takes its place, not even of one that is empty now.
   */
  draft(id, text) {
    return this.write(["drafts"], (drafts) => { drafts.put({ id, text, untold: true }).transaction.commit(); });
  }

  /** Other devices know of a draft. */
  told(id) { return this.write(["drafts"], (drafts) => told(drafts, id)); }

  /** Puts a message into the outbox and takes its draft away, in one step. */
  post(item) {
    return this.write(["outbox", "drafts"], (outbox, drafts) => {
      outbox.add({ ...item, state: "waiting" });
      drafts.delete(item.conversation);
    });
  }

  /** Puts something else than a message into the outbox. */
  queue(item) {
    return this.write(["outbox", "drafts"], async (outbox, drafts) => {
      for (const each of await done(outbox.getAll())) if (replaces(item, each)) outbox.delete(each.n);
      outbox.add({ ...item, state: "waiting" });
      if (item.frame?.name === "draft") await told(drafts, item.conversation);
    });
  }

  /** Changes an outbox item; `null` takes it out. */
  outgoing(clientId, fields) {
    return this.write(["outbox"], async (outbox) => {
      const item = await done(outbox.index("client_id").get(clientId));
      if (item && fields) outbox.put(Object.assign(item, fields));
      else if (item) outbox.delete(item.n);
      return item;
    });
  }

  /** Removes what has expired, as the server does. Answers {changed, stale}, see expiry.js. */
  expire(time, asks, now = Date.now()) {
    return this.write(["rows", "conversations", "outbox", "stars"], (rows, conversations, outbox, stars) =>
      expire({ rows, conversations, outbox, stars }, { time, now, asks }, this.uid));
  }

  /** Keeps the database bounded: drops the oldest rows beyond KEPT_ROWS. */
  prune() {
    return this.write(["rows", "early", "conversations"], (rows, early, conversations) => prune({ rows, early, conversations }, KEPT_ROWS));
  }
}
