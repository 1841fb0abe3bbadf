// The buttons that show what is typed into a field for a password. Without scripts there are none.

import { t } from "./texts.js";

for (const button of document.querySelectorAll(".reveal")) {
  const field = document.getElementById(button.getAttribute("aria-controls"));
  const show = (plain) => {
    field.type = plain ? "text" : "password";
    button.textContent = plain ? t("password.hide") : t("password.show");
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    show(field.type === "password");
    field.focus();
  });
  // A browser offers to keep only what is a password when it is sent.
  field.form.addEventListener("submit", () => show(false), { capture: true });
}
