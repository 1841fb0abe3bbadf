// Searching in what this browser has: rows of its database, and what of the server's answers holds by now. Without a connection it is all.

import { inConversation } from "./db.js";
import { withAmendments } from "./rows.js";
import { MOMENTS, changed, done, goesBefore, nameOf } from "./state.js";

// Rows that are read at once.
const CHUNK = 500;

/**
 * Whether a row is what `query` ({sought, conversation, sender, from, to}) looks for: from a time on and before another one, in
 * milliseconds since 1970 UTC.
 */
export function fits({ kind, conversation, sender, sent_at, body }, query) {
  if (kind !== "message" && kind !== "moment") return false;
  if (query.conversation && conversation !== query.conversation || query.sender && sender !== query.sender) return false;
  const time = Date.parse(sent_at);
  return time >= (query.from ?? -Infinity) && time < (query.to ?? Infinity) && (!query.sought || query.sought.areIn(body?.text ?? ""));
}

/**
 * {rows, next}: up to `limit` rows with ids below `before`, newest first; `next`: where to go on, null: nothing more is here. It stops
 * where `signal` says so.
 */
export async function lookHere(db, query, { before = Infinity, limit, signal }) {
  const { conversation: id } = query;
  const within = (rows) => (id ? rows.index("conversation") : rows);
  const some = (from, to) => (id ? IDBKeyRange.bound([id, from], [id, to]) : IDBKeyRange.bound(from, to));
  const all = id ? inConversation(id, 0, before) : IDBKeyRange.upperBound(before, true);
  const keys = await db.read(["rows"], (rows) => done(within(rows).getAllKeys(all)));
  const found = [];
  for (let end = keys.length; end > 0 && !signal.aborted; end -= CHUNK) {
    const [from, to] = [keys[Math.max(0, end - CHUNK)], keys[end - 1]];
    const chunk = await db.read(["rows"], (rows) => done(within(rows).getAll(some(from, to))));
    for (const row of chunk.reverse()) {
      if (!fits(row, query)) continue;
      found.push(row);
      if (found.length === limit) return { rows: found, next: row.message_id };
    }
  }
  return { rows: found, next: null };
}

/** Rows as this browser knows them by now, as {row, isHere}; it may know of changes of rows that it does not have. */
export function asKnown(db, rows) {
  return db.read(["rows", "early"], (kept, early) => Promise.all(rows.map(async (row) => {
    const [here, known] = await Promise.all([done(kept.get(row.message_id)), done(early.get(nameOf(row)))]);
    return { row: here ?? (known?.change ? changed(row, known.change) : row), isHere: Boolean(here) };
  })));
}

/** The rows that the log, the list and the page of moments show, with what is still to go out. */
export function asShown(store, rows) {
  const waiting = store.outbox.filter(({ frame }) => frame?.message_id);
  const now = Date.now();
  const isKept = ({ conversation, sent_at }) => Date.parse(sent_at) >= goesBefore(store.conversations.get(conversation) ?? {}, now);
  const isSeen = ({ conversation, sender }) => conversation !== MOMENTS || sender === store.self.uid || store.isFriend(sender);
  return rows.filter((row) => isKept(row) && isSeen(row))
    .flatMap((row) => (row.kind === "moment" ? [row] : withAmendments([row], waiting, store.self.uid)));
}
