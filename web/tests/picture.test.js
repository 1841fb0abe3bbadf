// Pictures of people and groups: on discs, in rows, and the square that is cut.

import assert from "node:assert/strict";
import { test } from "node:test";

import "./page.js";
import { squareOf } from "../static/crop.js";
import { disc, dress } from "../static/dom.js";
import { learn } from "../static/state.js";

/** As much of an element as a disc uses. */
class Element extends EventTarget {
  children = [];
  dataset = {};
  attributes = new Map();
  classList = { hued: false, toggle: (name, is) => { this.classList[name] = is; } };
  style = { setProperty() {} };
  get firstElementChild() { return this.children.find((child) => child instanceof Element) ?? null; }
  append(...children) {
    for (const child of children) Object.assign(child, { parent: this });
    this.children.push(...children);
  }
  remove() { this.parent.children.splice(this.parent.children.indexOf(this), 1); }
  getAttribute(name) { return this.attributes.get(name) ?? null; }
  setAttribute(name, value) {
    this.attributes.set(name, value);
    if (name.startsWith("data-")) this.dataset[name.slice(5)] = value;
  }
}

/** A document that shows these discs. */
function showing(discs) {
  globalThis.document = {
    createElement: () => new Element(),
    querySelectorAll: (what) => discs.filter(({ dataset }) => what === `.disc[data-of="${dataset.of}"]`),
  };
}
const sourceOf = (element) => element.firstElementChild?.getAttribute("src");

test("a disc has the picture over its letter, and changes where it is", () => {
  const discs = [];
  showing(discs);
  discs.push(disc("u:7", "Ann"), disc("u:8", "Bob"), disc("g:7", "Walkers"));
  const [ann, bob, walkers] = discs;
  dress("u:7", 25, "one");
  assert.equal(sourceOf(ann), "/files/pictures/u:7/one");
  assert.ok(ann.classList.hued);
  assert.deepEqual([bob, walkers].map(sourceOf), [undefined, undefined]);
  const [, image] = ann.children;
  dress("u:7", 55, "one");
  assert.equal(ann.children[1], image, "the same picture stays");
  dress("u:7", undefined, "two");
  assert.equal(sourceOf(ann), "/files/pictures/u:7/two");
  assert.equal(sourceOf(disc("u:7", "Ann")), "/files/pictures/u:7/two", "new discs have it, too");
  dress("g:7", undefined, "three");
  assert.equal(sourceOf(walkers), "/files/pictures/g:7/three");
  // A picture that cannot be loaded shows the letter.
  const shown = ann.firstElementChild;
  const failed = new Event("error");
  Object.defineProperty(failed, "target", { value: shown });
  shown.dispatchEvent(failed);
  assert.equal(sourceOf(ann), undefined);
  dress("g:7");
  assert.equal(sourceOf(walkers), undefined);
});

test("a row says which picture a group has, or that it has none", () => {
  const conversation = { title: "Walkers" };
  learn(conversation, { action: "picture", name: "Walkers", picture: "one", uid: 7 }, new Map(), 8);
  assert.equal(conversation.picture, "one");
  learn(conversation, { action: "topic", name: "Walkers", topic: "Sundays", uid: 7 }, new Map(), 8);
  assert.equal(conversation.picture, "one");
  learn(conversation, { action: "picture", name: "Walkers", picture: null, uid: 7 }, new Map(), 8);
  assert.equal(conversation.picture, null);
});

test("the square lies within the picture, the largest one in the middle first", () => {
  const wide = { width: 900, height: 600 };
  assert.deepEqual(squareOf(wide, { zoom: 1, across: 0.5, down: 0.5 }), { left: 150, top: 0, side: 600 });
  assert.deepEqual(squareOf(wide, { zoom: 1, across: 1, down: 0 }), { left: 300, top: 0, side: 600 });
  assert.deepEqual(squareOf(wide, { zoom: 3, across: 1, down: 1 }), { left: 700, top: 400, side: 200 });
});
