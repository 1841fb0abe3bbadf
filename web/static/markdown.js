// Light Markdown: the text of a message as a tree, and the tree as elements or as plain words. A text is read once, here, whatever
// becomes of it. It becomes text nodes and nothing else; no address but http, https and mailto becomes a link. Takes time in
// proportion to the text, whatever a stranger wrote.

import { addressAt, nameSite, namedAt } from "./addresses.js";
import { after, before, cut, isWordy } from "./characters.js";
import { h } from "./dom.js";
import { filesOf, lineOfFiles } from "./files.js";
import { byName, mentionAt, named } from "./mentions.js";

// Quotes and lists within each other.
const MOST_DEPTH = 4;
// Marks that wait for their end at once; more are text.
const MOST_OPEN = 16;
const KINDS = { "*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "s" };

const FENCE = /^\s{0,3}(`{3,})([^`]*)$/;
// The name of a language behind a fence; other words there are the first line of the code.
const LANGUAGE = /^[\w+#.-]{1,20}$/;
// What begins with `>` and goes on with a sign or a number is no quote: ">_<", ">5 kg".
const QUOTE = /^ ?>(?=[\s>\p{L}]|$) ?/u;
const ITEM = /^ ?([-*]|(?:0|[1-9]\d{0,2})[.)])[ \t]+(\S[^]*)$/;
const WITHIN_ITEM = /^(?: {2,4}|\t)(?=\s*\S)/;
const ESCAPED = /[!-/:-@[-`{-~]/;
const LETTER = /[\p{L}\p{N}]/u;
const NOBODY = byName([]);
// Characters of a line, and the code units that are read for it: marks and addresses take some.
const MOST_LINE = 200;
const MOST_READ = 2_000;

/**
 * The tree of a text: strings, and nodes {kind, children} with kind strong, em, s, quote, ul or ol (whose children are the items, each
 * a list of nodes; `values` of an ol: their numbers), {kind: "link", href, children}, {kind: "code", text}, {kind: "pre", text, language},
 * {kind: "mention", text, person}. `people`: those whom it may name, [{name}].
 */
export const parse = (text, people = []) => blocks(String(text).split(/\r\n?|\n/), 0, byName(people));

function blocks(lines, depth, people) {
  const nodes = [];
  let words = [];
  const flush = (isEnd) => {
    // A block stands on lines of its own; empty ones beside it add nothing.
    if (nodes.length) while (words.length && !words[0].trim()) words.shift();
    if (!isEnd) while (words.length && !words.at(-1).trim()) words.pop();
    if (words.length) nodes.push(...inline(words.join("\n"), people));
    words = [];
  };
  for (let at = 0; at < lines.length;) {
    const fence = FENCE.exec(lines[at]);
    const item = depth < MOST_DEPTH && ITEM.exec(lines[at]);
    if (fence) {
      flush();
      const isLast = (line) => line.trim().length >= fence[1].length && /^`+$/.test(line.trim());
      const end = lines.findIndex((line, n) => n > at && isLast(line));
      const inner = lines.slice(at + 1, end < 0 ? undefined : end);
      const about = fence[2].trim();
      const isLanguage = LANGUAGE.test(about);
      if (about && !isLanguage) inner.unshift(about);
      nodes.push({ kind: "pre", ...(isLanguage && { language: about }), text: inner.join("\n") });
      at = end < 0 ? lines.length : end + 1;
    } else if (depth < MOST_DEPTH && QUOTE.test(lines[at])) {
      flush();
      const inner = [];
      while (at < lines.length && QUOTE.test(lines[at])) inner.push(lines[at++].replace(QUOTE, ""));
      nodes.push({ kind: "quote", children: blocks(inner, depth + 1, people) });
    } else if (item) {
      flush();
      const kind = kindOf(item);
      const list = { kind, children: [] };
      if (kind === "ol") list.values = [];
      for (let next = item; next && kindOf(next) === kind; next = at < lines.length && ITEM.exec(lines[at])) {
        list.values?.push(parseInt(next[1]));
        const inner = [next[2]];
        for (at++; at < lines.length && WITHIN_ITEM.test(lines[at]); at++) inner.push(lines[at].replace(WITHIN_ITEM, ""));
        list.children.push(blocks(inner, depth + 1, people));
      }
      nodes.push(list);
    } else words.push(lines[at++]);
  }
  flush(true);
  return nodes;
}

const kindOf = ([, mark]) => (/\d/.test(mark) ? "ol" : "ul");

/** Puts a node behind the others; texts that meet become one. */
function push(children, child) {
  if (typeof child === "string" && typeof children.at(-1) === "string") children[children.length - 1] += child;
  else if (child !== "") children.push(child);
}

/** The nodes of a text without blocks. */
function inline(text, people) {
  const open = [{ children: [] }];
  const unclosed = new Set();
  const add = (child) => push(open.at(-1).children, child);
  /** A mark whose end does not come is text. */
  const close = (length) => {
    while (open.length > length) {
      const { mark, children } = open.pop();
      add(mark);
      for (const child of children) add(child);
    }
  };
  for (let at = 0; at < text.length;) {
    const c = text[at];
    const next = text[at + 1];
    const found = wholeAt(text, at, unclosed, people);
    if (found) {
      for (const child of found.children) add(child);
      at += found.length;
    } else if (c === "\\" && next && ESCAPED.test(next)) {
      add(next);
      at += 2;
    } else if (c === "*" || c === "_" || c === "~") {
      const length = runAt(text, at);
      marksAt(text, at, length, open, add, close);
      at += length;
    } else {
      add(c);
      at += 1;
    }
  }
  close(1);
  return open[0].children;
}

