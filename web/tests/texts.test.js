import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";

import "./page.js";

/** The module as a page in this language has it, which it reads when it is loaded. */
async function textsOf(language, tag) {
  globalThis.tidemarkTexts = JSON.parse(readFileSync(new URL(`../languages/${language}.json`, import.meta.url), "utf8"));
  globalThis.document = { documentElement: { lang: tag } };
  Object.defineProperty(globalThis, "navigator", { value: { languages: [tag] }, configurable: true, writable: true });
  return import(`../static/texts.js?${tag}`);
}

const at = (...parts) => new Date(...parts).toISOString();
// The time of this machine, as people have it.
const DAYS = [at(2026, 2, 4, 0, 5), at(2026, 2, 3, 23, 58), at(2026, 1, 28, 8, 0), at(2026, 2, 5, 0, 0)];

beforeEach(() => { Date.now = () => new Date(2026, 2, 4, 15, 0).getTime(); });

test("numbers, days, times and lists are as people write them in English", async () => {
  const { dayOf, lastSeenOf, listOf, t, timeOf, whenOf } = await textsOf("en", "en");
  assert.equal(t("moments.too_long", { count: 8000 }), "A post has at most 8,000 characters.");
  assert.deepEqual(DAYS.map(dayOf), ["Today", "Yesterday", "Saturday, February 28, 2026", "Thursday, March 5, 2026"]);
  // Which space stands before AM differs between versions of Intl.
  assert.deepEqual(DAYS.map((time) => whenOf(time).replace(/\s/g, " ")), ["12:05 AM", "Yesterday", "Feb 28", "Mar 5"]);
  assert.equal(whenOf(DAYS[0]), timeOf(DAYS[0]));
  const seen = [DAYS[0], DAYS[1], "2026-02-28"].map((time) => lastSeenOf(time).replace(/\s/g, " "));
  assert.deepEqual(seen, ["last seen today at 12:05 AM", "last seen yesterday at 11:58 PM", "last seen on Feb 28, 2026"]);
  assert.deepEqual([["Ann"], ["Ann", "Ben"], ["Ann", "Ben", "Cleo"]].map(listOf), ["Ann", "Ann and Ben", "Ann, Ben, and Cleo"]);
});

test("numbers, days, times and lists are as people write them in Chinese", async () => {
  const { dayOf, listOf, t, whenOf } = await textsOf("zh", "zh-Hans");
  assert.equal(t("moments.too_long", { count: 8000 }), "最多 8,000 个字。");
  assert.deepEqual(DAYS.map(dayOf), ["今天", "昨天", "2026年2月28日星期六", "2026年3月5日星期四"]);
  assert.deepEqual(DAYS.map(whenOf), ["00:05", "昨天", "2月28日", "3月5日"]);
  assert.equal(listOf(["安", "本", "克"]), "安、本和克");
});

test("how long ago something was is short, and a day after a week", async () => {
  // Now, and ahead of a clock that is late; minutes, hours and days before; a week.
  const minutes = [0, -2, 5, 59, 60, 23 * 60, 24 * 60, 6 * 24 * 60, 7 * 24 * 60];
  const ago = minutes.map((count) => new Date(Date.now() - count * 60_000).toISOString());
  const told = { en: ["just now", "just now", "5 min", "59 min", "1 hr", "23 hr", "1 day", "6 days", "Feb 25"],
    "zh-Hans": ["刚刚", "刚刚", "5分钟", "59分钟", "1小时", "23小时", "1天", "6天", "2月25日"] };
  for (const [tag, words] of Object.entries(told)) {
    const { sinceOf } = await textsOf(tag.slice(0, 2), tag);
    assert.deepEqual(ago.map(sinceOf).map((text) => text.replace(/\s/g, " ")), words);
  }
});
