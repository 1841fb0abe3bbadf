import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { tellRefusals } from "../static/refusals.js";
import { Store } from "../static/store.js";
import { page } from "./page.js";

const WORDS = {
  en: ["Mute (Ben)", "Keep at the top of the list (Ben)", "Archive (Ben)", "Block (Ben)", "Profile", "Privacy", "later"],
  zh: ["免打扰 (Ben)", "在列表中置顶 (Ben)", "归档 (Ben)", "拉黑 (Ben)", "个人资料", "隐私", "later"],
};
const SAYS = {
  en: (setting) => `“${setting}” was not changed: This cannot be set like that.`,
  zh: (setting) => `“${setting}”未能更改：无法这样设置。`,
};

for (const language of ["en", "zh"]) {
  test(`a setting that was refused has its name, and that of its conversation (${language})`, () => {
    page();
    const english = globalThis.tidemarkTexts;
    globalThis.tidemarkTexts = JSON.parse(readFileSync(new URL(`../languages/${language}.json`, import.meta.url), "utf8"));
    const parts = new Map();
    const part = (id) => Object.assign(new EventTarget(), { id, textContent: "", append: (child) => { child.parentElement = part(id); } });
    document.getElementById = (id) => parts.get(id) ?? parts.set(id, part(id)).get(id);
    document.querySelector = () => null;
    const store = new Store({ self: { uid: 10_001, name: "Ada" } });
    Object.assign(store, { conversations: new Map([["u:10002", { title: "Ben" }]]), names: new Map(), outbox: [] });
    tellRefusals(store);
    const frame = (name) => ({ conversation: "u:10002", frame: { type: "setting", name, value: null } });
    const call = (name) => ({ conversation: "u:10001", call: { path: `/settings/${name}` } });
    const said = [...["mute", "pin", "archive", "block"].map(frame), ...["profile", "privacy", "later"].map(call)].map((item) => {
      store.outbox = [{ ...item, state: "failed", code: "bad_setting" }];
      store.show();
      assert.equal(parts.get("refusal").hidden, false);
      return parts.get("refusal-text").textContent;
    });
    assert.deepEqual(said, WORDS[language].map(SAYS[language]));
    store.outbox = [];
    store.show();
    assert.deepEqual([parts.get("refusal").hidden, parts.get("refusal-text").textContent], [true, ""]);
    globalThis.tidemarkTexts = english;
  });
}
