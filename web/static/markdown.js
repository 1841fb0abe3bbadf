// Light Markdown: the text of a message as a tree, and the tree as elements. Text becomes text nodes and nothing else; no
// address but http, https and mailto becomes a link. Takes time in proportion to the text, whatever a stranger wrote.

import { h } from "./dom.js";

// Quotes and lists within each other.
const MOST_DEPTH = 4;
// Marks that wait for their end at once; more are text.
const MOST_OPEN = 16;
const KINDS = { "*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "s" };

const FENCE = /^\s{0,3}(`{3,})[^`]*$/;
const QUOTE = /^ ?> ?/;
const ITEM = /^ ?([-*]|\d{1,3}[.)])[ \t]+(\S.*)$/;
const WITHIN_ITEM = /^(?: {2,4}|\t)(?=\s*\S)/;
const ESCAPED = /[!-/:-@[-`{-~]/;
const LETTER = /[\p{L}\p{N}]/u;
const LATIN = /[A-Za-z0-9]/;
// Whitespace, quotes, brackets of tags, what stands in Chinese text, and what cannot be seen or turns the direction.
const NO_ADDRESS = String.raw`\s<>"${"`"}\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3000-\u303f\ufeff\uff00-\uffef`;
const ADDRESS = new RegExp(`(?:https?://|mailto:)[^${NO_ADDRESS}]+`, "iy");
const NAMED = new RegExp(`\\[([^\\[\\]\\n]{1,300})\\]\\(([^()${NO_ADDRESS}]{1,2000})\\)`, "iy");
const AFTER_ADDRESS = ".,;:!?'*_~)]}";

/**
 * The tree of a text: strings, and nodes {kind, children} with kind strong, em, s, quote, ul or ol (whose children are
 * the items, each a list of nodes; `start` of an ol), {kind: "link", href, children}, {kind: "code" | "pre", text}.
 */
export const parse = (text) => blocks(String(text).split("\n"), 0);

function blocks(lines, depth) {
  const nodes = [];
  let words = [];
  const flush = (isEnd) => {
    // A block stands on lines of its own; empty ones beside it add nothing.
    if (nodes.length) while (words.length && !words[0].trim()) words.shift();
    if (!isEnd) while (words.length && !words.at(-1).trim()) words.pop();
    if (words.length) nodes.push(...inline(words.join("\n")));
    words = [];
  };
  for (let at = 0; at < lines.length;) {
    const fence = FENCE.exec(lines[at]);
    const item = depth < MOST_DEPTH && ITEM.exec(lines[at]);
    if (fence) {
      flush();
      const isLast = (line) => line.trim().length >= fence[1].length && /^`+$/.test(line.trim());
      const end = lines.findIndex((line, n) => n > at && isLast(line));
      nodes.push({ kind: "pre", text: lines.slice(at + 1, end < 0 ? undefined : end).join("\n") });
      at = end < 0 ? lines.length : end + 1;
    } else if (depth < MOST_DEPTH && QUOTE.test(lines[at])) {
      flush();
      const inner = [];
      while (at < lines.length && QUOTE.test(lines[at])) inner.push(lines[at++].replace(QUOTE, ""));
      nodes.push({ kind: "quote", children: blocks(inner, depth + 1) });
    } else if (item) {
      flush();
      const kind = kindOf(item);
      const list = { kind, children: [] };
      if (kind === "ol") list.start = parseInt(item[1]);
      for (let next = item; next && kindOf(next) === kind; next = at < lines.length && ITEM.exec(lines[at])) {
        const inner = [next[2]];
        for (at++; at < lines.length && WITHIN_ITEM.test(lines[at]); at++) inner.push(lines[at].replace(WITHIN_ITEM, ""));
        list.children.push(blocks(inner, depth + 1));
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
function inline(text) {
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
    const found = c === "`" ? codeAt(text, at, unclosed) : c === "[" ? namedAt(text, at) : addressAt(text, at);
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
  const [before, after] = [text[at - 1] ?? " ", text[at + length] ?? " "];
  // So that 2*3*4 and snake_case stay what they are, and Chinese text needs no spaces.
  const inWord = c === "_" ? LETTER : LATIN;
  let left = (c === "~" ? length === 2 : length <= 3) ? length : 0;
  const rest = length - left;
  if (!/\s/.test(before) && !inWord.test(after)) {
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
  const opens = left && KINDS[marks[0]] && !/\s/.test(after) && !inWord.test(before) && open.length < MOST_OPEN;
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

/** [words](address). Words that look like an address themselves are followed by the true one. */
function namedAt(text, at) {
  NAMED.lastIndex = at;
  const [whole, words, address] = NAMED.exec(text) ?? [];
  const href = whole && hrefOf(address);
  if (!href) return null;
  if (!nameSite(words)) return { length: whole.length, children: [{ kind: "link", href, children: inline(words) }] };
  return { length: whole.length, children: [`${words} (`, { kind: "link", href, children: [address] }, ")"] };
}

/** Whether the words can be read as naming a site: with any dot that a browser takes for one, and without what is not seen. */
function nameSite(words) {
  const read = words.replace(/\p{Cf}|\p{Default_Ignorable_Code_Point}/gu, "").normalize("NFKC").replaceAll("\u3002", ".");
  return /:\/\/|\S@\S|[\p{L}\p{N}]\.\p{L}{2}|\d\.\d+\.\d+\.\d|mailto:/iu.test(read);
}

function addressAt(text, at) {
  const c = text[at];
  if (!"hHmM".includes(c) || LATIN.test(text[at - 1] ?? " ")) return null;
  ADDRESS.lastIndex = at;
  let [address] = ADDRESS.exec(text) ?? [""];
  if (!address) return null;
  const whole = address;
  // Punctuation that ends a sentence is not part of an address, and a bracket only with its other half.
  let unpaired = count(address, ")") - count(address, "(");
  while (AFTER_ADDRESS.includes(address.at(-1)) && (address.at(-1) !== ")" || unpaired > 0)) {
    if (address.at(-1) === ")") unpaired -= 1;
    address = address.slice(0, -1);
  }
  const href = hrefOf(address);
  if (!href) return { length: whole.length, children: [whole] };
  return { length: address.length, children: [{ kind: "link", href, children: [address] }] };
}

const count = (text, c) => text.split(c).length - 1;

/** The address as a browser follows it; null for what is no address, or has a name or password before its host. */
function hrefOf(address) {
  try {
    const { protocol, username, password, hostname, href } = new URL(address);
    if (protocol === "mailto:") return href;
    const isWeb = protocol === "http:" || protocol === "https:";
    return isWeb && hostname && !username && !password ? href : null;
  } catch {
    return null;
  }
}

/** A text without its marks. */
export const plain = (text) => wordsOf(parse(text));

const wordsOf = (nodes) => nodes.map((node) => {
  if (typeof node === "string") return node;
  const { kind, text, children } = node;
  if (kind === "ul" || kind === "ol") return `\n${children.map(wordsOf).join("\n")}\n`;
  if (kind === "quote" || kind === "pre") return `\n${text ?? wordsOf(children)}\n`;
  return text ?? wordsOf(children);
}).join("").trim();

/** The elements of a tree. */
export const elements = (nodes) => nodes.map((node) => {
  if (typeof node === "string") return node;
  const { kind, text, children, href, start } = node;
  switch (kind) {
    case "ul": return h("ul", {}, ...children.map((item) => h("li", {}, ...elements(item))));
    case "ol": return h("ol", { start }, ...children.map((item) => h("li", {}, ...elements(item))));
    case "pre": return h("pre", {}, h("code", {}, text));
    case "code": return h("code", {}, text);
    case "mention": return h(`span.mention${node.me ? ".me" : ""}`, {}, text);
    case "quote": return h("blockquote", {}, ...elements(children));
    case "link": return h("a", { href, target: "_blank", rel: "noopener noreferrer", title: href, dir: "auto" }, ...elements(children));
    default: return h(kind, {}, ...elements(children));
  }
});
