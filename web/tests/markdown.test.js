import assert from "node:assert/strict";
import { test } from "node:test";

import { lineOf, parse, words } from "../static/markdown.js";

const node = (kind, ...children) => ({ kind, children });
const code = (text) => ({ kind: "code", text });
const pre = (text, language) => ({ kind: "pre", ...(language && { language }), text });
const numbered = (values, ...children) => ({ kind: "ol", values, children });
const link = (href, ...children) => ({ kind: "link", href, children });

const reads = (text, ...nodes) => assert.deepEqual(parse(text), nodes, JSON.stringify(text));

test("marks around words", () => {
  reads("a **b** c", "a ", node("strong", "b"), " c");
  reads("*b* _c_ ~~d~~", node("em", "b"), " ", node("em", "c"), " ", node("s", "d"));
  reads("**a *b* c**", node("strong", "a ", node("em", "b"), " c"));
  reads("***a***", node("strong", node("em", "a")));
  reads("这是**粗体**字", "这是", node("strong", "粗体"), "字");
  reads("(*a*), **b**.", "(", node("em", "a"), "), ", node("strong", "b"), ".");
  reads("say `a **b** c`", "say ", code("a **b** c"));
  reads("``a`b``", code("a`b"));
});

test("what is no mark stays as it was written, in one piece", () => {
  for (const text of [
    "2*3*4 = 24", "5 * 3 * 2", "snake_case_name", "**", "****", "* ", "a ** b", "~a~", "*a", "a*", "`a", "_ _", "**a", "a_b_c",
    "[a](b)", "[a](javascript:alert(1))", "[]()", "#1", "x > y", ">.<a".slice(1), "-5 degrees", "1.5 kg", "http://", "mailto:",
    "<b>bold</b> &amp;", "one\n  two\n\nthree", "  indented", "日本_語_です",
  ]) reads(text, text);
  reads("\\*a\\* \\`b\\`", "*a* `b`");
  reads("\\a", "\\a");
});

test("blocks stand on lines of their own", () => {
  reads("before\n```js\nlet a = `*b*`;\n\n  c\n```\n\nafter", "before", pre("let a = `*b*`;\n\n  c", "js"), "after");
  reads("```\nnever closed", pre("never closed"));
  reads("```one two\nthree\n```", pre("one two\nthree"));
  reads("> one\n> **two**\nthree", node("quote", "one\n", node("strong", "two")), "three");
  reads("- a\n- b\n  - c\n- d", node("ul", ["a"], ["b", node("ul", ["c"])], ["d"]));
  reads("3. a\n4. b\n- c", numbered([3, 4], ["a"], ["b"]), node("ul", ["c"]));
});

test("addresses become links, and no others than of the web and of mail", () => {
  reads("see https://a.example/b_c_d?e=(f), now", "see ", link("https://a.example/b_c_d?e=(f)", "https://a.example/b_c_d?e=(f)"), ", now");
  reads("(http://a.example/)", "(", link("http://a.example/", "http://a.example/"), ")");
  reads("**https://a.example**", node("strong", link("https://a.example/", "https://a.example")));
  reads("看https://a.example/路，好", "看", link("https://a.example/%E8%B7%AF", "https://a.example/路"), "，好");
  reads("mailto:ada@a.example", link("mailto:ada@a.example", "mailto:ada@a.example"));
  reads("[the *tide*](https://a.example)", link("https://a.example/", "the ", node("em", "tide")));
  for (const scheme of ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "blob:x", "ftp://a.example", "//a.example", "/c/u:1"]) {
    for (const text of [scheme, `[words](${scheme})`, `[words]( ${scheme})`]) {
      assert.ok(!JSON.stringify(parse(text)).includes('"href"'), text);
    }
  }
  reads("https://bank.example@evil.example/", "https://bank.example@evil.example/");
  reads("xhttps://a.example", "xhttps://a.example");
});

test("an address ends where its sentence goes on, in any script", () => {
  const found = (text) => JSON.stringify(parse(text)).match(/"children":\["(http[^"]*|mailto[^"]*)"\]/)?.[1];
  const ends = (before, address, after) => assert.equal(found(before + address + after), address, before + address + after);
  for (const [before, after] of [["“", "”"], ["„", "“"], ["«", "»"], ["‘", "’"], ["「", "」"], ["（", "）"],
    ["[", "]"], ["{", "}."], ["(", ")."], ["看", "，好"], ["", "。是"], ["", "（官网）"], ["", "、"], ["", "…"], ["", "؟"],
    ["", "।"], ["", " – so"], ["", "?!"], ["", "\u200b"], ["", "\u202e"]]) {
    for (const address of ["https://example.com/a", "https://example.com/?ids[]", "https://example.com/{id}", "http://example.com/a_(b)"]) {
      ends(before, address, after);
    }
  }
  for (const address of ["http://[::1]/", "http://[::1]:8080/a",
    "https://ca.wikipedia.org/wiki/Col·lecció", "https://fr.wikipedia.org/wiki/L’Équipe",
    "https://a.example/Gödel–Escher", "https://a.example/?a[0]={b}&c=(d(e))",
    "https://a.example/#/room/!x:y"]) ends("see ", address, ", now");
  reads("[w](https://en.wikipedia.org/wiki/Set_(computing))", link("https://en.wikipedia.org/wiki/Set_(computing)", "w"));
  reads("[w](http://[::1]/) (x)", link("http://[::1]/", "w"), " (x)");
  reads("[see [1]](https://a.example/)", link("https://a.example/", "see [1]"));
  reads("[w](https://a.example/(b)", "[w](", link("https://a.example/(b)", "https://a.example/(b)"));
  reads("бhttps://a.example 𞤀https://a.example", "бhttps://a.example 𞤀https://a.example");
});

