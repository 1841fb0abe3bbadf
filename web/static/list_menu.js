// The menu of a conversation in the list.

import { leaveGroup } from "./leave.js";
import { item, openMenu } from "./menu.js";
import { t } from "./texts.js";

/** `mute(button, id)` opens the menu of mutes. Answers `open(id, opener)`. */
export function listMenu(store, call, mute) {
  return (id, opener) => {
    const isPinned = Boolean(store.setting("pin", id));
    const { last, left } = store.conversations.get(id) ?? {};
    openMenu(opener, [
      store.isFresh(id) ? item(t("list.mark_read"), () => store.readAll(id))
        : last && item(t("list.mark_unread"), () => store.markUnread(id)),
      item(isPinned ? t("list.unpin") : t("pin.title"), () => store.set("pin", id, isPinned ? null : { pinned: true })),
      !left && item(t("list.mute"), () => mute(opener, id)),
      store.isArchived(id) ? item(t("list.unarchive"), () => store.archive(id, false)) : item(t("list.archive"), () => store.archive(id)),
      id.startsWith("g:") && !left && item(t("list.leave"), () => leaveGroup(store, call, id)),
    ]);
  };
}
