import assert from "node:assert/strict";
import { test } from "node:test";

import "./page.js";
import { lacks } from "../static/subscription.js";

const browser = { isSecureContext: true, navigator: { serviceWorker: {} }, PushManager: class {}, Notification: { permission: "default" } };

test("each reason for which a browser cannot be told has a sentence", () => {
  assert.equal(lacks("key", browser), null);
  assert.equal(lacks(undefined, browser), null, "the server has not been asked yet");
  for (const [key, change, why] of [
    ["key", { isSecureContext: false }, "secure"],
    ["key", { navigator: {} }, "worker"],
    ["key", { PushManager: undefined }, "service"],
    ["key", { Notification: undefined }, "service"],
    ["key", { Notification: { permission: "denied" } }, "blocked"],
    [null, {}, "on"],
  ]) {
    assert.equal(lacks(key, { ...browser, ...change }), why);
    assert.ok(globalThis.tidemarkTexts[why === "blocked" ? "notify.blocked" : `push.not.${why}`], why);
  }
});
