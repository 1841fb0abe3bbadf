// The search in the place of the panel: `#search` looks through the open conversation, `#search/all` through everything. Where there is no
// room beside the conversation, a bar over its head is left of it when one has gone to a hit.

import { hasRoom } from "./about.js";
import { dayAt } from "./date.js";
import { $, h, isolate, keep } from "./dom.js";
import { writerOf, fillHit, hitItem, makeHit, said } from "./hits.js";
import { lineOf } from "./markdown.js";
import { oneStop } from "./roving.js";
import { Search } from "./search.js";
import { t } from "./texts.js";
import { isTouch } from "./touch.js";

// Pixels above the end of the hits at which more are fetched.
const NEAR = 400;
// People to choose from.
const MOST_PEOPLE = 100;

/**
 * `lead(hash, inPlace)` and `leave()` of fragments.js; `found(row)` shows a hit and keeps the search open. Answers {open, close, begin,
 * step, write, told, isOpen}.
 */
export function searchPanel(store, call, { lead, leave, found }) {
  const [panel, field, list] = [$("search"), $("search-text"), $("search-hits")];
  // The conversation that is looked through; null: all are.
  let scope = null;
  let opener = null;
  // The hit that one was led to last, whether one is being led there, and whether somebody waits for the next.
  let at = null;
  let isJumping = false;
  let isAwaited = false;
  const isOpen = () => !panel.hidden;
  const hasFocus = () => panel.contains(document.activeElement);
  const fold = (isFolded) => $("app").toggleAttribute("data-folded", isFolded);

  const render = () => {
    if (!isOpen()) return;
    const { hits, problem, query: { sought }, isBusy, isMore, isFull, refusal } = search;
    store.seek(problem ? null : sought);
    const place = hits.findIndex(({ row }) => row.message_id === at);
    const items = hits.map((hit, index) => hitItem(store, hit, { sought, isAll: !scope, isAt: index === place }));
    keep(list, items, makeHit, (item, element) => fillHit(item, element, choose));
    list.ariaBusy = String(isBusy);
    const note = said(search, hits.length, place);
    if ($("search-note").textContent !== note) $("search-note").textContent = note;
    $("search-older").disabled = !hits[place + 1] && (problem !== null || !isMore);
    $("search-newer").disabled = place < 1;
    $("search-more").hidden = problem !== null || isBusy || isFull || !isMore && !refusal;
    $("search-more").textContent = isToAskAgain() ? t("row.retry") : t("search.more");
    if (isAwaited && hits[place + 1]) step(1);
    else if (!isBusy) isAwaited = false;
  };
  const search = new Search(store, call, { changed: render });
  /** Whether the server has said why it does not search; without a connection there may be more in this browser. */
  const isToAskAgain = () => search.refusal && (search.refusal.code !== "unreachable" || !search.isMore);

  const jump = (row) => {
    at = row.message_id;
    isJumping = true;
    if (isTouch()) field.blur();
    found(row);
    isJumping = false;
    render();
    list.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    if (hasFocus()) $("announce").textContent = t("list.of", { name: isolate(writerOf(store, row)), text: lineOf(store, row) });
  };
  /** The focus goes along to the message. */
  const choose = (row) => {
    document.activeElement.blur();
    jump(row);
  };
  /** Goes to the hit that is older (1) or newer (-1). */
  const step = (by) => {
    if (search.timer) search.now();
    const { hits } = search;
    const next = hits[Math.max(hits.findIndex(({ row }) => row.message_id === at), by < 0 ? 0 : -1) + by];
    isAwaited = !next && by > 0;
    if (next) jump(next.row);
    else if (isAwaited) search.more();
  };

  const filters = { who: $("search-who"), from: $("search-from"), to: $("search-to") };
  const ask = () => {
    const { who, from, to } = filters;
    const wanted = { sender: Number(who.value) || null, from: dayAt(from.value), to: dayAt(to.value, 1) };
    const count = Object.values(wanted).filter(Boolean).length;
    $("search-filters").firstElementChild.textContent = count ? t("search.filters_set", { count }) : t("search.filters");
    at = null;
    isAwaited = false;
    fold(false);
    search.ask({ text: field.value, conversation: scope, ...wanted });
  };
  /** The people by whom what is found may have been written. */
  const people = () => {
    const { uid: self } = store.self;
    const others = !scope ? store.inOrder().filter((id) => id.startsWith("u:")).map((id) => Number(id.slice(2)))
      : scope.startsWith("u:") ? [Number(scope.slice(2))] : store.people(scope).map(({ uid }) => uid);
    const known = [...new Set(others)].filter((uid) => uid && uid !== self).slice(0, MOST_PEOPLE);
    const named = known.map((uid) => ({ uid, name: store.name(uid) }));
    const items = [{ uid: "", name: t("search.anybody") }, { uid: self, name: t("you") }, ...named];
    keep(filters.who, items.map(({ uid, name }) => ({ key: uid, sig: name, uid })), () => h("option"), ({ uid, sig }, option) => {
      option.value = uid;
      option.textContent = sig;
    });
  };
  store.watch((ids) => {
    if (!isOpen() || ids?.length === 0) return;
    people();
    search.renew();
  });

  const open = (rest) => {
    const wanted = rest === "all" ? null : store.open;
    const isNew = !isOpen();
    if (isNew) opener = document.activeElement;
    panel.hidden = false;
    $("app").toggleAttribute("data-about", true);
    $("search-where").hidden = !store.open;
    $("search-where").querySelector(`[value="${wanted ? "here" : "all"}"]`).checked = true;
    if (isNew || wanted !== scope) {
      if (wanted !== scope) filters.who.value = "";
      scope = wanted;
      people();
      ask();
    }
    fold(isJumping && !hasRoom());
    if (!isNew) return;
    field.focus();
    field.select();
  };
  const close = () => {
    const hadFocus = hasFocus();
    panel.hidden = true;
    for (const name of ["data-about", "data-folded"]) $("app").removeAttribute(name);
    search.clear();
    list.replaceChildren();
    store.seek(null);
    const back = [opener, $("open-search"), $("open-find")].find((each) => each !== document.body && each?.checkVisibility());
    if (hadFocus) back?.focus({ preventScroll: true });
  };

  field.addEventListener("input", ({ isComposing }) => isComposing || ask());
  field.addEventListener("compositionend", ask);
  field.addEventListener("click", () => fold(false));
  for (const filter of Object.values(filters)) filter.addEventListener("change", ask);
  $("search-where").addEventListener("change", ({ target }) => lead(target.value === "all" ? "#search/all" : "#search", true));
  $("search-older").addEventListener("click", () => step(1));
  $("search-newer").addEventListener("click", () => step(-1));
  $("search-close").addEventListener("click", leave);
  $("search-more").addEventListener("click", () => (isToAskAgain() ? search.again() : search.more()));
  $("search-body").addEventListener("scroll", ({ target }) => {
    if (target.scrollHeight - target.scrollTop - target.clientHeight < NEAR) search.more();
  }, { passive: true });
  oneStop(list, ".hit");
  panel.addEventListener("keydown", (event) => {
    const { key, target, shiftKey, isComposing } = event;
    if (isComposing) return;
    if (key === "Escape") leave();
    else if (key === "Enter" && target === field) step(shiftKey ? -1 : 1);
    else if (key === "ArrowDown" && target === field) {
      fold(false);
      list.querySelector(".hit")?.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    open, close, step, isOpen,
    /** Goes to the field for the open conversation; false: it is there already, or nothing can be looked through. */
    begin: () => {
      if (document.activeElement === field || !isOpen() && !store.open) return false;
      if (!isOpen()) lead("#search");
      fold(false);
      field.focus();
      field.select();
      return true;
    },
    /** Puts words into the field. */
    write: (text) => {
      field.value = text;
      if (!isOpen()) return;
      ask();
      field.focus();
    },
    /** What the connection is like: what was not answered is asked again. */
    told: ({ phase }) => { if (isOpen() && phase === "open" && search.refusal?.code === "unreachable") search.again(); },
  };
}
