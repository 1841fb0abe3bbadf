// The files of a message as elements: pictures in a grid, sound and films in place, cards for all else, and how far those are that are on
// their way. The size of everything is known before it loads, so that nothing moves.

import { h, icon } from "./dom.js";
import { addressOf, clockOf, filesOf, fitted, kindOf } from "./files.js";
import { player } from "./player.js";
import { sizeOf, t } from "./texts.js";
import { thumbnail } from "./thumbnails.js";

// Pixels of a picture that is alone, each way.
const MOST = 320;
// By client_id: how much of the files of a message is there.
const shares = new Map();

/** So much of a message's files is at the server, from 0 to 1. */
export function showProgress(client_id, share) {
  share < 1 ? shares.set(client_id, share) : shares.delete(client_id);
  for (const bar of document.querySelectorAll(`progress[data-upload="${CSS.escape(client_id)}"]`)) bar.value = share;
}

/**
 * The element for the files of a row; null: it has none. `before`: the one that shows them now, which stays if nothing is different: what
 * plays goes on. `acts`: {view(row, id), local(client_id, n), takeBack(row)}.
 */
export function attached(row, before, acts) {
  const files = filesOf(row);
  if (!files.length) return null;
  // Until they are stored, the pictures are those of this browser.
  const place = row.body?.files ? row.message_id : row.carried?.message_id ?? null;
  const sig = JSON.stringify([place, files]);
  if (before?.sig === sig) return withProgress(before, row, acts);
  const pictures = files.filter((file) => kindOf(file) === "picture");
  const others = files.filter((file) => kindOf(file) !== "picture");
  const isAlone = pictures.length === 1;
  // The preview that this browser has made of an own picture stands there until the server's is loaded.
  const made = [...before?.querySelectorAll(".picture") ?? []].map((tile) => tile.querySelector("canvas"));
  const one = (file, at) => picture(file, { row, place, n: files.indexOf(file), isAlone, made: made[at] }, acts);
  const element = h("div.files", {},
    pictures.length ? h(`div.pictures.of-${Math.min(3, pictures.length)}`, {}, ...pictures.map(one)) : null,
    ...others.map((file) => other(file, place)));
  return withProgress(Object.assign(element, { sig }), row, acts);
}

/** The same, saying how far it is as long as it is on its way. */
function withProgress(element, row, acts) {
  const isUploading = Boolean(row.files) && row.state === "waiting" && !row.up;
  const shown = element.querySelector(":scope > .sending");
  if (isUploading && !shown) element.append(sending(row, acts));
  else if (!isUploading) shown?.remove();
  return element;
}

function picture(file, { row, place, n, isAlone, made }, acts) {
  const { name, id } = file;
  const box = isAlone ? fitted(file, MOST) : { width: MOST / 2, height: MOST / 2 };
  if (place === null) {
    const label = t("files.picture_of", { name });
    const empty = h("canvas", { ...box, role: "img", "aria-label": label });
    acts.local(row.client_id, n).then(thumbnail).then((found) => {
      if (!found) return;
      const canvas = sized(found.canvas, box);
      canvas.role = "img";
      canvas.ariaLabel = label;
      empty.replaceWith(canvas);
    }, () => {});
    return h("span.picture", {}, empty);
  }
  const src = addressOf(place, file, "small");
  const image = h("img", { src, alt: t("files.picture_of", { name }), ...box, decoding: "async", draggable: "false" });
  const button = h("button.picture", { type: "button", "data-act": `file ${id}`, onclick: () => acts.view(place, id) }, made, image);
  if (made) {
    made.ariaHidden = "true";
    image.hidden = true;
    image.addEventListener("load", () => {
      image.hidden = false;
      made.remove();
    }, { once: true });
  }
  image.addEventListener("error", () => {
    const words = h("span", { "aria-hidden": "true" }, t("files.gone_short"));
    button.replaceWith(sized(h("span.picture.broken", { role: "img", "aria-label": t("files.gone", { name }) }, icon("alert"), words), box));
  }, { once: true });
  return button;
}

/** The element in the place of a box, whatever is in it. */
function sized(element, { width, height }) {
  element.style.aspectRatio = `${width} / ${height}`;
  element.style.width = `${width}px`;
  return element;
}

function other(file, place) {
  const kind = kindOf(file);
  if (place === null || kind === "other") return card(file, place);
  if (kind === "voice") return player(file, addressOf(place, file), () => card(file, place));
  const { name } = file;
  const src = addressOf(place, file);
  const media = h(kind === "film" ? "video" : "audio", { src, controls: "", preload: "metadata", playsinline: "", "aria-label": name });
  const shown = h("div.media", {}, media, card(file, place));
  // A browser that cannot play it can still save it.
  media.addEventListener("error", () => media.remove(), { once: true });
  return shown;
}

/** Name, size and type, and the way to the file. */
function card(file, place) {
  const { name, size, duration_ms: long } = file;
  const end = /\.([a-z0-9]{1,8})$/i.exec(name)?.[1].toUpperCase();
  const about = [sizeOf(size), end, long && clockOf(long)].filter(Boolean).join(" · ");
  const words = h("span.about-file", {}, h("bdi.file-name", {}, name), h("span.quiet", {}, about));
  if (place === null) return h("div.card-of-file", {}, icon("file"), words);
  return h("a.card-of-file", { href: addressOf(place, file), download: name, title: t("files.save", { name }) }, icon("file"), words, icon("save"));
}

/** How far the files of a message are, and how they are stopped. */
function sending(row, acts) {
  const bar = h("progress", { max: "1", "data-upload": row.client_id, "aria-label": t("files.sending") });
  bar.value = shares.get(row.client_id) ?? 0;
  return h("p.sending", {}, bar, h("button.link", { type: "button", onclick: () => acts.takeBack(row) }, t("files.cancel")));
}
