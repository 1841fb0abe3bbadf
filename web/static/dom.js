// Small helpers that make elements; text only ever becomes text nodes.

import { initial } from "./characters.js";

export const $ = (id) => document.getElementById(id);

/** An element: `h("p.quiet", { id: "x", onclick }, "text", child, null)`. */
export function h(what, attributes = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Puts what is on top beside the button that opened it, within the window, also when its size changes. */
export function place(popover, opener) {
  globalThis.onresize = () => { if (popover.matches(":popover-open") && opener.isConnected) place(popover, opener); };
  const { top, bottom, left, right } = opener.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = popover;
  // At the end of a small button, at the beginning of a wide one.
  const beside = right - left < width ? right - width : left;
  const below = bottom + height < innerHeight;
  popover.style.top = below ? `${Math.max(4, bottom)}px` : top < height ? "0" : "auto";
  popover.style.bottom = below || top < height ? "auto" : `${innerHeight - top}px`;
  popover.style.left = `${Math.max(4, Math.min(beside, innerWidth - width - 4))}px`;
}

// How long something that somebody was led to is marked.
const MARKED_MS = 2_000;

/** Lights something up to which somebody was led. */
export const light = (element) =>
  element.animate([{ background: getComputedStyle(element).getPropertyValue("--accent-soft") }, {}], MARKED_MS);

/** Whether somebody types in the search, who keeps the focus there. */
export const isSearching = () => Boolean(document.activeElement?.closest("#search"));

export const icon = (name) => h(`i.icon.${name}`, { "aria-hidden": "true" });

// Characters that are written from right to left (Unicode's bidirectional classes R and AL, by their blocks).
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** A person's words within a sentence of the page: whatever their direction, the sentence keeps its own. */
export const isolate = (text) => (RIGHT_TO_LEFT.test(text) ? `\u2068${text}\u2069` : text);

// The choices of people and groups for their discs, by conversation: {hue, picture}.
const looks = new Map();

/** Takes in how the disc of a person or a group looks from now on. Those that are shown change where they are. */
export function dress(id, hue, picture) {
  const known = looks.get(id);
  if (known?.hue === hue && known?.picture === picture) return;
  looks.set(id, { hue, picture });
  for (const each of document.querySelectorAll(`.disc[data-of="${id}"]`)) paint(each, looks.get(id));
}

/** The disc of a conversation: a letter on a colour, by the same rules as in the page's template, and the picture over it. */
export function disc(id, title) {
  const room = id.startsWith("g:") ? ".room" : "";
  const element = h(`span.disc.tint-${Number(id.slice(2)) % 8}${room}`, { "aria-hidden": "true", "data-of": id }, initial(title));
  return paint(element, looks.get(id));
}

/** Gives a disc a hue and a picture, or none. The letter is seen until the picture is there. */
export function paint(disc, { hue, picture } = {}) {
  disc.classList.toggle("hued", hue !== undefined);
  disc.style.setProperty("--hue", hue ?? 0);
  const shown = disc.firstElementChild;
  const src = picture ? `/files/pictures/${disc.dataset.of}/${picture}` : null;
  if (src === (shown?.getAttribute("src") ?? null)) return disc;
  shown?.remove();
  // One that is known already is there at once, and does not flicker.
  if (src) disc.append(h("img", { src, alt: "", decoding: "sync", draggable: "false", onerror: ({ target }) => target.remove() }));
  return disc;
}

/**
 * Makes `container` show `items` ({key, sig}) in order, touching only what is different:
 * `fill(item, element)` fills a new or changed element made by `make(item)`.
 */
export function keep(container, items, make, fill) {
  const old = new Map();
  const gone = new Set(container.children);
  const focus = document.activeElement;
  for (const element of gone) old.set(element.key, element);
  let at = container.firstChild;
  for (const item of items) {
    const element = filled(item, old.get(item.key) ?? make(item), fill);
    old.delete(item.key);
    gone.delete(element);
    if (element === at) at = at.nextSibling;
    else container.insertBefore(element, at);
  }
  for (const element of gone) element.remove();
  // Moving an element takes its focus.
  if (container.contains(focus)) focus.focus({ preventScroll: true });
}

/** Puts new `items` below what `container` shows, as `keep` would with all of them. */
export function append(container, items, make, fill) {
  container.append(...items.map((item) => filled(item, make(item), fill)));
}

function filled(item, element, fill) {
  if (element.sig !== item.sig) {
    Object.assign(element, { key: item.key, sig: item.sig });
    fill(item, element);
  }
  return element;
}
