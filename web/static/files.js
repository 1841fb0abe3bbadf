// Files of messages and moments as values: what each is, how a line names them, where their bytes are. No document and no database here.

import { isolate } from "./dom.js";
import { t } from "./texts.js";

/** Files of one message or moment. */
export const MOST_FILES = 9;
// Characters of a file's name.
const LONGEST_NAME = 255;
// Those that a browser shows or plays; the server gives these types alone for it.
const PICTURES = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const SOUNDS = ["audio/mpeg", "audio/ogg", "audio/wav", "audio/flac", "audio/aac", "audio/mp4", "audio/webm"];
const FILMS = ["video/mp4", "video/webm"];
// The characters that the server refuses in a name: what is invisible, breaks the line or turns the direction of the text.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;

/** picture, voice, film, sound, or other: how it is shown. */
export function kindOf({ type, width, height, waveform }) {
  if (PICTURES.includes(type) && width && height) return "picture";
  const isSound = SOUNDS.includes(type);
  if (waveform && (isSound || FILMS.includes(type))) return "voice";
  return isSound ? "sound" : FILMS.includes(type) ? "film" : "other";
}

/** Files in one line: the list, a quote, a notification and a screen reader say so. */
export function lineOfFiles(files) {
  const kinds = new Set(files.map(kindOf));
  const [kind] = kinds;
  const count = files.length;
  if (count > 1) return kinds.size === 1 && kind === "picture" ? t("files.pictures", { count }) : t("files.several", { count });
  switch (kind) {
    case "picture": return t("files.picture");
    case "film": return t("files.film");
    case "voice": return t("files.voice");
    default: return t("files.named", { name: isolate(files[0].name) });
  }
}

/** The files of a row, of a message in the outbox, or of the one that such a message forwards. */
export const filesOf = (row) => row.body?.files ?? row.files ?? row.carried?.files ?? [];

/** Where a file is read. `message_id`: the person's own row that names it; `preview`: `small` or `large`, where there is such a one. */
export function addressOf(message_id, { id, previews = [] }, preview) {
  const isThere = previews.includes(preview);
  return `/files/${message_id}/${id}${isThere ? `/${preview}` : ""}`;
}

/** A name that the server takes. */
export function cleanName(name) {
  const clean = name.replace(HIDDEN, "").replace(/[/\\]/g, "_").trim();
  const letters = [...clean];
  if (letters.length > LONGEST_NAME) {
    // The end says what it is.
    const end = letters.slice(-12);
    return [...letters.slice(0, LONGEST_NAME - end.length), ...end].join("").trim();
  }
  return /^\.{0,2}$/.test(clean) ? "file" : clean;
}

/** A length of time as players write it: `1:05`, `1:00:05`. */
export function clockOf(milliseconds) {
  const seconds = Math.round(milliseconds / 1_000);
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}

/** The size of a box for a picture of this size: within `most` pixels each way, and neither stretched nor a mere line. */
export function fitted({ width, height }, most, least = 64) {
  const scale = Math.min(1, most / width, most / height);
  return { width: Math.max(least, Math.round(width * scale)), height: Math.max(least, Math.round(height * scale)) };
}

/** What a message says of a file that the server does not find out. */
export const saidOf = ({ type, width, height, duration_ms, waveform }) => ({
  ...(FILMS.includes(type) && width && { width, height }), ...(duration_ms && { duration_ms }), ...(waveform && { waveform }),
});
