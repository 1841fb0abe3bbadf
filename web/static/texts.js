// Texts in the language of the page, and what Intl makes of numbers, times and lists in it. The texts are those of
// web/languages, which a script of their own brings before this one runs.

/** The texts by key; empty only where that script did not come. */
const texts = globalThis.tidemarkTexts ?? {};
const language = globalThis.document?.documentElement?.lang || "en";

/** As the browser's own settings write the language where they know it (en-GB), else as the language says. */
const locale = [...navigator.languages ?? []].find((own) => sameLanguage(own)) ?? language;
function sameLanguage(own) { return own.split("-")[0].toLowerCase() === language.split("-")[0]; }

const plurals = new Intl.PluralRules(language);
const numbers = new Intl.NumberFormat(locale);

/**
 * The text of `key` with `values` in the places of their names: `t("refused.wait", { count: 3 })`. Numbers are
 * written as the language does.
 */
export function t(key, values = {}) {
  const known = texts[key] ?? key;
  const text = typeof known === "string" ? known : known[plurals.select(values.count)] ?? known.other;
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name];
    return value === undefined ? whole : typeof value === "number" ? numbers.format(value) : value;
  });
}

const times = (options) => new Intl.DateTimeFormat(locale, options);
const moment = times({ dateStyle: "medium", timeStyle: "short" });
const second = times({ timeStyle: "medium" });

/** Day and time. */
export const momentOf = (time) => moment.format(new Date(time));
/** The time to the second. */
export const secondOf = (time) => second.format(new Date(time));

/**
 * Why the server refused something, for people: by the code, which is stable. `detail` is the server's own word, in English, for codes
 * that have no text; `seconds`: how long to wait, where that is known.
 */
export function refused(code, detail, seconds = 0) {
  if (code === "rate_limited" && seconds > 1) return t("refused.wait", { count: seconds });
  if (texts[`error.${code}`]) return t(`error.${code}`);
  return detail ? detail[0].toUpperCase() + detail.slice(1) : t("error.other", { code });
}
