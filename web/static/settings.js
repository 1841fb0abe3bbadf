// The panel behind the own name and `?`: colours, keys, the own sequence, logging out.

import { $, h } from "./dom.js";

/** `state()` answers what sync last reported; `over(path)` logs out. Answers {show, facts}. */
export function settingsDialog(state, over) {
  const theme = $("theme");
  theme.querySelector(`[value="${localStorage.getItem("theme") ?? "system"}"]`).checked = true;
  theme.addEventListener("change", ({ target: { value } }) => {
    localStorage.setItem("theme", value);
    dispatchEvent(new Event("theme"));
  });
  for (const [id, path] of [["log-out", "/sessions/current"], ["log-out-all", "/sessions"]]) {
    $(id).addEventListener("click", () => over(path)
      .catch((refusal) => { $("settings-problem").textContent = refusal.message; }));
  }

  const facts = () => {
    if (!$("settings").open) return;
    const { cursor, latest = "not connected", history = "not known yet", beats } = state();
    for (const [name, value] of Object.entries({ cursor, latest, history })) $(`fact-${name}`).textContent = value;
    $("fact-beats").replaceChildren(...beats.map(({ at, seq, answer }) => h("tr", {},
      h("td", {}, new Date(at).toLocaleTimeString()), h("td", {}, `${seq}`), h("td", {}, answer))));
  };
  const show = () => {
    $("settings").showModal();
    facts();
  };
  return { show, facts };
}
