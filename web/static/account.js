// The account in the settings: another password, the devices that are logged in, logging out.

import { $, h } from "./dom.js";
import "./reveal.js";
import { momentOf, t } from "./texts.js";

/** `over(path)` logs this device out by the call `DELETE path`. Answers {reset}, for each time that the settings open. */
export function accountSettings(call, over) {
  const problem = (place, text) => { $(`${place}-problem`).textContent = text; };
  for (const [id, path] of [["log-out", "/sessions/current"], ["log-out-all", "/sessions"]]) {
    $(id).addEventListener("click", () => over(path).catch((refusal) => problem("settings", refusal.message)));
  }

  const form = $("password-form");
  const fields = { current: form.elements.current, new: form.elements.new };
  const show = (place, text) => {
    problem(place, text);
    fields[place]?.setAttribute("aria-invalid", "true");
    fields[place]?.focus();
  };
  const clear = () => {
    for (const place of ["current", "new", "password"]) problem(place, "");
    for (const field of Object.values(fields)) field.removeAttribute("aria-invalid");
    $("password-done").textContent = "";
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    clear();
    for (const place of ["current", "new"]) {
      if (!fields[place].value) return show(place, t("sign_in.password_missing"));
    }
    try {
      await call("PUT", "/me/password", { current: fields.current.value, new: fields.new.value });
      form.reset();
      $("password-done").textContent = t("settings.password_changed");
    } catch (refusal) {
      if (refusal.code === "wrong_credentials") show("current", t("settings.wrong_password"));
      else show(refusal.code === "bad_password" ? "new" : "password", refusal.message);
    }
  });

  const end = async ({ id, current }) => {
    if (current) return over("/sessions/current");
    await call("DELETE", `/sessions/${id}`);
    await list();
    $("devices").querySelector("summary").focus();
  };
  const device = (session) => {
    const since = t("devices.since", { when: momentOf(session.created_at) });
    return h("li", {},
      h("span.grow", {}, session.current ? h("b", {}, t("devices.this")) : null, h("span.quiet.block", {}, since)),
      h("button.link", {
        type: "button", "aria-label": `${t("settings.log_out")} (${session.current ? t("devices.this") : since})`,
        onclick: () => end(session).catch((refusal) => problem("devices", refusal.message)),
      }, t("settings.log_out")));
  };
  const list = async () => {
    problem("devices", "");
    const sessions = await call("GET", "/sessions");
    $("devices-list").replaceChildren(...sessions.sort((a, b) => b.current - a.current).map(device));
  };
  $("devices").addEventListener("toggle", () => {
    if ($("devices").open) list().catch((refusal) => problem("devices", refusal.message));
  });

  const reset = () => {
    form.reset();
    clear();
    problem("settings", "");
    $("change-password").open = $("devices").open = false;
  };
  return { reset };
}
