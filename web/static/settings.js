// The settings: account, language, colours, keys; last, for the curious, the own sequence.

import { accountSettings } from "./account.js";
import { $, h } from "./dom.js";
import { secondOf, t } from "./texts.js";

/** `state()` answers what sync last reported; `over(path)` logs out. Answers {show, facts}. */
export function settingsDialog(call, state, over) {
  const account = accountSettings(call, over);
  const theme = $("theme");
  theme.querySelector(`[value="${localStorage.getItem("theme") ?? "system"}"]`).checked = true;
  theme.addEventListener("change", ({ target: { value } }) => {
    localStorage.setItem("theme", value);
    dispatchEvent(new Event("theme"));
  });

  const facts = () => {
    if (!$("settings").open) return;
    const { cursor, latest = t("diagnostics.not_connected"), history = t("diagnostics.not_known"), beats } = state();
    for (const [name, value] of Object.entries({ cursor, latest, history })) $(`fact-${name}`).textContent = value;
    $("fact-beats").replaceChildren(...beats.map(({ at, seq, rows, synced }) => h("tr", {},
      h("td", {}, secondOf(at)), h("td", {}, `${seq}`),
      h("td", {}, rows ? t("diagnostics.rows", { count: rows, id: `${synced}` }) : t("diagnostics.nothing_new")))));
  };
  const show = () => {
    $("language").elements.next.value = location.pathname;
    account.reset();
    $("settings").showModal();
    facts();
  };
  return { show, facts };
}
