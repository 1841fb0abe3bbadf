import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import "./page.js";
import { Store } from "../static/store.js";
import { MOST, Window } from "../static/window.js";

const ME = { uid: 10_001, name: "Ann" };
let store;

beforeEach(() => {
  store = new Store({ db: {}, call: async () => { throw { status: 404 }; }, self: ME, nudge: () => {} });
  Object.assign(store, { conversations: new Map(), names: new Map([[10_002, "Bob"]]), outbox: [], settings: new Map(), friends: new Map(), stars: new Map() });
});

const row = (message_id, fields = {}) => ({ message_id, client_id: `k${message_id}`, kind: "message", conversation: "u:10002", sender: 10_002,
  sent_at: "2026-03-04T10:00:00Z", body: { text: `number ${message_id}` }, ...fields });
const rows = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => row(from + at));

const opened = (from, to, atTail = true) => {
  const view = new Window("u:10002");
  view.fill(rows(from, to), atTail);
  view.isOpen = true;
  return view;
};

test("however many come while somebody reads further up, the rows are bounded and what is read is one of them", () => {
  const view = opened(1, 200);
  const reads = 150;
  for (let n = 200; n < 10_200; n += 100) {
    view.renew({ same: view.rows, fresh: view.atTail ? rows(n + 1, n + 100) : [], isTail: true }, n + 100, reads);
    assert.ok(view.rows.length <= MOST && view.has(reads), `${n}`);
    assert.ok(view.takeAhead([row(n + 101)]) === view.atTail && view.all().length <= MOST + 20, `${n}`);
  }
  assert.equal(view.atTail, false, "the newest are not here");
  const ids = view.rows.map(({ message_id }) => message_id);
  assert.deepEqual(ids, ids.map((_, at) => ids[0] + at), "no row between is missing");
});

test("whoever is at the end keeps the newest, and whoever goes up or down keeps what is read", () => {
  const view = opened(1_000, 1_199);
  view.renew({ same: view.rows, fresh: rows(1_200, 1_299), isTail: true }, 1_299, null);
  assert.deepEqual([view.first, view.last, view.atTail], [1_060, 1_299, true]);
  view.above(rows(1_000, 1_059), 1_060);
  assert.deepEqual([view.first, view.last, view.atTail], [1_000, 1_239, false]);
  view.isWhole = true;
  view.below(rows(1_240, 1_299), true, 1_239);
  assert.deepEqual([view.first, view.last, view.atTail, view.isWhole], [1_060, 1_299, true, false]);
});

test("rows are shown before they are stored where the end is in the window, and once", () => {
  const view = opened(1, 3);
  assert.equal(view.takeAhead([row(4, { kind: "recall" })]), false);
  assert.equal(view.takeAhead([row(4, { body: { text: "hi", reply_to: {} } })]), false);
  assert.ok(view.takeAhead([row(4)]));
  const below = view.itemsBelow(store, row(3), false);
  assert.deepEqual(below.map(({ id }) => id), [4]);
  assert.deepEqual(view.items(store).filter((item) => item.row).map(({ id }) => id), [1, 2, 3, 4]);
  view.renew({ same: rows(1, 3), fresh: [row(4)], isTail: true }, 4, null);
  assert.deepEqual(view.all().map(({ message_id }) => message_id), [1, 2, 3, 4]);
  assert.deepEqual(view.ahead, []);
  view.atTail = false;
  assert.equal(view.takeAhead([row(5)]), false);
});

test("the line \"New\" stays while somebody reads below it, and moves when rows come that nobody sees", () => {
  const view = opened(1, 9);
  const [looks, isUp, isAway] = [{ isThere: true, isAtEnd: true }, { isThere: true, isAtEnd: false }, { isThere: false, isAtEnd: true }];
  view.markFresh(4, looks);
  assert.equal(view.freshAfter, null, "somebody sees them come");
  view.markFresh(4, isUp);
  assert.equal(view.freshAfter, 4);
  view.markFresh(6, isUp);
  assert.equal(view.freshAfter, 4, "it stands where one began to read");
  view.hasCaughtUp = true;
  view.markFresh(9, isUp);
  assert.equal(view.freshAfter, 9);
  view.markFresh(12, isAway);
  assert.equal(view.freshAfter, 12);
});

test("a server that was restored has less than what stood below the line", () => {
  const view = new Window("u:10002", 3);
  view.fill([], true);
  view.fill(rows(1, 4), true);
  assert.equal(view.freshAfter, 3);
  view.fill(rows(1, 3), true);
  assert.equal(view.freshAfter, null);
});

test("above the oldest row stands where it begins, once that is known", () => {
  const view = opened(1, 2);
  store.conversations.set("u:10002", { title: "Bob" });
  const start = () => view.items(store).find(({ line }) => line === "start")?.sig;
  assert.equal(start(), undefined);
  view.hasFailed = true;
  assert.match(start(), /could not be loaded/);
  view.isWhole = true;
  assert.equal(start(), "This is where your conversation with Bob begins.");
  store.nobody.add("u:10002");
  assert.match(start(), /^Nobody has this address/);
});
