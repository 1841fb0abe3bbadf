// Tells of a setting that the server has refused, and that is as it was before, until the person has read it.

import { $ } from "./dom.js";
import { refused, t } from "./texts.js";

export function tellRefusals(store) {
  const note = $("refusal");
  let item;
  const show = () => {
    item = store.refusedSetting();
    note.hidden = !item;
    const text = item ? t("settings.not_changed", { reason: refused(item.code, item.reason) }) : "";
    if ($("refusal-text").textContent !== text) $("refusal-text").textContent = text;
    // What is outside an open dialog can be neither pressed nor heard.
    const place = document.querySelector("dialog[open]") ?? $("app");
    if (item && note.parentElement !== place) place.append(note);
  };
  store.watch(show);
  // Such events do not bubble.
  document.addEventListener("close", show, true);
  $("refusal-dismiss").addEventListener("click", () => store.discard(item));
}
