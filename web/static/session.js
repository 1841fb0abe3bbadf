// The end of the session. Where it was ended elsewhere, drafts and messages that wait stay in this browser for the next one. After a
// log-out here, or the end of the account, nothing stays.

import { ask } from "./ask.js";
import { forgetBlobs } from "./blobs.js";
import { settleCodes } from "./codes.js";
import { forget } from "./db.js";
import { forgetEmoji } from "./emoji.js";
import { t } from "./texts.js";

/** `parts`: {db, store, composer, badge, notifier, subscription, line}. Answers {mayForget, leave, ended}. */
export function sessionEnd(call, { db, store, composer, badge, notifier, subscription, line }) {
  let isLeaving = false;

  /** Whether nothing unsent is lost when this browser forgets it, or the person says that it may be. */
  function mayForget() {
    const isUnsent = ({ state, files, body, frame, call }) => state !== "sent" && (files || (body ?? frame?.body ?? call?.body)?.text);
    const count = store.outbox.filter(isUnsent).length;
    return !count || ask({ title: t("settings.log_out"), text: t("settings.unsent", { count }), yes: t("settings.log_out") });
  }

  /** Ends the session by a call, and forgets everything here. */
  async function leave(method, path, body) {
    isLeaving = true;
    await call(method, path, body).catch((refusal) => {
      isLeaving = false;
      throw refusal;
    });
    await over(true, path === "/me/delete");
  }

  /** The server says that the session has ended: once, however many calls are refused. */
  function ended() {
    if (isLeaving) return;
    isLeaving = true;
    over(false);
  }

  async function over(everything, isDeleted = false) {
    line.stop();
    // The text in the box is a draft of the next session.
    await composer.save();
    badge.end();
    await notifier.end();
    await subscription.end();
    if (everything) settleCodes();
    await forgetPage();
    if (everything) {
      line.tellOver();
      forgetEmoji();
      db.close();
      await forget(store.self);
      store.blobs.close();
      await forgetBlobs(store.self);
    } else {
      // Drafts and what waits stay; the next session brings the rest.
      await db.begin(0, undefined, []);
      await db.forgetPeople();
    }
    if (isDeleted) sessionStorage.setItem("deleted", "yes");
    location.replace(everything ? "/login" : `/login?ended=yes&next=${location.pathname}`);
  }

  addEventListener("beforeunload", (event) => { if ((store.sending.onlyHere().length || composer.hasFiles) && !isLeaving) event.preventDefault(); });
  return { mayForget, leave, ended };
}

/** The page that the service worker keeps names the person. */
async function forgetPage() {
  const names = await globalThis.caches?.keys() ?? [];
  await Promise.all(names.filter((name) => name.startsWith("page-")).map((name) => caches.delete(name)));
}
