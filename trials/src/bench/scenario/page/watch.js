// Runs in every measured page before its own scripts: when things happened, in milliseconds. Times of two windows compare, since
// both are counted from the machine's clock.
const now = () => performance.timeOrigin + performance.now();

addEventListener("keydown", (event) => {
  // Kept for the page to which it leads.
  if (event.key === "Enter") sessionStorage.pressed = window.pressed = now();
}, true);

/** Notes in `shown` when the next frame comes after the log has got a line with this text. */
window.await = (text) => {
  window.shown = null;
  const log = document.querySelector("[role=log]");
  const observer = new MutationObserver((changes) => {
    const has = (change) => [...change.addedNodes].some((node) => node.textContent.includes(text));
    if (!changes.some(has)) return;
    observer.disconnect();
    requestAnimationFrame(() => { window.shown = now(); });
  });
  observer.observe(log, { childList: true, subtree: true });
};

/** Calls `done` when the window has nothing to do. */
window.rest = (done) => requestIdleCallback(() => done(true));

/** Notes under a name when `is` is true for the first time; it is looked at before each frame. */
window.note = (name, is) => {
  const look = () => { if (is()) window[name] = performance.now(); else requestAnimationFrame(look); };
  requestAnimationFrame(look);
};

// When the page can be used: its messages are shown, and there is a box to write into.
note("usable", () => {
  const box = document.getElementById("text");
  return document.querySelector("[role=log] .words") && box && !box.disabled && box.offsetParent;
});
