import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import "./page.js";
import { Refusal } from "../static/api.js";
import { upload } from "../static/tus.js";
import { Uploads } from "../static/uploads.js";
import { blobOf, bytesOf, server } from "./tus.js";

const PART = 2 * 1_048_576;
const lost = () => new Refusal(0, { retryable: true });

let world;
beforeEach(() => { world = server(); });

const begin = (blob, more = {}) => upload(blob, { name: "潮.bin", began: async () => {}, send: world.send, ...more });

test("a file goes up in parts, under its name", async () => {
  const blob = blobOf(2 * PART + 5);
  const told = [];
  assert.equal(await begin(blob, { progressed: (bytes) => told.push(bytes) }), "f1");
  assert.deepEqual(world.log, ["POST /files", "PATCH /files/f1 0", `PATCH /files/f1 ${PART}`, `PATCH /files/f1 ${2 * PART}`]);
  assert.deepEqual(world.files.get("f1").bytes, await bytesOf(blob));
  assert.equal(new TextDecoder().decode(Uint8Array.from(world.files.get("f1").name, (letter) => letter.charCodeAt(0))), "潮.bin");
  assert.equal(told.at(-1), blob.size);
  assert.deepEqual(told, told.toSorted((a, b) => a - b), "it never goes back");
});

test("an upload goes on where the server has it, whatever was lost", async () => {
  const blob = blobOf(10);
  world.answers = [{}, { cut: 4, lost: lost() }];
  await assert.rejects(begin(blob), { status: 0 });
  assert.equal(await begin(blob, { id: "f1" }), "f1");
  assert.deepEqual(world.log.slice(2), ["HEAD /files/f1", "PATCH /files/f1 4"]);
  assert.deepEqual(world.files.get("f1").bytes, await bytesOf(blob));
  // All of it was there; the answer alone was lost.
  world.log.length = 0;
  assert.equal(await begin(blob, { id: "f1" }), "f1");
  assert.deepEqual(world.log, ["HEAD /files/f1"]);
});

test("an upload that the server has forgotten begins anew, and one that has come further goes on there", async () => {
  const kept = [];
  assert.equal(await begin(blobOf(10), { id: "gone", began: async (id) => kept.push(id) }), "f1");
  assert.deepEqual(kept, ["f1"]);
  const blob = blobOf(10);
  world.files.get("f1").bytes.length = 6;
  world.answers = [{}, { refuse: [409, {}, { code: "upload_elsewhere", retryable: true }] }];
  assert.equal(await begin(blob, { id: "f1" }), "f1");
  assert.deepEqual(world.files.get("f1").bytes, await bytesOf(blob));
});

/** The bytes of messages, in memory. */
class Kept {
  constructor(blobs) { Object.assign(this, { blobs, ids: new Map() }); }
  async blob(client_id, n) { return this.blobs[client_id]?.[n]; }
  async upload(client_id, n) { return this.ids.get(`${client_id} ${n}`); }
  async began(client_id, n, id) { this.ids.set(`${client_id} ${n}`, id); }
}

const item = (client_id, ...sizes) => ({
  client_id, state: "waiting", sent_at: new Date().toISOString(), files: sizes.map((size, n) => ({ name: `${client_id}${n}`, size, type: "text/plain" })),
});

/** Uploads over these messages; `ended` answers what became of them, in order. */
function uploads(items) {
  const blobs = new Kept(Object.fromEntries(items.map(({ client_id, files }) => [client_id, files.map(({ size }) => blobOf(size))])));
  const ended = [];
  const shares = [];
  let wake;
  const one = new Uploads({
    blobs, send: world.send,
    settled: async (client_id, fields) => {
      ended.push([client_id, fields]);
      wake?.();
      return items.find((each) => each.client_id === client_id && !each.isGone);
    },
    progressed: (client_id, share) => shares.push(share),
  });
  const next = () => new Promise((resolve) => { wake = resolve; });
  return { one, blobs, ended, shares, next };
}

