// From rows to items, and from items to elements: messages, days, groups of one person, the "New" line, states.

import { attached } from "./attached.js";
import { cut, isEmojiAlone } from "./characters.js";
import { disc, h, icon, isolate } from "./dom.js";
import { eventOf } from "./groups.js";
import { elements, lineOf, parse, withFiles, words } from "./markdown.js";
import { named } from "./mentions.js";
import { counts, isEvent, mentions, nameOf, shown, withoutText } from "./state.js";
import { marked } from "./sought.js";
import { isStarred } from "./starred.js";
import { dayOf, listOf, momentOf, refused, t, timeOf } from "./texts.js";

const TOGETHER_MS = 5 * 60_000;
// Characters by which a screen reader tells the message of a button.
const MOST_BRIEF = 40;

/**
 * The items to show for the rows and outbox items of one conversation. `freshAfter`: the row after which "New"
 * stands; `start`: the text above the first row; `quoted`: messages that are replied to. A `line` is all in its `sig`.
 */
export function itemsOf(store, rows, outbox, freshAfter, start, quoted = new Map()) {
  const stored = new Set(rows.map((row) => row.client_id));
  const waiting = outbox
    .filter((item) => !stored.has(item.client_id))
    .map((item) => ({ ...item, kind: "message", sender: store.self.uid }));
  const items = start ? [{ key: "start", sig: start, line: "start" }] : [];
  let before = null;
  let day = null;
  // A day may begin again, where a row of an earlier one stands behind it: each of its lines has a key of its own.
  const begun = new Map();
  let fresh = freshAfter === null;
  const readers = store.readers(rows);
  // Beside the newest that somebody has read it stands in words.
  const newest = rows.findLast(({ client_id }) => readers.get(client_id))?.client_id;
  for (const row of [...rows, ...waiting]) {
    const today = new Date(row.sent_at).toDateString();
    const newDay = today !== day;
    if (newDay) {
      const times = begun.get(today) ?? 0;
      begun.set(today, times + 1);
      items.push({ key: times ? `${today} ${times}` : today, sig: dayOf(row.sent_at), line: "day" });
    }
    day = today;
    const firstFresh = !fresh && row.message_id > freshAfter && counts(row, store.self.uid);
    if (firstFresh) {
      items.push({ key: "fresh", sig: t("pane.new"), line: "fresh-line" });
      fresh = true;
    }
    items.push(row.kind === "message" || row.kind === "recalled" ? messageOf(store, row, newDay || firstFresh || apart(before, row), quoted,
      { readers: readers.get(row.client_id) ?? 0, inWords: row.client_id === newest }) : {
      key: `e${row.message_id}`, id: row.message_id, sig: eventOf(store, row), line: "event",
    });
    before = row;
  }
  return items;
}

const apart = (a, b) =>
  isEvent(a) || a.sender !== b.sender || new Date(b.sent_at) - new Date(a.sent_at) > TOGETHER_MS;

function messageOf(store, row, first, quotes, { readers, inWords }) {
  const own = row.sender === store.self.uid;
  const state = !own ? "" : row.state ?? (readers ? "read" : store.progress(row));
  const all = Math.max(readers, (store.conversations.get(row.conversation)?.members ?? 1) - 1);
  const readBy = readers ? t("state.read_by", { count: readers, all }) : "";
  const brief = readers && inWords ? t("row.read_by", { count: readers }) : "";
  const name = own ? t("you") : store.name(row.sender);
  // An own message keeps its element when the outbox item turns into the stored row.
  const key = own && row.client_id ? `m${row.client_id}` : `r${row.message_id}`;
  const { body, kind, reactions, quote, change } = row;
  const of = body?.reply_to?.of ?? quote?.of;
  const said = of && { of, ...quoteOf(store, of, quotes.get(nameOf(of))) };
  const author = body?.forwarded_from ?? row.forwarded_from;
  const from = author && (author === store.self.uid ? t("row.forwarded_own") : t("row.forwarded", { name: isolate(store.name(author)) }));
  const smileys = tally(store, reactions);
  const hue = first && !own ? store.profile(row.sender).hue : undefined;
  const starred = Boolean(row.message_id) && isStarred(store, row);
  const names = named(store, row);
  const recalled = kind === "recalled" && store.recalled(row);
  const sought = row.body?.text && store.sought?.areIn(row.body.text) ? store.sought : null;
  const sig = JSON.stringify([sought?.key, recalled, names, from, hue, starred, readBy, brief, state, first, name, row.files, Boolean(row.up), row.reason, row.code, kind, body, said, smileys, change?.state, change?.reason, change?.frame.body]);
  return { key, id: row.message_id, sig, row, own, first, starred, state, readBy, brief, name, said, from, smileys, names, sought, isToMe: mentions(row, store.self.uid), recalled };
}

