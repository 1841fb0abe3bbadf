import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { parse, words } from "../static/markdown.js";
import { ALL, mentionsIn } from "../static/mentions.js";
import { mentions } from "../static/state.js";

const PEOPLE = [{ uid: 2, name: "Ann" }, { uid: 3, name: "Ann Smith" }, { uid: 4, name: "小明" }, { uid: 5, name: "x_y" }];
const named = (text, people = PEOPLE) => mentionsIn(parse(text, [...people, ALL]));
const users = (text, people) => named(text, people)?.users ?? [];

test("names are found where they are meant, the longest first, whatever their case", () => {
  assert.deepEqual(users("@Ann, is it in?"), [2]);
  assert.deepEqual(users("(@ann smith)"), [3]);
  assert.deepEqual(users("@Ann and @Ann Smith and @Ann"), [2, 3]);
  assert.deepEqual(users("你好@小明来一下"), [4]);
  assert.deepEqual(users("me@Ann.org, @Anna, @ Ann, Ann"), []);
  assert.equal(named("nobody @allegro"), null);
  assert.deepEqual(named("@all: nine"), { users: [], all: true });
  const many = Array.from({ length: 70 }, (_, n) => ({ uid: n + 1, name: `p${n}` }));
  assert.equal(users(many.map(({ name }) => `@${name}`).join(" "), many).length, 50);
});

test("letters of every script belong to the word that they stand in", () => {
  const of = (...names) => names.map((name, at) => ({ uid: at + 2, name }));
  const people = of("Иван", "Zoë", "Γιώργος", "אבי", "अनिता", "علی", "𞤀𞤣𞤢", "👩", "민수", "ทักษิณ", "Ann");
  for (const text of ["@Иванна", "почта@Иван", "@Zoëlle", "@Zoë\u0301", "@Γιώργοςα", "@אביב", "@अनिताः",
    "@علیرضا", "@𞤀𞤣𞤢𞤥", "𞤀@Ann", "@👩‍💻", "@👩🏽", "é@Ann", "e\u0301@Ann", "@Ann_x", "x_@Ann", "@Annе",
    "٣@Ann"]) assert.deepEqual(users(text, people), [], text);
  for (const [text, uid] of [["@Иван!", 2], ["@zoe\u0308, come", 3], ["@ΓΙΏΡΓΟΣ", 4], ["(@אבי)", 5], ["@अनिता।", 6],
    ["@علی؟", 7], ["@𞤀𞤣𞤢 x", 8], ["@👩 x", 9], ["@민수는", 10], ["@ทักษิณมา", 11], ["好@Ann", 12],
    ["@Ann’s", 12], ["👍@Ann", 12], ["_@Ann_", 12]]) assert.deepEqual(users(text, people), [uid], text);
});

test("code and addresses name nobody, and names with marks in them are names", () => {
  for (const text of ["`@Ann`", "```\n@Ann\n```", "https://a.example/@Ann", "[@Ann](https://a.example/)",
    "[@all](https://a.example/)", "`@all`"]) {
    assert.equal(named(text), null, text);
  }
  assert.deepEqual(users("**@Ann** > @x_y\n- @小明"), [2, 5, 4]);
  const starred = [{ uid: 9, name: "*Ann*" }, { uid: 10, name: "a `b`" }];
  assert.deepEqual(users("_@*Ann*_ @a `b`", starred), [9, 10]);
  assert.equal(words(parse("@*Ann*", starred)), "@*Ann*");
});

test("a word for everybody is never one account", () => {
  const people = [{ uid: 7, name: "all" }, { uid: 8, name: "所有人" }];
  for (const text of ["@all", "@ALL", "大家好@所有人开会"]) assert.deepEqual(named(text, people), { users: [], all: true }, text);
  assert.equal(mentionsIn(parse("@all", people)), null);
  const reserved = /const RESERVED.*;\n/.exec(readFileSync(new URL("../../server/src/domain/name.rs", import.meta.url), "utf8"));
  for (const word of ["all", "所有人"]) assert.ok(reserved[0].includes(`"${word}"`), word);
});

test("mentions stand in the tree where they were found", () => {
  const people = [{ name: "Ann", me: true }, { name: "x_y", me: false }];
  const marked = parse("**@Ann** `@Ann` https://a.org/@Ann @x_y\n- @Ann", people);
  const found = JSON.stringify(marked).match(/"kind":"mention","text":"[^"]+"/g);
  assert.deepEqual(found, ['"kind":"mention","text":"@Ann"', '"kind":"mention","text":"@x_y"', '"kind":"mention","text":"@Ann"']);
  assert.deepEqual(parse("@Bob", people), ["@Bob"]);
});

test("a message of somebody else in a group names one, or everybody", () => {
  const row = (fields) => ({ kind: "message", sender: 2, conversation: "g:7", body: {}, ...fields });
  assert.ok(!mentions(row(), 1));
  assert.ok(mentions(row({ body: { mentions: { users: [1] } } }), 1));
  assert.ok(mentions(row({ body: { mentions: { users: [], all: true } } }), 1));
  assert.ok(!mentions(row({ body: { mentions: { users: [1] } }, sender: 1 }), 1));
  assert.ok(!mentions(row({ body: { mentions: { users: [1] } }, conversation: "u:2" }), 1));
});
