import assert from "node:assert/strict";
import { test } from "node:test";

import { parse } from "../static/markdown.js";
import { mentionsIn, withMentions } from "../static/mentions.js";
import { mentions } from "../static/state.js";

const PEOPLE = [{ uid: 2, name: "Ann" }, { uid: 3, name: "Ann Smith" }, { uid: 4, name: "小明" }, { uid: 5, name: "x_y" }];

test("names are found where they are meant, the longest first, whatever their case", () => {
  const users = (text) => mentionsIn(text, PEOPLE)?.users ?? [];
  assert.deepEqual(users("@Ann, is it in?"), [2]);
  assert.deepEqual(users("(@ann smith)"), [3]);
  assert.deepEqual(users("@Ann and @Ann Smith and @Ann"), [2, 3]);
  assert.deepEqual(users("你好@小明来一下"), [4]);
  assert.deepEqual(users("me@Ann.org, @Anna, @ Ann, Ann"), []);
  assert.equal(mentionsIn("nobody @allegro", PEOPLE), null);
  assert.deepEqual(mentionsIn("@all: nine", PEOPLE), { users: [], all: true });
  const many = Array.from({ length: 70 }, (_, n) => ({ uid: n + 1, name: `p${n}` }));
  assert.equal(mentionsIn(many.map(({ name }) => `@${name}`).join(" "), many).users.length, 50);
});

test("mentions are marked in words, and not in code or addresses", () => {
  const named = [{ name: "Ann", me: true }, { name: "x_y", me: false }];
  const marked = withMentions(parse("**@Ann** `@Ann` https://a.org/@Ann @x_y\n- @Ann"), named);
  const found = JSON.stringify(marked).match(/"kind":"mention","text":"[^"]+"/g);
  assert.deepEqual(found, ['"kind":"mention","text":"@Ann"', '"kind":"mention","text":"@x_y"', '"kind":"mention","text":"@Ann"']);
  assert.deepEqual(withMentions(["@Bob"], named), ["@Bob"]);
});

test("a message of somebody else in a group names one, or everybody", () => {
  const row = (fields) => ({ kind: "message", sender: 2, conversation: "g:7", body: {}, ...fields });
  assert.ok(!mentions(row(), 1));
  assert.ok(mentions(row({ body: { mentions: { users: [1] } } }), 1));
  assert.ok(mentions(row({ body: { mentions: { users: [], all: true } } }), 1));
  assert.ok(!mentions(row({ body: { mentions: { users: [1] } }, sender: 1 }), 1));
  assert.ok(!mentions(row({ body: { mentions: { users: [1] } }, conversation: "u:2" }), 1));
});
