// The emoji to choose from, for the message box and for reactions. Their names are fetched when they are first shown. The tone of skin and
// the emoji that were chosen last are kept in this browser, until the person logs out.

import { folded } from "./characters.js";
import { $, h, place } from "./dom.js";
import { t } from "./texts.js";
import { isTouch } from "./touch.js";

// The most that a search shows, and the list under the caret.
const MOST_FOUND = 160;
const MOST_OFFERED = 8;
// Emoji that are kept as the last ones: three lines.
const MOST_RECENT = 24;
const RECENT = "emoji recent";
const TONE = "emoji tone";
const BASE = /(\p{Emoji_Modifier_Base})\ufe0f?/gu;
// Letters behind `:` that may be the beginning of a name; one letter is a face, such as `:D`.
const NAME = /^[\p{L}\p{N}_-]{2,}$/u;

let all = null;

/** All as [{group, emoji, name, words}], in the language of the page. */
async function load() {
  const isChinese = document.documentElement.lang.startsWith("zh");
  const [{ default: groups }, { default: names }] = await Promise.all([import("./emoji-list.js"),
    isChinese ? import("./emoji-zh.js") : import("./emoji-en.js")]);
  const lines = names.split("\n").values();
  return Object.entries(groups).flatMap(([group, list]) => list.split("\n").map((emoji) => {
    const [name, ...more] = lines.next().value.split("|");
    return { group, emoji, name, words: folded([name, ...more].join(" ")) };
  }));
}

/** An emoji with a tone of skin, if there is such a one. */
export function toned(emoji, tone) {
  const shown = tone ? emoji.replace(BASE, `$1${tone}`) : emoji;
  return /^\p{RGI_Emoji}$/v.test(shown) ? shown : emoji;
}

const bare = (emoji) => emoji.replace(/[\p{Emoji_Modifier}\ufe0f]/gu, "");
const tone = () => localStorage.getItem(TONE) ?? "";
const recent = () => (localStorage.getItem(RECENT) ?? "").split(" ").filter(Boolean);

function remember(emoji) {
  localStorage.setItem(RECENT, [emoji, ...recent().filter((each) => each !== emoji)].slice(0, MOST_RECENT).join(" "));
}

/** Nothing stays of what the person chose. */
export function forgetEmoji() {
  for (const key of [RECENT, TONE]) localStorage.removeItem(key);
}

/** What the list under the caret offers behind `:`. `look()` asks again once the names are there. */
export const naming = (look) => ({
  mark: ":",
  title: () => t("emoji.title"),
  found: (count) => t("emoji.offered", { count }),
  find: (typed) => {
    if (!NAME.test(typed)) return [];
    if (!all) {
      load().then((loaded) => {
        all = loaded;
        look();
      }, () => {});
      return [];
    }
    return matching(all, typed.replaceAll("_", " ")).slice(0, MOST_OFFERED).map(({ emoji, name }) => {
      const shown = toned(emoji, tone());
      return { text: shown, shown: [h("span", { "aria-hidden": "true" }, shown), h("span.title", {}, name)], taken: () => remember(shown) };
    });
  },
});

/** Those that a search means, the ones whose names begin with it first. */
export function matching(all, text) {
  const parts = folded(text).split(/\s+/).filter(Boolean);
  if (!parts.length) return all;
  const found = all.filter(({ words }) => parts.every((part) => words.includes(part)));
  const rank = ({ words }) => (words.startsWith(parts[0]) ? 0 : words.includes(` ${parts[0]}`) ? 1 : 2);
  return found.sort((a, b) => rank(a) - rank(b)).slice(0, MOST_FOUND);
}

/** Answers `open(opener, take)`: shows them beside the button, and `take(emoji)` gets the one that is chosen. */
export function emojiPicker() {
  const [popover, input, list] = ["emoji", "emoji-find", "emoji-list"].map($);
  let options = [];
  let at = 0;
  let take = null;

  const mark = (to) => {
    options[at]?.removeAttribute("aria-selected");
    at = to;
    options[at]?.setAttribute("aria-selected", "true");
    options[at]?.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[at]?.id ?? "");
    $("emoji-name").textContent = options[at]?.title ?? t("emoji.none");
  };
  const option = ({ emoji, name, shown = toned(emoji, tone()) }, n) =>
    h("span.emoji", { id: `emoji-${n}`, role: "option", title: name, "aria-label": name }, shown);
  /** Those that were chosen last, as they were. */
  const last = () => {
    const known = new Map(all.map((one) => [bare(one.emoji), one]));
    return recent().flatMap((emoji) => (known.has(bare(emoji)) ? [{ ...known.get(bare(emoji)), shown: emoji }] : []));
  };
  const show = () => {
    const found = matching(all, input.value);
    const chosen = found === all ? last() : [];
    const groups = found === all ? { ...(chosen.length && { recent: chosen }), ...Object.groupBy(all, ({ group }) => group) } : { found };
    let n = 0;
    list.replaceChildren(...Object.entries(groups).map(([group, each]) =>
      h("div.emojis", { role: "group", "aria-label": t(`emoji.${group}`) }, ...each.map((one) => option(one, n++)))));
    options = [...list.querySelectorAll("[role=option]")];
    mark(0);
  };
  const choose = (element) => {
    if (!element) return;
    popover.hidePopover();
    remember(element.textContent);
    take(element.textContent);
  };
  /** The one above or below, in the nearest line. */
  const beside = (step) => {
    const { offsetTop: top, offsetLeft: left } = options[at];
    const line = options.slice(...(step > 0 ? [at] : [0, at])).filter(({ offsetTop }) => (offsetTop - top) * step > 0);
    const nearest = (step > 0 ? line[0] : line.at(-1))?.offsetTop;
    const next = line.filter(({ offsetTop, offsetLeft }) => offsetTop === nearest && offsetLeft <= left).at(-1);
    return next ? options.indexOf(next) : at;
  };
  input.addEventListener("input", () => all && show());
  $("emoji-tone").addEventListener("change", ({ target }) => {
    localStorage.setItem(TONE, target.value);
    if (all) show();
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing || !options.length) return;
    if (event.key === "ArrowRight") mark(Math.min(at + 1, options.length - 1));
    else if (event.key === "ArrowLeft") mark(Math.max(at - 1, 0));
    else if (event.key === "ArrowDown") mark(beside(1));
    else if (event.key === "ArrowUp") mark(beside(-1));
    else if (event.key === "Enter") choose(options[at]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  popover.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    popover.hidePopover();
    event.preventDefault();
    event.stopPropagation();
  });
  list.addEventListener("click", (event) => choose(event.target.closest("[role=option]")));
  // The focus stays where the search is.
  list.addEventListener("mousedown", (event) => event.preventDefault());

  return async (opener, taken) => {
    take = taken;
    input.value = "";
    $("emoji-tone").value = tone();
    popover.showPopover();
    place(popover, opener);
    if (!isTouch()) input.focus();
    $("emoji-name").textContent = "";
    try {
      all ??= await load();
      show();
    } catch {
      $("emoji-name").textContent = t("error.unreachable");
    }
  };
}
