// A search field with a list of what was found: arrows move, Enter takes. For people and conversations.

import { folded } from "./characters.js";
import { disc, dress, h } from "./dom.js";
import { t } from "./texts.js";

// Milliseconds after the last key, before the server is asked.
const SETTLE_MS = 150;

export class Picker {
  /**
   * `find(text, show)` answers [{id, title}], and may `show` some of them at once; `take(choice)` gets the one that
   * was chosen; `note(text)` says why there is nothing; `none()`: Enter where nothing was found; `first`: the one that is marked by itself,
   * -1: none.
   */
  constructor(input, list, { find, take, note = () => {}, none = () => {}, first = 0 }) {
    Object.assign(this, { input, list, find, take, note, none, first, found: [], at: first, turn: 0 });
    input.addEventListener("input", () => {
      // Choices that no longer fit are gone at once: Enter takes a shown one.
      const text = folded(input.value.trim());
      this.show(this.found.filter(({ title }) => folded(title).includes(text)));
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), SETTLE_MS);
    });
    input.addEventListener("keydown", (event) => this.key(event));
  }

  reset() {
    this.input.value = "";
    this.show([]);
    return this.ask();
  }

  ask() {
    clearTimeout(this.timer);
    this.timer = null;
    this.asking = this.search(++this.turn);
    return this.asking;
  }

  /** Resolves when what is typed has been searched for, so that no late note hides another one. */
  asked() {
    return this.timer ? this.ask() : this.asking;
  }

  async search(turn) {
    const text = this.input.value.trim();
    const show = (found, note = "") => {
      if (turn !== this.turn) return;
      this.note(note);
      this.show(found);
    };
    try {
      const found = await this.find(text, show);
      show(found, !text || found.length ? "" : [...text].length < 2 ? t("people.type_more") : t("people.none"));
    } catch (refusal) {
      if (turn === this.turn) this.note(refusal.message);
    }
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      // Upwards from none, the last one.
      this.at = (Math.max(this.at, step < 0 ? 0 : -1) + step + this.found.length) % this.found.length;
      this.render();
    } else if (event.key === "Enter" && !event.isComposing) this.choose();
    else return;
    event.preventDefault();
  }

  /** Takes the marked one; right after typing, the one that is marked when the text has been searched for. */
  async choose(choice) {
    if (!choice && !this.found.length) await this.asked();
    choice ??= this.found[this.at];
    if (choice) this.take(choice);
    else if (!this.found.length) this.none();
  }

  /** A mark that was moved stays on the same one. */
  show(found) {
    const marked = this.at !== this.first && this.found[this.at]?.id;
    this.found = found;
    this.at = Math.max(this.first, found.findIndex(({ id }) => id === marked));
    this.render();
  }

  render() {
    const { list, input, found } = this;
    list.replaceChildren(...found.map((choice, at) => h("li", {
      id: `${list.id}-${at}`, role: "option", "aria-selected": `${at === this.at}`,
      onclick: () => this.choose(choice),
    }, disc(choice.id, choice.title), h("span.title", { dir: "auto" }, choice.title))));
    input.ariaExpanded = `${found.length > 0}`;
    input.setAttribute("aria-activedescendant", found[this.at] ? `${list.id}-${this.at}` : "");
    list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }
}

/** People with `text` in their names, as choices. */
export async function people(call, text) {
  if (!text) return [];
  const found = await call("GET", `/users?name=${encodeURIComponent(text)}`);
  return found.map(({ uid, name, hue, picture }) => {
    const id = `u:${uid}`;
    dress(id, hue, picture);
    return { id, title: name };
  });
}
