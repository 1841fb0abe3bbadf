// Which parts of a conversation this browser has: everything from `floor` up, since rows that come are stored there, and of what lies
// below that the `spans`, [from, to] of ids, both included: in their order, and apart from each other. Plain values, no I/O.

// Parts of one conversation below its floor; beyond that the oldest are fetched again when somebody goes there.
const MOST_SPANS = 50;

/** The part that holds the id: [from, to], with `to` Infinity at the end; null: it was not fetched. */
export function spanOf({ floor, spans = [] }, id) {
  if (id >= floor) return [floor, Infinity];
  return spans.find(([from, to]) => from <= id && id <= to) ?? null;
}

/** The beginning of the next part above the id. */
export const nextAbove = ({ floor, spans = [] }, id) => spans.find(([from]) => from > id)?.[0] ?? floor;

/** Everything from `from` to `to` is here now. */
export function addSpan(conversation, from, to) {
  if (from > to) return;
  let added = [from, to];
  const apart = [];
  for (const span of conversation.spans ?? []) {
    if (span[1] + 1 < added[0] || added[1] + 1 < span[0]) apart.push(span);
    else added = [Math.min(span[0], added[0]), Math.max(span[1], added[1])];
  }
  if (added[1] + 1 >= conversation.floor) {
    conversation.floor = Math.min(conversation.floor, added[0]);
    conversation.spans = apart.filter(([start]) => start < conversation.floor);
    return;
  }
  const extra = apart.length + 1 - MOST_SPANS;
  if (extra > 0) apart.splice(0, extra);
  conversation.spans = [...apart, added].sort(([a], [b]) => a - b);
}

/** The rows below `id` are not here any more. */
export function dropBelow(conversation, id) {
  conversation.floor = Math.max(conversation.floor, id);
  const left = (conversation.spans ?? []).filter(([, to]) => to >= id);
  conversation.spans = left.map(([from, to]) => [Math.max(from, id), to]);
}
