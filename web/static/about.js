// The panel beside a conversation: the card of a person or a group with what one can do, then whom and what there is in it. Its address
// is that of the conversation with `#about`; `#about/u:7` is the card of somebody else, such as a member.

import { aboutMenu, isOther } from "./actions.js";
import { $, disc, h, isolate } from "./dom.js";
import { isIn, presenceOf } from "./header.js";
import { keepPart } from "./keep.js";
import { groupPart } from "./members.js";
import { pinned } from "./pins.js";
import { t } from "./texts.js";

/** Whether the panel stands beside the conversation, not over it (beside.css). */
export const hasRoom = () => matchMedia("(min-width: 1100px)").matches;

// Groups of which it is asked who is in them, to find those in common.
const MOST_ASKED = 30;

/**
 * `lead(hash)` and `leave()` of fragments.js; `reveal(row)` shows a message; `mute` opens its menu, `date()` the dialog that leads to a
 * day, `report(uid)` that for what is wrong with somebody. Answers {open, close}.
 */
export function aboutPanel(store, call, { lead, leave, reveal, mute, date, report }) {
  const panel = $("about");
  const group = groupPart(store, call, () => leave());
  const showKeep = keepPart(store);
  /** What is shown in the conversation is seen: where there is no room for both, the panel gives way. */
  const giveWay = () => { if (!hasRoom()) leave(); };
  const menu = aboutMenu(store, { mute, report, date: () => {
    giveWay();
    date();
  } });
  let id = null;
  let opener = null;
  const uid = () => (id?.startsWith("u:") ? Number(id.slice(2)) : 0);

  const card = () => {
    const title = store.title(id);
    const own = uid();
    const { about = "" } = own ? store.profile(own) : {};
    const { topic = "", members } = store.conversations.get(id) ?? {};
    $("about-title").textContent = own ? t("about.person") : t("about.group");
    $("about-name").textContent = title;
    $("about-disc").replaceWith(Object.assign(disc(id, title), { id: "about-disc" }));
    $("about-line").textContent = own ? about : topic;
    const isOnline = Boolean(own) && store.presence.isOnline(own);
    const count = isIn(store, id) && members ? t("pane.members", { count: members }) : "";
    $("about-state").textContent = own ? presenceOf(store, own) : count;
    $("about-state").classList.toggle("online", isOnline);
    $("about-write").hidden = !own;
    $("about-write").href = `/c/${id}`;
    $("invite").hidden = $("about-group").hidden = !isIn(store, id);
    $("about-more").title = t("members.more_about", { name: isolate(title) });
    $("about-more").hidden = id !== store.open && !isOther(store, id);
    $("about-back").hidden = id === store.open;
    showKeep(own && store.conversations.get(id)?.last && !store.isDeleted(own) ? id : null);
  };
  const row = (href, of, title) => h("li", {}, disc(of, title), h("a.title", { href, dir: "auto" }, title));
  const groupsInCommon = () => {
    const own = uid();
    const shared = own && own !== store.self.uid ? [...store.conversations.values()]
      .filter(({ id: each, left, people }) => each.startsWith("g:") && !left && people?.includes(own)) : [];
    $("about-groups").hidden = !shared.length;
    $("about-groups-list").replaceChildren(...shared.map(({ id: each }) => row(`/c/${each}`, each, store.title(each))));
  };
  const pins = () => {
    const rows = id === store.open ? pinned(store, id).toReversed() : [];
    $("about-pins").hidden = !rows.length;
    $("about-pins-list").replaceChildren(...rows.map((each) => h("li", {}, h("button.action", { type: "button", onclick: () => {
      giveWay();
      reveal(each);
    } }, h("span.two-lines", {}, store.line(each, id.startsWith("g:")))))));
  };
  let seen = "";
  const render = () => {
    if (!id) return;
    card();
    // Nobody's focus is taken for what is the same.
    const sees = JSON.stringify([id, [...store.conversations.values()].map(({ id: each, people, left }) => [each, people, left]), pinned(store, id)]);
    if (sees === seen) return;
    seen = sees;
    groupsInCommon();
    pins();
  };
  store.watch(render);

  /** Learns who is in the groups of which that is not known here. */
  const ask = () => {
    const unknown = [...store.conversations.values()].filter(({ id: each, left, people }) => each.startsWith("g:") && !left && !people);
    for (const { id: each } of unknown.slice(0, MOST_ASKED)) store.meet(each);
  };
  const open = (rest) => {
    const of = /^u:[1-9]\d*$/.test(rest) ? rest : store.open;
    if (!of || store.nobody.has(of)) return leave();
    if (!id) opener = document.activeElement;
    const isAnother = id !== of;
    [id, seen] = [of, isAnother ? "" : seen];
    panel.hidden = false;
    $("app").toggleAttribute("data-about", true);
    render();
    if (!isAnother) return;
    $("members-problem").textContent = "";
    $("about-body").scrollTop = 0;
    if (uid()) ask();
    else if (isIn(store, id)) group.show(id);
    $("about-body").focus();
  };
  const close = () => {
    const hadFocus = panel.contains(document.activeElement);
    panel.hidden = true;
    $("app").toggleAttribute("data-about", false);
    id = null;
    if (hadFocus) (opener?.checkVisibility?.() ? opener : $("open-about")).focus();
  };

  $("about-close").addEventListener("click", leave);
  $("about-back").addEventListener("click", () => (history.state?.steps ? history.back() : lead("#about", true)));
  $("about-more").addEventListener("click", () => menu($("about-more"), id));
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    leave();
  });
  // A mouse may press the whole head of the conversation, and whoever is named in it; keys have the button and the list of members.
  $("open").addEventListener("click", ({ target }) => {
    const named = target.closest("[data-person]")?.dataset.person;
    if (named && getSelection().isCollapsed) lead(`u:${named}` === store.open ? "#about" : `#about/u:${named}`);
    else if (target.closest(".heading, #pane-disc") && !$("open-about").hidden) lead("#about");
  });
  return { open, close };
}
