// The log: puts the elements of items (rows.js) into the document, so that what is being read stays where it is. Owns the place to which
// it is scrolled.

import { $, append, h, isSearching, keep, light } from "./dom.js";
import { fill, make } from "./rows.js";
import { t } from "./texts.js";

// Pixels from an edge of the window at which the next page is fetched.
const NEAR = 600;
// Pixels from the end that still count as being there.
const AT_END = 40;
// Pixels that a line, and a page, of a wheel stand for.
const WHEEL = [1, 16, 400];

export class Log {
  /** `acts`: what the buttons of a message do (rows.js); `scrolled()`: somebody has scrolled, or the size has changed. */
  constructor(acts, scrolled) {
    this.acts = acts;
    this.box = $("log");
    // Whether the end is followed: what comes there is scrolled to. And where that was.
    this.isFollowing = true;
    this.endAt = 0;
    // The newest line, until it has been laid out.
    this.added = null;
    this.box.addEventListener("scroll", scrolled, { passive: true });
    // The button lies over the log, and outside of it.
    $("jumps").addEventListener("wheel", ({ deltaY, deltaMode }) => this.box.scrollBy(0, deltaY * WHEEL[deltaMode]), { passive: true });
    this.resized = new ResizeObserver((changes) => {
      if (changes.some(({ target }) => target === this.added)) this.awaitLayout(null);
      if (this.isFollowing && !this.isEmpty) this.toEnd();
    });
    this.resized.observe(this.box);
  }

  /** Nothing of another conversation is left; a quiet line says that this one is on its way. */
  clear() {
    this.awaitLayout(null);
    Object.assign(this, { isEmpty: true, isFollowing: true });
    this.box.replaceChildren(h("div.line.loading", {}, h("span", {}, t("pane.loading"))));
    this.box.ariaBusy = "true";
  }

  /** Shows these items. Stays at the end, or goes there (`toEnd`); else what is being read stays where it is. */
  paint(items, toEnd) {
    const isAtEnd = toEnd || this.atEnd();
    const anchor = isAtEnd ? null : this.readRow();
    const offset = anchor && this.bottomOf(anchor);
    keep(this.box, items, make, this.put);
    Object.assign(this, { isEmpty: false });
    this.box.ariaBusy = null;
    if (anchor?.isConnected) this.box.scrollTop += this.bottomOf(anchor) - offset;
    else if (isAtEnd) this.toEnd();
  }

  /** Shows more items below; nothing else is different. */
  append(items) {
    const isAtEnd = this.atEnd();
    append(this.box, items, make, this.put);
    if (isAtEnd) this.awaitLayout(this.box.lastElementChild);
  }

  put = (item, element) => fill(item, element, this.acts);

  /** Goes to the end when the browser lays out `element`, which stands there: sooner would be a layout more. */
  awaitLayout(element) {
    if (this.added) this.resized.unobserve(this.added);
    this.added = element;
    if (element) this.resized.observe(element);
  }

  bottomOf(element) { return element.offsetTop + element.offsetHeight - this.box.scrollTop; }

  /** The elements of stored rows, in their order. */
  stored() { return [...this.box.querySelectorAll("[data-row]")].filter(({ dataset }) => dataset.row); }

  /** The first line in view that is a row; undefined: there is none. */
  readRow() { return [...this.box.querySelectorAll(".msg, .event")].find((each) => this.bottomOf(each) > 0); }

  /** The id of a row that is stored, of the first one in view; null: there is none. */
  get readId() { return this.place()?.id ?? null; }

  /** Where somebody reads: {id, offset}, the first stored row in view and the pixels from the edge to its end; null: nothing is shown. */
  place() {
    const row = this.stored().find((each) => this.bottomOf(each) > 0);
    return row ? { id: Number(row.dataset.row), offset: Math.round(this.bottomOf(row)) } : null;
  }

  /** The newest row whose end is in view; 0: there is none. */
  seenTo() {
    const { clientHeight } = this.box;
    return Number(this.stored().findLast((each) => this.bottomOf(each) <= clientHeight + 1)?.dataset.row ?? 0);
  }

  element(id) { return this.box.querySelector(`[data-row="${id}"]`); }

  /** Goes back to a place; where its row is gone, to the one that follows it. */
  goTo({ id, offset }) {
    const row = this.stored().find(({ dataset }) => Number(dataset.row) >= id);
    if (!row) return;
    this.isFollowing = false;
    this.box.scrollTop += this.bottomOf(row) - (Number(row.dataset.row) === id ? offset : row.offsetHeight);
  }

  /** Shows a row in the middle, and marks it; false: it is not here. */
  lead(id) {
    const row = this.element(id);
    if (!row) return false;
    this.isFollowing = false;
    row.scrollIntoView({ block: "center" });
    if (!isSearching()) row.querySelector(".more")?.focus({ preventScroll: true });
    light(row);
    return true;
  }

  toFresh() { this.box.querySelector(".fresh-line")?.scrollIntoView({ block: "center" }); }
  get hasFreshLine() { return Boolean(this.box.querySelector(".fresh-line")); }

  /** Pixels below what is in view. */
  below() { return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight; }
  isNearTop() { return this.box.scrollTop < NEAR; }
  isNearEnd() { return this.below() < NEAR; }

  toEnd() {
    this.box.scrollTop = this.box.scrollHeight;
    this.endAt = this.box.scrollTop;
    this.isFollowing = true;
  }

  /** Whether the end is in view: someone may have scrolled although the event that tells so is still to come. */
  atEnd() {
    if (this.below() > AT_END && this.box.scrollTop < this.endAt - AT_END) this.isFollowing = false;
    return this.isFollowing;
  }

  /** Somebody has scrolled: whether the end is followed now, where it is in the window (`atTail`). */
  settle(atTail) {
    // Rows that were added and not laid out stand below the end as it was.
    const awaits = this.added && this.box.scrollTop > this.endAt - AT_END;
    this.isFollowing = atTail && Boolean(awaits || this.below() < AT_END);
  }
}
