import assert from "node:assert/strict";
import { test } from "node:test";

import { parse, plain } from "../static/markdown.js";

const node = (kind, ...children) => ({ kind, children });
const code = (text) => ({ kind: "code", text });
const pre = (text) => ({ kind: "pre", text });
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
  reads("before\n```js\nlet a = `*b*`;\n\n  c\n```\n\nafter", "before", pre("let a = `*b*`;\n\n  c"), "after");
  reads("```\nnever closed", pre("never closed"));
  reads("> one\n> **two**\nthree", node("quote", "one\n", node("strong", "two")), "three");
  reads("- a\n- b\n  - c\n- d", node("ul", ["a"], ["b", node("ul", ["c"])], ["d"]));
  reads("3. a\n4. b\n- c", { ...node("ol", ["a"], ["b"]), start: 3 }, node("ul", ["c"]));
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

test("a line of the list has no marks", () => {
  assert.equal(plain("**a** `b` [c](https://d.example) ~~e~~"), "a b c e");
  assert.equal(plain("> a\n\n- b\n- c").replace(/\s+/g, " "), "a b c");
  assert.equal(plain("```\ncode\n```"), "code");
});

test("whatever is written is read in a moment, and nothing of it nests without end", () => {
  const long = (part) => part.repeat(8_000 / part.length);
  const depth = (nodes) => Math.max(0, ...nodes.flat(9).map((each) => (each.children ? 1 + depth(each.children) : 0)));
  for (const part of ["*", "_", "~~", "**a ", "*a _b ", "`", "`` ` ", "[", "[a](", "![", "[a](h", "> ", ">", "- ", "* ", "- a\n", "  - a\n", "1. ", "http://", "https://a(", "https://a)", "mailto:", "\\", "```\n", "a*b_c`", "(", "https://a.b/[x](", "\n", " ", "***a** "]) {
    const began = performance.now();
    const tree = parse(long(part));
    const took = performance.now() - began;
    assert.ok(took < 1_000, `${JSON.stringify(part)}: ${took} ms`);
    assert.ok(depth(tree) <= 64, `${JSON.stringify(part)}: ${depth(tree)} deep`);
  }
});
