// The data that this browser keeps for one person: rows, cursor, outbox and drafts, in IndexedDB.
// Every rule that several tabs must agree on is checked inside the transaction that writes.

import {
  MOMENTS, amend, amends, arrived as hasArrived, blank, counts, done, isOvertaken, isState, keepState, learn, mentions, nameOf, newest, pinned, replaces,
  saidAbout, seen, shown, unpinned, withEarly, withoutComment,
} from "./state.js";

// Rows beyond this are dropped, the oldest first, and fetched again when someone scrolls there.
const KEPT_ROWS = 100_000;

// Of the object stores below. Data of another version is dropped, and fetched anew.
const VERSION = 1;

const inConversation = (id, from, to) => IDBKeyRange.bound([id, from], [id, to], true, true);

/** The database of one person. A new installation gives out the same uids, and a name may change, so neither is part of it alone. */
const called = ({ account }) => `tidemark-${account}`;

function opened(person) {
  const request = indexedDB.open(called(person), VERSION);
  request.onupgradeneeded = () => {
    const db = request.result;
    for (const name of [...db.objectStoreNames]) db.deleteObjectStore(name);
    const rows = db.createObjectStore("rows", { keyPath: "message_id" });
    rows.createIndex("message", ["sender", "client_id"]);
    rows.createIndex("conversation", ["conversation", "message_id"]);
    const outbox = db.createObjectStore("outbox", { keyPath: "n", autoIncrement: true });
    outbox.createIndex("client_id", "client_id", { unique: true });
    // `early`: what is said about messages that are not here. `friends`: who of two wants to be the other's friend.
    const keys = { conversations: "id", drafts: "id", early: "of", settings: ["name", "conversation"], friends: "uid", stars: "message_id" };
    for (const [name, keyPath] of Object.entries(keys)) db.createObjectStore(name, { keyPath });
    for (const name of ["names", "meta"]) db.createObjectStore(name);
  };
  return done(request);
}

/** Opens the database of {uid, account, textCharacters}, making it when it is new. */
export async function openDb(person) {
  const db = await opened(person).catch(async (problem) => {
    if (problem.name !== "VersionError") throw problem; // Theirs is larger.
    await forget(person);
    return opened(person);
  });
  // Another tab has a newer version of the page: this one takes it, too.
  db.onversionchange = () => {
    db.close();
    location.reload();
  };
  return new Db(db, person);
}

/** Forgets everything that this browser kept for {uid, account}. */
export const forget = (person) => done(indexedDB.deleteDatabase(called(person)));

class Db {
  constructor(db, { uid, textCharacters }) {
    Object.assign(this, { db, uid, textCharacters });
  }

  /** Runs `work` on the named stores in one transaction and answers when it is committed. */
  within(mode, names, work) {
    const tx = this.db.transaction(names, mode);
    return new Promise((resolve, reject) => {
      let result;
      tx.oncomplete = () => resolve(result);
      tx.onabort = () => reject(tx.error);
      (async () => { result = await work(...names.map((name) => tx.objectStore(name))); })().catch((problem) => {
        reject(problem);
        tx.abort();
      });
    });
  }

  close() { this.db.close(); }
  read(names, work) { return this.within("readonly", names, work); }
  write(names, work) { return this.within("readwrite", names, work); }
  all(name) { return this.read([name], (store) => done(store.getAll())); }

  /**
   * {cursor, history, base, learned}: how far we are, in which history; rows below `base` were never synced; whether settings, friends
   * and stars are here, whose rows may lie below the cursor.
   */
  async position() {
    return (await this.read(["meta"], (meta) => done(meta.get("position")))) ?? { cursor: 0, base: 0 };
  }

