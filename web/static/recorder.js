// Records a voice message: the microphone, the bytes, and how loud it was. Knows nothing of the page.

import { waveformOf } from "./player.js";

// The longest recording.
export const MOST_MS = 15 * 60_000;
// How often it is heard how loud it is.
const HEAR_MS = 50;
// The forms in which browsers record, the form that most others play first.
const FORMS = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus"];
const ENDS = { "audio/webm": "webm", "audio/mp4": "m4a", "audio/ogg": "ogg" };

/** Why nothing can be recorded here, as the end of a text's key; null: it can, as far as one knows. */
export function hindrance() {
  if (!globalThis.isSecureContext) return "insecure";
  if (!navigator.mediaDevices?.getUserMedia || !globalThis.MediaRecorder) return "unsupported";
  return null;
}

/** The same, from what the browser threw. */
export function reasonOf({ name }) {
  if (name === "NotAllowedError" || name === "SecurityError") return "denied";
  return name === "NotFoundError" || name === "OverconstrainedError" ? "none" : "failed";
}

/** The name of a recording, by the local time. */
export function nameOfRecording(type, now = new Date()) {
  const two = (number) => String(number).padStart(2, "0");
  const day = [now.getFullYear(), two(now.getMonth() + 1), two(now.getDate())].join("-");
  return `voice-${day}-${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}.${ENDS[type] ?? "webm"}`;
}

/**
 * Begins to record. `heard(milliseconds, loudness)` runs again and again, loudness from 0 to 1. Answers {stop, cancel}: `stop` answers the
 * file, as a message takes it.
 */
export async function record(heard) {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true } });
  const mimeType = FORMS.find((form) => MediaRecorder.isTypeSupported(form));
  const recorder = new MediaRecorder(stream, { ...(mimeType && { mimeType }), audioBitsPerSecond: 32_000 });
  const context = new AudioContext();
  const ears = context.createAnalyser();
  context.createMediaStreamSource(stream).connect(ears);
  const samples = new Float32Array(ears.fftSize);
  const levels = [];
  const pieces = [];
  const began = performance.now();
  recorder.ondataavailable = ({ data }) => pieces.push(data);
  const ended = new Promise((resolve) => { recorder.onstop = resolve; });
  recorder.start();
  const clock = setInterval(() => {
    ears.getFloatTimeDomainData(samples);
    const level = Math.min(1, Math.sqrt(samples.reduce((sum, one) => sum + one * one, 0) / samples.length) * 4);
    levels.push(level);
    heard(performance.now() - began, level);
  }, HEAR_MS);
  const end = async () => {
    clearInterval(clock);
    const long = Math.min(MOST_MS, Math.round(performance.now() - began));
    if (recorder.state !== "inactive") recorder.stop();
    await ended;
    // The sign of the browser that a microphone is on goes.
    for (const track of stream.getTracks()) track.stop();
    context.close().catch(() => {});
    return long;
  };
  return {
    cancel: end,
    stop: async () => {
      const long = await end();
      const type = recorder.mimeType.split(";")[0] || "audio/webm";
      const blob = new Blob(pieces, { type });
      return { blob, name: nameOfRecording(type), size: blob.size, type, duration_ms: long, waveform: waveformOf(levels) };
    },
  };
}
