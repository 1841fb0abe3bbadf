// Starred messages: what a person wants to find again, on all devices. One setting of each conversation has their ids.

import { $, disc, h, isolate } from "./dom.js";
import { t, whenOf } from "./texts.js";

// Messages of one conversation; the server takes no more. The oldest go.
const MOST = 200;

/** The starred messages of a conversation, by the ids of their rows. */
const starredIn = (store, id) => store.setting("star", id)?.messages ?? [];

export const isStarred = (store, { conversation, message_id }) => starredIn(store, conversation).includes(message_id);

/** Stars a message, or takes its star away. */
export function toggleStar(store, { conversation, message_id }) {
  const known = starredIn(store, conversation);
  const messages = known.includes(message_id) ? known.filter((id) => id !== message_id) : [...known, message_id].slice(-MOST);
  return store.set("star", conversation, messages.length ? { messages } : null);
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
    const away = h("button.tool", { type: "button", "aria-label": t("star.remove_of", { text: isolate(store.line(row, false).slice(0, 40)) }),
      title: t("star.remove"), onclick: async () => {
        await toggleStar(store, row);
        await show();
        ($("starred-list").querySelector(".tool") ?? $("starred").querySelector("form button")).focus();
      } }, h("i.icon.star", { "aria-hidden": "true" }));
    return h("li", {}, disc(row.conversation, store.title(row.conversation)), button, away);
  };
  const show = async () => {
    const ids = [...store.conversations.keys()].flatMap((id) => starredIn(store, id)).sort((a, b) => b - a);
    $("starred-note").textContent = ids.length ? "" : t("star.none");
    try {
      const rows = await Promise.all(ids.map(rowOf));
      $("starred-list").replaceChildren(...rows.filter((row) => row?.kind === "message").map(line));
    } catch (refusal) {
      $("starred-note").textContent = refusal.message;
    }
  };
  return () => {
    $("starred-list").replaceChildren();
    $("starred").showModal();
    return show();
  };
}