/** The author and the text that a reply quotes; only the author of a message that is not in this browser. */
function quoteOf(store, { sender }, message) {
  const name = sender === store.self.uid ? t("you") : store.name(sender);
  const text = !message ? "…" : message.kind !== "recalled" ? lineOf(store, message)
    : message.body?.by ? store.recalled(message) : t("row.quote_recalled");
  return { name, text };
}

/** Emoji with those who chose them: [{emoji, names, own}]. */
function tally(store, reactions) {
  const all = new Map();
  for (const [uid, { emoji }] of Object.entries(reactions ?? {})) {
    const own = Number(uid) === store.self.uid;
    for (const each of emoji) {
      const known = all.get(each) ?? { emoji: each, names: [], own: false };
      known.names.push(own ? t("you") : store.name(Number(uid)));
      known.own ||= own;
      all.set(each, known);
    }
  }
  return [...all.values()];
}

/** The emoji with which `uid` reacts to a row. */
export const chosen = (row, uid) => row.reactions?.[uid]?.emoji ?? [];

/** The rows as they will be when what waits in the outbox is done. */
export function withAmendments(rows, amending, uid) {
  const byRow = Map.groupBy(amending, ({ frame }) => frame.message_id);
  return !byRow.size ? rows : rows.map((row) => (byRow.get(row.message_id) ?? []).reduce(amended(uid), row)).filter(shown);
}

const amended = (uid) => (row, change) => {
  const { state, frame: { type, body, emoji } } = change;
  if (state === "failed") return { ...row, change };
  switch (type) {
    // The text is not the first author's any more.
    case "edit": return { ...row, body: { ...row.body, ...body, edited: true, forwarded_from: undefined }, change };
    case "delete": return { ...row, kind: "deleted", body: {} };
    case "recall": return { ...row, kind: "recalled", body: withoutText(row, uid) };
    case "pin": case "star": return { ...row, change };
    default: return { ...row, reactions: { ...row.reactions, [uid]: { emoji } } };
  }
};

const ICON = { waiting: "clock", sent: "check", delivered: "checks", read: "checks.read", failed: "alert" };

/** The state of an own message as an icon with a name. */
export const stateIcon = (state) => h("i.icon." + ICON[state], { role: "img", "aria-label": t(`state.${state}`) });

export const make = () => h("div");

/**
 * Fills the element of an item. `acts`: what its buttons do: `retry(row)`, `discard(row)`, `menu(row, button)`,
 * `toggle(row, emoji)`, `reveal(of)`, and those of attached.js.
 */
