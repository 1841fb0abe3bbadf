// The person's own name: changing it in the settings, and showing another one wherever the page has it.

import { $, disc } from "./dom.js";
import { t } from "./texts.js";

/** `renamed(name)`: the server has taken another name. Answers {reset}, for each time that the settings open. */
export function nameSettings(call, renamed) {
  const form = $("name-form");
  const field = form.elements.name;
  const problem = (text) => {
    $("name-problem").textContent = text;
    text ? field.setAttribute("aria-invalid", "true") : field.removeAttribute("aria-invalid");
    if (text) field.focus();
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    $("name-done").textContent = "";
    problem("");
    try {
      const { name } = await call("PUT", "/me/name", { name: field.value });
      renamed(name);
      $("name-done").textContent = t("settings.name_changed");
    } catch (refusal) {
      problem(refusal.message);
    }
  });
  const reset = () => {
    $("change-name").open = false;
    $("name-done").textContent = "";
    problem("");
  };
  $("change-name").addEventListener("toggle", () => { field.value = document.body.dataset.name; });
  return { reset };
}

/** Shows the person's own name in place of the one that the page came with. */
export function showOwnName(store, name) {
  const { self } = store;
  if (self.name === name) return;
  self.name = document.body.dataset.name = name;
  $("own-name").textContent = name;
  $("profile-name").textContent = name;
  $("logged-in-as").textContent = t("settings.logged_in_as", { name });
  for (const field of document.querySelectorAll("input[name=username]")) field.value = name;
  const own = () => disc(`u:${self.uid}`, name);
  document.querySelector(".side .bar .disc").replaceWith(own());
  $("profile-disc").replaceWith(Object.assign(own(), { id: "profile-disc" }));
  store.load([]);
}
