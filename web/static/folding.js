// The form of a text in which words are looked for: without case and accents, and with gaps where no word is. The same as on the server
// (server/src/domain/search/fold.rs).

const GAP = " ";
const ASCII = /^[\0-\x7f]*$/;
const SMALL = /^[a-z0-9\u4e00-\u9fff]$/;
const LETTER = /^\p{L}$/u;
const KEPT = /^[\p{M}\p{N}\p{So}]$/u;
// What nobody sees.
const UNSEEN = /^[\p{Cf}\u034f\ufe00-\ufe0f\u{e0100}-\u{e01ef}]$/u;
const PICTURE = /^\p{So}$/u;
const SPACELESS = [
  [0xe00, 0xeff], [0x1000, 0x109f], [0x1780, 0x17ff], [0x3040, 0x312f], [0x31a0, 0x31ff], [0x3400, 0x4dbf], [0x4e00, 0xa4cf],
  [0xf900, 0xfaff], [0x20000, 0x3ffff],
];

// Marks whose classes (Canonical_Combining_Class of Unicode) bound those of accents: 9, 36, and 132, the last one below 200.
const [VIRAMA, ALAPH, VOWEL_U] = ["\u094d", "\u0711", "\u0f74"];

/** Whether the class of `mark` is greater than that of `other`: normal forms put the lesser one first. */
const isBehind = (mark, other) => `a${mark}${other}`.normalize("NFD") === `a${other}${mark}`;

/** Accents, and points of Hebrew and Arabic. Vowel signs, which are marks, too, stay: they are no ornament. */
function isAccent(mark) {
  if (!isBehind(mark, VIRAMA) || mark === VIRAMA) return false;
  return mark === ALAPH || isBehind(ALAPH, mark) || isBehind(mark, VOWEL_U) && mark !== VOWEL_U;
}

function foldPart(part) {
  if (ASCII.test(part)) return SMALL.test(part.toLowerCase()) ? part.toLowerCase() : GAP;
  if (UNSEEN.test(part)) return "";
  // By way of the capitals, so that ß meets ss, and ς meets σ.
  if (LETTER.test(part)) return [...part.toLowerCase().toUpperCase().toLowerCase()].filter((one) => !isAccent(one)).join("");
  return KEPT.test(part) ? (isAccent(part) ? "" : part) : GAP;
}

const known = new Map();
// Characters that are remembered: more than an alphabet, and less than all.
const MOST_KNOWN = 4_000;

function foldCharacter(character) {
  if (SMALL.test(character)) return character;
  let folded = known.get(character);
  if (folded === undefined) {
    if (known.size >= MOST_KNOWN) known.clear();
    folded = [...character.normalize("NFKD")].map(foldPart).join("");
    known.set(character, folded);
  }
  return folded;
}

export function fold(text) {
  if (ASCII.test(text)) return text.toLowerCase().replace(/[^a-z0-9]/g, GAP);
  let folded = "";
  for (const character of text) folded += foldCharacter(character);
  return folded;
}

/**
 * {folded, places, silent}: for each code unit of the folded text, [start, end] of its character in the text; and the ends of characters
 * that leave nothing, by their starts.
 */
export function foldWithPlaces(text) {
  let folded = "";
  const [places, silent] = [[], new Map()];
  let at = 0;
  for (const character of text) {
    const part = foldCharacter(character);
    const end = at + character.length;
    if (!part) silent.set(at, end);
    for (let unit = 0; unit < part.length; unit++) places.push([at, end]);
    folded += part;
    at = end;
  }
  return { folded, places, silent };
}

/** The words of a folded text. */
export const wordsOf = (folded) => folded.split(GAP).filter(Boolean);

/** Whether a character is of a script whose words stand side by side without spaces, or is a word by itself. */
export function isSpaceless(character) {
  const point = character.codePointAt(0);
  return SPACELESS.some(([from, to]) => from <= point && point <= to) || PICTURE.test(character);
}
