// The account in the settings: another password, recovery codes, the devices that are logged in, one's own data, logging out.

import { hideCodes, laidAside, settleCodes, showCodes } from "./codes.js";
import { $, h } from "./dom.js";
import "./reveal.js";
import { momentOf, refused, t } from "./texts.js";

const MINUTE_MS = 60_000;

/**
 * `over(path)` logs this device out by the call `DELETE path`; `kept()`: the recovery codes were kept. Answers {reset, open(section)}: for
 * each time that the settings open, and for each section that is shown.
 */
export function accountSettings(call, over, kept) {
  const problem = (place, text) => { $(`${place}-problem`).textContent = text; };
  for (const [id, path] of [["log-out", "/sessions/current"], ["log-out-all", "/sessions"]]) {
    $(id).addEventListener("click", () => over(path).catch((refusal) => problem("settings", refusal.message)));
  }

  dataLinks();

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
      else show(["bad_password", "common_password"].includes(refusal.code) ? "new" : "password", refusal.message);
    }
  });

  const codes = $("recovery-form");
  const asked = codes.elements["recovery-password"];
  const left = async () => {
    const { left: count } = await call("GET", "/me/recovery-codes");
    $("recovery-left").textContent = count ? t("codes.left", { count }) : t("codes.none");
  };
  const forget = () => {
    codes.reset();
    problem("recovery-password", "");
    asked.removeAttribute("aria-invalid");
    hideCodes();
  };
  $("codes-done").addEventListener("click", () => {
    settleCodes();
    forget();
    kept();
    $("recovery-title").focus();
  });
  const wrong = (text) => {
    problem("recovery-password", text);
    asked.setAttribute("aria-invalid", "true");
    asked.focus();
  };
  codes.addEventListener("submit", async (event) => {
    event.preventDefault();
    const password = asked.value;
    forget();
    if (!password) return wrong(t("sign_in.password_missing"));
    try {
      const made = await call("POST", "/me/recovery-codes", { password });
      showCodes(document.body.dataset.name, made.codes);
      settleCodes();
      kept();
      $("codes").focus();
      await left();
    } catch (refusal) {
      wrong(refusal.code === "wrong_credentials" ? t("settings.wrong_password") : refusal.message);
    }
  });
  const end = async ({ id, current }) => {
    if (current) return over("/sessions/current");
    await call("DELETE", `/sessions/${id}`);
    await list();
    $("devices-title").focus();
  };
  const rename = (session, line) => {
    const field = h("input.grow", { maxlength: "60", value: session.name, "aria-label": t("devices.name") });
    const save = async (event) => {
      event.preventDefault();
      if (field.value.trim()) await call("PUT", `/sessions/${session.id}`, { name: field.value.trim() });
      await list();
      $("devices-title").focus();
    };
    line.replaceChildren(h("form.together.grow", {
      onsubmit: (event) => save(event).catch((refusal) => problem("devices", refusal.message)),
    }, field, h("button.button", {}, t("devices.save"))));
    field.select();
  };
  const device = (session) => {
    const since = t("devices.since", { when: momentOf(session.created_at) });
    const name = session.name || t("devices.unnamed");
    const which = `${session.current ? t("devices.this") : name}, ${since}`;
    const line = h("li", {},
      h("span.grow", {}, h("b.block", {}, h("bdi", {}, name)), session.current ? h("span.here.block", {}, t("devices.this")) : null,
        h("span.quiet.block", {}, since)),
      h("button.button", { type: "button", "aria-label": `${t("devices.rename")} (${which})`, onclick: () => rename(session, line) },
        t("devices.rename")),
      h("button.button", {
        type: "button", "aria-label": `${t("settings.log_out")} (${which})`,
        onclick: () => end(session).catch((refusal) => problem("devices", refusal.message)),
      }, t("settings.log_out")));
    return line;
  };
  const list = async () => {
    problem("devices", "");
    $("devices-list").toggleAttribute("data-loading", !$("devices-list").childElementCount);
    const sessions = await call("GET", "/sessions");
    $("devices-list").toggleAttribute("data-loading", false);
    $("devices-list").replaceChildren(...sessions.sort((a, b) => b.current - a.current).map(device));
  };
  const open = (section) => {
    forget();
    if (section === "devices") list().catch((refusal) => problem("devices", refusal.message));
    if (section !== "recovery") return;
    const codes = laidAside(Number(document.body.dataset.uid));
    if (codes) showCodes(document.body.dataset.name, codes);
    left().catch((refusal) => wrong(refusal.message));
  };
  const reset = () => {
    form.reset();
    clear();
    problem("settings", "");
    $("change-password").open = false;
    forget();
  };
  return { reset, open };
}

/** Saves the file of the person's own data, or answers why it is refused. The file lies on the disk, not in memory. */
async function save(address) {
  const answer = await fetch(address);
  const wait = answer.headers.get("retry-after") * 1_000;
  // Rounded up, since it stands there in minutes.
  if (answer.status === 429) return t("data.again", { when: momentOf(Date.now() + wait + MINUTE_MS) });
  if (!answer.ok) {
    const { code, detail } = await answer.json();
    return refused(code, detail);
  }
  const href = URL.createObjectURL(await answer.blob());
  h("a", { href, download: `tidemark-${document.body.dataset.uid}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(href), MINUTE_MS);
  return "";
}

/** Makes each link to it say how it goes: of one that is refused the browser gives no reason. */
function dataLinks() {
  let isComing = false;
  for (const link of document.querySelectorAll("a[href$='/me/data']")) {
    const note = h("p.problem", { role: "status" });
    const say = (className, textContent) => Object.assign(note, { className, textContent });
    link.parentElement.after(note);
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      if (isComing) return;
      isComing = true;
      say("quiet", t("data.coming"));
      say("problem", await save(link.href).catch(() => t("error.unreachable")));
      isComing = false;
    });
  }
}
