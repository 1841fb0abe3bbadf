// Texts in the language of the page, and what Intl makes of numbers, times and lists in it. The texts are those of
// web/languages, which a script of their own brings before this one runs.

/** The text or texts of a key; none only where that script did not come. */
const textOf = (key) => globalThis.tidemarkTexts?.[key];
const language = globalThis.document?.documentElement?.lang || "en";

/** As the browser's own settings write the language where they know it (en-GB), else as the language says. */
const locale = [...globalThis.navigator?.languages ?? []].find((own) => sameLanguage(own)) ?? language;
function sameLanguage(own) { return own.split("-")[0].toLowerCase() === language.split("-")[0]; }

const plurals = new Intl.PluralRules(language);
const numbers = new Intl.NumberFormat(locale);

/**
 * The text of `key` with `values` in the places of their names: `t("refused.wait", { count: 3 })`. Numbers are
 * written as the language does.
 */
export function t(key, values = {}) {
  const known = textOf(key) ?? key;
  const text = typeof known === "string" ? known : known[plurals.select(values.count)] ?? known.other;
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? numbers.format(value) : value;
  });
}

const times = (options) => new Intl.DateTimeFormat(locale, options);
const moment = times({ dateStyle: "medium", timeStyle: "short" });
const second = times({ timeStyle: "medium" });
const clock = times({ timeStyle: "short" });
const day = times({ weekday: "long", day: "numeric", month: "long", year: "numeric" });
const date = times({ dateStyle: "medium" });
const short = times({ day: "numeric", month: "short" });
const ago = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });
const several = new Intl.ListFormat(locale);

/** Day and time. */
export const momentOf = (time) => moment.format(new Date(time));
/** The time to the second. */
export const secondOf = (time) => second.format(new Date(time));

export const timeOf = (time) => clock.format(new Date(time));
/** For the line between days. */
export const dayOf = (time) => recent(time) ?? day.format(new Date(time));
/** For the list: the time today, else the day. */
export const whenOf = (time) => (daysSince(time) === 0 ? timeOf(time) : recent(time) ?? short.format(new Date(time)));
/** A length of time in its largest whole unit: `30 seconds`, `1 hour`, `4 weeks`. */
export function lastingOf(seconds) {
  const [unit, length] = [["year", 31_536_000], ["week", 604_800], ["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]].find(([, length]) => seconds % length === 0);
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "long" }).format(seconds / length);
}
/** The size of a file, in the largest unit of which it has one: `340 kB`, `2.1 MB`. */
export function sizeOf(bytes) {
  const [unit, least] = [["gigabyte", 1e9], ["megabyte", 1e6], ["kilobyte", 1e3], ["byte", 0]].find(([, least]) => bytes >= least);
  const size = bytes / (least || 1);
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: least >= 1e6 && size < 100 ? 1 : 0 }).format(size);
}
/** When somebody was online last, as a sentence; `time` is a time of the last 24 hours, or a date. */
export function lastSeenOf(time) {
  if (time.length === 10) return t("presence.seen_on", { day: date.format(new Date(`${time}T12:00`)) });
  return daysSince(time) ? t("presence.seen_yesterday", { time: timeOf(time) }) : t("presence.seen_today", { time: timeOf(time) });
}
/** `Ann, Ben and Cleo`. */
export const listOf = (names) => several.format(names);

/** How long ago something was, in short: `5 min`; the day of what is older than a week. */
export function sinceOf(time) {
  const minutes = Math.floor((Date.now() - new Date(time)) / 60_000);
  if (minutes < 1) return t("since.now");
  if (minutes < 60) return lasting("minute", minutes);
  if (minutes < 24 * 60) return lasting("hour", Math.floor(minutes / 60));
  const days = Math.floor(minutes / (24 * 60));
  return days < 7 ? lasting("day", days) : short.format(new Date(time));
}

const lasting = (unit, count) => new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "short" }).format(count);

const noon = (time) => new Date(time).setHours(12, 0, 0, 0);
const daysSince = (time) => Math.round((noon(Date.now()) - noon(time)) / 864e5);

/** "Today" or "Yesterday"; nothing for another day. */
function recent(time) {
  const days = daysSince(time);
  if (days !== 0 && days !== 1) return undefined;
  const word = ago.format(-days, "day");
  return word[0].toLocaleUpperCase(locale) + word.slice(1);
}

/**
 * Why the server refused something, for people: by the code, which is stable. `detail` is the server's own word, in English, for codes
 * that have no text; `seconds`: how long to wait, where that is known.
 */
export function refused(code, detail, seconds = 0) {
  if (code === "rate_limited" && seconds > 1) return t("refused.wait", { count: seconds });
  if (textOf(`error.${code}`)) return t(`error.${code}`);
  return detail ? detail[0].toUpperCase() + detail.slice(1) : t("error.other", { code });
}
