// Deleting the account, in the settings: what goes and what stays, the password, and one more question.

import { ask } from "./ask.js";
import { $ } from "./dom.js";
import { t } from "./texts.js";

/** `leave(password)` deletes the account and leaves the page. Answers {reset}, for each time that the settings open. */
export function deletionSettings(leave) {
  const form = $("delete-form");
  const field = form.elements["delete-password"];
  const problem = (text) => {
    $("delete-password-problem").textContent = text;
    if (!text) return field.removeAttribute("aria-invalid");
    field.setAttribute("aria-invalid", "true");
    field.focus();
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const password = field.value;
    problem("");
    if (!password) return problem(t("sign_in.password_missing"));
    const sure = await ask({ title: t("deletion.ask"), text: t("deletion.ask_about"), yes: t("deletion.yes"), no: t("cancel") });
    if (!sure) return field.focus();
    const button = form.querySelector(".danger");
    button.disabled = true;
    try {
      await leave(password);
    } catch (refusal) {
      form.reset();
      problem(refusal.code === "wrong_credentials" ? t("settings.wrong_password") : refusal.message);
    } finally {
      button.disabled = false;
    }
  });
  const reset = () => {
    form.reset();
    problem("");
    $("delete-account").open = false;
  };
  return { reset };
}
