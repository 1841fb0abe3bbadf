// The card: creates an account or logs in, and says beside the field what went wrong.

import { call } from "./api.js";

const form = document.getElementById("sign-in");
const fields = { name: form.elements.name, password: form.elements.password };

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

/** Which field a refusal is about; null: neither, or both. */
function fieldOf({ status, message }) {
  if (status === 401 || /password/i.test(message)) return "password";
  return status === 409 || status === 422 ? "name" : null;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  clear();
  const name = fields.name.value.trim();
  const password = fields.password.value;
  if (!name) return show("name", "Type your name.");
  if (!password) return show("password", "Type your password.");
  const buttons = [...form.querySelectorAll("button")];
  for (const button of buttons) button.disabled = true;
  try {
    await call("POST", "/" + (event.submitter?.value ?? "sessions"), { name, password });
    // The server lets through its own addresses only.
    location.replace(document.body.dataset.next);
  } catch (refusal) {
    show(fieldOf(refusal), refusal.message);
    for (const button of buttons) button.disabled = false;
  }
});
