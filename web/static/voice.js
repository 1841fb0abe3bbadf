// The button for voice messages: held, it records until it is let go; slid to the side, nothing is sent; slid up, or pressed shortly, it
// goes on by itself until somebody sends or cancels it. By keyboard: Enter begins, Enter ends, Escape cancels.

import { $, h, icon } from "./dom.js";
import { clockOf } from "./files.js";
import { MOST_MS, hindrance, reasonOf, record } from "./recorder.js";
import { t } from "./texts.js";

// Pixels to the side that cancel, and up that lock.
const AWAY = 80;
const UP = 60;
// A press that is shorter is no hold.
const HOLD_MS = 400;
// A recording that is shorter was a mistake.
const LEAST_MS = 300;

/** `send(file)` sends a recording in the open conversation. Answers {cancel}. */
export function voiceButton(send) {
  const button = $("record");
  // {recording, isLocked, from: where it was pressed, at: and when}; null: nothing is recorded.
  let now = null;
  const time = h("span.time", {}, clockOf(0));
  const meter = h("span.level", { "aria-hidden": "true" }, h("i", {}));
  const hint = h("span.quiet.last", {}, "");
  const away = h("button.link", { type: "button", onclick: () => end(false) }, t("voice.cancel"));
  const done = h("button.tool.send", { type: "button", title: t("voice.send"), onclick: () => end(true) }, icon("send"));
  const bar = h("div.recording", { role: "group", "aria-label": t("voice.recording"), hidden: "" },
    icon("mic"), time, meter, hint, away, done);
  const said = h("p.problem", { role: "alert" });
  $("composer").prepend(bar);
  $("composer").append(said);

  const render = () => {
    bar.hidden = !now?.recording;
    away.hidden = done.hidden = !now?.isLocked;
    hint.textContent = now?.isLocked ? "" : t("voice.slide");
  };
  const lock = () => {
    if (!now || now.isLocked) return;
    now.isLocked = true;
    render();
    if (now.recording) done.focus();
  };
  const begin = async (from, isLocked) => {
    if (now) return;
    said.textContent = "";
    time.textContent = clockOf(0);
    const why = hindrance();
    if (why) return void (said.textContent = t(`voice.${why}`));
    const own = now = { recording: null, isLocked, from, at: performance.now() };
    try {
      const recording = await record((milliseconds, level) => {
        time.textContent = clockOf(milliseconds);
        meter.firstChild.style.width = `${Math.round(level * 100)}%`;
        if (milliseconds >= MOST_MS && now === own) end(true);
      });
      if (now !== own) return void recording.cancel();
      own.recording = recording;
      $("announce").textContent = t("voice.recording");
      render();
      if (own.isLocked) done.focus();
    } catch (problem) {
      if (now === own) now = null;
      said.textContent = t(`voice.${reasonOf(problem)}`);
    }
  };
  const end = async (isSent) => {
    const own = now;
    now = null;
    if (!own) return;
    const hadFocus = bar.contains(document.activeElement);
    render();
    if (hadFocus) button.focus();
    $("announce").textContent = isSent ? "" : t("voice.cancelled");
    if (!own.recording) return;
    if (!isSent) return void own.recording.cancel();
    const file = await own.recording.stop();
    if (file.size && file.duration_ms >= LEAST_MS) send(file);
  };

  button.addEventListener("pointerdown", (event) => {
    if (event.button || button.disabled) return;
    // The focus stays in the box, and the finger here.
    event.preventDefault();
    button.setPointerCapture(event.pointerId);
    begin({ x: event.clientX, y: event.clientY }, false);
  });
  button.addEventListener("pointermove", ({ clientX, clientY }) => {
    if (!now?.from || now.isLocked) return;
    const isRight = getComputedStyle(button).direction === "rtl";
    const side = (clientX - now.from.x) * (isRight ? 1 : -1);
    if (side > AWAY) end(false);
    else if (now.from.y - clientY > UP) lock();
  });
  button.addEventListener("pointerup", () => {
    if (!now || now.isLocked) return;
    const isShort = performance.now() - now.at < HOLD_MS || !now.recording;
    isShort ? lock() : end(true);
  });
  button.addEventListener("pointercancel", () => { if (now && !now.isLocked) end(false); });
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  // By a key, or by a program that reads the page; a pointer has been heard already.
  button.addEventListener("click", (event) => { if (!event.pointerType && !event.detail) now ? end(true) : begin(null, true); });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !now) return;
    event.preventDefault();
    event.stopPropagation();
    end(false);
  }, true);
  addEventListener("pagehide", () => end(false));
  return { cancel: () => end(false) };
}
