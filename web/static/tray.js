// The files above a message box before they are sent: each with a small picture or a card, and a button that takes it out.

import { hasRoom } from "./blobs.js";
import { h, icon, isolate } from "./dom.js";
import { MOST_FILES, cleanName } from "./files.js";
import { sizeOf, t } from "./texts.js";
import { thumbnail } from "./thumbnails.js";

// The largest file that the server takes, in bytes; it is asked when somebody chooses the first one. Null: not known.
let most = null;
// A server that does not answer soon says it when the file goes up.
const PATIENCE_MS = 1_000;

async function learnMost() {
  if (most !== null) return;
  const answer = await fetch("/files", { method: "OPTIONS", signal: AbortSignal.timeout(PATIENCE_MS) }).catch(() => null);
  most = Number(answer?.headers.get("tus-max-size")) || null;
}

export class Tray {
  /** `changed()`: there is a file more, or less. */
  constructor(store, changed) {
    Object.assign(this, { store, changed, files: [] });
    this.list = h("ul.tray-list", { role: "list", "aria-label": t("files.chosen") });
    this.note = h("p.problem", { role: "alert" });
    this.element = h("div.tray", {}, this.list, this.note);
  }

  get size() { return this.files.length; }

  /** Says what is wrong with a file; nothing: it can be sent. */
  async fault(file) {
    const name = isolate(file.name);
    // A folder that was dropped cannot be read.
    const isReadable = await file.slice(0, 1).arrayBuffer().then(() => true, () => false);
    if (!isReadable) return t("files.folder", { name });
    if (!file.size) return t("files.empty", { name });
    if (most && file.size > most) return t("files.too_large", { name, size: sizeOf(most) });
    if (!hasRoom(this.store.outbox, [...this.files, file])) return t("files.too_much");
  }

  /** Takes files in, those that can be sent, in their order. */
  async add(files) {
    await learnMost();
    const into = this.files;
    let said = "";
    for (const file of files) {
      if (into.length >= MOST_FILES) {
        said = t("files.too_many", { count: MOST_FILES });
        break;
      }
      const fault = await this.fault(file);
      if (fault) {
        said = fault;
        continue;
      }
      const { width, height, canvas } = await thumbnail(file) ?? {};
      const about = { name: cleanName(file.name ?? ""), size: file.size, type: file.type.split(";")[0] };
      into.push({ blob: file, ...about, ...(width && { width, height }), picture: canvas });
      if (into === this.files) this.render();
    }
    if (into === this.files) this.note.textContent = said;
    this.changed();
  }

  /** Whether there are more than one message has, as when one came back; then it says so. */
  isTooMany() {
    const isMore = this.files.length > MOST_FILES;
    if (isMore) this.note.textContent = t("files.take_some_out", { count: MOST_FILES });
    return isMore;
  }

  /** Shows other files instead. */
  show(files) {
    this.files = files;
    this.note.textContent = "";
    this.render();
  }

  /** Answers the files, which are about to be sent; none are left. */
  take() {
    const { files } = this;
    this.show([]);
    return files;
  }

  render() {
    this.element.classList.toggle("empty", !this.files.length);
    this.list.replaceChildren(...this.files.map((file) => this.item(file)));
  }

  item(file) {
    const { name, size, picture } = file;
    const label = t("files.take_out", { name });
    const away = h("button.tool", { type: "button", "aria-label": label, title: label, onclick: () => {
      const at = this.files.indexOf(file);
      this.files.splice(at, 1);
      this.note.textContent = "";
      this.render();
      const next = this.list.children[Math.min(at, this.files.length - 1)];
      next?.querySelector("button").focus();
      this.changed();
    } }, icon("cross"));
    if (picture) Object.assign(picture, { role: "img", ariaLabel: t("files.picture_of", { name }) });
    return h(`li.chosen${picture ? ".pictured" : ""}`, {}, picture ?? icon("file"),
      h("span.about-file", {}, h("bdi.file-name", {}, name), h("span.quiet", {}, sizeOf(size))), away);
  }
}
