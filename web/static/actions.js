// The menus behind the buttons of a message, and of a person.

import { linkTo } from "./address.js";
import { ask } from "./ask.js";
import { h, isolate } from "./dom.js";
import { lineOf } from "./markdown.js";
import { item, openMenu } from "./menu.js";
import { isPinned } from "./pins.js";
import { namesReaders } from "./readers.js";
import { chosen } from "./rows.js";
import { isStarred } from "./starred.js";
import { momentOf, t } from "./texts.js";

// Shown in the menu; any others that a person chose stand under the message.
const EMOJI = ["👍", "❤️", "😂", "😮", "😢", "🙏"];

/** What the tooltips of a message say: nobody without a mouse has those. */
const about = (row, message) => [momentOf(row.sent_at), message?.querySelector(".state")?.ariaLabel,
  ...[...message?.querySelectorAll(".smiley") ?? []].map(({ textContent, title }) => `${textContent}: ${title}`),
].filter(Boolean).join(" · ");

/**
 * The menu of messages. `composer` edits and replies, `emoji` shows all emoji, `forward(row)` asks where to, `report(row)` what is wrong,
 * `readers(row)` shows who has read it. Answers `open(row, button)`.
 */
export function actionsMenu(store, composer, emoji, { forward, report, readers }) {
  return (row, opener) => {
    const own = row.sender === store.self.uid;
    const mine = chosen(row, store.self.uid);
    const smileys = EMOJI.map((emoji) => item(emoji, () => toggle(store, row, emoji), {
      role: "menuitemcheckbox", "aria-checked": String(mine.includes(emoji)), "aria-label": t("actions.react", { emoji }),
    }));
    const dots = h("span", { "aria-hidden": "true" }, "…");
    const more = item(dots, () => emoji(opener, (chosen) => toggle(store, row, chosen)), { title: t("emoji.more") });
    openMenu(opener, [
      h("div.smileys", { role: "group", "aria-label": t("actions.reactions") }, ...smileys, more),
      item(t("actions.reply"), () => composer.reply(row)),
      row.body.text && item(t("actions.copy"), () => navigator.clipboard?.writeText(row.body.text)),
      item(t("actions.link"), () => navigator.clipboard?.writeText(linkTo(row))),
      item(t("actions.forward"), () => forward(row)),
      item(isStarred(store, row) ? t("star.remove") : t("star.add"), () => store.star(row, !isStarred(store, row))),
      (row.conversation.startsWith("u:") || store.governs(row.conversation)) && item(isPinned(store, row) ? t("actions.unpin") : t("actions.pin"),
        () => store.pin(row, !isPinned(store, row))),
      namesReaders(store, row) && item(t("actions.readers"), () => readers(row)),
      own && item(t("actions.edit"), () => composer.edit(row)),
      own && item(t("actions.recall"), () => recall(store, row)),
      !own && store.governs(row.conversation) && item(t("actions.remove"), () => removeForAll(store, row)),
      !own && item(t("report.menu"), () => report(row)),
      item(t("actions.delete"), () => remove(store, row)),
      h("div.quiet.tips", {}, about(row, opener.closest(".msg"))),
    ]);
  };
}

/** Whether it is a conversation with somebody else, who has an account. */
export function isOther(store, id) {
  const uid = id.startsWith("u:") && Number(id.slice(2));
  return Boolean(uid) && uid !== store.self.uid && !store.isDeleted(uid);
}

/**
 * The menu of a person, wherever one is shown, and of the open conversation. `mute(button, id)` opens the one of a conversation, `date()`
 * asks for the day to go to, `report(uid)` what is wrong. Answers `open(button, id)`.
 */
export function aboutMenu(store, { mute, date, report } = {}) {
  return (opener, id) => {
    const toDate = date && id === store.open && item(t("date.open"), date);
    if (!isOther(store, id)) return openMenu(opener, [toDate]);
    const uid = Number(id.slice(2));
    const { mine, theirs } = store.friend(uid);
    const isBlocked = Boolean(store.setting("block", id));
    openMenu(opener, [
      !isBlocked && !mine && item(t("contacts.befriend"), () => store.befriend(uid, true)),
      mine && !theirs && item(t("contacts.take_back"), () => store.befriend(uid, false)),
      mine && theirs && item(t("contacts.remove_menu"), () => unfriend(store, uid)),
      mute && item(t("list.mute"), () => mute(opener, id)),
      toDate,
      isBlocked ? item(t("contacts.unblock"), () => unblock(store, uid)) : item(t("contacts.block_menu"), () => block(store, uid)),
      report && item(t("report.menu"), () => report(uid)),
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

async function unfriend(store, uid) {
  const sure = await ask({
    title: t("contacts.remove_title", { name: isolate(store.name(uid)) }),
    text: t("contacts.remove_about"),
    yes: t("contacts.remove"),
  });
  if (sure) await store.befriend(uid, false);
}

/** Adds an emoji to the person's own on a message, or takes it away. */
export function toggle(store, row, emoji) {
  const mine = chosen(row, store.self.uid);
  return store.react(row, mine.includes(emoji) ? mine.filter((each) => each !== emoji) : [...mine, emoji].slice(-6));
}

async function remove(store, row) {
  const sure = await ask({
    title: t("delete.title"),
    quote: lineOf(store, row),
    text: t("delete.about"),
    yes: t("delete.yes"),
    no: t("cancel"),
  });
  if (sure) await store.remove(row);
}

/** The question before a message of `name` is removed for everybody. */
export const removalOf = (name, quote) => ({
  title: t("removal.title", { name: isolate(name) }),
  quote,
  text: t("removal.about"),
  yes: t("removal.yes"),
});

async function removeForAll(store, row) {
  if (await ask(removalOf(store.name(row.sender), lineOf(store, row)))) await store.recall(row);
}

async function recall(store, row) {
  const sure = await ask({
    title: t("recall.title"),
    quote: lineOf(store, row),
    text: t("recall.about"),
    yes: t("recall.yes"),
    no: t("recall.no"),
  });
  if (sure) await store.recall(row);
}
