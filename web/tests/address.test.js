import assert from "node:assert/strict";
import { test } from "node:test";

import { isOwn, linkTo, named, pathOf } from "../static/address.js";

const KEY = "6f1c1f9e-0000-4000-8000-000000000001";

test("an address names a conversation, a message of it, or a page beside them", () => {
  assert.deepEqual(named("/c/u:5"), { id: "u:5", page: null, at: null });
  assert.deepEqual(named("/c/u:5/m/123"), { id: "u:5", page: null, at: { message_id: 123 } });
  assert.deepEqual(named(`/c/g:7/m/5:${KEY}`), { id: "g:7", page: null, at: { sender: 5, client_id: KEY } });
  assert.deepEqual(named("/moments"), { id: null, page: "moments", at: null });
  for (const other of ["/", "/c/u:0", "/c/u:5/m/", "/c/u:5/m/x", "/c/u:5/", "/docs"]) assert.deepEqual(named(other), { id: null, page: null, at: null });
});

test("the way back is the same", () => {
  for (const path of ["/c/u:5", "/c/u:5/m/123", `/c/g:7/m/5:${KEY}`]) {
    const { id, at } = named(path);
    assert.equal(pathOf(id, at ?? undefined), path);
  }
  assert.equal(pathOf(null), "/");
});

test("a link to a message of a group is right for everybody who has it", () => {
  globalThis.location = { origin: "https://chat.example" };
  const row = { message_id: 9, sender: 5, client_id: KEY };
  assert.equal(linkTo({ ...row, conversation: "g:7" }), `https://chat.example/c/g:7/m/5:${KEY}`);
  assert.equal(linkTo({ ...row, conversation: "u:5" }), "https://chat.example/c/u:5/m/9");
  assert.ok(isOwn(new URL(linkTo({ ...row, conversation: "g:7" }))));
  assert.ok(!isOwn(new URL("https://other.example/c/u:5")) && !isOwn(new URL("https://chat.example/docs")));
});