test("a message waits until its files are up, one after the other", async () => {
  const message = item("a", 3, 5);
  const { one, ended, shares, next } = uploads([message]);
  const done = next();
  assert.equal(one.isUp({ files: undefined }), true);
  assert.equal(one.isUp(message), false);
  assert.equal(one.isUp(message), false, "it is begun once");
  await done;
  assert.deepEqual(ended, [["a", { up: [{ id: "f1" }, { id: "f2" }] }]]);
  assert.equal(one.isUp({ ...message, up: [{ id: "f1" }, { id: "f2" }] }), true);
  assert.equal(shares.at(-1), 1);
});

test("after a lost connection it goes on by itself, at once when there is one again", async () => {
  const message = item("a", 10);
  world.answers = [{}, { cut: 4, lost: lost() }];
  const { one, ended, next } = uploads([message]);
  const done = next();
  one.isUp(message);
  while (world.log.length < 2) await new Promise(setImmediate);
  await new Promise(setImmediate);
  one.wake();
  await done;
  assert.deepEqual(ended, [["a", { up: [{ id: "f1" }] }]]);
  assert.deepEqual(world.log, ["POST /files", "PATCH /files/f1 0", "HEAD /files/f1", "PATCH /files/f1 4"]);
});

test("a page that was loaded anew goes on with what an earlier one has begun", async () => {
  const message = item("a", 10);
  const { one, blobs, ended, next } = uploads([message]);
  await begin(blobOf(10));
  world.files.get("f1").bytes.length = 7;
  world.log.length = 0;
  await blobs.began("a", 0, "f1");
  const done = next();
  one.isUp(message);
  await done;
  assert.deepEqual(world.log, ["HEAD /files/f1", "PATCH /files/f1 7"]);
  assert.deepEqual(ended[0][1], { up: [{ id: "f1" }] });
});

test("a file that is refused ends its message with the reason", async () => {
  const message = item("a", 3);
  world.answers = [{ refuse: [422, {}, { code: "file_type_refused", detail: "no programs", retryable: false }] }];
  const { one, ended, next } = uploads([message]);
  const done = next();
  one.isUp(message);
  await done;
  assert.deepEqual(ended, [["a", { state: "failed", code: "file_type_refused", reason: "no programs", up: null }]]);
});

test("a file whose bytes are gone ends its message", async () => {
  const message = { ...item("a", 3), sent_at: "2026-01-01T00:00:00Z" };
  const { one, blobs, ended, next } = uploads([message]);
  blobs.blobs = {};
  const done = next();
  one.isUp(message);
  await done;
  assert.equal(ended[0][1].code, "file_lost");
});

test("a message that was taken back is uploaded no further, and its upload is ended", async () => {
  const message = item("a", 10);
  world.answers = [{}, { cut: 4, lost: lost() }];
  const { one, ended } = uploads([message]);
  one.isUp(message);
  while (world.log.length < 2) await new Promise(setImmediate);
  one.only([]);
  while (!world.log.includes("DELETE /files/f1")) await new Promise(setImmediate);
  await new Promise(setImmediate);
  assert.deepEqual([ended, world.files.size, one.running.size], [[], 0, 0]);
});

test("at most two messages are uploaded at once", async () => {
  const messages = ["a", "b", "c"].map((id) => item(id, 3));
  const { one, ended, next } = uploads(messages);
  const done = next();
  for (const each of messages) one.isUp(each);
  assert.deepEqual([...one.running.keys()], ["a", "b"]);
  await done;
  while (ended.length < 2) await new Promise(setImmediate);
  await new Promise(setImmediate);
  one.isUp(messages[2]);
  while (ended.length < 3) await new Promise(setImmediate);
  assert.deepEqual(ended.map(([id]) => id).sort(), ["a", "b", "c"]);
});
