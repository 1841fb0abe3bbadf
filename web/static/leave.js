// Leaving a group, once the person has said that it may be.

import { ask } from "./ask.js";
import { isolate } from "./dom.js";
import { t } from "./texts.js";

/** Asks, and leaves. Answers whether the person has left; a refusal is said where the question stands, and it can be tried again. */
export async function leaveGroup(store, call, id) {
  await store.meet(id);
  const { role, members } = store.conversations.get(id) ?? {};
  const question = { title: t("members.leave_title", { group: isolate(store.title(id)) }), yes: t("members.leave_yes"),
    text: role === "owner" && members > 1 ? t("members.leave_owner_about") : t("members.leave_about") };
  while (await ask(question)) {
    try {
      await call("DELETE", `/groups/${id.slice(2)}/members/${store.self.uid}`);
      await store.write(id, (db) => db.patch(id, { left: true }));
      return true;
    } catch (refusal) {
      question.text = refusal.message;
    }
  }
  return false;
}
