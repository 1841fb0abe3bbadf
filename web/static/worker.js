// The service worker: begins it, and takes the newer page that it has got.

// A page that was opened longer ago is left as it is until it is opened again.
const JUST_OPENED_MS = 10_000;
// Servers that disagree about the page must not make it load again and again.
const PAUSE_MS = 60_000;
const RENEWED_AT = "renewed";

// Heard from the beginning: what comes before the first listener is lost.
globalThis.navigator?.serviceWorker?.addEventListener("message", ({ data }) => {
  const isAgain = Date.now() - Number(sessionStorage.getItem(RENEWED_AT)) < PAUSE_MS;
  if (!data.renewed || performance.now() > JUST_OPENED_MS || isAgain) return;
  sessionStorage.setItem(RENEWED_AT, Date.now());
  location.reload();
});

/** There is none without HTTPS, but on this machine. */
export function beginWorker() {
  navigator.serviceWorker?.register("/service-worker.js").catch((problem) => console.error(problem));
}
