// The header of the open conversation: its name, what can be done with it, and the line below.

import { $, disc, isolate } from "./dom.js";
import { showMute } from "./mute.js";
import { showPins } from "./pins.js";
import { t } from "./texts.js";

const isIn = (store, id) => id.startsWith("g:") && !store.conversations.get(id)?.left && !store.nobody.has(id);

export function showHeader(store, id) {
  const title = store.title(id);
  $("pane-title").textContent = title;
  $("pane-disc").replaceWith(Object.assign(disc(id, title), { id: "pane-disc" }));
  const { left } = store.conversations.get(id) ?? {};
  $("open-members").hidden = !isIn(store, id);
  $("open-mute").hidden = $("pin").hidden = store.nobody.has(id) || Boolean(left);
  $("pin").ariaPressed = String(Boolean(store.setting("pin", id)));
  $("open-person").hidden = store.nobody.has(id);
  $("open-person").title = t("members.more_about", { name: title });
  showMute(store, id, $("open-mute"));
  showPins(store, id);
  showAbout(store, id);
}

/** The line under the title: who is typing; else who is in the group, or when the person was online. The dot of who is online stays. */
export function showAbout(store, id) {
  const { presence, conversations, nobody } = store;
  const { members, topic } = conversations.get(id) ?? {};
  const uid = id.startsWith("u:") && Number(id.slice(2));
  const isOnline = Boolean(uid) && presence.isOnline(uid);
  const isAbsent = uid && !isOnline && uid !== store.self.uid && !store.isDeleted(uid) && !nobody.has(id);
  const there = isOnline ? t("presence.online") : isAbsent && presence.lastSeen(uid);
  const line = uid && !nobody.has(id) ? store.profile(uid).about : "";
  const group = isIn(store, id) && members ? [t("pane.members", { count: members }), topic && isolate(topic)] : [];
  const parts = uid ? [there, line && isolate(line)] : group;
  $("pane-about").textContent = presence.typingIn(id) || parts.filter(Boolean).join(" · ");
  $("pane-about").classList.toggle("online", isOnline);
}
