// The words of a search, and where they stand in a text: each of the words, also as a part of a word, in any order. By the same rules as
// on the server (server/src/domain/search/words.rs). Plain values, no document.

import { cut } from "./characters.js";
import { fold, foldWithPlaces, isSpaceless, wordsOf } from "./folding.js";

// The longest search, in code points, and its words; the server takes no more.
const LONGEST = 200;
const MOST_WORDS = 20;
// Places of one text that are marked.
const MOST_MARKS = 100;
// Code units of a hit's text that are shown, and of those before its first mark.
const MOST_SHOWN = 160;
const BEFORE = 40;

/**
 * Reads what somebody has typed: {sought, problem}. `problem`: "empty" (nothing is typed), "short" (a letter alone, which is in every
 * message), or the code with which the server refuses it.
 */
export function read(text) {
  if (!text.trim()) return { problem: "empty" };
  if ([...text].length > LONGEST) return { problem: "search_too_long" };
  let words = [];
  for (const word of wordsOf(fold(text))) {
    if (words.some((known) => known.includes(word))) continue;
    words = [...words.filter((known) => !word.includes(known)), word];
  }
  const [first] = words;
  if (!first) return { problem: "search_empty" };
  if (words.length > MOST_WORDS) return { problem: "search_too_long" };
  if (words.length === 1 && [...first].length === 1 && !isSpaceless(first)) return { problem: "short" };
  return { sought: new Sought(words) };
}

export class Sought {
  constructor(words) {
    this.words = words;
    // Differs where something else is marked.
    this.key = words.join(" ");
  }

  /** Whether all of the words stand in a text. */
  areIn(text) {
    const folded = fold(text);
    return this.words.every((word) => folded.includes(word));
  }

  /** Where they stand: [start, end] in code units, in their order and apart from each other. */
  marks(text) {
    const { folded, places, silent } = foldWithPlaces(text);
    const marks = [];
    for (const word of this.words) {
      let count = 0;
      for (let at = folded.indexOf(word); at >= 0 && count < MOST_MARKS; at = folded.indexOf(word, at + word.length), count++) {
        let [, end] = places[at + word.length - 1];
        // The accents of its last letter.
        while (silent.has(end)) end = silent.get(end);
        marks.push([places[at][0], end]);
      }
    }
    const apart = [];
    for (const [start, end] of marks.sort(([a], [b]) => a - b)) {
      const last = apart.at(-1);
      if (last && start <= last[1]) last[1] = Math.max(last[1], end);
      else apart.push([start, end]);
    }
    return apart.slice(0, MOST_MARKS);
  }
}

/** Marks that the server counts in code points, in code units. */
export function inUnits(text, marks) {
  const places = [0];
  for (const character of text) places.push(places.at(-1) + character.length);
  return marks.map(([start, end]) => [places[start], places[end]]).filter(([start, end]) => start < end);
}

/** A text as strings and nodes {kind: "mark", children}. */
function split(text, marks) {
  const nodes = [];
  let at = 0;
  for (const [start, end] of marks) {
    nodes.push(text.slice(at, start), { kind: "mark", children: [text.slice(start, end)] });
    at = end;
  }
  return [...nodes, text.slice(at)].filter((node) => node !== "");
}

/** A tree of markdown.js in which the words are marked; null: nothing is. What stands in two of its nodes is left out. */
export function marked(nodes, sought) {
  return sought ? nodes.flatMap((node) => markedNode(node, sought)) : nodes;
}

function markedNode(node, sought) {
  if (typeof node === "string") return split(node, sought.marks(node));
  const { kind, text, children } = node;
  if (kind === "ul" || kind === "ol") return [{ ...node, children: children.map((item) => marked(item, sought)) }];
  return [{ ...node, children: marked(children ?? [text], sought) }];
}

/** A piece of a text around the first of its marks, as nodes. */
export function around(text, marks) {
  const [[first] = [0]] = marks;
  const space = text.indexOf(" ", Math.max(0, first - BEFORE));
  const from = first <= BEFORE ? 0 : space >= 0 && space < first ? space + 1 : first;
  const rest = text.slice(from);
  const shown = cut(rest, MOST_SHOWN);
  const end = shown === rest ? rest.length : shown.length - 1;
  const within = marks.map(([start, stop]) => [start - from, Math.min(stop - from, end)]).filter(([start, stop]) => start < stop);
  return [...(from ? ["…"] : []), ...split(rest.slice(0, end), within), ...(end < rest.length ? ["…"] : [])];
}
