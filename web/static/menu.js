// The one menu of the page: items beside the button that opened it, moved through by arrows.

import { $, h, place } from "./dom.js";

const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };
// What had the focus, and gets it back.
let back = null;

/** An item that closes the menu and does `act()`. */
export const item = (label, act, more = {}) => h("button.action", { type: "button", role: "menuitem", tabindex: -1, ...more,
  onclick: () => {
    close();
    act();
  } }, label);

/** Shows `items` (elements; those that are false are left out) beside `opener`. */
export function openMenu(opener, items) {
  const menu = $("actions");
  const { activeElement } = document;
  back = activeElement !== document.body && activeElement.contains(opener) ? activeElement : opener;
  menu.onkeydown = key;
  menu.replaceChildren(...items.filter(Boolean));
  // Elements outside an open dialog cannot be used, and those outside <main> are in no landmark.
  opener.closest("dialog, main").append(menu);
  menu.showPopover();
  place(menu, opener);
  menu.querySelector("button").focus();
}

function close() {
  $("actions").hidePopover();
  back?.focus({ preventScroll: true });
}

function key(event) {
  const items = [...$("actions").querySelectorAll("button")];
  const at = items.indexOf(document.activeElement);
  if (STEPS[event.key]) items.at((at + STEPS[event.key]) % items.length).focus();
  else if (event.key === "Home") items[0].focus();
  else if (event.key === "End") items.at(-1).focus();
  else if (event.key === "Escape" || event.key === "Tab") close();
  else return;
  event.preventDefault();
  event.stopPropagation();
}
