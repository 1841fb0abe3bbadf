// The viewer: a picture over everything, with zoom, and the pictures of the conversation before and after it. Fetched when somebody opens
// one.

import { h, icon, isolate } from "./dom.js";
import { addressOf, filesOf, kindOf } from "./files.js";
import { momentOf, sizeOf, t } from "./texts.js";
import { Zoom } from "./zoom.js";

// Rows that are looked through at once, and pages of them, for the next picture.
const PAGE = 60;
const MOST_PAGES = 20;

const picturesIn = (row) => (row.kind === "message" || row.kind === "moment" ? filesOf(row) : [])
  .filter((file) => kindOf(file) === "picture").map((file) => ({ row, file }));

/** The pictures of a conversation around one of them, taken from the database as somebody goes on. */
export class Album {
  /** `page(where)`: rows of the conversation (db.js). */
  constructor(page, row, id) {
    this.page = page;
    this.all = picturesIn(row);
    this.at = Math.max(0, this.all.findIndex(({ file }) => file.id === id));
  }

  get current() { return this.all[this.at]; }

  /** Goes to the next one (1), or the one before (-1); false: there is none here. */
  async go(step) {
    if (!this.all[this.at + step] && !await this.more(step)) return false;
    this.at += step;
    return true;
  }

  async more(step) {
    let edge = this.all.at(step > 0 ? -1 : 0).row.message_id;
    for (let page = 0; page < MOST_PAGES; page++) {
      const rows = await this.page(step > 0 ? { after: edge, forward: true, limit: PAGE } : { before: edge, limit: PAGE });
      const found = rows.flatMap(picturesIn);
      if (step > 0) this.all.push(...found);
      else {
        this.all.unshift(...found);
        this.at += found.length;
      }
      if (found.length) return true;
      if (rows.length < PAGE) return false;
      edge = rows.at(step > 0 ? -1 : 0).message_id;
    }
    return false;
  }
}

/** Shows a picture of a row. */
export async function view(store, message_id, id) {
  const row = await store.db.row(message_id);
  if (!row) return;
  const album = new Album((where) => store.db.page(row.conversation, where), row, id);
  if (!album.current) return;
  const tool = (sign, label, act, more = {}) => h("button.tool", { type: "button", title: label, onclick: act, ...more }, sign);
  const stage = h("div.viewed", {});
  const about = h("p.about-viewed", { "aria-live": "polite" });
  const save = h("a.tool", { title: t("viewer.save") }, icon("save"));
  const zoom = new Zoom(stage, { zoomed: (scale) => scale > 1 && whole(), swiped: (step) => go(step) });
  const sign = (text) => h("span", { "aria-hidden": "true" }, text);
  const [before, next] = [tool(icon("left"), t("viewer.before"), () => go(-1)), tool(icon("right"), t("viewer.next"), () => go(1))];
  const close = tool(icon("cross"), t("close"), () => dialog.close());
  const dialog = h("dialog.viewer", { "aria-label": t("viewer.title") },
    h("div.bar", {}, about, tool(sign("−"), t("viewer.smaller"), () => zoom.by(1 / 1.5)), tool(sign("+"), t("viewer.larger"), () => zoom.by(1.5)),
      save, close),
    stage, before, next);

  /** What stands there is not large enough any more. */
  const whole = () => {
    const image = stage.firstChild;
    const { row, file } = album.current;
    const address = addressOf(row.message_id, file);
    if (!image || image.dataset.whole) return;
    image.dataset.whole = "yes";
    const loaded = Object.assign(new Image(), { src: address });
    loaded.decode().then(() => { if (image.isConnected) image.src = address; }, () => {});
  };
  const show = () => {
    const { row, file } = album.current;
    const { name, size, width, height } = file;
    // A picture that moves does so as it is.
    const src = addressOf(row.message_id, file, file.type === "image/gif" ? "" : "large");
    const image = h("img", { src, alt: t("files.picture_of", { name }), width, height, draggable: "false" });
    image.addEventListener("error", () => image.replaceWith(h("p.quiet", {}, t("files.gone", { name }))), { once: true });
    stage.replaceChildren(image);
    zoom.reset();
    const who = row.sender === store.self.uid ? t("you") : store.name(row.sender);
    about.replaceChildren(h("bdi.file-name", {}, name), h("span.quiet", {}, [isolate(who), momentOf(row.sent_at), sizeOf(size)].join(" · ")));
    save.href = addressOf(row.message_id, file);
    save.download = name;
  };
  const go = async (step) => {
    if (await album.go(step)) return show();
    about.lastChild.textContent = step > 0 ? t("viewer.last") : t("viewer.first");
  };
  dialog.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowLeft: () => go(-1), ArrowRight: () => go(1), "-": () => zoom.by(1 / 1.5), 0: () => zoom.reset(),
      "+": () => zoom.by(1.5), "=": () => zoom.by(1.5),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
  stage.addEventListener("click", ({ target }) => { if (target === stage && !zoom.hasMoved) dialog.close(); });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  show();
  dialog.showModal();
  close.focus();
}
