import assert from "node:assert/strict";
import { test } from "node:test";

import "./page.js";
import { fold } from "../static/folding.js";
import { around, inUnits, marked, read } from "../static/sought.js";
import { parse } from "../static/markdown.js";

const sought = (text) => read(text).sought;

test("case, accents and forms of letters do not matter, as on the server", () => {
  for (const [text, folded] of [
    ["Café", "cafe"], ["CAFE\u0301", "cafe"], ["Straße", "strasse"], ["STRASSE", "strasse"], ["ẞ", "ss"],
    ["Ὀδυσσεύς", "οδυσσευσ"], ["İstanbul ılık", "istanbul ilik"], ["ﬁne ½", "fine 1 2"], ["ＡＢＣ１２", "abc12"], ["Ёлка", "елка"],
    ["שָׁלוֹם", "שלום"], ["مَرْحَبًا", "مرحبا"], ["soft\u00adware zero\u200bwidth", "software zerowidth"],
    ["don't, foo_bar", "don t  foo bar"], ["漢字かな", "漢字かな"], ["👍\ufe0f ok", "👍 ok"], ["O'Neill\t@42", "o neill  42"],
  ]) assert.equal(fold(text), folded, text);
});

test("vowels of scripts that write them as marks stay", () => {
  for (const [one, other] of [["कि", "का"], ["กา", "กี"], ["が", "か"], ["กุ", "กู"], ["བུ", "བི"], ["ক্", "ক"]]) assert.notEqual(fold(one), fold(other), one);
});

test("parts of words are found in any script", () => {
  for (const [text, search] of [
    ["Low tide is at nine", "TIDE low"], ["Low tide is at nine", "id"], ["Crème brûlée", "creme BRULEE"], ["我们明天去北京开会", "北京"],
    ["我们明天去北京开会", "京"], ["買了iPhone手機", "phone手"], ["Встреча в Одессе", "одесс"], ["안녕하세요", "안녕"], ["สวัสดีครับ", "สวัส"],
    ["see https://example.org/a?b=c", "example.org/a"], ["party 🎉🎉 tonight", "🎉"],
  ]) assert.ok(sought(search).areIn(text), `${search} in ${text}`);
  for (const [text, search] of [["Low tide", "tides"], ["low tide", "wtide"], ["北风吹京城", "北京"], ["Low tide", "low high"]]) {
    assert.ok(!sought(search).areIn(text), `${search} in ${text}`);
  }
});

test("marks cover whole characters and do not overlap", () => {
  const at = (search, text) => sought(search).marks(text);
  assert.deepEqual(at("low id", "Low tide, side"), [[0, 3], [5, 7], [11, 13]]);
  assert.deepEqual(at("cafe", "Cafe\u0301 cafés"), [[0, 5], [6, 10]]);
  assert.deepEqual(at("ss", "Maß"), [[2, 3]]);
  assert.deepEqual(at("北京", "去北京北京"), [[1, 5]]);
  assert.deepEqual(at("tide", "🎉 tide"), [[3, 7]]);
  assert.equal(at("aa", "aa ".repeat(500)).length, 100);
  assert.deepEqual(inUnits("🎉 tide", [[2, 6]]), [[3, 7]]);
  assert.deepEqual(inUnits("short", [[2, 60]]), []);
});

test("what cannot be looked for is told by its reason, and a single sign of Chinese can be", () => {
  const problem = (text) => read(text).problem;
  assert.deepEqual(["", "  ", "a", "é", "7"].map(problem), ["empty", "empty", "short", "short", "short"]);
  assert.deepEqual(["京", "🎉", "ab", "a b"].map(problem), [undefined, undefined, undefined, undefined]);
  for (const nothing of ["\t\u200b,", "*?%_\"'();--", "...", "\u0301"]) assert.equal(problem(nothing), "search_empty", nothing);
  assert.equal(problem("字".repeat(201)), "search_too_long");
  assert.equal(problem(Array.from({ length: 21 }, (_, n) => `w${String(n).padStart(2, "0")}`).join(" ")), "search_too_long");
  assert.deepEqual(sought("tide tid low TIDE").words, ["tide", "low"]);
});

test("words are marked in the tree of a text, also within marks, lists, code and links", () => {
  const texts = (nodes) => nodes.flat().flatMap((node) => (node.kind === "mark" ? [node.children.join("")] : node.children ? texts(node.children) : []));
  const tree = parse("Low **tide** at `tide` [Tides](https://example.org)\n- one tide\n> TIDE\n```\ntide\n```");
  assert.deepEqual(texts(marked(tree, sought("tide"))), ["tide", "tide", "Tide", "tide", "TIDE", "tide"]);
  assert.equal(marked(tree, null), tree);
});

test("the piece of a text that is shown has the first mark in it, and says where it was cut", () => {
  const shown = (text, search) => around(text, sought(search).marks(text)).map((node) => node.children?.[0].toUpperCase() ?? node).join("");
  assert.equal(shown("Low tide is at nine", "tide"), "Low TIDE is at nine");
  assert.equal(shown(`${"word ".repeat(100)}the tide comes`, "tide"), `…${"word ".repeat(7)}the TIDE comes`);
  const long = shown(`${"x".repeat(300)}tide${"y".repeat(300)}`, "tide");
  assert.ok(long.startsWith("…TIDE") && long.endsWith("y…") && long.length < 170, long);
  assert.deepEqual(around("😀".repeat(200), []).at(-1), "…");
});
