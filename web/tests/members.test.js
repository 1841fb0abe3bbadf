import assert from "node:assert/strict";
import { test } from "node:test";

import { page } from "./page.js";
import { groupPart } from "../static/members.js";

/** As much of an element as the part uses. */
class Element extends EventTarget {
  value = "";
  children = [];
  classList = { toggle() {} };
  style = { setProperty() {} };
  after() {}
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  setAttribute() {}
  removeAttribute() {}
  toggleAttribute() {}
}

test("all reports of a group are listed, also those behind the first page", async () => {
  page();
  const elements = new Map();
  document.createElement = () => new Element();
  const $ = document.getElementById = (id) => elements.get(id) ?? elements.set(id, new Element()).get(id);
  $("describe-picture").append(new Element(), new Element());
  const report = (number) => ({ number, made_at: "2026-01-01T00:00:00Z", reason: "spam", text: "", about: { uid: 3, name: "Cleo" },
    message: { text: "Buy this", sent_at: "2026-01-01T00:00:00Z", message_id: number } });
  const reports = Array.from({ length: 70 }, (_, at) => report(at + 1));
  const answers = {
    "/groups/7": { name: "us", topic: "", history: "hidden", slow_seconds: 0, keep_seconds: 0, role: "owner", members: [{ uid: 1, name: "Ada", role: "owner" }] },
    "/groups/7/bans": [],
    "/groups/7/invites": { invites: [], next: null },
    "/groups/7/reports": { reports: reports.slice(0, 50), next: 50 },
    "/groups/7/reports?after=50": { reports: reports.slice(50), next: null },
  };
  const store = { self: { uid: 1 }, watch() {}, profile: () => ({}), learnGroup: async () => {}, title: () => "us", recent: () => [] };
  const { show } = groupPart(store, async (_, path) => answers[path] ?? [], () => {});
  await show("g:7");
  assert.equal($("members-problem").textContent, "");
  assert.equal($("reports").children.length, 70);
  assert.equal($("reports-count").textContent, "70");
  assert.ok($("no-reports").hidden);
});
