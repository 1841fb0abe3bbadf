import assert from "node:assert/strict";
import { test } from "node:test";

import { page, settled } from "./page.js";
import { call, Refusal } from "../static/api.js";
import { groupDialog } from "../static/dialogs.js";

/** As much of an element as the dialog uses. */
class Element extends EventTarget {
  value = "";
  children = [];
  replaceChildren() {}
  setAttribute() {}
  focus() {}
  showModal() {}
  close() {}
}

test("a group whose answer was lost is asked for again with the same key, and another group with another one", async () => {
  page();
  const elements = new Map();
  document.getElementById = (id) => elements.get(id) ?? elements.set(id, new Element()).get(id);
  const keys = [];
  let answer = null;
  const ask = async (method, path, body, key) => {
    keys.push(key);
    if (!answer) throw new Refusal(0);
    return answer;
  };
  const store = { self: { uid: 10_001 }, write: async () => {} };
  const opened = [];
  const open = groupDialog(store, ask, (id) => opened.push(id));
  const press = async (name) => {
    document.getElementById("group-name").value = name;
    document.getElementById("new-group-form").dispatchEvent(new Event("submit"));
    await settled();
  };
  open();
  await press("Walk");
  await press("Harbour walk");
  await press("Walk");
  answer = { gid: 7 };
  await press("Walk");
  const [walk, harbour, ...again] = keys;
  assert.match(walk, /^[0-9a-f-]{36}$/);
  assert.notEqual(walk, harbour);
  assert.deepEqual(again, [walk, walk]);
  assert.deepEqual(opened, ["g:7"]);
  // Opened anew, the same name is another group.
  open();
  await press("Walk");
  assert.ok(!keys.slice(0, -1).includes(keys.at(-1)));
});

test("a key goes out in its header, and only where there is one", async () => {
  page();
  const sent = [];
  globalThis.fetch = async (_, { headers }) => {
    sent.push(headers);
    return new Response(null, { status: 204 });
  };
  await call("POST", "/groups", {}, "a key");
  await call("POST", "/groups", {});
  await call("GET", "/me");
  const type = { "content-type": "application/json" };
  assert.deepEqual(sent, [{ ...type, "idempotency-key": "a key" }, type, {}]);
});
