// The ways of files into the message box: the button with the picker, the camera of a phone, paste, and drop on the conversation.

import { $, h, isolate } from "./dom.js";
import { item, openMenu } from "./menu.js";
import { t } from "./texts.js";
import { isTouch } from "./touch.js";

/** A button that chooses files; where a finger points, its menu has the camera, too. `take(files)` gets them; `which`: attributes of the field. */
export function pickWith(button, take, which = {}) {
  const chosen = ({ target }) => {
    const files = [...target.files];
    // So that the same file can be chosen again.
    target.value = "";
    take(files);
  };
  const field = (more) => h("input", { type: "file", hidden: "", multiple: "", onchange: chosen, ...more });
  const any = field(which);
  const camera = field({ accept: "image/*", capture: "environment", multiple: null });
  button.after(any, camera);
  button.addEventListener("click", () => {
    if (!isTouch()) return any.click();
    openMenu(button, [item(t("files.choose"), () => any.click()), item(t("files.camera"), () => camera.click())]);
  });
}

/** The files of a paste; those that come with a text, as from an office program, are a picture of it. */
const filesIn = ({ clipboardData }) => (clipboardData?.types.includes("text/plain") ? [] : [...clipboardData?.files ?? []]);

/** Takes the files that are pasted into an element, if `isMeant(event)`. */
export function pasteInto(element, take, isMeant = () => true) {
  element.addEventListener("paste", (event) => {
    const files = filesIn(event);
    if (!files.length || !isMeant(event)) return;
    event.preventDefault();
    take(files);
  });
}

/**
 * Takes files that are dropped on the conversation. `name()`: whose it is; nothing: nobody can write there. Files that miss it do not
 * take the page away.
 */
export function dropOn(place, { name, take }) {
  const target = h("div.drop", { "aria-hidden": "true", hidden: "" }, h("p", {}));
  place.append(target);
  let leaving;
  const hide = () => { target.hidden = true; };
  const hasFiles = ({ dataTransfer }) => dataTransfer?.types.includes("Files");
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    const to = name();
    const isHere = to && !document.querySelector("dialog[open]") && place.contains(event.target);
    event.dataTransfer.dropEffect = isHere ? "copy" : "none";
    clearTimeout(leaving);
    if (!to) return;
    target.firstChild.textContent = t("files.drop", { name: isolate(to) });
    target.hidden = Boolean(document.querySelector("dialog[open]"));
    target.classList.toggle("over", isHere);
    // It comes again and again as long as something is dragged.
    leaving = setTimeout(hide, 500);
  });
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    hide();
    if (name() && place.contains(event.target) && !document.querySelector("dialog[open]")) take([...event.dataTransfer.files]);
  });
}

/** The message box: its button, paste, and drop on what is open. `composer` takes the files. */
export function pickFor(composer, store) {
  const take = (files) => composer.attach(files);
  pickWith($("open-files"), take);
  const isOpen = () => !$("open").hidden && !$("open-files").disabled;
  // Wherever the focus is, unless another field has it.
  pasteInto(document, take, ({ target }) => isOpen() && !document.querySelector("dialog[open]")
    && (target === $("text") || !target.closest?.("input, textarea")));
  dropOn($("open"), { name: () => (isOpen() ? store.title(store.open) : null), take });
}
