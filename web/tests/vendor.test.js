import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import "./page.js";
import { matching, naming, toned } from "../static/emoji.js";
import english from "../static/emoji-en.js";
import groups from "../static/emoji-list.js";
import chinese from "../static/emoji-zh.js";

const file = (path) => readFileSync(new URL(`../${path}`, import.meta.url));

test("what comes from elsewhere is what is recorded, with its licence", () => {
  for (const { package: name, version, licence_file, integrity, made_by, files } of JSON.parse(file("vendor.json"))) {
    assert.match(file(licence_file).toString(), /Permission is hereby granted/, name);
    assert.ok(integrity.startsWith("sha512-") && file(made_by).length > 0, name);
    for (const [path, hash] of Object.entries(files)) {
      assert.equal(`sha256-${createHash("sha256").update(file(path)).digest("hex")}`, hash, path);
      assert.ok(file(path).toString().includes(`${name} ${version}`), path);
    }
  }
});

test("both languages have a name for each emoji, in the same order", () => {
  const all = Object.values(groups).flatMap((list) => list.split("\n"));
  assert.ok(all.length > 1_800);
  for (const [names, cat, france] of [[english, /^cat face/, /^flag: France/], [chinese, /^猫脸/, /^旗: 法国/]]) {
    const lines = names.split("\n");
    assert.equal(lines.length, all.length);
    assert.match(lines[all.indexOf("🐱")], cat);
    assert.match(lines[all.indexOf("🇫🇷")], france);
  }
});

test("a search finds by the beginnings of names first, and by all its words", () => {
  const all = ["🐱|cat face", "🙀|weary cat|scared", "🎓|graduation cap|education"].map((line) => {
    const [emoji, name, ...more] = line.split("|");
    return { emoji, name, words: [name, ...more].join(" ") };
  });
  const found = (text) => matching(all, text).map(({ emoji }) => emoji).join("");
  assert.equal(found("cat"), "🐱🙀🎓");
  assert.equal(found(" Cat  sca"), "🙀");
  assert.equal(found("dog"), "");
  assert.equal(matching(all, " "), all);
});

test("a tone of skin colours the people of an emoji, where there is such an emoji", () => {
  for (const [emoji, shown] of [["👍", "👍🏽"], ["☝️", "☝🏽"], ["🧑‍🚀", "🧑🏽‍🚀"], ["👩‍❤️‍👨", "👩🏽‍❤️‍👨🏽"], ["👨‍👩‍👧", "👨‍👩‍👧"], ["🕵️‍♀️", "🕵🏽‍♀️"], ["🐱", "🐱"], ["❤️", "❤️"]]) {
    assert.equal(toned(emoji, "🏽"), shown, emoji);
    assert.equal(toned(emoji, ""), emoji);
  }
});

test("names of emoji are offered behind a colon, and not within times, faces and sentences", async () => {
  globalThis.localStorage = { getItem: () => null, setItem() {} };
  globalThis.document = { documentElement: { lang: "en" }, createElement: () => ({ setAttribute() {}, append() {} }) };
  const offered = await new Promise((resolve) => {
    const source = naming(() => resolve((typed) => source.find(typed).map(({ text }) => text)));
    assert.deepEqual(source.find("cat"), [], "the names are fetched first");
  });
  assert.ok(offered("cat_face").includes("🐱"));
  assert.ok(offered("red_he").includes("❤️"));
  for (const typed of ["", "d", "-)", " cat", "cat face", "//a.example", "3"]) assert.deepEqual(offered(typed), [], typed);
});
