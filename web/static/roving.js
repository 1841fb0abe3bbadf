// Groups of controls that are one stop of the Tab key. Arrow keys, Home and End move within a group, and in a part that holds controls
// of its own the other two arrows go through those. Before Tab moves the focus, each group is left with the one control that takes it.

const FOCUSABLE = "a[href], button, input, summary, [tabindex]";
const DOWN = { ArrowDown: 1, ArrowUp: -1 };
const ALONG = { ArrowRight: 1, ArrowLeft: -1 };

const groups = [];

const shown = (container, selector) => [...container.querySelectorAll(selector)].filter((each) => each.checkVisibility());

/** The neighbour, `step` further; the same one at an end. */
const beside = (all, one, step) => all[all.indexOf(one) + step] ?? one;

/**
 * `items`: the selector of what arrows move between, from top to bottom, or beside each other (`isRow`). `part(item)`: the element that
 * holds an item's own controls. `choose(all, last)`: where Tab leads to; `last` had the focus last, and may be gone.
 */
export function oneStop(container, items, {
  isRow = false, part = (item) => item, choose = (all, last) => (all.includes(last) ? last : all[0]),
} = {}) {
  const group = { container, items, choose, last: null };
  groups.push(group);
  const around = (target) => [...container.querySelectorAll(items)].find((item) => part(item).contains(target));
  container.addEventListener("focusin", ({ target }) => { group.last = around(target); });
  container.addEventListener("keydown", (event) => {
    const { target, key, ctrlKey, metaKey, altKey, shiftKey } = event;
    const item = around(target);
    if (!item || ctrlKey || metaKey || altKey || shiftKey) return;
    const [between, within] = isRow ? [ALONG, DOWN] : [DOWN, ALONG];
    const all = shown(container, items);
    const to = between[key] ? beside(all, item, between[key])
      : within[key] ? beside([item, ...shown(part(item), FOCUSABLE).filter((each) => each !== item)], target, within[key])
      : { Home: all[0], End: all.at(-1) }[key];
    if (!to) return;
    event.preventDefault();
    if (to.tabIndex < 0) to.tabIndex = -1; // An element without it takes no focus.
    to.focus();
  });
}

function arrange({ container, items, choose, last }) {
  const one = choose(shown(container, items), last);
  for (const each of container.querySelectorAll(FOCUSABLE)) each.tabIndex = -1;
  if (one) one.tabIndex = 0;
}

globalThis.addEventListener?.("keydown", ({ key }) => { if (key === "Tab") groups.forEach(arrange); }, true);
