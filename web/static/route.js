// Where one is: opens what the address names, and makes the steps of the browser's history between addresses.

import { hasRoom } from "./about.js";
import { isOwn, named, pathOf } from "./address.js";
import { $, isSearching } from "./dom.js";
import { MOMENTS } from "./state.js";
import { uuid } from "./store.js";
import { isTouch } from "./touch.js";

export class Route {
  /** `fragment`: what stands after `#` (fragments.js). */
  constructor({ store, list, pane, composer, beside, fragment }) {
    Object.assign(this, { store, list, pane, composer, beside, fragment });
    // The visit that was followed last: entries of the browser's history that differ in what is open beside the page have the same key.
    this.followed = null;
    addEventListener("popstate", () => this.back());
    document.addEventListener("click", (event) => this.click(event));
    for (const back of document.querySelectorAll(".back")) {
      back.addEventListener("click", (event) => {
        event.preventDefault();
        history.state?.fromList ? history.back() : this.go(null);
      });
    }
    // Past the panel, if that was opened meanwhile.
    $("jump-back").addEventListener("click", () => history.go(-1 - (history.state.steps ?? 0)));
  }

  /** Opens what the address names when the page is loaded. */
  begin() {
    if (!history.state?.key) history.replaceState({ ...history.state, key: uuid() }, "");
    this.follow();
  }

  /** Opens what the address names. `isBack`: the browser has gone there by itself. */
  follow(isBack = false) {
    const { store, pane } = this;
    // A menu is that of the conversation over which it was opened.
    document.querySelector(":popover-open")?.hidePopover();
    const { id, at, page } = named(location.pathname);
    // Back at an address, one is where one was.
    const { place, isLed, key, moment } = history.state ?? {};
    // Words that are marked are those of a search here.
    if (id !== store.open && !location.hash.startsWith("#search")) store.seek(null);
    store.open = id;
    $("app").dataset.view = id || page ? "conversation" : "list";
    this.beside.show(page, moment);
    $("open").hidden = !id;
    $("pane-blank").hidden = Boolean(id || page);
    $("skip").hidden = !id;
    store.show();
    if (id) store.unmark(id);
    this.composer.show(id);
    if (id !== pane.id || place) pane.show(id, place ? { place } : at);
    else if (at) pane.lead(at);
    else if (isBack) pane.toNewest();
    $("jump-back").hidden = !isLed;
    if (id && !isSearching() && !isTouch() && matchMedia("(min-width: 720px)").matches) $("text").focus();
    this.followed = key;
    this.fragment.follow();
  }

  /** The browser has gone to another entry of its history. */
  back() {
    // What somebody writes after `#` is an entry without a key.
    if (!history.state) history.replaceState({ key: this.followed }, "");
    if (history.state.key !== this.followed) return this.follow(true);
    // The conversation is left alone where something only opens or closes beside it.
    this.fragment.follow();
    if (this.pane.view?.isOpen) this.rested(this.pane.place());
  }

  click(event) {
    const link = event.target.closest?.("a[href]");
    if (event.defaultPrevented || !link || !isOwn(link) || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    this.visit(link.pathname);
  }

  /** Opens an address of this page. `isLed`: to another message of the conversation that is open; `moment`: the id of the one to show. */
  visit(path, { isLed = false, moment } = {}) {
    this.fragment.whenLeft(() => {
      // Where there is room for both, the panel stays beside the message.
      const to = isLed && hasRoom() ? path + location.hash : path;
      if (to !== location.pathname + location.hash) {
        this.rested(this.pane.place());
        history.pushState({ fromList: !this.store.open && !this.beside.isOpen, isLed, moment, key: uuid() }, "", to);
      } else history.replaceState({ ...history.state, place: null, moment }, "");
      this.follow();
    });
  }

  /** Opens a conversation. `inPlace`: not as a step of its own for the browser's back button. */
  go(id, inPlace = false) {
    const path = pathOf(id);
    if (!inPlace) return this.visit(path);
    this.fragment.whenLeft(() => {
      history.replaceState({ fromList: history.state?.fromList, key: uuid() }, "", path);
      this.follow();
    });
  }

  /** Opens the conversation that stands `step` places further down in the list. */
  move(step) {
    const ids = this.list.shown;
    const at = ids.indexOf(this.store.open);
    const next = ids[at < 0 ? 0 : at + step];
    if (next) this.go(next, at >= 0);
  }

  /** Shows a message: {message_id} or {sender, client_id}. The browser's back button leads back to where one was. */
  lead(id, of) {
    if (id === MOMENTS) this.visit("/moments", { moment: of.message_id });
    else this.visit(pathOf(id, of), { isLed: id === this.store.open });
  }

  /** Shows what a search has found, and keeps that open. The first one alone is a step for the browser's back button. */
  found({ conversation, message_id }) {
    this.fragment.whenLeft(() => {
      const { isFound, steps } = history.state ?? {};
      const isFirst = !isFound || Boolean(steps);
      if (isFirst) this.rested(this.pane.place());
      const isMoment = conversation === MOMENTS;
      const path = isMoment ? "/moments" : pathOf(conversation, { message_id });
      const state = { isFound: true, isLed: !isMoment, moment: isMoment ? message_id : undefined, key: uuid() };
      isFirst ? history.pushState(state, "", path + location.hash) : history.replaceState(state, "", path + location.hash);
      this.follow();
    });
  }

  /** Somebody rests there in the open conversation (log.js); null: at its end. The entry of the browser's history keeps that. */
  rested(place) {
    this.fragment.whenLeft(() => {
      const { id } = named(location.pathname);
      if (!id || id !== this.pane.id) return;
      const { isLed } = history.state ?? {};
      const path = place ? location.pathname : pathOf(id);
      history.replaceState({ ...history.state, place, isLed: Boolean(isLed && place) }, "", path + location.hash);
      $("jump-back").hidden = !history.state.isLed;
    });
  }
}
