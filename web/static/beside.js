// The pages beside the conversations: moments and contacts. Their scripts are fetched when one is opened.

import { $, isSearching } from "./dom.js";
import { MOMENTS } from "./state.js";
import { many } from "./store.js";
import { t } from "./texts.js";

const PAGES = { moments: () => import("./moments.js"), contacts: () => import("./contacts.js") };

export class Beside {
  constructor(store, call) {
    Object.assign(this, { store, call });
    // The page that is open: {name, render, lead}.
    this.page = null;
    store.watch(() => {
      this.marks();
      this.page?.render();
    });
  }

  get isOpen() { return Boolean(this.page); }

  /** Shows the page of this name, and on it what has the id `at`; none: closes the one that is open. */
  async show(name, at) {
    $("page").hidden = !name;
    if (!name) this.page = null;
    if (!name) return;
    if (this.page?.name !== name) await this.open(name);
    if (at && this.page?.name === name) await this.page.lead?.(at);
  }

  async open(name) {
    const page = { name, render: () => {} };
    this.page = page;
    const { title, open } = await PAGES[name]();
    // Another one was opened meanwhile.
    if (this.page !== page) return;
    const { store, call } = this;
    $("page-title").textContent = title();
    Object.assign(page, open(store, { call, body: $("page-body"), limit: store.self.textCharacters }));
    page.render();
    if (!isSearching()) $("page-body").focus();
  }

  /** How much is new on each. */
  marks() {
    const counts = { moments: this.store.unread(MOMENTS), contacts: this.store.requests().length };
    for (const [name, count] of Object.entries(counts)) {
      const link = $(`to-${name}`);
      link.ariaCurrent = this.page?.name === name ? "page" : null;
      const badge = link.querySelector(".badge");
      badge.hidden = !count;
      badge.textContent = many(count);
      badge.ariaLabel = t("shell.new", { count });
    }
  }
}
