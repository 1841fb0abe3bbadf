// Messages that are pinned for everybody in a conversation: a bar above the log, and the list of all behind it.

import { $, h } from "./dom.js";
import { item, openMenu } from "./menu.js";
import { withAmendments } from "./rows.js";
import { nameOf } from "./state.js";
import { t } from "./texts.js";

export const isPinned = (store, row) => store.pins(row.conversation).some((pin) => nameOf(pin) === nameOf(row));

const line = (store, row) => store.line(row, row.conversation.startsWith("g:"));

/** The pins as they are shown: without those that are being taken back, with edits that are still to go out. */
export const pinned = (store, id) =>
  withAmendments(store.pins(id), store.amending(id), store.self.uid).filter(({ kind }) => kind === "message");

/** `reveal(row)` shows a message of the open conversation. */
export function pinsBar(store, reveal) {
  $("pins").addEventListener("click", () => {
    const rows = pinned(store, store.open).toReversed();
    if (rows.length === 1) return reveal(rows[0]);
    openMenu($("pins"), rows.map((row) => item(h("span.two-lines", {}, line(store, row)), () => reveal(row))));
  });
}

/** Shows the newest of them, and how many there are. */
export function showPins(store, id) {
  const rows = pinned(store, id);
  $("pins").hidden = !rows.length;
  if (rows.length) $("pins-text").textContent = t("pins.open", { count: rows.length, text: line(store, rows.at(-1)) });
}
