// What others see of a person, in the settings: the colour of the disc and a line of text, shown as they will be; and who may do what.

import { $, disc, paint } from "./dom.js";
import { t } from "./texts.js";

/** `store` keeps the settings. Answers {show}, for each time that the settings open. */
export function profileSettings(store) {
  const form = $("profile-form");
  const about = $("profile-about");
  const hue = () => form.elements.hue.value;
  const preview = () => {
    const shown = disc(`u:${store.self.uid}`, store.self.name);
    paint(shown, hue() === "" ? undefined : Number(hue()));
    $("profile-disc").replaceWith(Object.assign(shown, { id: "profile-disc" }));
    $("profile-line").textContent = about.value.trim();
    $("profile-done").textContent = "";
  };
  for (const { value, nextElementSibling: swatch } of form.elements.hue) if (value) paint(swatch, Number(value));
  form.addEventListener("input", preview);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const line = about.value.replace(/\s+/g, " ").trim();
    const value = { ...(hue() !== "" && { hue: Number(hue()) }), ...(line && { about: line }) };
    await store.setForAll("profile", Object.keys(value).length ? value : null);
    $("profile-done").textContent = t("profile.saved");
  });

  const privacy = $("privacy-form");
  // What holds when nothing is said. That is not said, so that a server of an earlier version takes the rest.
  const USUAL = { write: "everybody", groups: "everybody", found_by: "part", typing: true, presence: true, quiet: false };
  // What was chosen and is still on its way to the store.
  let chosen = {};
  const isUnusual = ([name, value]) => value !== USUAL[name];
  privacy.addEventListener("change", async ({ target: { name, value, type, checked } }) => {
    chosen = { ...chosen, [name]: type === "checkbox" ? checked : value };
    const own = chosen;
    const wanted = Object.entries({ ...store.setting("privacy"), ...chosen });
    await store.setForAll("privacy", Object.fromEntries(wanted.filter(isUnusual)));
    if (chosen === own) chosen = {};
  });
  store.watch(() => {
    for (const [name, value] of Object.entries({ ...USUAL, ...store.setting("privacy"), ...chosen })) {
      const field = privacy.elements[name];
      if (field) field[typeof value === "boolean" ? "checked" : "value"] = value;
    }
  });
  const show = () => {
    const profile = store.setting("profile") ?? {};
    about.value = profile.about ?? "";
    form.elements.hue.value = profile.hue ?? "";
    preview();
  };
  return { show };
}