export function fill(item, element, acts) {
  if (item.line) {
    element.className = `line ${item.line}`;
    if (item.id) element.dataset.row = item.id;
    return element.replaceChildren(h("span", {}, item.sig));
  }
  const { row, own, first, state, name } = item;
  const act = element.contains(document.activeElement) && document.activeElement.dataset.act;
  element.className = `msg${own ? " own" : ""}${first ? " first" : ""}${state === "failed" ? " failed" : ""}${item.isToMe ? " to-me" : ""}`;
  element.dataset.row = row.message_id ?? "";
  element.role = "article";
  const text = row.body?.text ?? "";
  const tree = parse(text, item.names);
  const brief = cut(withFiles(row, words(tree).replace(/\s+/g, " ")), MOST_BRIEF);
  element.ariaLabel = row.kind === "recalled" ? item.recalled : t("list.of", { name, text: brief });
  const time = h("time", { datetime: row.sent_at }, timeOf(row.sent_at));
  const parts = [];
  if (first && !own) {
    parts.push(disc(`u:${row.sender}`, name));
    parts[0].dataset.person = row.sender;
  }
  if (first) parts.push(h("p.who", own ? { "data-by": name } : {}, own ? null : h("b", { dir: "auto", "data-person": row.sender }, name), " ", time));
  if (row.kind === "recalled") {
    parts.push(h("p.words.gone", {}, item.recalled));
    element.replaceChildren(...parts);
    if (act) element.closest(".log").focus({ preventScroll: true });
    return;
  }
  if (item.said) parts.push(quote(item.said, acts));
  if (item.from) parts.push(h("p.forwarded", {}, item.from));
  const files = attached(row, element.querySelector(":scope > .files"), acts);
  const marks = [row.body?.edited && h("small.edited", {}, t("row.edited")),
    item.starred && h("i.icon.star", { role: "img", "aria-label": t("star.starred") })].filter(Boolean);
  const said = h(`div.words${isEmojiAlone(text) ? ".alone" : ""}${text ? "" : ".marks-alone"}`, { dir: "auto", "data-by": first || files ? null : `${name}:` },
    ...elements(marked(tree, item.sought)), ...marks.flatMap((mark) => [" ", mark]));
  // Above the first of several stands when that was; a screen reader would say it twice.
  if (!first) (files ?? said).title = momentOf(row.sent_at);
  if (files && !first) files.dataset.by = `${name}:`;
  if (files) parts.push(files);
  if (text || marks.length || !files) parts.push(said);
  const isStored = row.message_id && row.client_id;
  if (isStored) {
    parts.push(h("button.more", { type: "button", "data-act": "menu", "aria-haspopup": "menu", "aria-label": t("row.actions", { text: brief }),
      onclick: (event) => acts.menu(row, event.currentTarget) }, icon("dots")));
  }
  const label = own && (item.readBy || t(`state.${state}`));
  if (own) parts.push(h("span.state", { role: "img", "aria-label": label }, Object.assign(icon(ICON[state]), { title: label })));
  if (item.brief) parts.push(h("small.read-by", { title: item.readBy, "aria-hidden": "true" }, item.brief));
  if (item.smileys.length) parts.push(smileys(item, acts));
  const failed = state === "failed" ? row : row.change?.state === "failed" && row.change;
  if (failed) {
    // The typed text is nowhere else.
    if (failed.frame?.body) parts.push(h("div.words.refused", { dir: "auto" }, failed.frame.body.text));
    const reason = refused(failed.code, failed.reason);
    parts.push(h("p.trouble", {}, failed === row ? t("row.not_sent", { reason }) : t("row.not_changed", { reason }),
      h("button.link", { type: "button", onclick: () => acts.retry(failed) }, t("row.retry")),
      failed.files && failed.to ? h("button.link", { type: "button", onclick: () => acts.takeBack(failed) }, t("row.draft")) : null,
      h("button.link", { type: "button", onclick: () => acts.discard(failed) }, t("row.discard"))));
  }
  element.replaceChildren(...parts);
  // The element that had the focus is a new one now, or gone.
  if (act) (element.querySelector(`[data-act="${CSS.escape(act)}"]`) ?? element.querySelector(".more"))?.focus({ preventScroll: true });
}

// Its name is what is seen, so that people who speak to the page can say it.
const quote = ({ of, name, text }, acts) =>
  h("button.quote", { type: "button", "data-by": t("row.reply_to"), onclick: () => acts.reveal(of) },
    h("b", { dir: "auto" }, name), " ", h("bdi", {}, text));

const smileys = ({ row, smileys }, acts) => h("p.smileys", {}, ...smileys.map(({ emoji, names, own }) =>
  h("button.smiley", { type: "button", "data-act": emoji, "aria-pressed": String(own), title: listOf(names),
    onclick: () => acts.toggle(row, emoji) },
  `${emoji} ${names.length}`)));
