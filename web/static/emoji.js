// The emoji to choose from, for the message box and for reactions. Their names are fetched when they are first shown.

import { $, h, place } from "./dom.js";
import { t } from "./texts.js";
import { isTouch } from "./touch.js";

// The most that a search shows.
const MOST_FOUND = 160;

/** All as [{group, emoji, name, words}], in the language of the page. */
async function load() {
  const isChinese = document.documentElement.lang.startsWith("zh");
  const [{ default: groups }, { default: names }] = await Promise.all([import("./emoji-list.js"),
    isChinese ? import("./emoji-zh.js") : import("./emoji-en.js")]);
  const lines = names.split("\n").values();
  return Object.entries(groups).flatMap(([group, list]) => list.split("\n").map((emoji) => {
    const [name, ...more] = lines.next().value.split("|");
    return { group, emoji, name, words: [name, ...more].join(" ").toLowerCase() };
  }));
}

/** Those that a search means, the ones whose names begin with it first. */
export function matching(all, text) {
  const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!parts.length) return all;
  const found = all.filter(({ words }) => parts.every((part) => words.includes(part)));
  const rank = ({ words }) => (words.startsWith(parts[0]) ? 0 : words.includes(` ${parts[0]}`) ? 1 : 2);
  return found.sort((a, b) => rank(a) - rank(b)).slice(0, MOST_FOUND);
}

/** Answers `open(opener, take)`: shows them beside the button, and `take(emoji)` gets the one that is chosen. */
export function emojiPicker() {
  const [popover, input, list] = ["emoji", "emoji-find", "emoji-list"].map($);
  let all = null;
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
  const option = ({ emoji, name }, n) =>
    h("span.emoji", { id: `emoji-${n}`, role: "option", title: name, "aria-label": name }, emoji);
  const show = () => {
    const found = matching(all, input.value);
    const groups = found === all ? Object.groupBy(all, ({ group }) => group) : { found };
    let n = 0;
    list.replaceChildren(...Object.entries(groups).map(([group, each]) =>
      h("div.emojis", { role: "group", "aria-label": t(`emoji.${group}`) }, ...each.map((one) => option(one, n++)))));
    options = [...list.querySelectorAll("[role=option]")];
    mark(0);
  };
  const choose = (element) => {
    if (!element) return;
    popover.hidePopover();
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
