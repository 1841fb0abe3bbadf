import assert from "node:assert/strict";
import { test } from "node:test";

import "./page.js";
import { heightsOf, waveformOf } from "../static/player.js";
import { Album } from "../static/viewer.js";

const picture = (id) => ({ id, name: `${id}.png`, type: "image/png", width: 4, height: 3 });
const row = (message_id, ...files) => ({ message_id, kind: "message", body: { text: "", ...(files.length && { files }) } });

/** Rows of a conversation as db.js gives them. */
const pages = (rows) => async ({ before = Infinity, after = 0, limit, forward = false }) => {
  const found = rows.filter(({ message_id }) => message_id > after && message_id < before);
  return forward ? found.slice(0, limit) : found.slice(-limit);
};

test("an album goes through all pictures of a conversation, past rows without one", async () => {
  const plain = (from, count) => Array.from({ length: count }, (_, at) => row(from + at));
  const paper = { id: "p", name: "a.pdf", type: "application/pdf" };
  const taken = { ...row(700, picture("gone")), kind: "recalled" };
  const rows = [row(1, picture("a")), ...plain(2, 150), row(200, picture("b"), paper, picture("c")), row(201), taken, row(900, picture("d"))];
  const album = new Album(pages(rows), rows.find(({ message_id }) => message_id === 200), "c");
  assert.equal(album.current.file.id, "c");
  const seen = [];
  while (await album.go(1)) seen.push(album.current.file.id);
  assert.deepEqual(seen, ["d"]);
  while (await album.go(-1)) seen.push(album.current.file.id);
  assert.deepEqual(seen, ["d", "c", "b", "a"]);
  assert.equal(await album.go(-1), false);
  assert.equal(album.current.file.id, "a");
});

test("a waveform keeps the form of what was heard, the loudest as the highest", () => {
  const heights = heightsOf(waveformOf([0, 0.1, 0.2, 0.1], 4));
  assert.deepEqual(heights.map((height) => Math.round(height * 10)), [0, 5, 10, 5]);
  const long = waveformOf(Array.from({ length: 5_000 }, (_, at) => (at % 50) / 100));
  assert.equal(heightsOf(long).length, 60);
  assert.ok(long.length <= 136, "the server takes no more");
  assert.equal(heightsOf(waveformOf([])).length, 1);
  assert.deepEqual(heightsOf("?"), []);
});
