// The settings: account, language, colours, keys; last, for the curious, the own sequence.

import { accountSettings } from "./account.js";
import { deletionSettings } from "./deletion.js";
import { $, h } from "./dom.js";
import { nameSettings } from "./own_name.js";
import { profileSettings } from "./profile.js";
import { uuid } from "./store.js";
import { secondOf, t } from "./texts.js";

/**
 * `store` keeps the settings, `state()` answers what sync last reported; `over(path)` logs out, `leave(password)` deletes the account,
 * `renamed(name)`: the person has another name. Answers {show, facts}.
 */
export function settingsDialog(store, call, state, { over, leave, renamed }) {
  const profile = profileSettings(store);
  const ownName = nameSettings(call, renamed);
  const account = accountSettings(call, over);
  const deletion = deletionSettings(leave);
  const theme = $("theme");
  theme.querySelector(`[value="${localStorage.getItem("theme") ?? "system"}"]`).checked = true;
  theme.addEventListener("change", ({ target: { value } }) => {
    localStorage.setItem("theme", value);
    dispatchEvent(new Event("theme"));
  });

  // Devices on which none was chosen follow. The server is told before it makes the page; what it cannot take now holds here alone.
  $("language").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { form, value } = event.submitter;
    await call("PUT", "/settings/language", { client_id: uuid(), value: value ? { tag: value } : null }).catch(() => {});
    // Without its button, which goes with a form only when that is pressed.
    form.append(h("input", { type: "hidden", name: "language", value }));
    form.submit();
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
    ownName.reset();
    account.reset();
    deletion.reset();
    profile.show();
    $("settings").showModal();
    facts();
  };
  return { show, facts };
}
