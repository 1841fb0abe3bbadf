// Of which messages a notification tells, and what it says: the same while a tab is open (notify.js) and while none is (push.js).
// Decisions over plain values; knows neither the page nor the server.

import { pathOf } from "./address.js";
import { isolate } from "./dom.js";
import { lineOf } from "./markdown.js";
import { mentions } from "./state.js";
import { t } from "./texts.js";

// The most that come at once, as after a sleep: one for each conversation.
const MOST = 3;

/** The newest row of each conversation of which to tell: rows of others that are unread. A mention is told of also where it is muted. */
export function newestToTell(store, rows) {
  const isTold = (row) => row.kind === "message" && (!store.isMuted(row.conversation) || mentions(row, store.self.uid));
  const newest = new Map(rows.filter(isTold).map((row) => [row.conversation, row]));
  return [...newest.values()].filter(({ conversation }) => store.unread(conversation)).slice(-MOST);
}

/** A message of somebody else in one line; in a group, with the name of its sender. */
export function lineToTell(store, row) {
  const text = isolate(lineOf(store, row));
  return row.conversation.startsWith("g:") ? t("list.of", { name: isolate(store.name(row.sender)), text }) : text;
}

/**
 * The notifications for these rows: [{tag, title, body, path}]; of a conversation there is one, which takes the place of the one before.
 * `shows`: "text" and the name, the "name" alone, or "nothing" but that there is something.
 */
export function noticesOf(store, rows, shows) {
  const newest = newestToTell(store, rows);
  if (shows === "nothing") return newest.length ? [{ tag: "all", title: "Tidemark", body: t("push.news"), path: "/" }] : [];
  return newest.map((row) => {
    const { conversation: id } = row;
    const unread = store.unread(id);
    const text = shows === "text" ? lineToTell(store, row) : null;
    const body = text === null ? t("push.messages", { count: unread }) : unread > 1 ? t("push.more", { text, count: unread - 1 }) : text;
    return { tag: id, title: store.title(id), body, path: pathOf(id, row) };
  });
}
