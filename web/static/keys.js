// The keys of the page as a whole, and the sheet that tells them. Parts of the page hear keys of their own first.

import { $ } from "./dom.js";
import { oneStop } from "./roving.js";

/** What is written goes into the box, whatever has the focus: the browser puts the letter there. */
function writes({ key, ctrlKey, metaKey, altKey, target }) {
  const box = $("text");
  const isLetter = [...key].length === 1 && key !== " " && !ctrlKey && !metaKey && !altKey;
  return isLetter && !box.disabled && box.checkVisibility() && !target.isContentEditable;
}

// The key of shortcuts; on a Mac, Ctrl+F moves the caret.
const isMac = /Mac/.test(navigator.platform);

/**
 * `find()` opens the search for anything, `search.begin()` the one in the conversation (false: the browser's own is wanted) and
 * `search.step(by)` goes on in it; `move(step)` opens the next conversation, `leave()` marks the open one as read and goes to its end.
 */
export function hearKeys({ find, search, move, leave }) {
  const sheet = $("keys");
  document.addEventListener("keydown", (event) => {
    const { key, target, altKey, shiftKey } = event;
    if (event.defaultPrevented) return;
    const isField = target.closest("input, textarea, select");
    const isOver = document.querySelector("dialog[open]");
    if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "k") find();
    else if (isOver) return;
    else if ((isMac ? event.metaKey : event.ctrlKey) && !altKey && !shiftKey && key.toLowerCase() === "f") {
      if (!search.begin()) return;
    } else if (key === "F3" && search.isOpen()) search.step(shiftKey ? -1 : 1);
    else if (altKey && key === "ArrowUp") move(-1);
    else if (altKey && key === "ArrowDown") move(1);
    else if (key === "Escape" && (!$("open").hidden || search.isOpen())) leave();
    else if (isField || document.querySelector("[popover]:popover-open:not(.tip)")) return;
    else if (key === "?") sheet.showModal();
    else if (writes(event)) return $("text").focus();
    else return;
    event.preventDefault();
  });
  $("open-keys").addEventListener("click", () => sheet.showModal());
  oneStop($("tools"), "a, button", { isRow: true });
  oneStop($("pane-tools"), "a, button", { isRow: true });
  oneStop($("list"), "a, .archive", {
    part: (row) => row.parentElement,
    choose: (all, last) => (all.includes(last) ? last : all.find((row) => row.ariaCurrent) ?? all[0]),
  });
  messageKeys($("log"));
}

/** The messages are one stop; Enter and the menu key open the menu of one, as a right click does. */
function messageKeys(log) {
  const inView = ({ offsetTop: top, offsetHeight: height }) => top + height > log.scrollTop && top < log.scrollTop + log.clientHeight;
  oneStop(log, ".msg", { choose: (all, last) => {
    const seen = all.filter(inView);
    return seen.includes(last) ? last : seen.at(-1);
  } });
  const openMenu = (message) => message?.querySelector(".more")?.click();
  log.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches(".msg")) return;
    event.preventDefault();
    openMenu(event.target);
  });
  log.addEventListener("contextmenu", (event) => {
    const message = event.target.closest(".msg");
    // The browser's own menu knows what to do with links and with what is selected.
    if (!message?.querySelector(".more") || event.target.closest("a") || !getSelection().isCollapsed) return;
    event.preventDefault();
    openMenu(message);
  });
}
