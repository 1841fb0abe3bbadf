// Characters as people see them, and where a word ends, by Unicode's classes.

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The first character of a text; a flag or a letter with its marks is one. */
export const first = (text) => segmenter.segment(text).containing(0)?.segment ?? "";

/** The letter of a disc. A capital of several letters (`SS` for `ß`) is none; the same rule as in web/src/filters.rs. */
export function initial(name) {
  const letter = first(name);
  const capital = letter.toUpperCase();
  return first(capital) === capital ? capital : letter;
}

/** A text of at most `most` characters; of a longer one the beginning, which ends in "…". */
export function cut(text, most) {
  if (text.length <= most) return text;
  let [count, end] = [0, 0];
  for (const { index } of segmenter.segment(text)) {
    if (count === most - 1) end = index;
    if (count++ === most) return `${text.slice(0, end)}…`;
  }
  return text;
}

/** Whether a text is but a few emoji, which are shown large. */
export const isEmojiAlone = (text) => ALONE.test(text);
const ALONE = /^\s*(?:\p{RGI_Emoji}\s*){1,3}$/v;

/** The form in which names and words are compared. */
export const folded = (text) => text.normalize("NFC").toLowerCase();

// Scripts without spaces between words, or with endings behind names: there the next letter may begin another word.
const UNSPACED = ["Han", "Hiragana", "Katakana", "Bopomofo", "Hangul", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"]
  .map((script) => String.raw`\p{Script=${script}}`).join("");
const SPACED = new RegExp(String.raw`^[[\p{L}\p{M}\p{N}]--[${UNSPACED}]]$`, "v");
// What belongs to the character before it.
const ATTACHED = /^[\p{M}\p{Emoji_Modifier}\u200c\u200d]$/u;

/** Whether a character is part of a word that goes on beside it. */
export const isWordy = (c) => SPACED.test(c);
export const isAttached = (c) => ATTACHED.test(c);

/** The whole code point before or at a place; a space beyond the ends. */
export function before(text, at) {
  const low = text[at - 1] ?? " ";
  return at > 1 && /[\udc00-\udfff]/.test(low) ? text.slice(at - 2, at) : low;
}
export const after = (text, at) => (at < text.length ? String.fromCodePoint(text.codePointAt(at)) : " ");
