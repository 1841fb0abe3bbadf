import assert from "node:assert/strict";
import { test } from "node:test";

import "./page.js";
import { hasRoom } from "../static/blobs.js";
import { addressOf, cleanName, clockOf, filesOf, fitted, kindOf, lineOfFiles, saidOf } from "../static/files.js";

const picture = { name: "pier.jpg", type: "image/jpeg", width: 1200, height: 900, previews: ["small"] };

test("a line names files by what they are", () => {
  const line = (...files) => lineOfFiles(files);
  const film = { name: "a.mp4", type: "video/mp4" };
  const paper = { name: "tides.pdf", type: "application/pdf" };
  assert.equal(line(picture), "📷 Picture");
  assert.equal(line(picture, picture, picture), "📷 3 pictures");
  assert.equal(line(film), "🎬 Video");
  assert.equal(line({ name: "v.webm", type: "audio/webm", waveform: "AAEC" }), "🎤 Voice message");
  assert.equal(line(paper), "📎 tides.pdf");
  assert.equal(line(picture, paper), "📎 2 files");
});

test("what a browser cannot show is a card, whatever it says of itself", () => {
  assert.equal(kindOf(picture), "picture");
  assert.equal(kindOf({ ...picture, width: undefined }), "other", "nobody knows how much room it needs");
  assert.equal(kindOf({ ...picture, type: "image/svg+xml" }), "other");
  assert.equal(kindOf({ type: "text/html", waveform: "AAEC" }), "other");
  assert.equal(kindOf({ type: "video/mp4", waveform: "AAEC" }), "voice", "some browsers record in it");
  assert.equal(kindOf({ type: "audio/flac" }), "sound");
});

test("a picture is read by the reader's own row, in the size that is there", () => {
  assert.equal(addressOf(40, { ...picture, id: "f" }, "small"), "/files/40/f/small");
  assert.equal(addressOf(40, { ...picture, id: "f" }, "large"), "/files/40/f");
  assert.deepEqual(filesOf({ body: { text: "" } }), []);
  assert.deepEqual(filesOf({ body: { text: "" }, carried: { message_id: 4, files: [picture] } }), [picture]);
});

test("a name is one that the server takes", () => {
  assert.equal(cleanName("../pier\u202egpj.exe"), ".._piergpj.exe");
  assert.equal(cleanName(" a\nb.txt "), "ab.txt");
  assert.equal(cleanName("潮汐 👩‍👧.png"), "潮汐 👩‍👧.png");
  for (const name of ["", ".", "..", "\u200e"]) assert.equal(cleanName(name), "file");
  const long = cleanName(`${"é".repeat(300)}.jpg`);
  assert.equal([...long].length, 255);
  assert.match(long, /é\.jpg$/);
});

test("a box has the form of its picture, within bounds", () => {
  assert.deepEqual(fitted({ width: 4000, height: 3000 }, 320), { width: 320, height: 240 });
  assert.deepEqual(fitted({ width: 100, height: 80 }, 320), { width: 100, height: 80 });
  assert.deepEqual(fitted({ width: 1, height: 10_000 }, 320), { width: 64, height: 320 });
  assert.deepEqual([clockOf(400), clockOf(65_000), clockOf(3_605_000)], ["0:00", "1:05", "1:00:05"]);
});

test("a message says of a file what the server does not find out", () => {
  assert.deepEqual(saidOf(picture), {});
  assert.deepEqual(saidOf({ type: "video/webm", width: 4, height: 3, duration_ms: 5 }), { width: 4, height: 3, duration_ms: 5 });
  assert.deepEqual(saidOf({ type: "audio/webm", waveform: "AA==", duration_ms: 5 }), { duration_ms: 5, waveform: "AA==" });
});

test("what waits has bounds", () => {
  const waiting = (count, size, state = "waiting") => ({ state, files: Array.from({ length: count }, () => ({ size })) });
  assert.equal(hasRoom([{ state: "waiting" }, waiting(80, 1)], [{ size: 1 }]), true);
  assert.equal(hasRoom([waiting(90, 1)], [{ size: 1 }]), false);
  assert.equal(hasRoom([waiting(90, 1, "sent")], [{ size: 1 }]), true);
  assert.equal(hasRoom([waiting(2, 2 ** 29)], [{ size: 1 }]), false);
});
