// The header of the open conversation: its name, what can be done with it, and the line below.

import { $, disc, isolate } from "./dom.js";
import { showMute } from "./mute.js";
import { showPins } from "./pins.js";
import { t } from "./texts.js";

/** Whether it is a group of which the person is a member. */
export const isIn = (store, id) => id.startsWith("g:") && !store.conversations.get(id)?.left && !store.nobody.has(id);

export function showHeader(store, id) {
  const title = store.title(id);
  $("pane-title").textContent = title;
  $("pane-disc").replaceWith(Object.assign(disc(id, title), { id: "pane-disc" }));
  const { left } = store.conversations.get(id) ?? {};
  $("open-mute").hidden = $("pin").hidden = store.nobody.has(id) || Boolean(left);
  $("pin").ariaPressed = String(Boolean(store.setting("pin", id)));
  $("open-about").hidden = $("open-search").hidden = store.nobody.has(id);
  $("open-about").title = t("about.title", { name: isolate(title) });
  showMute(store, id, $("open-mute"));
  showPins(store, id);
  showAbout(store, id);
}

/** That somebody is online, or when that was last; "": it is not known. */
export function presenceOf(store, uid) {
  if (store.presence.isOnline(uid)) return t("presence.online");
  return uid === store.self.uid || store.isDeleted(uid) ? "" : store.presence.lastSeen(uid);
}

/** The line under the title: who is typing; else who is in the group, or when the person was online. The dot of who is online stays. */
export function showAbout(store, id) {
  const { presence, conversations, nobody } = store;
  const { members, topic } = conversations.get(id) ?? {};
  const uid = id.startsWith("u:") && Number(id.slice(2));
  const isOnline = Boolean(uid) && presence.isOnline(uid);
  const there = uid && !nobody.has(id) && presenceOf(store, uid);
  const line = uid && !nobody.has(id) ? store.profile(uid).about : "";
  const group = isIn(store, id) && members ? [t("pane.members", { count: members }), topic && isolate(topic)] : [];
  const parts = uid ? [there, line && isolate(line)] : group;
  $("pane-about").textContent = presence.typingIn(id) || parts.filter(Boolean).join(" · ");
  $("pane-about").classList.toggle("online", isOnline);
}
