// What goes from this browser: rows that the server removes because they are old (PROTOCOL, "Rows that expire"), and the oldest of too many.
// Knows the stores that it is given, and nothing else.

import { dropBelow } from "./spans.js";
import { MOMENTS, done, goesBefore, isEvent, saidAbout } from "./state.js";
import { count, isHere } from "./unread.js";

/** The rows of a cursor (`request`) that were sent before `time` (RFC 3339), from the oldest on, up to the first that was not. */
function oldest(request, time) {
  return new Promise((resolve, reject) => {
    const found = [];
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const row = request.result?.value;
      // Other kinds that stay are no rows here.
      if (!row || !isEvent(row) && row.sent_at >= time) return resolve(found);
      if (!isEvent(row)) found.push(row);
      request.result.continue();
    };
  });
}

/** What is left of the newest row of a conversation: the conversation stays in the list. */
const shell = ({ client_id, ...row }) => ({ ...row, kind: "deleted", body: {} });

/**
 * Removes what was sent before `time` (RFC 3339; without it: nothing), and what is older than its conversation keeps it, by the clock `now`. A
 * message that has waited until `time` is not sent without asking. Answers {changed, stale}: the conversations that have changed, and whether
 * the server has to be asked for counts. `asks`: also for those of unread messages that are not here, of which some may have expired.
 */
export async function expire({ rows, conversations, outbox, stars }, { time = "", now, asks }, uid) {
  let isStale = false;
  const changed = [];
  const old = time ? await oldest(rows.openCursor(), time) : [];
  for (const conversation of await done(conversations.getAll())) {
    const { id } = conversation;
    const own = goesBefore(conversation, now) && new Date(goesBefore(conversation, now)).toISOString();
    const from = own > time ? own : time;
    if (!from) continue;
    const isOld = (row) => row && row.kind !== "deleted" && !isEvent(row) && row.sent_at < from;
    const gone = own === from ? await oldest(rows.index("conversation").openCursor(IDBKeyRange.bound([id, 0], [id, Infinity])), own)
      : old.filter((row) => row.conversation === id);
    for (const { message_id } of gone) {
      rows.delete(message_id);
      stars.delete(message_id);
    }
    const isEmpty = isOld(conversation.last);
    const isAsked = asks && conversation.unread > 0 && conversation.id !== MOMENTS && !isHere(conversation);
    if (!gone.length && !isEmpty && !isAsked) continue;
    if (isEmpty) Object.assign(conversation, { last: shell(conversation.last), unread: 0, mentions: 0, stale: false });
    if (conversation.pins) conversation.pins = conversation.pins.filter((row) => !isOld(row));
    const wasHere = isHere(conversation);
    if (gone.length) dropBelow(conversation, gone.at(-1).message_id + 1);
    if (!isEmpty && wasHere) await count(rows, conversation, uid);
    else if (!isEmpty) conversation.stale = isStale = true;
    conversations.put(conversation);
    changed.push(conversation.id);
  }
  for (const item of time ? await done(outbox.getAll()) : []) {
    if (item.state !== "waiting" || !item.to || item.sent_at >= time) continue;
    outbox.put({ ...item, state: "failed", code: "expired" });
    changed.push(item.conversation);
  }
  return { changed, stale: isStale };
}

/** Drops the oldest rows beyond `most`. They are fetched again where somebody scrolls there. */
export async function prune({ rows, early, conversations }, most) {
  const extra = (await done(rows.count())) - most;
  const known = (await done(early.count())) - most;
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
    dropBelow(conversation, last + 1);
    conversations.put(conversation);
  }
}
