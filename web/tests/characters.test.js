import assert from "node:assert/strict";
import { test } from "node:test";

import { after, before, cut, first, folded, initial, isEmojiAlone } from "../static/characters.js";

test("the letter of a disc is what people see as one, as the templates have it", () => {
  for (const [name, letter] of [["ann", "A"], ["🏳️‍🌈 Pride", "🏳️‍🌈"], ["👩🏽‍💻", "👩🏽‍💻"], ["🇫🇷🇩🇪", "🇫🇷"], ["e\u0301a", "E\u0301"],
    ["ß", "ß"], ["ﬁn", "ﬁ"], ["小明", "小"],
    ["क्षि", "क्षि"], ["𞤢", "𞤀"], ["", ""]]) assert.equal(initial(name), letter, name);
  assert.equal(first("👍👍"), "👍");
});

test("a few emoji alone are told from every other text", () => {
  for (const text of ["👍", " 😀👍 ", "❤️", "👨‍👩‍👧‍👦\n🏳️‍🌈 🇫🇷"]) assert.ok(isEmojiAlone(text), text);
  for (const text of ["", " ", "1", "#", "ok 👍", "😀😀😀😀"]) assert.ok(!isEmojiAlone(text), text);
});

test("a text is cut between characters, and only where it is too long", () => {
  assert.equal(cut("abc", 3), "abc");
  assert.equal(cut("abcd", 3), "ab…");
  assert.equal(cut("👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦", 3), "👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦");
  assert.equal(cut("👨‍👩‍👧‍👦e\u0301🇫🇷x", 3), "👨‍👩‍👧‍👦e\u0301…");
  assert.equal(cut("", 1), "");
});

test("letters beyond 16 bits are whole on both sides of a place", () => {
  assert.deepEqual([before("𞤢@𞤣", 2), after("𞤢@𞤣", 3), before("a", 0), after("a", 1)], ["𞤢", "𞤣", " ", " "]);
  assert.equal(folded("ZOE\u0308"), folded("zoë"));
});
