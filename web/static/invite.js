// The page with a new link: copies it where the browser lets a page do that; else one marks it by hand.

import { t } from "./texts.js";

const link = document.getElementById("link");
const copy = document.getElementById("copy");
copy.hidden = false;
copy.addEventListener("click", async () => {
  let text = t("invite.copied");
  try {
    await navigator.clipboard.writeText(link.textContent);
  } catch {
    // Not on plain HTTP off this machine: mark it, so that one key copies it.
    getSelection().selectAllChildren(link);
    text = t("invite.copy_by_hand");
  }
  document.getElementById("copied").textContent = text;
});
