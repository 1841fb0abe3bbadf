// Reminds somebody with a new account of the recovery codes: quietly, above the message box once the first message is written, and in the
// settings; until the codes are kept.

import { areUnkept } from "./codes.js";
import { $ } from "./dom.js";
import { isTouch } from "./touch.js";

/** Watches `store` for the first message. Answers `show()`, for when the codes were kept. */
export function remind(store) {
  let isLater = false;
  const hasWritten = () => store.outbox.some(({ body }) => body?.text)
    || [...store.conversations.values()].some(({ last }) => last?.kind === "message" && last.sender === store.self.uid);
  const show = () => {
    const isDue = areUnkept(store.self.uid);
    $("codes-notice").hidden = !isDue;
    $("reminder").hidden = !isDue || isLater || !hasWritten();
  };
  $("reminder-later").addEventListener("click", () => {
    isLater = true;
    show();
    if (!isTouch()) $("text").focus();
  });
  store.watch(show);
  return show;
}
