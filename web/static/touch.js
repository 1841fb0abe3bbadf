// Fingers: a long press is a right click, a swipe to the right replies, and what a tooltip says can be had. Menus listen for
// `contextmenu`, which comes by the right button, by the menu key, and from here.

import { h, place } from "./dom.js";

// How long a press is a long one.
const PRESS_MS = 500;
// Pixels that a finger which presses may move.
const STILL = 10;
// Pixels of a swipe that counts, and the most that a message follows the finger.
const SWIPE = 56;
const MOST_SWIPE = 80;
// Pixels at the edge of the window where a swipe is the browser's own.
const EDGE = 24;
// A click this soon after a long press belongs to it.
const CLICK_MS = 400;
// How long a tooltip stands there.
const TIP_MS = 3_000;

// Where a long press is ours; in fields, on links within a text and on players it is the browser's.
const HELD = ".msg, .row, [title]";
const NATIVE = "input, textarea, .words a, audio, video, .waves";

/** Whether fingers are the first way to point: keys may be missing, and a keyboard covers half of the page. */
export const isTouch = () => matchMedia("(pointer: coarse)").matches;

/** Answers {show(element), hide()}: the title of an element, beside it. */
function tooltip() {
  const tip = h("div.tip", { popover: "manual", role: "status" });
  let hiding;
  const hide = () => {
    clearTimeout(hiding);
    if (tip.matches(":popover-open")) tip.hidePopover();
  };
  const show = (element) => {
    if (!element?.title) return;
    tip.textContent = element.title;
    element.closest("dialog, main")?.append(tip);
    tip.showPopover();
    place(tip, element);
    hiding = setTimeout(hide, TIP_MS);
  };
  return { show, hide };
}

/** Begins to hear fingers. `reply(id)`: the message with this id was swiped. */
export function hearFingers(reply) {
  // The one on the page: where it came down, on what, and what it does.
  let finger = null;
  let clicksFrom = -Infinity;
  let pressed = null;
  const tip = tooltip();

  const lift = () => {
    clearTimeout(finger?.timer);
    finger?.message?.style.removeProperty("translate");
    finger = null;
  };

  document.addEventListener("pointerdown", ({ target, pointerType, isPrimary, clientX: x, clientY: y }) => {
    lift();
    clicksFrom = -Infinity;
    pressed = target;
    tip.hide();
    if (pointerType !== "touch" || !isPrimary || target.closest(NATIVE)) return;
    const message = x > EDGE ? target.closest(".msg") : null;
    const held = target.closest(HELD);
    finger = { held, target: held && target, message, x, y, moved: 0, isHeld: false };
    finger.timer = setTimeout(() => {
      finger.isHeld = Boolean(finger.target);
      if (finger.isHeld) navigator.vibrate?.(10);
    }, PRESS_MS);
  });

  document.addEventListener("pointermove", ({ clientX, clientY }) => {
    if (!finger || finger.isHeld) return;
    const [right, down] = [clientX - finger.x, clientY - finger.y];
    if (Math.hypot(right, down) > STILL) clearTimeout(finger.timer);
    if (!finger.message?.dataset.row || right < STILL && !finger.moved) return;
    finger.moved = Math.abs(down) < right ? Math.min(right, MOST_SWIPE) : 0;
    finger.message.style.translate = `${finger.moved}px`;
  }, { passive: true });

  document.addEventListener("pointerup", (event) => {
    if (!finger) return;
    const { held, target, message, moved, isHeld, x, y } = finger;
    lift();
    if (moved >= SWIPE) reply(Number(message.dataset.row));
    if (!isHeld) return;
    clicksFrom = event.timeStamp;
    // Later: what is opened while a finger is down is closed when it is lifted.
    setTimeout(() => {
      const asked = new MouseEvent("contextmenu", { bubbles: true, cancelable: true, clientX: x, clientY: y });
      // What is within a message may have been drawn anew meanwhile.
      const at = target.isConnected ? target : held;
      if (at.isConnected && at.dispatchEvent(asked)) tip.show(at.closest("[title]"));
    });
  });
  document.addEventListener("pointercancel", lift);

  // The browser's own long press comes while the finger is down.
  document.addEventListener("contextmenu", (event) => {
    if (!event.isTrusted || !finger) return;
    event.stopPropagation();
    if (finger.target) event.preventDefault();
  }, true);
  // A browser whose long press takes longer sends what a mouse would, which closes what was opened.
  document.addEventListener("touchend", (event) => {
    if (event.cancelable && event.timeStamp - clicksFrom <= CLICK_MS) event.preventDefault();
  }, { passive: false });
  document.addEventListener("click", (event) => {
    if (!event.isTrusted || event.timeStamp - clicksFrom > CLICK_MS) return;
    event.preventDefault();
    event.stopPropagation();
  }, true);

  // A text field that takes the focus by itself opens the keyboard, which covers what was opened.
  for (const dialog of document.querySelectorAll("dialog")) {
    dialog.addEventListener("focusin", ({ target, relatedTarget }) => {
      if (!isTouch() || !target.matches("input, textarea") || target.contains(pressed) || dialog.contains(relatedTarget)) return;
      dialog.tabIndex = -1;
      dialog.focus();
    });
  }
}
