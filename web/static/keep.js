// For how long messages of a conversation are kept: the times to choose from, the question before a shorter one, and the choice in the panel of
// a person. A group has it among its settings (members.js).

import { ask } from "./ask.js";
import { $, h } from "./dom.js";
import { lastingOf, t } from "./texts.js";

const DAY = 86_400;
// The times that are offered; 0: for good.
const TIMES = [0, DAY, 7 * DAY, 28 * DAY, 365 * DAY];

const pathOf = (id) => `/conversations/${id}/keep`;

/** Seconds for which messages there are kept; 0: for good. A change that is still to go out is newer. */
export function keptIn({ outbox, conversations }, id) {
  const waiting = outbox.findLast(({ call, state }) => call?.path === pathOf(id) && state !== "failed");
  return waiting?.call.body.keep_seconds ?? conversations.get(id)?.keep?.seconds ?? 0;
}

/** Puts the times into a `select`, and chooses one, which a program may have set. */
export function offer(select, chosen) {
  const times = [...new Set([...TIMES, chosen])].sort((a, b) => a - b);
  select.replaceChildren(...times.map((seconds) =>
    h("option", { value: seconds, selected: seconds === chosen }, seconds ? lastingOf(seconds) : t("keep.off"))));
}

/** Asks, if messages would disappear that stay otherwise. Answers whether the person wants it. */
export async function isWanted(before, seconds) {
  if (!seconds || before && seconds >= before) return true;
  return ask({ title: t("keep.ask_title", { time: lastingOf(seconds) }), text: t("keep.ask_about"), yes: t("keep.set") });
}

/** Answers `show(id)`: the choice in the panel, where there is something to keep; `null`: it is not one of two people. */
export function keepPart(store) {
  const select = $("about-keep-time");
  let shown = null;
  let seen = "";
  const show = (id) => {
    shown = id;
    $("about-keep").hidden = !id;
    const now = id && `${id} ${keptIn(store, id)}`;
    // Nobody's list is closed for what is the same.
    if (!id || seen === now) return;
    seen = now;
    offer(select, keptIn(store, id));
  };
  select.addEventListener("change", async () => {
    const [id, seconds] = [shown, Number(select.value)];
    if (await isWanted(keptIn(store, id), seconds)) return store.later(id, "PUT", pathOf(id), { keep_seconds: seconds });
    seen = "";
    show(shown);
  });
  return show;
}
