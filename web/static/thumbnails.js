// Small pictures of files that are not sent yet, made in this browser: on a canvas, so that no address of them has to be given up again.

import { h } from "./dom.js";

// Pixels of a side.
const MOST = 480;

// Pictures are decoded one after the other: a large one takes hundreds of megabytes meanwhile.
let decoding = Promise.resolve();

/** {width, height, canvas} of a picture, as it is shown; null: this browser can show none. */
export function thumbnail(blob) {
  const one = decoding.then(() => draw(blob)).catch(() => null);
  decoding = one;
  return one;
}

/** The files of a message that was taken back (sending.js), as they stand above the box; those whose bytes are gone are left out. */
export function pictured({ files, blobs }) {
  const here = files.map((file, n) => ({ ...file, blob: blobs[n] })).filter(({ blob }) => blob);
  return Promise.all(here.map(async (file) => ({ ...file, picture: (await thumbnail(file.blob))?.canvas })));
}

async function draw(blob) {
  if (!blob?.type.startsWith("image/")) return null;
  const bitmap = await createImageBitmap(blob);
  const { width, height } = bitmap;
  const scale = Math.min(1, MOST / width, MOST / height);
  const canvas = h("canvas", { width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale)) });
  const pen = canvas.getContext("2d");
  pen.imageSmoothingQuality = "high";
  pen.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return { width, height, canvas };
}
