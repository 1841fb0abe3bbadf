import assert from "node:assert/strict";
import { test } from "node:test";

import { keep } from "../static/dom.js";

/** As much of an element as `keep` needs. */
class Box {
  constructor() { this.children = []; }
  get firstChild() { return this.children[0] ?? null; }
  contains() { return false; }
  insertBefore(element, at) {
    element.remove();
    const place = at ? this.children.indexOf(at) : this.children.length;
    this.children.splice(place, 0, element);
    element.box = this;
  }
}
class Line {
  get nextSibling() { return this.box.children[this.box.children.indexOf(this) + 1] ?? null; }
  remove() {
    if (this.box) this.box.children.splice(this.box.children.indexOf(this), 1);
    this.box = null;
  }
}

test("what is shown is what was asked for, also where keys are equal", () => {
  globalThis.document ??= {};
  const box = new Box();
  const show = (...keys) => {
    keep(box, keys.map((key) => ({ key, sig: key })), () => new Line(), (item, line) => { line.text = item.sig; });
    return box.children.map(({ text }) => text);
  };
  for (let round = 0; round < 3; round++) assert.deepEqual(show("a", "day", "b", "day", "c"), ["a", "day", "b", "day", "c"]);
  const [first] = box.children;
  assert.deepEqual(show("day", "a"), ["day", "a"]);
  assert.equal(box.children[1], first, "an element stays the one of its item");
  assert.deepEqual(show(), []);
});
