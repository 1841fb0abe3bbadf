// The list of conversations: real links, the one with the latest message on top. The archive stands at its end, and opens there.

import { $, disc, h, icon, isolate, keep } from "./dom.js";
import { stateIcon } from "./rows.js";
import { many } from "./store.js";
import { t, whenOf } from "./texts.js";

// Of so many people, the first ones, it is asked what colour they have chosen.
const MOST_PROFILES = 100;

export class List {
  /** `menu(id, opener)` opens the menu of a conversation beside an element of its row. */
  constructor(store, menu) {
    Object.assign(this, { store, menu, shown: [], isUnfolded: false, onlyFresh: false });
    store.watch(() => this.render());
    $("list").addEventListener("contextmenu", (event) => {
      const { key, firstChild } = event.target.closest("li") ?? {};
      if (!firstChild?.matches("a")) return;
      event.preventDefault();
      menu(key, firstChild);
    });
    $("actions").addEventListener("toggle", ({ newState }) => {
      if (newState === "closed") for (const more of $("list").querySelectorAll(".row-more[aria-expanded]")) more.ariaExpanded = null;
    });
    $("only-unread").addEventListener("click", () => {
      this.onlyFresh = !this.onlyFresh;
      this.render();
    });
  }

  render() {
    const { store, onlyFresh } = this;
    const all = store.sorted();
    const archived = store.archived();
    // What one reads does not go from under the hand.
    const isWanted = (id) => !onlyFresh || store.isFresh(id) || id === store.open;
    const isUnfolded = this.isUnfolded && !onlyFresh;
    const put = archived.filter((id) => isUnfolded || id === store.open);
    this.shown = [...all.filter(isWanted), ...put];
    const items = this.shown.map((id, at) => this.row(id, at));
    if (archived.length && !onlyFresh) items.splice(-put.length || items.length, 0, this.archive(archived));
    keep($("list"), items, () => h("li", {}), (item, element) => item.fill(item, element));
    // Only when another one is open: whoever scrolls the list is left alone.
    const current = store.open !== this.open && $("list").querySelector("[aria-current]");
    if (current) current.scrollIntoView({ block: "nearest" });
    if (current || !store.open) this.open = store.open;
    const isBare = !all.length && !archived.length;
    // Before the first answer of the server nobody knows.
    const isEmpty = isBare && store.isSynced;
    $("only-unread").ariaPressed = String(onlyFresh);
    $("app").toggleAttribute("data-empty", isEmpty);
    $("list").toggleAttribute("data-loading", isBare && !isEmpty);
    $("list").hidden = $("choose").hidden = isEmpty;
    $("only-unread").hidden = isBare;
    $("list-blank").hidden = $("start").hidden = !isEmpty;
    $("list-none").hidden = isBare || items.length > 0;
  }

  /** The line of a conversation. */
  row(id, at) {
    const { store } = this;
    const last = store.pending(id).at(-1) ?? store.conversations.get(id)?.last;
    const item = {
      key: id,
      title: store.title(id),
      when: last ? whenOf(last.sent_at) : "",
      label: "",
      unread: store.unread(id),
      marked: store.isMarked(id),
      mentions: store.mentions(id),
      muted: store.isMuted(id),
      open: id === store.open,
      pinned: Boolean(store.setting("pin", id)),
      hue: id.startsWith("u:") && at < MOST_PROFILES ? store.profile(Number(id.slice(2))).hue : undefined,
    };
    item.state = last ? stateOf(store, id, last) : "";
    item.line = !last ? "" : store.line(last.kind ? last : { ...last, sender: store.self.uid }, id.startsWith("g:"));
    const draft = id !== store.open && store.drafts.get(id);
    const typing = store.presence.typingIn(id);
    if (typing) item.line = typing;
    else if (draft) Object.assign(item, { label: `${t("list.draft")} `, line: isolate(draft), state: "" });
    else if (last?.state === "failed") item.label = `${t("list.failed")} `;
    return { ...item, sig: JSON.stringify(item), fill: (item, element) => this.fill(item, element) };
  }

  /** The line that opens and folds the archive. */
  archive(ids) {
    const unread = ids.filter((id) => this.store.isFresh(id)).length;
    const item = { key: "archive", count: ids.length, unread, isUnfolded: this.isUnfolded };
    return { ...item, sig: JSON.stringify(item), fill: (item, element) => this.fillArchive(item, element) };
  }

  fill(item, element) {
    const { key, title, when, label, line, state, unread, marked, mentions, muted, pinned, open } = item;
    if (!element.firstChild) {
      const open = ({ currentTarget }) => {
        // It is seen as long as its menu is, and can have the focus again.
        currentTarget.ariaExpanded = "true";
        this.menu(key, currentTarget);
      };
      element.append(h("a"), h("button.row-more", { type: "button", "aria-haspopup": "menu", onclick: open }, icon("dots")));
    }
    const [link, more] = element.children;
    more.ariaLabel = t("members.more_about", { name: title });
    link.href = `/c/${key}`;
    link.className = `row${unread || marked ? " fresh" : ""}${muted ? " muted" : ""}`;
    link.ariaCurrent = open ? "page" : null;
    link.replaceChildren(disc(key, title),
      h("span.title", { dir: "auto" }, title),
      h("span.when", {}, pinned ? h("i.icon.pin", { role: "img", "aria-label": t("list.pinned") }) : null,
        muted ? h("i.icon.silent", { role: "img", "aria-label": t("mute.muted") }) : null,
        state ? stateIcon(state) : null, when),
      h("span.last", {}, h("span.draft", {}, label), line),
      ...(unread || marked ? [h("span.marks", {},
        mentions ? h("span.at", { role: "img", "aria-label": t("list.mentions", { count: mentions }) }, "@") : null,
        unread ? h("span.badge", { role: "img", "aria-label": t("list.unread", { count: many(unread) }) }, many(unread))
          : h("span.badge.dot", { role: "img", "aria-label": t("list.marked") }))] : []));
  }

  fillArchive({ count, unread, isUnfolded }, element) {
    const line = element.firstChild ?? element.appendChild(h("button.archive", { type: "button", onclick: () => {
      this.isUnfolded = !this.isUnfolded;
      this.render();
    } }));
    line.ariaExpanded = String(isUnfolded);
    line.replaceChildren(h("span.title", {}, t("list.archived", { count })),
      ...(unread ? [h("span.badge", { role: "img", "aria-label": t("list.unread", { count: many(unread) }) }, many(unread))] : []));
  }
}

/** How far the newest message has come, if it is an own one; what failed is said in words. */
function stateOf(store, id, last) {
  if (last.kind && (last.kind !== "message" || last.sender !== store.self.uid) || last.state === "failed") return "";
  if (last.state) return last.state;
  const row = { ...last, conversation: id };
  return store.readers([row]).get(row.client_id) ? "read" : store.progress(row);
}