function runAt(text, at) {
  let end = at + 1;
  while (text[end] === text[at]) end += 1;
  return end - at;
}

/** Ends what the marks from `at` on end, and begins what they begin. */
function marksAt(text, at, length, open, add, close) {
  const c = text[at];
  const [last, next] = [before(text, at), after(text, at + length)];
  // So that 2*3*4 and snake_case stay what they are, and Chinese text needs no spaces.
  const inWord = c === "_" ? (letter) => LETTER.test(letter) : isWordy;
  let left = (c === "~" ? length === 2 : length <= 3) ? length : 0;
  const rest = length - left;
  if (!/\s/.test(last) && !inWord(next)) {
    while (left) {
      const from = open.findLastIndex(({ mark, children }) => mark?.[0] === c && mark.length <= left && children.length);
      if (from < 1) break;
      close(from + 1);
      const { mark, children } = open.pop();
      add({ kind: KINDS[mark], children });
      left -= mark.length;
    }
  }
  const marks = left === 3 ? [c + c, c] : [c.repeat(left)];
  const opens = left && KINDS[marks[0]] && !/\s/.test(next) && !inWord(last) && open.length < MOST_OPEN;
  if (opens) for (const mark of marks) open.push({ mark, children: [] });
  else add(c.repeat(left));
  add(c.repeat(rest));
}

/** `unclosed`: lengths of marks that have no end in what follows. */
function codeAt(text, at, unclosed) {
  const length = runAt(text, at);
  if (unclosed.has(length)) return { length, children: ["`".repeat(length)] };
  for (let end = text.indexOf("`", at + length); end >= 0; end = text.indexOf("`", end)) {
    const run = runAt(text, end);
    if (run === length) {
      return { length: end + run - at, children: [{ kind: "code", text: text.slice(at + length, end) }] };
    }
    end += run;
  }
  unclosed.add(length);
  return { length, children: ["`".repeat(length)] };
}

/** Words that look like an address themselves are followed by the true one. */
function linkOf({ length, words, address, href }) {
  if (!nameSite(words)) return { length, children: [{ kind: "link", href, children: inline(words, NOBODY) }] };
  return { length, children: [`${words} (`, { kind: "link", href, children: [address] }, ")"] };
}

/** What stands at a place of a text and is read as a whole: {length, children}; null: nothing. */
function wholeAt(text, at, unclosed, people) {
  switch (text[at]) {
    case "`": return codeAt(text, at, unclosed);
    case "[": {
      const link = namedAt(text, at);
      return link && linkOf(link);
    }
    case "@": {
      const { length, person } = mentionAt(text, at, people) ?? {};
      return person ? { length, children: [{ kind: "mention", text: text.slice(at, at + length), person }] } : null;
    }
    default: {
      const { length, href } = addressAt(text, at) ?? {};
      const words = text.slice(at, at + length);
      return length ? { length, children: [href ? { kind: "link", href, children: [words] } : words] } : null;
    }
  }
}

/** The tree of the text of a row, with the people that it names. */
export const treeOf = (store, row) => parse(row.body?.text ?? "", named(store, row));

/** The beginning of the text of a row without its marks, in one line; the files that it has come first. */
export function lineOf(store, row) {
  const beginning = { body: { ...row.body, text: String(row.body?.text ?? "").slice(0, MOST_READ) } };
  return cut(withFiles(row, words(treeOf(store, beginning)).replace(/\s+/g, " ")), MOST_LINE);
}

/** What a row says, with its files. */
export function withFiles(row, text) {
  const files = filesOf(row);
  return files.length ? [lineOfFiles(files), text].filter(Boolean).join(" · ") : text;
}

/** The words of a tree, without marks. */
export const words = (nodes) => nodes.map(wordsOf).join("").trim();

function wordsOf(node) {
  if (typeof node === "string") return node;
  const { kind, text, children, language, values } = node;
  switch (kind) {
    case "ul": case "ol": return `\n${children.map((item, at) => (values ? `${values[at]}. ` : "") + words(item)).join("\n")}\n`;
    case "pre": return `\n${language ? `${language}\n` : ""}${text}\n`;
    case "quote": return `\n${words(children)}\n`;
    default: return text ?? children.map(wordsOf).join("");
  }
}

/** The elements of a tree. */
export const elements = (nodes) => nodes.map((node) => {
  if (typeof node === "string") return node;
  const { kind, text, children, href, language, values, person } = node;
  // Those with a text have children where some of it is marked.
  const words = () => (children ? elements(children) : [text]);
  switch (kind) {
    case "ul": return h("ul", {}, ...children.map((item) => h("li", {}, ...elements(item))));
    case "ol": return h("ol", {}, ...children.map((item, at) => h("li", { value: values[at] }, ...elements(item))));
    case "pre": return h("pre", {}, language ? h("small.language", {}, language) : null, h("code", {}, ...words()));
    case "code": return h("code", {}, ...words());
    case "mention": return h(`span.mention${person.me ? ".me" : ""}`, { "data-person": person.uid }, ...words());
    case "quote": return h("blockquote", {}, ...elements(children));
    case "link": return h("a", { href, target: "_blank", rel: "noopener noreferrer", title: href, dir: "auto" }, ...elements(children));
    default: return h(kind, {}, ...elements(children));
  }
});
