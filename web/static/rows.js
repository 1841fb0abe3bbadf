// From rows to what stands in the pane: days, groups of one person, the "New" line, states.

import { counts } from "./db.js";
import { dayOf, disc, h, icon, timeOf, unseen } from "./dom.js";

const TOGETHER_MS = 5 * 60_000;

/**
 * What to show for the rows and outbox items of one conversation. `freshAfter`: the row after which "New"
 * stands; `start`: the text above the first row. A `line` is all in its `sig`.
 */
export function itemsOf(store, rows, outbox, freshAfter, start) {
  const stored = new Set(rows.map((row) => row.client_id));
  const waiting = outbox
    .filter((item) => !stored.has(item.client_id))
    .map((item) => ({ ...item, kind: "message", sender: store.self.uid }));
  const items = start ? [{ key: "start", sig: start, line: "start" }] : [];
  let before = null;
  let day = null;
  let fresh = freshAfter === null;
  for (const row of [...rows, ...waiting]) {
    const today = new Date(row.sent_at).toDateString();
    const newDay = today !== day;
    if (newDay) items.push({ key: today, sig: dayOf(row.sent_at), line: "day" });
    day = today;
    const firstFresh = !fresh && row.message_id > freshAfter && counts(row, store.self.uid);
    if (firstFresh) {
      items.push({ key: "fresh", sig: "New", line: "fresh-line" });
      fresh = true;
    }
    items.push(row.kind === "message" ? messageOf(store, row, newDay || firstFresh || apart(before, row)) : {
      key: `e${row.message_id}`, sig: store.event(row), line: "event",
    });
    before = row;
  }
  return items;
}

const apart = (a, b) =>
  a.kind !== "message" || a.sender !== b.sender || new Date(b.sent_at) - new Date(a.sent_at) > TOGETHER_MS;

function messageOf(store, row, first) {
  const own = row.sender === store.self.uid;
  const state = !own ? "" : row.state ?? "sent";
  const name = own ? "You" : store.name(row.sender);
  // An own message keeps its element when the outbox item turns into the stored row.
  const key = own && row.client_id ? `m${row.client_id}` : `r${row.message_id}`;
  return { key, sig: [state, first, name, row.reason].join(), row, own, first, state, name };
}

const LABEL = { waiting: "Waiting", sent: "Sent", failed: "Not sent" };
const ICON = { waiting: "clock", sent: "check", failed: "alert" };

export const make = () => h("div");

/** Fills the element of an item; `retry(row)` and `discard(row)` are for messages that failed. */
export function fill(item, element, { retry, discard }) {
  if (item.line) {
    element.className = `line ${item.line}`;
    return element.replaceChildren(h("span", {}, item.sig));
  }
  const { row, own, first, state, name } = item;
  element.className = `msg${own ? " own" : ""}${first ? " first" : ""}${state === "failed" ? " failed" : ""}`;
  const time = h("time", { datetime: row.sent_at, title: new Date(row.sent_at).toLocaleString() }, timeOf(row.sent_at));
  const parts = [];
  if (first && !own) parts.push(disc(`u:${row.sender}`, name));
  if (first) parts.push(h("p.who", {}, own ? unseen(name) : h("b", {}, name), " ", time));
  const words = h("p.words", {}, String(row.body?.text ?? ""));
  if (!first) words.prepend(unseen(`${name}: `));
  words.title = time.title;
  parts.push(words);
  if (own) parts.push(h("span.state", { title: LABEL[state] }, icon(ICON[state]), unseen(LABEL[state])));
  if (state === "failed") {
    parts.push(h("p.trouble", {}, `Not sent. ${row.reason ?? ""}`,
      h("button.link", { type: "button", onclick: () => retry(row) }, "Try again"),
      h("button.link", { type: "button", onclick: () => discard(row) }, "Discard")));
  }
  element.replaceChildren(...parts);
}
