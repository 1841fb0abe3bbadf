// The dialog in which somebody chooses the square of a picture that others see, and sends it. Fetched when somebody has chosen a picture.

import { h } from "./dom.js";
import { t } from "./texts.js";
import { upload } from "./tus.js";

// Pixels of a side, as they are sent.
const SIDE = 512;
const MOST_ZOOM = 4;
const QUALITY = 0.9;

/** The square of a picture, in its pixels. `zoom`: 1 is the largest one; `across` and `down`: where it lies, from 0 to 1. */
export function squareOf({ width, height }, { zoom, across, down }) {
  const side = Math.min(width, height) / zoom;
  return { left: (width - side) * across, top: (height - side) * down, side };
}

/** Asks for the square, and answers the id under which it is at the server; null: nothing was chosen. */
export async function cut(file) {
  const bitmap = await createImageBitmap(file).catch(() => null);
  if (!bitmap) throw new Error(t("error.no_picture"));
  const canvas = h("canvas", { width: SIDE, height: SIDE, role: "img", "aria-label": t("picture.preview") });
  const pen = canvas.getContext("2d");
  pen.imageSmoothingQuality = "high";
  const slider = (least, most, value) => h("input", { type: "range", min: least, max: most, step: "0.01", value });
  const sliders = { zoom: slider(1, MOST_ZOOM, 1), across: slider(0, 1, 0.5), down: slider(0, 1, 0.5) };
  const place = () => squareOf(bitmap, Object.fromEntries(Object.entries(sliders).map(([name, { value }]) => [name, Number(value)])));
  const draw = () => {
    const { left, top, side } = place();
    // Where the picture is transparent.
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, SIDE, SIDE);
    pen.drawImage(bitmap, left, top, side, side, 0, 0, SIDE, SIDE);
    sliders.across.disabled = side === bitmap.width;
    sliders.down.disabled = side === bitmap.height;
  };
  const drag = ({ buttons, movementX, movementY }) => {
    if (!buttons) return;
    const { side } = place();
    const scale = side / canvas.clientWidth;
    if (side < bitmap.width) sliders.across.value -= movementX * scale / (bitmap.width - side);
    if (side < bitmap.height) sliders.down.value -= movementY * scale / (bitmap.height - side);
    draw();
  };
  canvas.addEventListener("pointerdown", ({ pointerId }) => canvas.setPointerCapture(pointerId));
  canvas.addEventListener("pointermove", drag);
  const labelled = (name) => h("label.field", {}, t(`picture.${name}`), sliders[name]);
  const problem = h("p.problem", { role: "alert" });
  const use = h("button.button.primary", {}, t("picture.use"));
  const leaving = new AbortController();
  let chosen = null;
  const send = async (event) => {
    event.preventDefault();
    use.disabled = true;
    problem.textContent = "";
    try {
      const blob = await new Promise((resolve) => { canvas.toBlob(resolve, "image/jpeg", QUALITY); });
      chosen = await upload(blob, { name: "picture.jpg", began: () => {}, signal: leaving.signal });
      dialog.close();
    } catch (refusal) {
      problem.textContent = refusal.message;
      use.disabled = false;
    }
  };
  const dialog = h("dialog.crop", { closedby: "any", "aria-labelledby": "crop-title" },
    h("form", { onsubmit: send, oninput: draw }, h("h2", { id: "crop-title" }, t("picture.title")), canvas, ...Object.keys(sliders).map(labelled), problem,
      h("div.choices", {}, use, h("button.button", { type: "button", onclick: () => dialog.close() }, t("cancel")))));
  draw();
  document.body.append(dialog);
  dialog.showModal();
  await new Promise((resolve) => { dialog.addEventListener("close", resolve, { once: true }); });
  leaving.abort();
  dialog.remove();
  bitmap.close();
  return chosen;
}
