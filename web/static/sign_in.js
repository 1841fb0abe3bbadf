// The card: logs in, creates an account or sets another password, and says beside the field what went wrong.

import { call } from "./api.js";
import { layAside } from "./codes.js";
import "./reveal.js";
import { t } from "./texts.js";

const form = document.getElementById("sign-in");
const fields = { name: form?.elements.name, code: form?.elements.code, password: form?.elements.password };
// The field that a refusal is about; all others are about neither, or both.
const FIELD = {
  bad_name: "name", name_taken: "name", name_resembles: "name", bad_password: "password", common_password: "password", wrong_credentials: "password", wrong_recovery_code: "code",
};
const MISSING = {
  name: () => t("sign_in.name_missing"), code: () => t("recover.code_missing"), password: () => t("sign_in.password_missing"),
};

function show(where, text) {
  document.getElementById(where ? `${where}-problem` : "problem").textContent = text;
  if (where) {
    fields[where].setAttribute("aria-invalid", "true");
    fields[where].focus();
  }
}

function clear() {
  for (const place of form.querySelectorAll(".problem")) place.textContent = "";
  for (const field of Object.values(fields)) field?.removeAttribute("aria-invalid");
}

// Said once, by the page that came here; nothing else of the account is left in this browser.
if (sessionStorage.getItem("deleted")) {
  sessionStorage.removeItem("deleted");
  const notice = document.getElementById("deleted");
  if (notice) Object.assign(notice, { hidden: false, textContent: t("deletion.done") });
}

// Whoever types is about to come in: the script of the chat is fetched meanwhile, also when this page is left before it is there.
form?.addEventListener("input", () => fetch(new URL("chat.js", import.meta.url), { priority: "low", keepalive: true }).catch(() => {}), { once: true });

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  clear();
  const typed = Object.fromEntries(new FormData(form));
  typed.name = typed.name.trim();
  for (const [field, missing] of Object.entries(MISSING)) {
    if (fields[field] && !typed[field]) return show(field, missing());
  }
  const button = form.querySelector("button.primary");
  button.disabled = true;
  try {
    const { uid, recovery_codes: codes } = await call("POST", form.dataset.call, typed);
    if (codes) layAside(uid, codes);
    // The server lets through its own addresses only.
    location.replace(document.body.dataset.next);
  } catch (refusal) {
    button.disabled = false;
    show(FIELD[refusal.code], refusal.message);
  }
});
