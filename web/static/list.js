// The list of conversations: real links, the one with the latest message on top.

import { $, disc, h, isolate, keep } from "./dom.js";
import { many } from "./store.js";
import { t, whenOf } from "./texts.js";

// Of so many people, the first ones, it is asked what colour they have chosen.
const MOST_PROFILES = 100;

export class List {
  constructor(store) {
    this.store = store;
    store.watch(() => this.render());
  }

  render() {
    const { store } = this;
    const items = store.sorted().map((id, at) => {
      const last = store.pending(id).at(-1) ?? store.conversations.get(id)?.last;
      const item = {
        key: id,
        title: store.title(id),
        when: last ? whenOf(last.sent_at) : "",
        label: "",
        unread: store.unread(id),
        mentions: store.mentions(id),
        muted: store.isMuted(id),
        open: id === store.open,
        pinned: Boolean(store.setting("pin", id)),
        hue: id.startsWith("u:") && at < MOST_PROFILES ? store.profile(Number(id.slice(2))).hue : undefined,
      };
      item.line = !last ? "" : store.line(last.kind ? last : { ...last, sender: store.self.uid }, id.startsWith("g:"));
      const draft = id !== store.open && store.drafts.get(id);
      const typing = store.presence.typingIn(id);
      if (typing) item.line = typing;
      else if (draft) Object.assign(item, { label: `${t("list.draft")} `, line: isolate(draft) });
      else if (last?.state === "failed") item.label = `${t("list.failed")} `;
      item.sig = JSON.stringify(item);
      return item;
    });
    keep($("list"), items, () => h("li", {}, h("a")), fill);
    // Only when another one is open: whoever scrolls the list is left alone.
    const current = store.open !== this.open && $("list").querySelector("[aria-current]");
    if (current) current.scrollIntoView({ block: "nearest" });
    if (current || !store.open) this.open = store.open;
    const isEmpty = items.length === 0;
    $("app").toggleAttribute("data-empty", isEmpty);
    $("list").hidden = $("choose").hidden = isEmpty;
    $("list-blank").hidden = $("start").hidden = !isEmpty;
  }
}

function fill({ key, title, when, label, line, unread, mentions, muted, pinned, open }, { firstChild: link }) {
  link.href = `/c/${key}`;
  link.className = `row${unread ? " fresh" : ""}${muted ? " muted" : ""}`;
  link.ariaCurrent = open ? "page" : null;
  link.replaceChildren(disc(key, title),
    h("span.title", { dir: "auto" }, title),
    h("span.when", {}, pinned ? h("i.icon.pin", { role: "img", "aria-label": t("list.pinned") }) : null,
      muted ? h("i.icon.silent", { role: "img", "aria-label": t("mute.muted") }) : null, when),
    h("span.last", {}, h("span.draft", {}, label), line),
    ...(unread ? [h("span.marks", {},
      mentions ? h("span.at", { role: "img", "aria-label": t("list.mentions", { count: mentions }) }, "@") : null,
      h("span.badge", { role: "img", "aria-label": t("list.unread", { count: many(unread) }) }, many(unread)))] : []));
}