  /** Starts over in `history` at `seq`, with the server's list of conversations. Outbox and drafts stay. */
  begin(seq, history, list) {
    const names = ["rows", "early", "conversations", "outbox", "names", "meta", "settings", "friends", "stars"];
    return this.write(names, async (rows, early, conversations, outbox, people, meta, settings, friends, stars) => {
      for (const store of [rows, early, conversations, settings, friends, stars]) store.clear();
      meta.put({ cursor: seq, history, base: seq + 1 }, "position");
      for (const { id, title, last, unread, mentions = 0, read_to, seen: told = [], deleted } of list) {
        // May be newer than `seq`: its row is still to come.
        const counted = last?.message_id ?? seq;
        const conversation = { id, title, deleted, last, unread, mentions, counted, read_to, acked: read_to, floor: seq + 1 };
        if (last?.kind === "membership") learn(conversation, last.body, people, this.uid);
        for (const row of told) await seen(rows, conversation, row);
        conversations.put(conversation);
      }
      for (const item of await done(outbox.getAll())) {
        // The ids of rows may mean others now.
        if (item.frame?.message_id || /\/moments\/\d/.test(item.call?.path)) outbox.delete(item.n);
        else if (!item.frame && !item.call) outbox.put({ ...item, body: { text: item.body.text, mentions: item.body.mentions }, quote: null, state: item.state === "sent" ? "waiting" : item.state });
      }
    });
  }

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
        if (row.sender === this.uid) hasArrived(conversation, row);
        if (amends(row)) {
          const { last } = conversation;
          // The newest message may be known from the list alone.
          const isLast = last && nameOf(last) === nameOf(row.body.of);
          const before = await amend(rows, early, row, isLast ? last : null);
          if (row.kind === "edit" || row.kind === "recall" || row.kind === "delete") unpinned(conversation, row);
          anyEarly = true; // The message may be further down in this frame.
          if (isLast && last.kind === "deleted") conversation.last = await newest(rows, conversation);
          if ((row.kind === "recall" || row.kind === "delete") && before) {
            const isNew = counts(before, this.uid) && before.message_id > conversation.read_to;
            if (isNew) conversation.unread = Math.max(0, conversation.unread - 1);
            if (isNew && mentions(before, this.uid)) conversation.mentions = Math.max(0, (conversation.mentions ?? 0) - 1);
            // A list that counted it may be newer than the row, which came without its text.
            if (!isNew && before.message_id <= conversation.counted && conversation.floor <= conversation.read_to + 1) await this.count(rows, conversation);
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
        if (row.kind === "receipt") await this.readTo(rows, conversation, row.body.read_to, true);
        if (row.kind === "membership") learn(conversation, row.body, people, this.uid);
        if (row.sender === this.uid && row.client_id) {
          const n = await done(outbox.index("client_id").getKey(row.client_id));
          if (n !== undefined) outbox.delete(n);
        }
      }
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

  /** Moves a read marker, never back, and counts again; `stale` where the rows for that are not here. */
  async readTo(rows, conversation, id, acked) {
    if (acked) conversation.acked = Math.max(conversation.acked, id);
    if (id <= conversation.read_to) return;
    Object.assign(conversation, { read_to: id, stale: false });
    if (conversation.last && id >= conversation.last.message_id) conversation.unread = conversation.mentions = 0;
    // No list has the count of moments: of those, what is here counts.
    else if (conversation.floor <= id + 1 || conversation.id === MOMENTS) await this.count(rows, conversation);
    else conversation.stale = true;
  }

  /** Counts what is unread, from the rows that are here. */
  async count(rows, conversation) {
    const range = inConversation(conversation.id, conversation.read_to, Infinity);
    const newer = await done(rows.index("conversation").getAll(range));
    conversation.unread = newer.filter((row) => counts(row, this.uid)).length;
    conversation.mentions = newer.filter((row) => mentions(row, this.uid)).length;
  }

  /** The person has read `conversation` up to `id`; true when that was news. */
  markRead(id, upTo) {
    return this.write(["rows", "conversations"], async (rows, conversations) => {
      const conversation = await done(conversations.get(id));
      if (!conversation || conversation.read_to >= upTo) return false;
      await this.readTo(rows, conversation, upTo, false);
      conversations.put(conversation);
      return true;
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

  /** Stores a page of history; everything from `floor` up is now here. */
  older(id, page, floor) {
    const names = ["rows", "early", "conversations", "names", "meta"];
    return this.write(names, async (rows, early, conversations, people, meta) => {
      const { base } = await done(meta.get("position"));
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
      conversation.floor = Math.min(conversation.floor, floor);
      if (!conversation.last || conversation.last.kind === "deleted") conversation.last = await newest(rows, conversation);
      // The server counts up to a limit, and moments by their first page.
      if ((conversation.unread || id === MOMENTS) && conversation.floor <= conversation.read_to + 1) await this.count(rows, conversation);
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

  /** Takes in settings, stars and friends as the server has them: rows, and lines of the list of friends. */
  learnState(rows, list) {
    const names = ["outbox", "settings", "friends", "drafts", "names", "meta", "stars"];
    return this.write(names, async (outbox, settings, friends, drafts, people, meta, stars) => {
      for (const row of rows) {
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
    const stores = ["conversations", "drafts", "outbox", "names", "settings", "friends", "stars"];
    return this.read(stores, async (conversations, drafts, outbox, names, settings, friends, stars) => {
      // All asked at once: each answer is a way to another process and back.
      const asked = [...[conversations, drafts, outbox, settings, friends, stars, names].map((store) => store.getAll()), names.getAllKeys()];
      const [listed, drafted, waiting, set, known, starred, called, uids] = await Promise.all(asked.map(done));
      return {
        conversations: new Map(listed.map((each) => [each.id, each])),
        drafts: new Map(drafted.map(({ id, text }) => [id, text])),
        outbox: waiting,
        settings: new Map(set.map((one) => [`${one.name} ${one.conversation}`, one.value])),
        friends: new Map(known.map((friend) => [friend.uid, friend])),
        stars: new Map(starred.map((star) => [star.message_id, star.starred])),
        names: new Map(uids.map((uid, at) => [uid, called[at]]).filter(([uid]) => typeof uid === "number")),
        profiles: new Map(uids.map((key, at) => [Number(`${key}`.slice(8)), called[at]]).filter(([, { at }]) => typeof at === "number")),
      };
    });
  }

  /** Keeps a draft, also when the page is being left: what a transaction has not committed by then is undone. */
  draft(id, text) {
    return this.write(["drafts"], (drafts) => { (text ? drafts.put({ id, text }) : drafts.delete(id)).transaction.commit(); });
  }

  /** Puts a message into the outbox and takes its draft away, in one step. */
  post(item) {
    return this.write(["outbox", "drafts"], (outbox, drafts) => {
      outbox.add({ ...item, state: "waiting" });
      drafts.delete(item.conversation);
    });
  }

  /** Puts something else than a message into the outbox. */
  queue(item) {
    return this.write(["outbox"], async (outbox) => {
      for (const each of await done(outbox.getAll())) if (replaces(item, each)) outbox.delete(each.n);
      outbox.add({ ...item, state: "waiting" });
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

  /** Keeps the database bounded: drops the oldest rows beyond KEPT_ROWS. */
  prune() {
    return this.write(["rows", "early", "conversations"], async (rows, early, conversations) => {
      const extra = (await done(rows.count())) - KEPT_ROWS;
      const known = (await done(early.count())) - KEPT_ROWS;
      if (known > 0) for (const key of await done(early.getAllKeys(null, known))) early.delete(key);
      if (extra <= 0) return;
      const [last] = (await done(rows.getAllKeys(null, extra))).slice(-1);
      for (const row of await done(rows.getAll(IDBKeyRange.upperBound(last)))) {
        // The reactions themselves are rows above, which are not fetched again.
        const said = saidAbout(row);
        if (said) early.put(said);
      }
      rows.delete(IDBKeyRange.upperBound(last));
      for (const conversation of await done(conversations.getAll())) {
        conversation.floor = Math.max(conversation.floor, last + 1);
        conversations.put(conversation);
      }
    });
  }
}
