// Reports: the dialog that makes one, and the lines of those that the administrators of a group get.

import { $, h, isolate } from "./dom.js";
import { characters } from "./state.js";
import { uuid } from "./store.js";
import { momentOf, refused, t } from "./texts.js";

// The longest text of a report.
const MOST_CHARACTERS = 1_000;

/** `store` knows names, `call` asks the API. Answers what opens the dialog: `message(row)` and `person(uid)`. */
export function reportDialog(store, call) {
  let path = "";
  // The same report sent again makes no second one.
  let key = null;
  const problem = (text) => { $("report-problem").textContent = text; };
  const isOver = (over) => {
    $("report-fields").hidden = $("report-send").hidden = over;
    $("report-note").textContent = over ? t("report.sent") : "";
  };
  const open = (where, { title, about, quote = "" }) => {
    path = where;
    key = uuid();
    for (const [part, words] of Object.entries({ title, about, quote })) $(`report-${part}`).textContent = words;
    $("report-quote").hidden = !quote;
    $("report-reason").selectedIndex = 0;
    $("report-words").value = "";
    problem("");
    isOver(false);
    $("report").showModal();
  };
  // With other words it is another report.
  $("report-form").addEventListener("change", () => { key = uuid(); });
  $("report-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = $("report-words").value.trim();
    if (characters(text) > MOST_CHARACTERS) return problem(refused("bad_report"));
    try {
      await call("POST", path, { client_id: key, reason: $("report-reason").value, text });
      problem("");
      isOver(true);
      $("report-close").focus();
    } catch (refusal) {
      problem(refusal.message);
    }
  });
  return {
    message: ({ conversation, message_id, sender, body }) => {
      const name = isolate(store.name(sender));
      open(`/conversations/${conversation}/messages/${message_id}/report`, {
        title: t("report.message", { name }),
        about: conversation.startsWith("g:") ? t("report.about_group") : t("report.about_direct", { name }),
        quote: body.text,
      });
    },
    person: (uid) => {
      const name = isolate(store.name(uid));
      open(`/users/${uid}/report`, { title: t("report.person", { name }), about: t("report.about_person", { name }) });
    },
  };
}

/** A line for a report of a group's message. `acts`: what its buttons do: `dismiss(report)`, `recall(report)`, `remove(report)` or nothing. */
export function reportLine(report, acts) {
  const { reason, text, made_at, about: { name }, message } = report;
  const button = (label, who, act) => h("button.link", { type: "button", "aria-label": who, onclick: () => act(report) }, label);
  return h("li.report", {},
    h("p.quiet", { dir: "auto" }, `${isolate(name)} · ${t(`report.${reason}`)} · ${momentOf(made_at)}`),
    h("blockquote.quote", { dir: "auto" }, message.text),
    text ? h("p", { dir: "auto" }, text) : null,
    h("p", {}, button(t("members.dismiss"), t("members.dismiss_who", { name }), acts.dismiss),
      message.message_id ? button(t("members.remove_message"), t("members.remove_message_who", { name }), acts.recall) : null,
      acts.remove ? button(t("members.remove"), t("members.remove_who", { name }), acts.remove) : null));
}
