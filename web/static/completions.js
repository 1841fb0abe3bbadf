// The list under the caret while somebody writes: people after `@`, emoji after `:`. Arrows move, Enter takes, Escape closes.

import { before, folded, isWordy } from "./characters.js";
import { $, disc, h } from "./dom.js";
import { ALL } from "./mentions.js";
import { t } from "./texts.js";

// Lines of the list.
const MOST_SHOWN = 20;
// Characters after the mark that may be the beginning of a name.
const LONGEST = 40;

/** What the list offers after `@`: `people()` answers who may be mentioned, [{uid, name}]. */
export const mentioning = (people) => ({
  mark: "@",
  title: () => t("mention.title"),
  found: (count) => t("mention.found", { count }),
  find: (typed) => matching(people(), typed).map((one) => ({
    text: `@${one.name}`, shown: [disc(one.uid ? `u:${one.uid}` : "g:0", one.name), h("span.title", { dir: "auto" }, one.name),
      h("span.quiet", {}, one.about)],
  })),
});

function matching(people, typed) {
  if (!people.length) return [];
  const begins = ({ name }) => folded(name).startsWith(typed);
  const within = ({ name }) => !begins({ name }) && folded(name).split(" ").some((word) => word.startsWith(typed));
  const all = { name: ALL.name, about: t("mention.everybody") };
  const sorted = people.toSorted((a, b) => a.name.localeCompare(b.name));
  const found = [...sorted.filter(begins), ...sorted.filter(within)].slice(0, MOST_SHOWN - 1);
  return begins(all) || typed && all.about.startsWith(typed) ? [...found, all] : found;
}

export class Completions {
  /**
   * `sources`: what may be offered, each behind a `mark` of its own: `find(typed)` answers [{text, shown, taken}], of which `text` takes the
   * place of what was typed. `typed()` runs when that is done.
   */
  constructor(text, sources, typed) {
    Object.assign(this, { text, sources, typed, list: $("mention-list"), found: [], at: 0, from: -1, left: -1 });
    text.addEventListener("input", () => this.look());
    text.addEventListener("keyup", ({ key }) => { if (/^(Arrow(Left|Right)|Home|End)$/.test(key)) this.look(); });
    text.addEventListener("blur", () => this.close());
    // The focus stays in the text.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  get isOpen() { return this.found.length > 0; }

  /** Looks at the text between a mark and the caret, if that may be a name. */
  look() {
    const head = this.text.value.slice(0, this.text.selectionEnd);
    const was = this.isOpen;
    const marks = this.sources.map(({ mark }) => head.lastIndexOf(mark));
    if (!marks.includes(this.left)) this.left = -1;
    const [best] = this.sources.map((source, at) => ({ source, from: marks[at], found: this.offered(source, head, marks[at]) }))
      .filter(({ found }) => found.length).sort((a, b) => b.from - a.from);
    Object.assign(this, { found: [], at: 0 }, best && { from: best.from, found: best.found });
    if (best) this.list.ariaLabel = best.source.title();
    this.render();
    if (this.isOpen && !was) $("announce").textContent = best.source.found(this.found.length);
  }

  /** What a source offers for the text behind its mark. */
  offered(source, head, from) {
    const typed = folded(head.slice(from + source.mark.length));
    const may = from >= 0 && from !== this.left && !isWordy(before(head, from)) && typed.length <= LONGEST && !typed.includes("\n");
    return may ? source.find(typed) : [];
  }

  /** Whether the list has taken the key. */
  key({ key }) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (!this.isOpen) return false;
    if (step) {
      this.at = (this.at + step + this.found.length) % this.found.length;
      this.render();
    } else if (key === "Enter" || key === "Tab") this.take(this.found[this.at]);
    else if (key === "Escape") {
      this.left = this.from;
      this.close();
    } else return false;
    return true;
  }

  take({ text, taken }) {
    taken?.();
    this.text.setRangeText(`${text} `, this.from, this.text.selectionEnd, "end");
    this.close();
    this.typed();
  }

  close() {
    this.found = [];
    this.render();
  }

  render() {
    const { list, text, found } = this;
    list.hidden = !found.length;
    list.replaceChildren(...found.map((one, at) => h("li", {
      id: `mention-${at}`, role: "option", "aria-selected": `${at === this.at}`, onclick: () => this.take(one),
    }, ...one.shown)));
    this.isOpen ? text.setAttribute("aria-activedescendant", `mention-${this.at}`) : text.removeAttribute("aria-activedescendant");
    list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }
}
