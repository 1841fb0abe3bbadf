// Read markers, and how much of a conversation is unread, as far as the rows that are here tell. Knows the stores that it is given, and
// nothing else.

import { spanOf } from "./spans.js";
import { MOMENTS, counts, done, mentions } from "./state.js";

// The server counts no further.
const MOST_COUNTED = 1_000;

/** Whether all that lies above the read marker is here. */
export const isHere = ({ floor, read_to }) => floor <= read_to + 1;

/** The rows of a conversation with ids above `from` and up to `to`. */
function between(rows, { id }, from, to) {
  const range = IDBKeyRange.bound([id, from], [id, to + 0.5], true, true);
  return done(rows.index("conversation").getAll(range));
}

/** Counts what is unread for `uid`, where that is here. */
export async function count(rows, conversation, uid) {
  const newer = await between(rows, conversation, conversation.read_to, Infinity);
  conversation.stale = false;
  conversation.unread = newer.filter((row) => counts(row, uid)).length;
  conversation.mentions = newer.filter((row) => mentions(row, uid)).length;
}

/**
 * Moves a read marker, never back, and counts what is left. `stale`: that is not known here, and the server has to be asked. `acked`: the
 * server has the marker.
 */
export async function readTo(rows, conversation, id, acked, uid) {
  if (acked) conversation.acked = Math.max(conversation.acked, id);
  const from = conversation.read_to;
  if (id <= from) return;
  conversation.read_to = id;
  const { last, unread, stale } = conversation;
  if (last && id >= last.message_id) return void Object.assign(conversation, { unread: 0, mentions: 0, stale: false });
  // No list has the count of moments: of those, what is here counts.
  if (isHere(conversation) || conversation.id === MOMENTS) return count(rows, conversation, uid);
  const isKnown = spanOf(conversation, id)?.[0] <= from + 1;
  conversation.stale = stale || !isKnown || unread >= MOST_COUNTED;
  if (conversation.stale) return;
  const read = await between(rows, conversation, from, id);
  conversation.unread = Math.max(0, unread - read.filter((row) => counts(row, uid)).length);
  conversation.mentions = Math.max(0, (conversation.mentions ?? 0) - read.filter((row) => mentions(row, uid)).length);
}
