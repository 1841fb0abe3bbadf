import assert from "node:assert/strict";
import { test } from "node:test";

import { page, settled } from "./page.js";
import { Refusal } from "../static/api.js";
import { reportDialog } from "../static/report.js";

/** As much of an element as the dialog uses. */
class Element extends EventTarget {
  value = "";
  focus() {}
  showModal() {}
}

test("a report whose answer was lost is sent again with the same key, and with other words with another one", async () => {
  page();
  const elements = new Map();
  const $ = document.getElementById = (id) => elements.get(id) ?? elements.set(id, new Element()).get(id);
  const sent = [];
  let isLost = true;
  const call = async (method, path, body) => {
    sent.push({ path, ...body });
    if (isLost) throw new Refusal(0);
  };
  const press = async (words) => {
    if ($("report-words").value !== words) {
      $("report-words").value = words;
      $("report-form").dispatchEvent(new Event("change"));
    }
    $("report-form").dispatchEvent(new Event("submit", { cancelable: true }));
    await settled();
  };
  const { message, person } = reportDialog({ name: () => "Cleo" }, call);
  const row = { conversation: "g:7", message_id: 3, sender: 10_003, body: { text: "Buy this" } };
  message(row);
  assert.equal($("report-quote").textContent, "Buy this");
  $("report-reason").value = "spam";
  await press("every day");
  assert.ok($("report-problem").textContent && !$("report-note").textContent);
  isLost = false;
  await press("every day");
  assert.ok($("report-fields").hidden && $("report-note").textContent && !$("report-problem").textContent);
  message(row);
  await press("every hour");
  person(10_003);
  await press("x".repeat(1_001));
  assert.equal(sent.length, 3, "too long to be sent");
  await press("a fake");
  const [first, again, another, about] = sent;
  assert.deepEqual(again, first);
  assert.equal(first.path, "/conversations/g:7/messages/3/report");
  assert.deepEqual([first.reason, first.text], ["spam", "every day"]);
  assert.notEqual(another.client_id, first.client_id);
  assert.equal(about.path, "/users/10003/report");
});
