// Addresses in a text: where one begins and ends, and which of them may become a link. By Unicode's classes, since people write
// addresses within sentences of any script.

import { after, before, isWordy } from "./characters.js";

const SCHEME = /https?:\/\/|mailto:/iy;
// Whitespace, quotes, brackets of tags, and what cannot be seen or turns the direction.
const NEVER = /^[\p{Z}\p{C}\s<>"`\u2800\u3164]$/u;
const PUNCTUATION = /^[\p{P}--\p{ASCII}]$/v;
// Quotes and brackets of sentences but for the apostrophe, and what stands in Chinese and Japanese text.
const OF_SENTENCE = /^[[\p{Pi}\p{Pf}\p{Ps}\p{Pe}[\p{Script_Extensions=Han}--\p{Script_Extensions=Latin}]]--’]$/v;
// ASCII that ends a sentence, or is a mark of Markdown, is no end of an address.
const TRAILING = ".,;:!?'*_~([{";
const PAIRS = { ")": "(", "]": "[", "}": "{" };
// Characters of the words and of the address of [words](address).
const MOST_WORDS = 300;
const MOST_NAMED = 2_000;
// Brackets within each other there.
const MOST_WITHIN = 4;

/** Whether the character at a place can be part of an address. Punctuation beyond ASCII can within a word alone. */
function goesOn(text, at) {
  const c = after(text, at);
  if (NEVER.test(c)) return false;
  if (!PUNCTUATION.test(c)) return true;
  return !OF_SENTENCE.test(c) && c.normalize("NFKC") === c && isWordy(before(text, at)) && isWordy(after(text, at + c.length));
}

/** The address that begins at a place of a text: {length, href}; no `href`: it looks like one, and is text. Null: there is none. */
export function addressAt(text, at) {
  if (!"hHmM".includes(text[at]) || isWordy(before(text, at))) return null;
  SCHEME.lastIndex = at;
  const [scheme] = SCHEME.exec(text) ?? [""];
  if (!scheme) return null;
  const begin = at + scheme.length;
  const open = [];
  let end = begin;
  for (; end < text.length && goesOn(text, end); end += after(text, end).length) {
    const c = text[end];
    if ("([{".includes(c)) open.push(c);
    // A bracket belongs to it only with its other half.
    if (PAIRS[c] && open.pop() !== PAIRS[c]) break;
  }
  while (end > begin && TRAILING.includes(text[end - 1])) end -= 1;
  if (end === begin) return null;
  return { length: end - at, href: hrefOf(text.slice(at, end)) };
}

/** [words](address) at a place of a text: {length, words, address, href}; null: there is none. */
export function namedAt(text, at) {
  const middle = closing(text, at, MOST_WORDS, (c) => c === "\n");
  if (middle <= at + 1 || text[middle + 1] !== "(") return null;
  const end = closing(text, middle + 1, MOST_NAMED, (c) => NEVER.test(c));
  const address = text.slice(middle + 2, Math.max(end, 0));
  const href = address && hrefOf(address);
  return href ? { length: end + 1 - at, words: text.slice(at + 1, middle), address, href } : null;
}

/** The other half of the bracket at a place, at most so far from it; -1: there is none. Brackets of its kind within it are in pairs. */
function closing(text, at, most, isEnd) {
  const [opener, closer] = text[at] === "[" ? "[]" : "()";
  let depth = 0;
  for (let end = at; end < text.length && end <= at + most + 1; end += after(text, end).length) {
    const c = after(text, end);
    if (end > at && isEnd(c)) return -1;
    if (c === opener && ++depth > MOST_WITHIN) return -1;
    if (c === closer && !--depth) return end;
  }
  return -1;
}

/** Whether the words can be read as naming a site: with any dot that a browser takes for one, and without what is not seen. */
export function nameSite(words) {
  const read = words.replace(/\p{Cf}|\p{Default_Ignorable_Code_Point}/gu, "").normalize("NFKC").replaceAll("\u3002", ".");
  return /:\/\/|\S@\S|[\p{L}\p{N}]\.\p{L}{2}|\d\.\d+\.\d+\.\d|mailto:/iu.test(read);
}

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
