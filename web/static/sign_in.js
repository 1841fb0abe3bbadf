// The card: logs in or creates an account, and says beside the field what went wrong.

import { call } from "./api.js";
import "./reveal.js";
import { t } from "./texts.js";

const form = document.getElementById("sign-in");
const fields = { name: form?.elements.name, password: form?.elements.password };
// What a refusal is about; all else is about neither, or both.
const FIELD = { bad_name: "name", name_taken: "name", bad_password: "password", wrong_credentials: "password" };

function show(where, text) {
  document.getElementById(where ? `${where}-problem` : "problem").textContent = text;
  if (where) {
    fields[where].setAttribute("aria-invalid", "true");
    fields[where].focus();
  }
}

function clear() {
  for (const place of form.querySelectorAll(".problem")) place.textContent = "";
  for (const field of Object.values(fields)) field.removeAttribute("aria-invalid");
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  clear();
  const name = fields.name.value.trim();
  const password = fields.password.value;
  if (!name) return show("name", t("sign_in.name_missing"));
  if (!password) return show("password", t("sign_in.password_missing"));
  const button = form.querySelector("button.primary");
  button.disabled = true;
  try {
    await call("POST", form.dataset.call, { name, password });
    // The server lets through its own addresses only.
    location.replace(document.body.dataset.next);
  } catch (refusal) {
    button.disabled = false;
    show(FIELD[refusal.code], refusal.message);
  }
});
