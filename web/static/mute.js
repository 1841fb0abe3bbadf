// Muting a conversation on all devices of the person: for an hour, a day, or until it is ended.

import { item, openMenu } from "./menu.js";
import { momentOf, t } from "./texts.js";

const HOUR_MS = 3_600_000;

/** Answers `open(button, id)`: the menu for a conversation, which is the open one if nothing else is said. */
export function muteMenu(store) {
  return (button, id = store.open) => {
    const mute = async (value) => {
      // What a new message has taken out of the archive stays out.
      if (store.setting("archive", id) && !store.isArchived(id)) await store.archive(id, false);
      await store.set("mute", id, value);
    };
    const until = (hours) => () => mute({ until: Date.now() + hours * HOUR_MS });
    openMenu(button, [
      store.isMuted(id) && item(t("mute.end"), () => mute(null)),
      item(t("mute.hour"), until(1)),
      item(t("mute.day"), until(24)),
      item(t("mute.always"), () => mute({})),
    ]);
  };
}

/** Shows on the button whether the conversation is muted, and until when. */
export function showMute(store, id, button) {
  const isMuted = store.isMuted(id);
  const until = isMuted && store.setting("mute", id).until;
  const label = !isMuted ? t("mute.title") : until ? t("mute.until", { time: momentOf(until) }) : t("mute.muted");
  button.title = label;
  button.firstElementChild.className = `icon ${isMuted ? "silent" : "bell"}`;
}
