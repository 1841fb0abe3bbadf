// A voice message: a button, the heights of the recording over its time, and the time. The heights are a slider, for keys as well.

import { h, icon } from "./dom.js";
import { clockOf } from "./files.js";
import { t } from "./texts.js";

// Heights that are drawn, and the greatest.
const MOST = 100;
const TOP = 255;

// One plays at a time.
let playing = null;

/** The heights of a waveform (Base64), each from 0 to 1. */
export function heightsOf(waveform) {
  try {
    return [...atob(waveform)].slice(0, MOST).map((letter) => letter.charCodeAt(0) / TOP);
  } catch {
    return [];
  }
}

/** A waveform of so many heights, from loudnesses (0 to 1) as they were heard; the loudest is the highest. */
export function waveformOf(levels, count = 60) {
  const wanted = Math.max(1, Math.min(count, levels.length));
  const loudest = Math.max(0.02, ...levels);
  const bytes = Array.from({ length: wanted }, (_, at) => {
    const [from, to] = [Math.floor(at * levels.length / wanted), Math.floor((at + 1) * levels.length / wanted)];
    return Math.round(TOP * Math.max(0, ...levels.slice(from, Math.max(from + 1, to))) / loudest);
  });
  return btoa(String.fromCharCode(...bytes));
}

/** `card()`: what stands there where it cannot be played. */
export function player({ duration_ms: long = 0, waveform }, address, card) {
  const sound = h("audio", { preload: "none", src: address });
  const bars = heightsOf(waveform).map((height) => {
    const bar = h("i", {});
    bar.style.height = `${Math.max(8, Math.round(height * 100))}%`;
    return bar;
  });
  const time = h("span.quiet", {}, clockOf(long));
  const button = h("button.tool", { type: "button", "data-act": "play", onclick: () => (sound.paused ? sound.play() : sound.pause()) });
  const slider = h("div.waves", { role: "slider", tabindex: "0", "aria-label": t("voice.place"), "aria-valuemin": "0",
    "aria-valuemax": String(Math.max(1, Math.round(long / 1_000))) }, ...bars);
  const element = h("div.voice", { role: "group", "aria-label": t("voice.message") }, sound, button, slider, time);
  // Recordings of browsers do not say how long they are.
  const length = () => (Number.isFinite(sound.duration) ? sound.duration : long / 1_000) || 1;
  const render = () => {
    const share = sound.currentTime / length();
    button.replaceChildren(icon(sound.paused ? "play" : "pause"));
    button.ariaLabel = sound.paused ? t("voice.play") : t("voice.pause");
    bars.forEach((bar, at) => bar.classList.toggle("heard", (at + 0.5) / bars.length <= share));
    time.textContent = clockOf(sound.currentTime ? sound.currentTime * 1_000 : long);
    slider.ariaValueNow = String(Math.round(sound.currentTime));
    slider.ariaValueText = clockOf(sound.currentTime * 1_000);
  };
  const go = (share) => {
    sound.currentTime = Math.max(0, Math.min(1, share)) * length();
    render();
  };
  slider.addEventListener("click", ({ clientX }) => {
    const { left, width } = slider.getBoundingClientRect();
    go((clientX - left) / width);
  });
  slider.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 5, ArrowUp: 5, ArrowLeft: -5, ArrowDown: -5 }[event.key];
    const share = step ? (sound.currentTime + step) / length() : { Home: 0, End: 1 }[event.key];
    if (share === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    go(share);
  });
  sound.addEventListener("play", () => {
    if (playing !== sound) playing?.pause();
    playing = sound;
  });
  for (const event of ["play", "pause", "timeupdate", "ended", "durationchange"]) sound.addEventListener(event, render);
  sound.addEventListener("error", () => element.replaceWith(card()), { once: true });
  render();
  return element;
}
