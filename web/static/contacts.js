// The page of contacts: requests, friends, people whom one has asked or blocked, and one's own link.

import { aboutMenu, block, unblock } from "./actions.js";
import { disc, h, icon, isolate, keep } from "./dom.js";
import { item, openMenu } from "./menu.js";
import { people, Picker } from "./picker.js";
import { signUpInvites } from "./sign_up_invites.js";
import { refused, t } from "./texts.js";

export const title = () => t("contacts.title");

/** Fills `body`. Answers {render}, which shows what is there now. */
export function open(store, { call, body }) {
  const note = h("p.problem", { role: "alert" });
  const input = h("input", { id: "contacts-find", type: "text", dir: "auto", autocomplete: "off", spellcheck: "false", role: "combobox",
    "aria-expanded": "false", "aria-controls": "contacts-found", "aria-autocomplete": "list", placeholder: t("contacts.find") });
  const found = h("ul.picks", { id: "contacts-found", role: "listbox", "aria-label": t("contacts.found") });
  const part = (heading) => h("section", { hidden: "" }, h("h3", {}, heading), h("ul.contacts", { role: "list" }));
  const parts = { requests: part(t("contacts.requests")), friends: part(t("contacts.friends")), asked: part(t("contacts.asked")),
    blocked: part(t("contacts.blocked")) };
  const lost = h("ul", { role: "list" });
  const none = h("p.quiet", {}, t("contacts.none"));
  const add = h("div.field", {}, h("label", { for: "contacts-find" }, t("contacts.add")), input, found, note);
  body.replaceChildren(parts.requests, add, lost, none, parts.friends, parts.asked, parts.blocked, ownLink(store),
    signUpInvites(call, store.self.uid), h("p.quiet", {}, h("a", { href: "#settings/privacy" }, t("contacts.privacy"))));
  const picker = new Picker(input, found, {
    note: (text) => { note.textContent = text; },
    find: async (text) => (await people(call, text)).filter(({ id }) => id !== `u:${store.self.uid}`),
    take: async ({ id, title: name }) => {
      const uid = Number(id.slice(2));
      await store.write(null, (db) => db.learn([{ uid, name }]));
      if (!store.friend(uid).mine) await store.befriend(uid, true);
      picker.reset();
    },
  });
  const menu = aboutMenu(store);
  const render = () => {
    const all = sections(store);
    for (const [name, items] of Object.entries(all)) {
      parts[name].hidden = !items.length;
      keep(parts[name].lastElementChild, items, () => h("li.person"), (card, element) => fill(store, card, element, menu));
    }
    const refusals = failed(store);
    lost.replaceChildren(...refusals);
    none.hidden = Object.values(all).some(({ length }) => length) || refusals.length > 0;
  };
  return { render };
}

/** The link by which others write to the person. */
function ownLink(store) {
  const link = h("input", { id: "contacts-link", readonly: "", value: `${location.origin}/c/u:${store.self.uid}` });
  const copied = h("span.quiet", { role: "status" });
  const copy = h("button.button", { type: "button", onclick: async () => {
    link.select();
    await navigator.clipboard.writeText(link.value);
    copied.textContent = t("contacts.copied");
  } }, t("contacts.copy"));
  // Browsers give a page without HTTPS no clipboard.
  copy.hidden = !navigator.clipboard;
  const code = h("details", { id: "contacts-qr" }, h("summary", {}, t("contacts.qr")));
  // Its script is fetched by who wants to see it.
  code.addEventListener("toggle", async () => {
    if (!code.open || code.querySelector(".qr")) return;
    const { qrCode } = await import("./qr.js");
    code.append(qrCode(link.value, t("contacts.qr_label", { link: link.value })));
  });
  return h("div.field", {}, h("label", { for: "contacts-link" }, t("contacts.link")), h("div.together", {}, link, copy), copied, code);
}

/** The cards of each section; whoever is blocked is in no other one. */
function sections(store) {
  const isBlocked = (uid) => Boolean(store.setting("block", `u:${uid}`));
  const all = [...new Set([...store.friends.keys(), ...wishes(store).map(uidOf)])];
  const uids = all.filter((uid) => !store.isDeleted(uid) && !isBlocked(uid));
  const known = uids.map((uid) => store.friend(uid));
  const set = [...store.settings.keys()].filter((key) => key.startsWith("block u:"));
  const blocked = set.map((key) => Number(key.slice(8))).filter(isBlocked);
  const card = (kind) => ({ uid, text }) => {
    const line = (kind === "requests" && text) || (kind === "asked" ? t("contacts.waiting") : store.profile(uid).about) || "";
    const it = { key: `${uid}`, uid, kind, name: store.name(uid), line, online: store.presence.isOnline(uid), hue: store.profile(uid).hue };
    return { ...it, sig: JSON.stringify(it) };
  };
  const byName = (a, b) => a.name.localeCompare(b.name);
  return {
    requests: store.requests().map(card("requests")),
    friends: known.filter(({ mine, theirs }) => mine && theirs).map(card("friends")).sort(byName),
    asked: known.filter(({ mine, theirs }) => mine && !theirs).map(card("asked")).sort(byName),
    blocked: blocked.map((uid) => ({ uid })).map(card("blocked")).sort(byName),
  };
}

/** A person: who it is, what one most likely wants to do, and a menu for the rest. */
function fill(store, { uid, kind, name, line, online }, element, menu) {
  const focused = element.contains(document.activeElement) && document.activeElement.dataset.act;
  const button = (what, label, onclick) => h(`button.button${what}`, { type: "button", "data-act": "first", "aria-label": `${label}: ${name}`,
    onclick }, label);
  const first = {
    requests: () => button(".primary", t("contacts.accept"), () => store.befriend(uid, true)),
    friends: () => h("a.button", { href: `/c/u:${uid}`, "data-act": "first", "aria-label": `${t("about.write")}: ${name}` }, t("about.write")),
    asked: () => button("", t("contacts.take_back"), () => store.befriend(uid, false)),
    blocked: () => button("", t("contacts.unblock"), () => unblock(store, uid)),
  }[kind]();
  const rest = (event) => (kind === "requests" ? openMenu(event.currentTarget, [
    item(t("contacts.decline"), () => store.befriend(uid, false)),
    item(t("contacts.block_menu"), () => block(store, uid)),
  ]) : menu(event.currentTarget, `u:${uid}`));
  element.replaceChildren(...[
    disc(`u:${uid}`, name),
    h("div.heading", {}, h("a.title", { href: `/c/u:${uid}`, dir: "auto" }, name), line ? h("p.quiet", { dir: "auto" }, line) : null,
      online ? h("p.quiet.online", {}, t("presence.online")) : null),
    first,
    kind === "requests" || kind === "friends" ? h("button.tool", { type: "button", "data-act": "more", "aria-haspopup": "menu",
      title: t("members.more_about", { name }), onclick: rest }, icon("dots")) : null,
  ].filter(Boolean));
  if (focused) element.querySelector(`[data-act="${focused}"]`)?.focus();
}

const wishes = (store) => store.outbox.filter(({ call }) => call?.path.startsWith("/friends/"));
const uidOf = ({ call }) => Number(call.path.slice(9));

/** Wishes that the server has refused, with why. */
function failed(store) {
  const items = wishes(store).filter(({ state }) => state === "failed");
  return items.map((refusal) => h("li.trouble", {},
    `${t("list.of", { name: isolate(store.name(uidOf(refusal))), text: refused(refusal.code, refusal.reason) })} `,
    h("button.link", { type: "button", onclick: () => store.discard(refusal) }, t("contacts.dismiss"))));
}
