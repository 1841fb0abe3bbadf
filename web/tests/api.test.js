import assert from "node:assert/strict";
import { test } from "node:test";

import { page, settled } from "./page.js";
import { call } from "../static/api.js";

/** A server that takes calls and never answers them, or begins an answer that never ends. */
const silent = (begins) => (_, { signal }) => {
  const never = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  return begins ? Promise.resolve({ ok: true, status: 200, json: () => never }) : never;
};

for (const begins of [false, true]) {
  test(`a call that ${begins ? "is half answered" : "nobody answers"} ends, and may be made again`, async () => {
    const world = page();
    globalThis.fetch = silent(begins);
    let refusal = null;
    call("GET", "/me").catch((problem) => { refusal = problem; });
    world.pass(29_999);
    await settled();
    assert.equal(refusal, null);
    world.pass(1);
    await settled();
    assert.deepEqual([refusal.status, refusal.code, refusal.retryable], [0, "unreachable", true]);
  });
}

test("an answered call leaves no timer", async () => {
  const world = page();
  let aborted = false;
  globalThis.fetch = async (_, { signal }) => {
    signal.addEventListener("abort", () => { aborted = true; });
    return Response.json({ uid: 7 });
  };
  assert.deepEqual(await call("GET", "/me"), { uid: 7 });
  world.pass(60_000);
  assert.equal(aborted, false);
});

test("a list that goes on names its next page", async () => {
  page();
  const answer = (headers) => { globalThis.fetch = async () => Response.json([7], { headers }); };
  answer({ link: '</api/v1/conversations?limit=1&after=7>; rel="next"' });
  assert.equal((await call("GET", "/conversations")).next, "/conversations?limit=1&after=7");
  answer({});
  assert.equal((await call("GET", "/conversations")).next, undefined);
});
