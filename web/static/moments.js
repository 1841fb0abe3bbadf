// The page of moments: what friends share, newest first.

import { ask } from "./ask.js";
import { attached } from "./attached.js";
import { cut } from "./characters.js";
import { disc, h, icon, isSearching, isolate, keep, light } from "./dom.js";
import { elements, lineOf, parse } from "./markdown.js";
import { item as menuItem, openMenu } from "./menu.js";
import { marked } from "./sought.js";
import { MOMENTS, characters, nameOf } from "./state.js";
import { pasteInto, pickWith } from "./picking.js";
import { listOf, momentOf, refused, sinceOf, t } from "./texts.js";
import { pictured } from "./thumbnails.js";
import { Tray } from "./tray.js";

// Moments that are shown at first, and how many more each time.
const PAGE = 30;
// How often the times since are told anew.
const AGAIN_MS = 60_000;

export const title = () => t("moments.title");

/** Fills `body`. Answers {render, lead}: what shows what is there now, and the moment with an id, which is fetched if need be. */
export function open(store, { body, limit }) {
  let most = PAGE;
  const text = h("textarea", { id: "moment-text", rows: "2", dir: "auto", placeholder: t("moments.write"), "aria-label": t("moments.write") });
  const seers = h("div", {});
  const who = h("details", {}, h("summary", {}, t("moments.who")), seers);
  const problem = h("p.problem", { role: "alert" });
  const tray = new Tray(store, () => {});
  const add = h("button.tool", { type: "button", title: t("moments.add_pictures") }, icon("clip"));
  const form = h("form.moment-form", { onsubmit: async (event) => {
    event.preventDefault();
    const words = text.value.trim();
    if (!words && !tray.size) return text.focus();
    if (tray.isTooMany()) return;
    if (characters(words) > limit) return void (problem.textContent = t("moments.too_long", { count: limit }));
    const except = [...seers.querySelectorAll("input:not(:checked)")].map(({ value }) => Number(value));
    const files = tray.take();
    try {
      await store.later(MOMENTS, "POST", "/moments", { text: words, ...(except.length && { except }) }, files);
    } catch (refusal) {
      tray.show([...files, ...tray.files]);
      return void (problem.textContent = t("composer.not_kept", { problem: refusal.message }));
    }
    problem.textContent = text.value = "";
    who.open = false;
    seers.replaceChildren();
  } }, text, tray.element, who, problem, h("span.pick", {}, add), h("button.button.primary", {}, t("moments.post")));
  pickWith(add, (files) => tray.add(files), { accept: "image/*" });
  pasteInto(text, (files) => tray.add(files));
  const acts = {
    view: async (message_id, id) => (await import("./viewer.js")).view(store, message_id, id),
    local: (client_id, n) => store.blobs.blob(client_id, n),
    takeBack: async ({ client_id, item }) => {
      const back = await store.sending.takeBack({ client_id, conversation: MOMENTS });
      if (!back) return;
      tray.show([...await pictured(back), ...tray.files]);
      text.value = [item.call.body.text, text.value].filter(Boolean).join("\n");
      text.focus();
    },
  };
  const feed = h("div.feed", { role: "feed", "aria-label": t("moments.title") });
  const older = h("button.button", { type: "button", onclick: async () => {
    most += PAGE;
    await store.history.older(MOMENTS).catch(() => false);
    await render();
  } }, t("moments.older"));
  const empty = h("p.quiet", {}, t("moments.none"));
  const lost = h("div", {});
  body.replaceChildren(form, lost, empty, feed, older);
  // The moments whose likes and comments somebody asked for.
  const unfolded = new Set();
  who.addEventListener("toggle", () => who.open && !seers.childElementCount && seers.replaceChildren(...friendsOf(store).map((uid) =>
    h("p", {}, h("label", {}, h("input", { type: "checkbox", value: uid, checked: "" }), " ", h("bdi", {}, store.name(uid)))))));

  let turn = 0;
  const render = async () => {
    const own = ++turn;
    const all = await store.db.moments(most);
    // A later one has begun, and knows more.
    if (own !== turn) return;
    // A moment with a refused call is shown, even if its author is no longer a friend.
    const rows = all.filter(({ sender, message_id }) => sender === store.self.uid || store.isFriend(sender)
      || store.outbox.some(({ call, state }) => state === "failed" && call?.path.startsWith(`/moments/${message_id}/`)));
    const items = [...waiting(store), ...rows].map((row) => itemOf(store, row));
    feed.toggleAttribute("data-loading", !items.length && !store.isSynced);
    const toggle = (key) => (unfolded.delete(key) || unfolded.add(key)) && render();
    keep(feed, items.map((item) => withFold(item, unfolded)), () => make(store), (item, element) => fill(store, item, element, toggle, acts));
    keep(lost, withoutPlace(store, rows), () => h("p", {}), ({ item }, element) =>
      element.replaceChildren(...[item.call.body.text && h("bdi", {}, item.call.body.text), state(store, item)].filter(Boolean)));
    empty.hidden = items.length > 0 || !store.isSynced;
    older.hidden = all.length < most && (store.conversations.get(MOMENTS)?.floor ?? 0) === 0;
    // Those of former friends count as read, too.
    const [newest] = all;
    if (newest && store.unread(MOMENTS) && !document.hidden) await store.markRead(MOMENTS, newest.message_id);
  };
  const clock = setInterval(() => (feed.isConnected ? render() : clearInterval(clock)), AGAIN_MS);
  const lead = async (id) => {
    await store.history.around(MOMENTS, id).catch(() => {});
    most = Math.max(most, 1 + (await store.db.moments(Infinity)).findIndex(({ message_id }) => message_id === id));
    await render();
    const moment = feed.querySelector(`[data-row="${id}"]`)?.closest(".moment");
    if (!moment) return;
    moment.scrollIntoView({ block: "center" });
    if (!isSearching()) moment.focus({ preventScroll: true });
    light(moment);
  };
  return { render, lead };
}