test("words that look like another address do not hide the true one", () => {
  const others = ["bank\uff0eexample", "bank\u3002example", "bank\uff61example", "bank\u2024example", "bank\u200b.\u200dexample",
    "the site bank.example of your bank", "see bank.example/login now", "\u94f6\u884c.\u4e2d\u56fd", "ｂａｎｋ．ｅｘａｍｐｌｅ", "at 192.0.2.7"];
  for (const words of ["https://bank.example", "bank.example", "www.bank.example", "me@bank.example", ...others]) {
    reads(`[${words}](https://evil.example/)`, `${words} (`, link("https://evil.example/", "https://evil.example/"), ")");
  }
  for (const words of ["the news, e.g. of today", "version 2.0", "ada & bob", "$3.50", "so ... go on"]) {
    reads(`[${words}](https://a.example/)`, link("https://a.example/", words));
  }
  // Neither can what is not seen, or turns the direction of the text.
  reads("https://a.example/\u202egpj.exe", link("https://a.example/", "https://a.example/"), "\u202egpj.exe");
});

test("lists keep the numbers that were written, whatever ends their lines", () => {
  reads("1. a\n2. b\n4. c\n5) d", numbered([1, 2, 4, 5], ["a"], ["b"], ["c"], ["d"]));
  reads("3. a\n1. b\n0. c", numbered([3, 1, 0], ["a"], ["b"], ["c"]));
  reads("007. a", "007. a");
  for (const end of ["\r\n", "\r", "\n"]) {
    reads(`- a${end}- b${end}${end}c`, node("ul", ["a"], ["b"]), "c");
    reads(`1. a${end}   b`, numbered([1], ["a\nb"]));
    reads(`a${end}b`, "a\nb");
  }
  reads("- a\u2028b", node("ul", ["a\u2028b"]));
});

test("what begins with a sign of greater is a quote only before words", () => {
  for (const text of [">_<", ">.<", ">:(", ">5 kg", ">= 3"]) reads(text, text);
  reads(">a\n> 5", node("quote", "a\n5"));
  reads(">> да", node("quote", node("quote", "да")));
});

const line = (text, mentions) => lineOf({ name: (uid) => `p_${uid}_`, self: { uid: 1 } }, { body: { text, mentions } });

test("a line of the list has no marks and ends with a whole character", () => {
  assert.equal(line("**a** `b` [c](https://d.example) ~~e~~"), "a b c e");
  assert.equal(line("> a\n\n- b\n- c"), "a b c");
  assert.equal(line("1. a\n\t- c\n4. b"), "1. a c 4. b");
  assert.equal(line("```\ncode\n```"), "code");
  assert.equal(line("hi @p_2_ you", { users: [2] }), "hi @p_2_ you");
  const flags = "🏳️‍🌈".repeat(300);
  assert.equal(line(flags), `${"🏳️‍🌈".repeat(199)}…`);
  assert.equal(line("🏳️‍🌈".repeat(200)), "🏳️‍🌈".repeat(200));
});

test("nothing that was written is lost but marks", () => {
  const marks = /[\s*_~`>\-.)\\]/gu;
  const kept = (text) => text.replace(marks, "");
  const parts = ["a", "é", "好", "𞤀", "👩🏽‍💻", "@Ann", "*", "**", "_", "~~", "`", "```", "```js", " ", "  ", "\n", "\r\n", "\n> ", "\n>",
    "\n- ", "\n7. ", "\n12) ", "\n  - ", "https://a.example/b", "http://", "“", "”", "(", ")", "[", "]", "{", "}",
    "<b>", "\\", "\u202e", "\u2028", "@", "0"];
  let seed = 7;
  const random = (most) => {
    seed = (seed * 48271) % 2147483647;
    return seed % most;
  };
  for (let round = 0; round < 20_000; round += 1) {
    const text = Array.from({ length: 1 + random(14) }, () => parts[random(parts.length)]).join("");
    // [words](address) keeps its address behind the words.
    if (/\]\(/.test(text)) continue;
    assert.equal(kept(words(parse(text, [{ name: "Ann" }]))), kept(text), JSON.stringify(text));
  }
});

test("whatever is written is read in a moment, and nothing of it nests without end", () => {
  const long = (part) => part.repeat(8_000 / part.length);
  const depth = (nodes) => Math.max(0, ...nodes.flat(9).map((each) => (each.children ? 1 + depth(each.children) : 0)));
  for (const part of ["*", "_", "~~", "**a ", "*a _b ", "`", "`` ` ", "[", "[a](", "![", "[a](h",
    "> ", ">", "- ", "* ", "- a\n", "  - a\n", "1. ", "http://", "https://a(", "https://a)", "mailto:", "\\", "```\n",
    "a*b_c`", "(", "https://a.b/[x](", "\n", " ", "***a** ",
    "[a](b(", "[a]((((b))))", "@", "@p1 ", "@@", "“", "https://a.b/“"]) {
    // Of the processor: a busy machine takes longer.
    const began = process.cpuUsage();
    const tree = parse(long(part), [{ name: "p1" }, { name: "@@@@" }, { name: "@".repeat(40) }]);
    const took = process.cpuUsage(began).user / 1_000;
    assert.ok(took < 1_000, `${JSON.stringify(part)}: ${took} ms`);
    assert.ok(depth(tree) <= 64, `${JSON.stringify(part)}: ${depth(tree)} deep`);
  }
});
