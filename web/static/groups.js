// Groups in words and in time: their changes as sentences, and when the person may speak there.

import { isolate } from "./dom.js";
import { lastingOf, momentOf, t } from "./texts.js";

// The server's word for the name of a deleted account; nobody can take that name.
const DELETED = /^Deleted account$/;
/** A name as it is shown. */
export const called = (name) => (DELETED.test(name) ? t("person.deleted") : name);

/** A membership row as a sentence, or one that says for how long messages are kept. */
export function eventOf(store, { kind, sender, body }) {
  const { action, name, topic, history, role, uid, user_name, by, by_name, owner, owner_name, slow_seconds, keep, picture, until }
    = kind === "keep" ? { action: kind, by: sender, keep: body.keep } : body;
  const me = store.self.uid;
  const nameOf = (number, name) => (number === me ? t("you")
    : isolate(name === undefined || store.isDeleted(number) ? store.name(number) : called(name)));
  const names = () => ({ by: nameOf(by, by_name), name: nameOf(uid, user_name) });
  // Some languages say "you" in a way of their own, so there is a sentence for each.
  const byMe = (what) => (by === me ? `you_${what}` : what);
  const of = (what) => (by !== me && uid === me ? `${what}_you` : byMe(what));
  switch (action) {
    case "created": return t(`event.${byMe("created")}`, { by: nameOf(by, by_name) });
    case "added": case "removed": case "banned": case "unmuted": return t(`event.${of(action)}`, names());
    // A banned person is no member, and gets no row of it.
    case "unbanned": return t(`event.${byMe("unbanned")}`, names());
    case "joined": return t(`event.${of("joined")}`, names());
    case "left": return uid === me ? t("event.you_left") : !owner ? t("event.left", names())
      : owner === me ? t("event.left_to_you", names()) : t("event.left_to", { ...names(), owner: nameOf(owner, owner_name) });
    case "renamed": return t(`event.${byMe("renamed")}`, { by: nameOf(by, by_name), group: isolate(name) });
    case "topic": return t(`event.${byMe(topic ? "topic" : "no_topic")}`, { by: nameOf(by, by_name), topic: isolate(topic ?? "") });
    case "picture": return t(`event.${byMe(picture ? "picture" : "no_picture")}`, { by: nameOf(by, by_name) });
    case "history": return t(`event.${byMe(history === "visible" ? "history_visible" : "history_hidden")}`, { by: nameOf(by, by_name) });
    case "muted": return t(`event.${of(until ? "muted" : "muted_for_good")}`, { ...names(), when: until && momentOf(until) });
    case "slow": return t(`event.${byMe(slow_seconds ? "slow" : "slow_off")}`, { by: nameOf(by, by_name), time: lastingOf(slow_seconds) });
    case "keep": return t(`event.${byMe(keep.seconds ? "keep" : "keep_off")}`, { by: nameOf(by, by_name), time: lastingOf(keep.seconds) });
    case "role": return t(`event.${of(role === "owner" || role === "administrator" ? role : "member")}`, names());
    default: return t("event.other");
  }
}

/** Whether the person is muted in a group: {until}, without `until` for good; `null`: no. */
export function muteIn(store, id) {
  const { muted, role } = store.conversations.get(id) ?? {};
  return muted && role !== "owner" && !(Date.parse(muted.until) <= Date.now()) ? muted : null;
}

/** Milliseconds until the person may write there again, in a group in slow mode. */
export function waitIn(store, id) {
  const { slow, role, spoke = 0 } = store.conversations.get(id) ?? {};
  if (!slow || role !== "member") return 0;
  const leaving = store.pending(id).filter(({ state }) => state !== "failed").map(({ sent_at }) => Date.parse(sent_at));
  return Math.max(0, Math.min(slow * 1_000, Math.max(spoke, ...leaving) + slow * 1_000 - Date.now()));
}
