// The list of conversations: real links, the one with the latest message on top.

import { $, disc, h, keep, unseen, whenOf } from "./dom.js";

export class List {
  constructor(store) {
    this.store = store;
    store.watch(() => this.render());
  }

  render() {
    const { store } = this;
    const items = store.sorted().map((id) => {
      const last = store.pending(id).at(-1) ?? store.conversations.get(id)?.last;
      const item = {
        key: id,
        title: store.title(id),
        when: last ? whenOf(last.sent_at) : "",
        draft: id === store.open ? undefined : store.drafts.get(id),
        unread: store.unread(id),
        open: id === store.open,
      };
      item.line = !last ? "" : store.line(last.kind ? last : { ...last, sender: store.self.uid }, id.startsWith("g:"));
      item.sig = JSON.stringify(item);
      return item;
    });
    keep($("list"), items, () => h("li"), fill);
    $("list-blank").hidden = items.length > 0;
    $("list").hidden = items.length === 0;
    const total = store.unreadTotal();
    const name = store.open ? `${store.title(store.open)} · Tidemark` : "Tidemark";
    document.title = total ? `(${total}) ${name}` : name;
  }
}

function fill({ key, title, when, draft, line, unread, open }, element) {
  element.replaceChildren(h(`a.row${unread ? ".fresh" : ""}`, { href: `/c/${key}`, "aria-current": open && "page" },
    disc(key, title),
    h("span.title", {}, title),
    h("span.when", {}, when),
    h("span.last", {}, ...(draft ? [h("span.draft", {}, "Draft: "), draft] : [line])),
    unread ? h("span.badge", {}, unread > 999 ? "999+" : String(unread), unseen(" unread")) : h("span")));
}
