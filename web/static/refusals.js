// Tells of a setting that the server has refused, and that is as it was before, until the person has read it.

import { $, isolate } from "./dom.js";
import { refused, t } from "./texts.js";

// Their names on the page.
const TITLES = {
  mute: "mute.title", pin: "pin.title", archive: "list.archive", hide: "list.archive", unread: "list.mark_unread", block: "contacts.block",
  profile: "profile.title", picture: "profile.title", privacy: "privacy.title",
};

export function tellRefusals(store) {
  const note = $("refusal");
  let item;
  /** Which setting it is, and of which conversation, if of one. */
  const which = ({ frame, call, conversation }) => {
    const name = frame?.name ?? call.path.split("/").at(-1);
    return t(TITLES[name] ?? name) + (frame ? ` (${isolate(store.title(conversation))})` : "");
  };
  const show = () => {
    item = store.refusedSetting();
    note.hidden = !item;
    const text = item ? t("settings.not_changed", { setting: which(item), reason: refused(item.code, item.reason) }) : "";
    if ($("refusal-text").textContent !== text) $("refusal-text").textContent = text;
    // Elements outside an open dialog can be neither pressed nor heard.
    const place = document.querySelector("dialog[open]") ?? $("app");
    if (item && note.parentElement !== place) place.append(note);
  };
  store.watch(show);
  // Such events do not bubble.
  document.addEventListener("close", show, true);
  $("refusal-dismiss").addEventListener("click", () => store.discard(item));
}
