// What the list tells of each conversation: its place, whether it lies in the archive, is muted or unread. A part of the store.

import { MOMENTS } from "./state.js";

export class Listed {
  /** Conversations outside the archive: those that are pinned, then the one with the latest message first. */
  sorted() { return this.inOrder().filter((id) => !this.isArchived(id)); }

  /** Conversations in the archive, in the same order. */
  archived() { return this.inOrder().filter((id) => this.isArchived(id)); }

  inOrder() {
    const latest = new Map();
    for (const [id, { last }] of this.conversations) if (last) latest.set(id, last.message_id);
    for (const id of [this.open, ...this.drafts.keys()]) {
      if (id && !latest.has(id) && !this.nobody.has(id)) latest.set(id, 0);
    }
    const waiting = this.outbox.filter(({ state, frame, call }) => state !== "sent" && !frame && !call);
    for (const item of waiting) latest.set(item.conversation, 2 ** 53 + item.n * 2);
    const pinned = (id) => Number(Boolean(this.setting("pin", id)));
    return [...latest.keys()].sort((a, b) => pinned(b) - pinned(a) || latest.get(b) - latest.get(a) || (a < b ? -1 : 1));
  }

  /** Whether a conversation lies in the archive: until something newer comes, or as long as it is muted. */
  isArchived(id) {
    // The page of 0.1.0 called it otherwise.
    const archive = this.setting("archive", id) ?? this.setting("hide", id);
    return Boolean(archive) && (this.isMuted(id) || archive.up_to >= (this.conversations.get(id)?.last?.message_id ?? 0));
  }

  /** Puts a conversation into the archive on all devices of the person, or takes it out. */
  async archive(id, isArchived = true) {
    await this.set("archive", id, isArchived ? { up_to: this.conversations.get(id)?.last?.message_id ?? 0 } : null);
    if (!isArchived && this.setting("hide", id)) await this.set("hide", id, null);
  }

  /** Whether nothing is told of new messages: for good, or until a time. */
  isMuted(id) {
    const mute = this.setting("mute", id);
    return Boolean(mute) && !(mute.until <= Date.now());
  }

  /** When the next mute ends, in milliseconds since 1970 UTC; `Infinity`: none does. */
  nextUnmute() {
    const ends = [...this.settings].filter(([key]) => key.startsWith("mute ")).map(([, { until }]) => until);
    return Math.min(...ends.filter((until) => until > Date.now()));
  }

  unread(id) { return this.conversations.get(id)?.unread ?? 0; }
  /** How many of them name the person. */
  mentions(id) { return this.conversations.get(id)?.mentions ?? 0; }
  /** Whether the person has marked the conversation as unread since it was opened last. */
  isMarked(id) { return Boolean(this.setting("unread", id)); }
  /** Whether something is unread there, or counts as unread. */
  isFresh(id) { return this.unread(id) > 0 || this.isMarked(id); }

  /** Makes a conversation count as unread on all devices of the person, until it is opened. */
  markUnread(id) { return this.set("unread", id, { unread: true }); }

  /** The person has opened a conversation. */
  async unmark(id) { if (this.isMarked(id)) await this.set("unread", id, null); }

  /** Makes everything in a conversation count as read. */
  async readAll(id) {
    await this.unmark(id);
    const newest = this.conversations.get(id)?.last?.message_id;
    if (newest && this.unread(id)) await this.markRead(id, newest);
  }

  /** The count to tell of: everything unread, and where it is muted or in the archive only the messages that name the person. */
  unreadTotal() {
    const counted = [...this.conversations.values()].filter(({ id }) => id !== MOMENTS).map(({ id, unread, mentions = 0 }) =>
      (this.isMuted(id) || this.isArchived(id) ? mentions : unread || Number(this.isMarked(id))));
    return counted.reduce((sum, count) => sum + count, 0);
  }
}
