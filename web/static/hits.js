// The hits of a search, as lines that lead there: where it was said, by whom and when, and the text around the first of the words.

import { disc, h } from "./dom.js";
import { elements, treeOf, words } from "./markdown.js";
import { around, inUnits } from "./sought.js";
import { MOMENTS } from "./state.js";
import { momentOf, refused, t } from "./texts.js";

/** The name of who has written a row. */
export const writerOf = (store, { sender }) => (sender === store.self.uid ? t("you") : store.name(sender));

/** The item (dom.js, `keep`) of a hit. `isAll`: its conversation is named; `isAt`: one was led there last. */
export function hitItem(store, { row, marks }, { sought, isAll, isAt }) {
  const { message_id, conversation, sender, sent_at } = row;
  const isMoment = conversation === MOMENTS;
  const author = writerOf(store, row);
  const title = isMoment ? t("moments.title") : store.title(conversation);
  const names = isAll ? [...new Set([title, author])] : [author];
  const of = isAll && !isMoment ? conversation : `u:${sender}`;
  const hue = of.startsWith("u:") ? store.profile(Number(of.slice(2))).hue : undefined;
  const piece = pieceOf(store, row, sought, marks);
  const item = { names, of, title: of === conversation ? title : store.name(sender), hue, when: momentOf(sent_at), sent_at, isAt, piece };
  return { ...item, key: message_id, row, sig: JSON.stringify(item) };
}

/** The text without its marks of Markdown; words that stand only within those, such as in the address of a link, are shown with them. */
function pieceOf(store, row, sought, counted = []) {
  const plain = words(treeOf(store, row)).replace(/\s+/g, " ");
  const marks = sought?.marks(plain) ?? [];
  if (marks.length || !sought) return around(plain, marks);
  const { text } = row.body;
  const own = sought.marks(text);
  return around(text, own.length ? own : inUnits(text, counted));
}

export const makeHit = () => h("li");

/** `take(row)`: somebody wants to go there. */
export function fillHit({ names, of, title, when, sent_at, isAt, piece, row }, element, take) {
  const isFocused = element.contains(document.activeElement);
  const button = h("button.action.hit", { type: "button", "aria-current": isAt && "true", onclick: () => take(row) },
    h("b", { dir: "auto" }, names.join(" · ")), h("time.quiet", { datetime: sent_at }, when),
    h("span.two-lines", { dir: "auto" }, ...elements(piece)));
  element.replaceChildren(disc(of, title), button);
  if (isFocused) button.focus({ preventScroll: true });
}

/**
 * What there is to say of a search (search.js): how much it has found, how far it is, and what was left out. `place`: where one is among
 * the hits, from 0.
 */
export function said(search, count, place = -1) {
  const { problem, isBusy, isMore, isFull, refusal, isComplete } = search;
  if (problem === "empty") return t("search.hint");
  if (problem === "short") return t("search.short");
  if (problem) return refused(problem);
  const parts = [];
  if (place >= 0) parts.push(t("search.at", { at: place + 1, count: isMore ? `${count}+` : count }));
  else if (count) parts.push(isMore ? t("search.found_more", { count }) : t("search.found", { count }));
  if (isBusy) parts.push(t("search.searching"));
  else if (!count) parts.push(isMore ? t("search.none_yet") : t("search.none"));
  if (refusal && refusal.code !== "unreachable") parts.push(refusal.message);
  if (refusal) parts.push(t("search.only_here"));
  if (isFull) parts.push(t("search.full"));
  if (!isComplete) parts.push(t("search.incomplete"));
  return parts.join(" ");
}
