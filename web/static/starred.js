// Starred messages: what a person wants to find again, on all devices. Each star is a row of its own, so that devices which star
// different messages while they are offline do not undo each other's.

import { cut } from "./characters.js";
import { $, disc, h, isolate } from "./dom.js";
import { lineOf } from "./markdown.js";
import { t, whenOf } from "./texts.js";

// Messages that are shown at once; there are more behind a button.
const PAGE = 30;

/** The stars that wait to go out, as [message_id, starred]. */
const waiting = (store) => store.outbox
  .filter(({ frame, state }) => frame?.type === "star" && state !== "failed")
  .map(({ frame }) => [frame.message_id, frame.starred]);

/** Whether a message is starred; what waits to go out counts, then the row about the message. */
export function isStarred(store, { conversation, message_id }) {
  const [, last] = waiting(store).findLast(([id]) => id === message_id) ?? [];
  return last ?? store.stars.get(message_id) ?? false;
}

/** The ids of all starred messages, the newest first. */
export function starredIds(store) {
  const known = new Map([...store.stars, ...waiting(store)]);
  return [...known].filter(([, starred]) => starred).map(([id]) => id).sort((a, b) => b - a);
}

/** Answers what opens the dialog. `lead(row)` shows a message in its conversation. */
export function starredDialog(store, call, lead) {
  /** The row, from this browser or else from the server; null: it is gone. */
  const rowOf = async (message_id) => {
    const here = await store.db.row(message_id);
    if (here) return here;
    const { rows } = await call("GET", `/range?start=${message_id}&end=${message_id + 1}`);
    return rows[0] ?? null;
  };
  const line = (row) => {
    const button = h("button.action", { type: "button", onclick: () => {
      $("starred").close();
      lead(row);
    } }, h("b", { dir: "auto" }, store.title(row.conversation)), " ", h("span.quiet", {}, whenOf(row.sent_at)),
    h("span.block", {}, store.line(row, row.conversation.startsWith("g:"))));
    const away = h("button.tool", { type: "button", "aria-label": t("star.remove_of", { text: isolate(cut(lineOf(store, row), 40)) }),
      title: t("star.remove"), onclick: async () => {
        of = starredIds(store).filter((id) => id !== row.message_id).join();
        await store.star(row, false);
        const item = away.closest("li");
        const next = (item.nextElementSibling ?? item.previousElementSibling)?.querySelector(".tool");
        item.remove();
        note();
        (next ?? $("starred").querySelector("form button")).focus();
      } }, h("i.icon.star", { "aria-hidden": "true" }));
    return h("li", {}, disc(row.conversation, store.title(row.conversation)), button, away);
  };
  const note = (text = "") => {
    $("starred-note").textContent = text || ($("starred-list").firstChild || !$("starred-more").hidden ? "" : t("star.none"));
  };
  // Which filling of the list it is, and the ids of all that is starred, as far as the list knows.
  let filling = 0;
  let of = "";
  /** Shows a page of those below `before`, and goes on while all of a page are gone. */
  const show = async (before) => {
    const ids = starredIds(store).filter((id) => id < before);
    const some = ids.slice(0, PAGE);
    const mine = filling;
    const isMore = document.activeElement === $("starred-more");
    $("starred-more").hidden = ids.length <= PAGE;
    $("starred-more").onclick = () => show(some.at(-1));
    try {
      const found = (await Promise.all(some.map(rowOf))).filter((row) => row?.kind === "message");
      if (mine !== filling) return;
      const lines = found.map(line);
      $("starred-list").append(...lines);
      if (isMore) lines[0]?.querySelector(".action").focus();
      if (!lines.length && ids.length > PAGE) return await show(some.at(-1));
      note();
    } catch (refusal) {
      if (mine !== filling) return;
      // The button asks again.
      $("starred-more").hidden = false;
      $("starred-more").onclick = () => show(before);
      note(refusal.message);
    }
  };
  const fill = () => {
    filling++;
    of = starredIds(store).join();
    if ($("starred-list").contains(document.activeElement)) $("starred").querySelector("form button").focus();
    $("starred-list").replaceChildren();
    $("starred-note").textContent = "";
    $("starred-more").hidden = true;
    return show(Infinity);
  };
  // Another device stars something, or a new one learns what is starred.
  store.watch(() => {
    if ($("starred").open && starredIds(store).join() !== of) fill();
  });
  return () => {
    $("starred").showModal();
    return fill();
  };
}
