// The page of contacts: friends, requests, whom one has blocked, and one's own link.

import { block as blockPerson, unblock as unblockPerson } from "./actions.js";
import { ask } from "./ask.js";
import { disc, h, isolate } from "./dom.js";
import { signUpInvites } from "./sign_up_invites.js";
import { people, Picker } from "./picker.js";
import { refused, t } from "./texts.js";

export const title = () => t("contacts.title");

/** Fills `body`. Answers {render}, which shows what is there now. */
export function open(store, { call, body }) {
  const note = h("p.problem", { role: "alert" });
  const input = h("input", { id: "contacts-find", type: "text", dir: "auto", autocomplete: "off", spellcheck: "false", role: "combobox",
    "aria-expanded": "false", "aria-controls": "contacts-found", "aria-autocomplete": "list", placeholder: t("contacts.find") });
  const found = h("ul.picks", { id: "contacts-found", role: "listbox", "aria-label": t("contacts.found") });
  const lists = h("div", {});
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
  body.replaceChildren(
    h("div.field", {}, h("label", { for: "contacts-find" }, t("contacts.add")), input, found, note),
    lists,
    h("div.field", {}, h("label", { for: "contacts-link" }, t("contacts.link")), h("div.together", {}, link, copy), copied, code),
    signUpInvites(call, store.self.uid),
    h("p.quiet", {}, t("contacts.privacy")));
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
  const render = () => {
    const focused = document.activeElement?.dataset?.key;
    lists.replaceChildren(...sections(store));
    if (focused && !body.contains(document.activeElement)) (lists.querySelector(`[data-key="${focused}"]`) ?? input).focus();
  };
  return { render };
}

function sections(store) {
  const uids = [...new Set([...store.friends.keys(), ...asked(store)])].filter((uid) => !store.isDeleted(uid));
  const known = uids.map((uid) => store.friend(uid));
  const blocked = [...store.settings.keys()].filter((key) => key.startsWith("block u:")).map((key) => Number(key.slice(8)))
    .filter((uid) => store.setting("block", `u:${uid}`));
  const isBlocked = (uid) => blocked.includes(uid);
  const is = {
    requests: store.requests(),
    friends: known.filter(({ mine, theirs }) => mine && theirs),
    asked: known.filter(({ mine, theirs }) => mine && !theirs),
  };
  const button = (uid, act, label, onclick) => h("button.link", { type: "button", "data-key": `${act}-${uid}`,
    "aria-label": `${label}: ${store.name(uid)}`, onclick }, label);
  const unblock = (uid) => button(uid, "unblock", t("contacts.unblock"), () => unblockPerson(store, uid));
  const block = (uid) => button(uid, "block", t("contacts.block"), () => blockPerson(store, uid));
  const wish = (uid, wanted, label) => button(uid, wanted ? "want" : "end", label, () => store.befriend(uid, wanted));
  const remove = (uid) => button(uid, "remove", t("contacts.remove"), async () => {
    const name = isolate(store.name(uid));
    const yes = await ask({ title: t("contacts.remove_title", { name }), text: t("contacts.remove_about"), yes: t("contacts.remove"), no: t("cancel") });
    if (yes) await store.befriend(uid, false);
  });
  const line = (uid, text, ...buttons) => h("li", {}, disc(`u:${uid}`, store.name(uid)),
    h("div.heading", {}, h("a.title", { href: `/c/u:${uid}`, dir: "auto" }, store.name(uid)), text ? h("p.quiet", { dir: "auto" }, text) : null,
      store.presence.isOnline(uid) ? h("p.quiet.online", {}, t("presence.online")) : null),
    ...buttons);
  const section = (heading, lines) => lines.length ? h("section", {}, h("h3", {}, heading), h("ul.contacts", { role: "list" }, ...lines)) : null;
  const byName = (a, b) => store.name(a.uid).localeCompare(store.name(b.uid));
  const all = [
    section(t("contacts.requests"), is.requests.map(({ uid, text }) =>
      line(uid, text || store.profile(uid).about, wish(uid, true, t("contacts.accept")), wish(uid, false, t("contacts.decline")), block(uid)))),
    section(t("contacts.friends"), is.friends.toSorted(byName).map(({ uid }) =>
      line(uid, isBlocked(uid) ? t("contacts.is_blocked") : store.profile(uid).about, remove(uid), isBlocked(uid) ? unblock(uid) : block(uid)))),
    section(t("contacts.asked"), is.asked.map(({ uid }) => line(uid, t("contacts.waiting"), wish(uid, false, t("contacts.take_back"))))),
    section(t("contacts.blocked"), blocked.map((uid) => line(uid, "", unblock(uid)))),
    failed(store),
  ].filter(Boolean);
  return all.length ? all : [h("p.quiet", {}, t("contacts.none"))];
}

const wishes = (store) => store.outbox.filter(({ call }) => call?.path.startsWith("/friends/"));
const asked = (store) => wishes(store).map(({ call }) => Number(call.path.slice(9)));

/** Wishes that the server has refused, with why. */
function failed(store) {
  const items = wishes(store).filter(({ state }) => state === "failed");
  return items.length ? h("ul", { role: "list" }, ...items.map((item) => h("li.trouble", {},
    `${t("list.of", { name: isolate(store.name(Number(item.call.path.slice(9)))), text: refused(item.code, item.reason) })} `,
    h("button.link", { type: "button", onclick: () => store.discard(item) }, t("contacts.dismiss"))))) : null;
}
