import assert from "node:assert/strict";
import { test } from "node:test";

import { Badge } from "../static/badge.js";
import { Store } from "../static/store.js";
import { page } from "./page.js";

test("a badge tells nothing of what comes after the session, and no timer is left of it", () => {
  const world = page();
  const badges = [];
  let unread = 0;
  let unmute = Infinity;
  document.querySelector = () => ({ href: "icon" });
  navigator.setAppBadge = async (count) => void badges.push(count);
  // The drawing is tested in browsers.
  globalThis.Image = class { decode() { return new Promise(() => {}); } };
  const store = new Store({ self: { uid: 10_001, name: "Ann" } });
  Object.assign(store, { unreadTotal: () => unread, nextUnmute: () => unmute });
  const badge = new Badge(store);
  unread = 2;
  unmute = Date.now() + 5_000;
  store.show();
  assert.deepEqual([badges, document.title], [[2], "(2) Tidemark"]);

  badge.end();
  unread = 3;
  store.show();
  assert.deepEqual([badges, document.title], [[2, 0], "(2) Tidemark"]);
  store.show = () => assert.fail("a timer is left");
  world.pass(10_000);
  assert.equal(store.watchers.size, 0, "the store lets go of it");
});
