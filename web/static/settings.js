// The settings: a list of sections, and one of them. `#settings/SECTION` is the address of each; last, for the curious, stands the own
// sequence.

import { accountSettings } from "./account.js";
import { deletionSettings } from "./deletion.js";
import { $, h } from "./dom.js";
import { nameSettings } from "./own_name.js";
import { profileSettings } from "./profile.js";
import { uuid } from "./store.js";
import { secondOf, t } from "./texts.js";

/**
 * `store` keeps the settings, `state()` answers what sync last reported; `over(path)` logs out, `leave(password)` deletes the account;
 * `renamed(name)`: the person has another name; `opened()`, `closed()`: they have opened or closed the settings; `kept()`: the recovery codes were kept. Answers
 * {open(section), close, facts}.
 */
export function settingsDialog(store, call, state, { over, leave, renamed, opened, closed, kept }) {
  const dialog = $("settings");
  const sections = [...dialog.querySelectorAll(":scope > section")];
  const profile = profileSettings(store);
  const ownName = nameSettings(call, renamed);
  const account = accountSettings(call, over, kept);
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
    if (!dialog.open) return;
    const { cursor, latest = t("diagnostics.not_connected"), history = t("diagnostics.not_known"), beats } = state();
    for (const [name, value] of Object.entries({ cursor, latest, history })) $(`fact-${name}`).textContent = value;
    $("fact-beats").replaceChildren(...beats.map(({ at, seq, rows, synced }) => h("tr", {},
      h("td", {}, secondOf(at)), h("td", {}, `${seq}`),
      h("td", {}, rows ? t("diagnostics.rows", { count: rows, id: `${synced}` }) : t("diagnostics.nothing_new")))));
  };
  const begin = () => {
    $("language").elements.next.value = location.pathname;
    ownName.reset();
    account.reset();
    deletion.reset();
    profile.show();
    opened();
    dialog.showModal();
  };
  const open = (section) => {
    if (!dialog.open) begin();
    const known = sections.find(({ id }) => id === `settings-${section}`);
    // A phone shows the list first; beside it there is room for the first one.
    dialog.toggleAttribute("data-list", !known);
    const shown = known ?? sections[0];
    for (const each of sections) each.hidden = each !== shown;
    for (const link of dialog.querySelectorAll(".sections ul a")) {
      link.ariaCurrent = link.hash === `#${shown.id.replace("-", "/")}` ? "page" : null;
    }
    account.open(section);
    facts();
    if (known) known.querySelector("h3").focus();
  };
  const close = () => dialog.close();
  dialog.addEventListener("close", closed);
  return { open, close, facts };
}
