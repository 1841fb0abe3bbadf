// Recovery codes, shown once: copied, downloaded as a text, printed.

import { $, h } from "./dom.js";
import { t } from "./texts.js";

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