const friendsOf = (store) => [...store.friends.keys()].filter((uid) => store.isFriend(uid));

/** Moments that are on their way, newest first. */
const waiting = (store) => store.outbox.filter(({ call }) => call?.path === "/moments")
  .map((item) => {
    const { client_id, files, state, up, call: { body } } = item;
    return { item, sender: store.self.uid, client_id, body, files, state, up };
  }).toReversed();

/** Refused calls about moments and comments that are not shown, such as deleted ones: the typed text is nowhere else. */
function withoutPlace(store, rows) {
  const shown = new Set(rows.flatMap(({ message_id, comments = [] }) => [message_id, ...comments.map((comment) => comment.message_id)]));
  const about = ({ call }) => Number(call?.path.match(/^\/moments\/(\d+)\//)?.[1]);
  return store.outbox.filter((item) => item.state === "failed" && about(item) && !shown.has(about(item)))
    .map((item) => ({ key: item.client_id, sig: item.code, item }));
}

function itemOf(store, row) {
  const own = store.self.uid;
  const path = `/moments/${row.message_id}`;
  const deletion = lastCall(store, `${path}/delete`);
  const like = lastCall(store, `${path}/like`);
  const refusedLike = like?.state === "failed" ? like : null;
  const likes = Object.entries(row.likes ?? {}).filter(([uid, { liked }]) => liked && Number(uid) !== own).map(([uid]) => Number(uid));
  const liked = like && !refusedLike ? like.call.body.liked : Boolean(row.likes?.[own]?.liked);
  const unsaid = store.outbox.filter(({ call }) => call?.path === `${path}/comments`);
  const stored = row.comments ?? [];
  const comments = [
    ...stored.map((comment) => ({ ...comment, key: nameOf(comment), item: lastCall(store, `/moments/${comment.message_id}/delete`) })),
    ...unsaid.filter((item) => !stored.some(({ client_id }) => client_id === item.client_id))
      .map((item) => ({ key: item.client_id, sender: own, text: item.call.body.text, item })),
  ].map((comment) => ({ ...comment, name: nameFor(store, comment.sender) }));
  const unsettled = row.item ?? deletion ?? refusedLike;
  return { key: row.client_id, row, name: nameFor(store, row.sender), liked, likes: likes.map((uid) => store.name(uid)), comments, unsettled,
    since: row.sent_at ? sinceOf(row.sent_at) : "", sought: store.sought, hue: store.profile(row.sender).hue };
}

/** Comments that are on their way or were refused are shown in any case, since the typed text is nowhere else; and afterwards, too. */
function withFold(item, unfolded) {
  if (item.comments.some((comment) => comment.item)) unfolded.add(item.key);
  const isOpen = unfolded.has(item.key);
  const { row, name, liked, likes, comments, unsettled, since, hue, sought } = item;
  return { ...item, isOpen, sig: JSON.stringify([row.message_id, row.body, name, liked, likes, comments, unsettled, since, hue, sought?.key, isOpen]) };
}

/** The last call at a path that is on its way or was refused. */
const lastCall = (store, path) => store.outbox.findLast(({ call }) => call?.path === path);

const nameFor = (store, uid) => (uid === store.self.uid ? t("you") : store.name(uid));

/** The element of a moment: what is said, which is drawn anew, and the field for comments, which stays while somebody writes. */
function make(store) {
  const input = h("input", { type: "text", dir: "auto", "aria-label": t("moments.comment"), placeholder: t("moments.comment") });
  const form = h("form", { hidden: "", onsubmit: async (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (!text) return;
    input.value = "";
    await store.later(MOMENTS, "POST", `/moments/${form.dataset.row}/comments`, { text });
  } }, input);
  return h("article.moment", { tabindex: "0" }, h("div.said", {}), form);
}

function fill(store, { key, row, name, liked, likes, comments, unsettled, since, sought, isOpen }, element, toggle, acts) {
  const own = row.sender === store.self.uid;
  const { message_id } = row;
  const [said, form] = element.children;
  const focused = said.contains(document.activeElement) && document.activeElement.dataset.act;
  const time = row.sent_at && h("time", { datetime: row.sent_at, title: momentOf(row.sent_at) }, since);
  const count = likes.length + (liked ? 1 : 0);
  const act = (what, sign, label, number, more) => h("button.react", { type: "button", "data-act": what, ...more }, icon(sign), label,
    number ? h("span.number", {}, ` ${number}`) : null);
  const like = act("like", "heart", liked ? t("moments.liked") : t("moments.like"), count, { "aria-pressed": String(liked),
    onclick: () => store.later(MOMENTS, "PUT", `/moments/${message_id}/like`, { liked: !liked }) });
  const talk = act("comments", "bubble", t("moments.comments"), comments.length, { "aria-expanded": String(isOpen), onclick: () => {
    toggle(key).then(() => form.checkVisibility() && form.elements[0].focus());
  } });
  const remove = () => askDeletion(store, message_id, lineOf(store, row), t("moments.delete_title"), t("moments.delete_about"));
  const menu = own && message_id ? h("button.tool", { type: "button", "data-act": "menu", "aria-haspopup": "menu", title: t("actions.title"),
    onclick: (event) => openMenu(event.currentTarget, [menuItem(t("moments.delete_menu"), remove)]) }, icon("dots")) : null;
  const lines = comments.map((comment) => h("li", {}, h("b", { dir: "auto" }, comment.name), " ", h("bdi", {}, comment.text), " ", end(store, comment)));
  element.setAttribute("aria-label", `${name}: ${cut(lineOf(store, row), 80)}`);
  said.replaceChildren(...[
    h("div.by", {}, disc(`u:${row.sender}`, own ? store.self.name : name),
      h("p.who", {}, h("b", { dir: "auto" }, name), " ", time || null, unsettled ? state(store, unsettled) : null), menu),
    row.body.text && h("div.words", { dir: "auto" }, ...elements(marked(parse(row.body.text), sought))),
    attached(row, said.querySelector(":scope > .files"), acts),
    message_id && h("p.acts", {}, like, talk),
    isOpen && count && h("p.quiet", {}, t("moments.likes", { count }), likes.length ? ` (${listOf(likes.map(isolate))})` : ""),
    isOpen && lines.length && h("ul.comments", { role: "list" }, ...lines),
  ].filter(Boolean));
  form.hidden = !message_id || !isOpen;
  form.dataset.row = message_id;
  if (focused) said.querySelector(`[data-act="${focused}"]`)?.focus({ preventScroll: true });
}

/** The end of a comment: the state of its call, or how its author deletes it. */
function end(store, { item, sender, text, message_id }) {
  if (item) return state(store, item);
  if (sender !== store.self.uid) return null;
  return h("button.link", { type: "button", "aria-label": `${t("moments.delete")}: ${text}`,
    onclick: () => askDeletion(store, message_id, text, t("moments.delete_comment"), t("moments.delete_comment_about")) }, t("moments.delete"));
}

/** The state of something that is on its way. */
function state(store, item) {
  if (item.state !== "failed") return h("span.state", { role: "img", "aria-label": t("moments.waiting"), title: t("moments.waiting") }, icon("clock"));
  return h("span.trouble", {}, ` ${refused(item.code, item.reason)} `, h("button.link", { type: "button", onclick: () => store.discard(item) }, t("contacts.dismiss")));
}

async function askDeletion(store, message_id, words, title, about) {
  const yes = await ask({ title, text: about, quote: cut(words, 200), yes: t("moments.delete") });
  if (yes) await store.later(MOMENTS, "POST", `/moments/${message_id}/delete`, {});
}
