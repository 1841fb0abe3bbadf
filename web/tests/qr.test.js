import assert from "node:assert/strict";
import { test } from "node:test";

import "./page.js";
import { generate } from "../static/lean-qr.js";
import { squares } from "../static/qr.js";

test("a QR code is drawn as the modules that it has, each once", () => {
  const code = generate("https://chat.example.org/c/u:10001");
  assert.equal(code.size, 29);
  const drawn = new Set();
  for (const [, x, y, width] of squares(code).matchAll(/M(\d+),(\d+)h(\d+)v1h-\3z/g)) {
    for (let at = 0; at < Number(width); at++) {
      const module = `${Number(x) + at} ${y}`;
      assert.ok(!drawn.has(module), module);
      drawn.add(module);
    }
  }
  for (let y = 0; y < code.size; y++) {
    for (let x = 0; x < code.size; x++) assert.equal(drawn.has(`${x + 4} ${y + 4}`), code.get(x, y), `${x} ${y}`);
  }
  // The three squares by which readers find the code.
  for (const [x, y] of [[0, 0], [22, 0], [0, 22]]) {
    assert.ok(code.get(x, y) && code.get(x + 6, y + 6) && code.get(x + 3, y + 3) && !code.get(x + 1, y + 1));
  }
});
