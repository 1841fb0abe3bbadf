// Recovery codes, shown once: copied, downloaded as a text, printed. Those of a new account wait in its tab until they are asked for, so
// that nothing stands between the account and the first message; until they are kept, the browser knows that they are not.

import { $, h } from "./dom.js";
import { t } from "./texts.js";

// The codes, in the tab that made the account, and the uid of the person who has not kept any.
const WAITING = "codes";
const UNKEPT = "codes unkept";

/** Lays the codes of a new account aside. */
export function layAside(uid, codes) {
  sessionStorage.setItem(WAITING, JSON.stringify({ uid, codes }));
  localStorage.setItem(UNKEPT, `${uid}`);
}

/** The codes of this person that were laid aside, if they are still here. */
export function laidAside(uid) {
  const aside = JSON.parse(sessionStorage.getItem(WAITING) ?? "null");
  return aside?.uid === uid ? aside.codes : null;
}

/** Whether this person has not kept the codes of the account yet, as far as this browser knows. */
export const areUnkept = (uid) => localStorage.getItem(UNKEPT) === `${uid}`;

/** They are kept, or the account has left this browser. */
export function settleCodes() {
  sessionStorage.removeItem(WAITING);
  localStorage.removeItem(UNKEPT);
}

/** Shows `codes` of `name` in the one place of the page for them, and what to do with them. */
export function showCodes(name, codes) {
  const text = `${t("codes.of", { name, host: location.host })}\n\n${codes.join("\n")}\n`;
  $("codes-list").replaceChildren(...codes.map((code) => h("li", {}, h("code", {}, code))));
  $("codes-copied").textContent = "";
  $("codes-copy").onclick = async () => {
    await navigator.clipboard.writeText(text);
    $("codes-copied").textContent = t("codes.copied");
  };
  // Browsers give a page without HTTPS no clipboard.
  $("codes-copy").hidden = !navigator.clipboard;
  URL.revokeObjectURL($("codes-download").href);
  $("codes-download").href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  $("codes-print").onclick = () => print();
  $("codes").hidden = false;
}

/** Forgets them. */
export function hideCodes() {
  $("codes").hidden = true;
  $("codes-list").replaceChildren();
  URL.revokeObjectURL($("codes-download").href);
  $("codes-download").removeAttribute("href");
  $("codes-copy").onclick = null;
}
