import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import "./page.js";
import { hindrance, nameOfRecording, reasonOf, record } from "../static/recorder.js";

let stopped;
let ticks;
const { setInterval: every, clearInterval: never } = globalThis;

beforeEach(() => {
  stopped = 0;
  ticks = [];
  globalThis.isSecureContext = true;
  globalThis.setInterval = (work) => ticks.push(work);
  globalThis.clearInterval = () => { ticks.length = 0; };
  navigator.mediaDevices = { getUserMedia: async () => ({ getTracks: () => [{ stop: () => { stopped += 1; } }] }) };
  globalThis.MediaRecorder = class {
    static isTypeSupported(form) { return form.startsWith("audio/ogg"); }
    constructor(_, { mimeType }) { Object.assign(this, { mimeType, state: "inactive" }); }
    start() { this.state = "recording"; }
    stop() {
      this.state = "inactive";
      this.ondataavailable({ data: new Blob(["sound"]) });
      this.onstop();
    }
  };
  globalThis.AudioContext = class {
    createAnalyser() { return { fftSize: 4, getFloatTimeDomainData: (samples) => samples.fill(0.1) }; }
    createMediaStreamSource() { return { connect: () => {} }; }
    async close() {}
  };
});

afterEach(() => Object.assign(globalThis, { setInterval: every, clearInterval: never }));

test("a recording is a file with its length and its form, and the microphone is given back", async () => {
  const heard = [];
  const recording = await record((_, level) => heard.push(level));
  for (let tick = 0; tick < 3; tick += 1) ticks[0]();
  const file = await recording.stop();
  assert.equal(file.type, "audio/ogg");
  assert.match(file.name, /^voice-.*\.ogg$/);
  assert.equal(await file.blob.text(), "sound");
  assert.deepEqual([file.size, stopped, ticks.length], [5, 1, 0]);
  assert.equal(atob(file.waveform).length, 3);
  assert.deepEqual(heard.map((level) => Math.round(level * 10)), [4, 4, 4]);
});

test("a recording that is cancelled gives the microphone back, too", async () => {
  const recording = await record(() => {});
  await recording.cancel();
  assert.equal(stopped, 1);
});

test("why nothing can be recorded is told apart", () => {
  assert.equal(hindrance(), null);
  delete globalThis.MediaRecorder;
  assert.equal(hindrance(), "unsupported");
  globalThis.isSecureContext = false;
  assert.equal(hindrance(), "insecure");
  assert.deepEqual(["NotAllowedError", "NotFoundError", "AbortError"].map((name) => reasonOf({ name })), ["denied", "none", "failed"]);
  assert.equal(nameOfRecording("audio/mp4", new Date(2026, 10, 9, 8, 7, 6)), "voice-2026-11-09-080706.m4a");
});
