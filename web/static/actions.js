// The menus behind the buttons of a message, and of the person of a conversation.

import { ask } from "./ask.js";
import { h, isolate } from "./dom.js";
import { item, openMenu } from "./menu.js";
import { isPinned } from "./pins.js";
import { namesReaders } from "./readers.js";
import { chosen } from "./rows.js";
import { isStarred } from "./starred.js";
import { t } from "./texts.js";

// Shown in the menu; any others that a person chose stand under the message.
const EMOJI = ["👍", "❤️", "😂", "😮", "😢", "🙏"];

/**
 * The menu of messages. `composer` edits and replies, `emoji` shows all emoji, `forward(row)` asks where to, `readers(row)` shows who has
 * read it. Answers `open(row, button)`.
 */
export function actionsMenu(store, composer, emoji, { forward, readers }) {
  return (row, opener) => {
    const own = row.sender === store.self.uid;
    const mine = chosen(row, store.self.uid);
    const smileys = EMOJI.map((emoji) => item(emoji, () => toggle(store, row, emoji), {
      role: "menuitemcheckbox", "aria-checked": String(mine.includes(emoji)), "aria-label": t("actions.react", { emoji }),
    }));
    const more = item("…", () => emoji(opener, (chosen) => toggle(store, row, chosen)), { "aria-label": t("emoji.more"), title: t("emoji.more") });
    openMenu(opener, [
      h("div.smileys", { role: "group", "aria-label": t("actions.reactions") }, ...smileys, more),
      item(t("actions.reply"), () => composer.reply(row)),
      item(t("actions.copy"), () => navigator.clipboard?.writeText(row.body.text)),
      item(t("actions.forward"), () => forward(row)),
      item(isStarred(store, row) ? t("star.remove") : t("star.add"), () => store.star(row, !isStarred(store, row))),
      store.mayPin(row.conversation) && item(isPinned(store, row) ? t("actions.unpin") : t("actions.pin"),
        () => store.pin(row, !isPinned(store, row))),
      namesReaders(store, row) && item(t("actions.readers"), () => readers(row)),
      own && item(t("actions.edit"), () => composer.edit(row)),
      own && item(t("actions.recall"), () => recall(store, row)),
      item(t("actions.delete"), () => remove(store, row)),
    ]);
  };
}

/** The menu of the person of the open conversation. Answers `open(button)`. */
export function personMenu(store) {
  return (opener) => {
    const id = store.open;
    // The button still stands there for a moment when a group is opened.
    if (!id?.startsWith("u:")) return;
    const uid = Number(id.slice(2));
    const isBlocked = Boolean(store.setting("block", id));
    openMenu(opener, [
      !isBlocked && !store.friend(uid).mine && item(t("contacts.befriend"), () => store.befriend(uid, true)),
      isBlocked ? item(t("contacts.unblock"), () => unblock(store, uid)) : item(t("contacts.block"), () => block(store, uid)),
    ]);
  };
}

export const unblock = (store, uid) => store.set("block", `u:${uid}`, null);

export async function block(store, uid) {
  const sure = await ask({
    title: t("contacts.block_title", { name: isolate(store.name(uid)) }),
    text: t("contacts.block_about"),
    yes: t("contacts.block"),
  });
  if (sure) await store.set("block", `u:${uid}`, { blocked: true });
}

/** Adds an emoji to the person's own on a message, or takes it away. */
export function toggle(store, row, emoji) {
  const mine = chosen(row, store.self.uid);
  return store.react(row, mine.includes(emoji) ? mine.filter((each) => each !== emoji) : [...mine, emoji].slice(-6));
}

async function remove(store, row) {
  const sure = await ask({
    title: t("delete.title"),
    quote: row.body.text,
    text: t("delete.about"),
    yes: t("delete.yes"),
    no: t("cancel"),
  });
  if (sure) await store.remove(row);
}

async function recall(store, row) {
  const sure = await ask({
    title: t("recall.title"),
    quote: row.body.text,
    text: t("recall.about"),
    yes: t("recall.yes"),
    no: t("recall.no"),
  });
  if (sure) await store.recall(row);
}
