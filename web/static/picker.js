// A search field with a list of what was found: arrows move, Enter takes. For people and conversations.

import { disc, h } from "./dom.js";

// Milliseconds after the last key, before the server is asked.
const SETTLE_MS = 150;

export class Picker {
  /** `find(text)` answers [{id, title}], at once or later; `take(choice)` gets the one that was chosen. */
  constructor(input, list, { find, take, note = () => {} }) {
    Object.assign(this, { input, list, find, take, note, found: [], at: 0, asked: 0 });
    input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), SETTLE_MS);
    });
    input.addEventListener("keydown", (event) => this.key(event));
  }

  reset() {
    this.input.value = "";
    return this.ask();
  }

  async ask() {
    clearTimeout(this.timer);
    this.timer = null;
    const turn = ++this.asked;
    const text = this.input.value.trim();
    try {
      const found = await this.find(text);
      if (turn !== this.asked) return;
      this.found = found;
      this.note(text && !found.length ? "Nobody found." : "");
    } catch (refusal) {
      this.note(refusal.message);
    }
    this.at = 0;
    this.render();
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.found.length) {
      this.at = (this.at + step + this.found.length) % this.found.length;
      this.render();
    } else if (event.key === "Enter" && !event.isComposing) this.choose();
    else return;
    event.preventDefault();
  }

  /** Takes the marked one; right after typing, the first that the text leads to. */
  async choose(choice) {
    if (this.timer) await this.ask();
    choice ??= this.found[this.at];
    if (choice) this.take(choice);
  }

  render() {
    const { list, input, found } = this;
    list.replaceChildren(...found.map((choice, at) => h("li", {
      id: `${list.id}-${at}`, role: "option", "aria-selected": `${at === this.at}`,
      onclick: () => this.choose(choice),
    }, disc(choice.id, choice.title), h("span.title", { dir: "auto" }, choice.title))));
    input.ariaExpanded = `${found.length > 0}`;
    input.setAttribute("aria-activedescendant", found.length ? `${list.id}-${this.at}` : "");
    list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }
}

/** People whose names begin with `text`, as choices. */
export async function people(call, text) {
  if (!text) return [];
  const found = await call("GET", `/users?name=${encodeURIComponent(text)}`);
  return found.map(({ uid, name }) => ({ id: `u:${uid}`, title: name }));
}
