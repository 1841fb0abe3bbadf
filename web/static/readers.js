// Which members of a group have read an own message.

import { $, disc, h } from "./dom.js";
import { t } from "./texts.js";

// Members of the largest group in which the server names them.
const MOST_NAMED = 50;

/** Whether it can be asked who has read a message. */
export function namesReaders(store, { conversation, sender, message_id }) {
  const { members = 0, left } = store.conversations.get(conversation) ?? {};
  return Boolean(message_id) && conversation[0] === "g" && sender === store.self.uid && !left && members <= MOST_NAMED
    && !store.setting("privacy")?.quiet;
}

/** Answers what opens the dialog for a message. */
export function readersDialog(store, call) {
  // Which opening it is: an answer may come after the next one.
  let opening = 0;
  return async ({ conversation, message_id }) => {
    const own = ++opening;
    $("readers-list").replaceChildren();
    $("readers-note").textContent = t("readers.asking");
    $("readers").showModal();
    const show = (note, people = []) => {
      if (own !== opening) return;
      $("readers-note").textContent = note;
      $("readers-list").replaceChildren(...people.map(({ uid, name }) =>
        h("li", {}, disc(`u:${uid}`, name), h("span.title", { dir: "auto" }, name))));
    };
    try {
      const { readers } = await call("GET", `/groups/${conversation.slice(2)}/messages/${message_id}/readers`);
      const others = (store.conversations.get(conversation)?.members ?? 1) - 1;
      show(readers.length ? t("readers.count", { count: readers.length, all: others }) : t("readers.none"), readers);
    } catch (refusal) {
      show(refusal.message);
    }
  };
}
