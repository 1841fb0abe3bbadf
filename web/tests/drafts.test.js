import assert from "node:assert/strict";
import { test } from "node:test";

import { Drafts } from "../static/drafts.js";
import { keepState } from "../static/state.js";

const ID = "u:10002";
const ME = { uid: 10_001, textCharacters: 80 };
const LONG = "x".repeat(ME.textCharacters + 1);
// As long as a message may be, although `length` is twice as much.
const EMOJI = "\u{1f30a}".repeat(ME.textCharacters);

test("other devices are told a draft, and have none where it is too long for them", () => {
  const told = [];
  let known = null;
  const set = (name, id, value) => {
    told.push([name, id, value]);
    known = value;
  };
  const store = { self: ME, drafts: new Map(), setting: () => known, set, db: { told() {} } };
  const drafts = new Drafts(store);
  for (const text of ["half a", LONG, `${LONG}x`, LONG.slice(1), `${EMOJI}x`, EMOJI]) {
    store.drafts.set(ID, text);
    drafts.tell(ID);
  }
  assert.deepEqual(told, ["half a", null, LONG.slice(1), null, EMOJI].map((text) => ["draft", ID, text && { text }]));
});

/** The draft that is kept once a device is told of `value`, where `here` is kept. */
async function after(here, value, isOwn, untold) {
  const drafts = new Map(here === undefined ? [] : [[ID, { id: ID, text: here, untold }]]);
  const store = (rows, keyOf) => ({
    get: (key) => {
      const request = {};
      queueMicrotask(() => request.onsuccess(request.result = rows.get(key)));
      return request;
    },
    put: (row) => rows.set(keyOf(row), row),
    delete: (key) => rows.delete(key),
  });
  const settings = store(new Map(), ({ name }) => name);
  const row = { kind: "setting", conversation: ID, sender: ME.uid, body: { name: "draft", value } };
  await keepState(row, { settings, drafts: store(drafts, ({ id }) => id) }, ME, isOwn);
  return drafts.get(ID)?.text;
}

test("what a device is told takes the place of its draft, unless it said so itself or has one that is nowhere else", async () => {
  assert.equal(await after("half a", { text: "half a line" }), "half a line");
  assert.equal(await after(undefined, { text: "half a line" }), "half a line");
  assert.equal(await after("half a", null), undefined);
  assert.equal(await after("half a line", null, true), "half a line");
  assert.equal(await after(LONG, null), LONG);
  assert.equal(await after(LONG, { text: "of another device" }), LONG);
  assert.equal(await after(LONG.slice(1), null), undefined);
  assert.equal(await after(EMOJI, null), undefined);
  assert.equal(await after(`${EMOJI}x`, null), `${EMOJI}x`);
  // What was typed, or emptied, just before a page was left.
  assert.equal(await after("half a line", { text: "half a" }, false, true), "half a line");
  assert.equal(await after("", { text: "half a" }, false, true), "");
});
