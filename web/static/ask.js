// The question before something that cannot be undone.

import { $ } from "./dom.js";
import { t } from "./texts.js";

/** Asks, and answers whether the person said `yes`. `quote`: the person's words that it is about. */
export function ask({ title, text, quote = "", yes, no = t("cancel") }) {
  const dialog = $("ask");
  const texts = { title, text, quote, yes, no };
  for (const [part, words] of Object.entries(texts)) $(`ask-${part}`).textContent = words;
  $("ask-quote").hidden = !quote;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}
