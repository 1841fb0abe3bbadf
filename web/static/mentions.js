// Mentions: `@name` and `@all` in the messages of groups. Where they stand in a text, and the list from which one is chosen while
// writing. Names are read from the text when it is sent, so a draft from another device mentions, too.

import { $, disc, h } from "./dom.js";
import { t } from "./texts.js";

// People whom one message names; the server takes no more.
const MOST = 50;
// Lines of the list.
const MOST_SHOWN = 20;
// Characters after `@` that may be the beginning of a name.
const LONGEST = 40;
const ALL = "all";
// Characters that a name does not end before, and `@` does not stand behind: an address of mail is no mention.
const WORD = /[\p{Script=Latin}\p{N}_]/u;

/** The places in a text where one of `people` ([{name}]) is named: [{at, end, person}]. The longest name counts. */
function places(text, people) {
  const found = [];
  const longestFirst = people.toSorted((a, b) => b.name.length - a.name.length);
  for (let at = text.indexOf("@"); at >= 0; at = text.indexOf("@", at + 1)) {
    if (WORD.test(text[at - 1] ?? " ")) continue;
    const person = longestFirst.find(({ name }) => isAt(text, at + 1, name));
    if (person) found.push({ at, end: at + 1 + person.name.length, person });
  }
  return found;
}

function isAt(text, at, name) {
  const end = at + name.length;
  const joins = WORD.test(name.at(-1)) && WORD.test(text[end] ?? " ");
  return !joins && text.slice(at, end).toLowerCase() === name.toLowerCase();
}

/** The people that a text names, as a message says it: {users, all}; null: nobody. `people`: [{uid, name}]. */
export function mentionsIn(text, people) {
  const named = places(text, [...people, { name: ALL }]).map(({ person }) => person);
  const users = [...new Set(named.map(({ uid }) => uid).filter(Boolean))].slice(0, MOST);
  const all = named.some(({ uid }) => !uid);
  return users.length || all ? { users, ...(all && { all }) } : null;
}

/** The tree of a text (markdown.js) with nodes {kind: "mention", text, me} where one of `named` ([{name, me}]) stands. */
export function withMentions(nodes, named) {
  if (!named.length) return nodes;
  return nodes.flatMap((node) => {
    if (typeof node === "string") return split(node, named);
    if (node.kind === "link" || !node.children) return [node];
    const isList = node.kind === "ul" || node.kind === "ol";
    const within = isList ? node.children.map((item) => withMentions(item, named)) : withMentions(node.children, named);
    return [{ ...node, children: within }];
  });
}

function split(text, named) {
  const parts = [];
  let from = 0;
  for (const { at, end, person } of places(text, named)) {
    parts.push(text.slice(from, at), { kind: "mention", text: text.slice(at, end), me: person.me });
    from = end;
  }
  return [...parts, text.slice(from)].filter(Boolean);
}

/** The people that a row names, for `withMentions`. */
export function named(store, { body }) {
  const { users = [], all = false } = body?.mentions ?? {};
  const people = users.map((uid) => ({ name: store.name(uid), me: uid === store.self.uid }));
  return all ? [...people, { name: ALL, me: true }] : people;
}

/** The list under the caret: arrows move, Enter takes, Escape closes. */
export class MentionList {
  /** `people()`: who may be mentioned, [{uid, name}]; `typed()` runs when a name was put into the text. */
  constructor(text, people, typed) {
    Object.assign(this, { text, people, typed, list: $("mention-list"), found: [], at: 0, from: -1, left: -1 });
    text.addEventListener("input", () => this.look());
    text.addEventListener("keyup", ({ key }) => { if (/^(Arrow(Left|Right)|Home|End)$/.test(key)) this.look(); });
    text.addEventListener("blur", () => this.close());
    // The focus stays in the text.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  get isOpen() { return this.found.length > 0; }

  /** Looks at the text between an `@` and the caret, if that may be a name. */
  look() {
    const head = this.text.value.slice(0, this.text.selectionEnd);
    this.from = head.lastIndexOf("@");
    const typed = head.slice(this.from + 1).toLowerCase();
    const may = this.from >= 0 && this.from !== this.left && !WORD.test(head[this.from - 1] ?? " ")
      && typed.length <= LONGEST && !typed.includes("\n");
    if (this.from !== this.left) this.left = -1;
    const was = this.isOpen;
    this.found = may ? this.matching(typed) : [];
    this.at = 0;
    this.render();
    if (this.isOpen && !was) $("announce").textContent = t("mention.found", { count: this.found.length });
  }

  matching(typed) {
    const people = this.people();
    if (!people.length) return [];
    const begins = ({ name }) => name.toLowerCase().startsWith(typed);
    const within = ({ name }) => !begins({ name }) && name.toLowerCase().split(" ").some((word) => word.startsWith(typed));
    const all = { name: ALL, about: t("mention.everybody") };
    const sorted = people.toSorted((a, b) => a.name.localeCompare(b.name));
    const found = [...sorted.filter(begins), ...sorted.filter(within)].slice(0, MOST_SHOWN - 1);
    return begins(all) || typed && all.about.startsWith(typed) ? [...found, all] : found;
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

  take({ name }) {
    this.text.setRangeText(`@${name} `, this.from, this.text.selectionEnd, "end");
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
    }, disc(one.uid ? `u:${one.uid}` : "g:0", one.name), h("span.title", { dir: "auto" }, one.name), h("span.quiet", {}, one.about))));
    this.isOpen ? text.setAttribute("aria-activedescendant", `mention-${this.at}`) : text.removeAttribute("aria-activedescendant");
    list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }
}
