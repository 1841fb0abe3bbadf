import assert from "node:assert/strict";
import { test } from "node:test";

import { addSpan, dropBelow, nextAbove, spanOf } from "../static/spans.js";

const of = (floor, ...spans) => ({ floor, spans });

test("a part in the middle is known beside the end, and both are one when what lies between comes", () => {
  const conversation = of(100);
  addSpan(conversation, 40, 60);
  assert.deepEqual([spanOf(conversation, 50), spanOf(conversation, 61), spanOf(conversation, 100)], [[40, 60], null, [100, Infinity]]);
  assert.deepEqual([nextAbove(conversation, 10), nextAbove(conversation, 60)], [40, 100]);
  addSpan(conversation, 61, 80);
  assert.deepEqual(conversation, of(100, [40, 80]));
  addSpan(conversation, 0, 20);
  addSpan(conversation, 81, 99);
  assert.deepEqual(conversation, of(40, [0, 20]));
  addSpan(conversation, 15, 45);
  assert.deepEqual(conversation, of(0));
});

test("parts say what was fetched, whatever order the pages come in", () => {
  // Each id below the floor is fetched or not; a plain list of booleans is what has to come out.
  let seed = 7;
  const below = (count) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % count;
  };
  for (let round = 0; round < 300; round++) {
    const conversation = of(60);
    const here = Array.from({ length: 60 }, () => false);
    for (let step = 0; step < 12; step++) {
      const from = below(60);
      const to = Math.min(59, from + below(15));
      addSpan(conversation, from, to);
      here.fill(true, from, to + 1);
      if (below(6) === 0) {
        const drop = below(30);
        dropBelow(conversation, drop);
        here.fill(false, 0, drop);
      }
    }
    assert.deepEqual(here.map((_, id) => Boolean(spanOf(conversation, id))), here, JSON.stringify(conversation));
    assert.deepEqual(spanOf(conversation, 60), [conversation.floor, Infinity]);
    conversation.spans.reduce((end, [from, to]) => {
      assert.ok(end + 1 < from && from <= to && to + 1 < conversation.floor, JSON.stringify(conversation));
      return to;
    }, -Infinity);
  }
});

test("the parts of one conversation are bounded, and the one that was just fetched is one of them", () => {
  const conversation = of(100_000);
  for (let n = 200; n > 0; n--) addSpan(conversation, n * 10, n * 10 + 5);
  assert.equal(conversation.spans.length, 50);
  assert.deepEqual(spanOf(conversation, 12), [10, 15]);
});
