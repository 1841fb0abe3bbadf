// What others see of a person, in the settings: the colour of the disc and a line of text, shown as they will be; and who may do what.

import { $, disc, paint } from "./dom.js";
import { t } from "./texts.js";

/** `store` keeps the settings. Answers {show}, for each time that the settings open. */
export function profileSettings(store) {
  const form = $("profile-form");
  const about = $("profile-about");
  const colours = [...form.elements.hue];
  // What was set elsewhere may be no colour of this list, and stays then.
  let other;
  const hue = () => {
    const chosen = colours.find(({ checked }) => checked);
    return chosen ? (chosen.value === "" ? undefined : Number(chosen.value)) : other;
  };
  const preview = () => {
    const shown = paint(disc(`u:${store.self.uid}`, store.self.name), hue());
    $("profile-disc").replaceWith(Object.assign(shown, { id: "profile-disc" }));
    $("profile-line").textContent = about.value.trim();
  };
  for (const { value, nextElementSibling: swatch } of colours) if (value) paint(swatch, Number(value));
  // What other devices set meanwhile is shown until something is chosen here.
  let touched = false;
  form.addEventListener("input", () => {
    touched = true;
    $("profile-done").textContent = "";
    preview();
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const line = about.value.replace(/\s+/g, " ").trim();
    const value = { ...(hue() !== undefined && { hue: hue() }), ...(line && { about: line }) };
    await store.setForAll("profile", Object.keys(value).length ? value : null);
    touched = false;
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
  const fill = () => {
    const profile = store.setting("profile") ?? {};
    about.value = profile.about ?? "";
    other = profile.hue;
    for (const colour of colours) colour.checked = colour.value === `${profile.hue ?? ""}`;
    preview();
  };
  store.watch(() => {
    if ($("settings").open && !touched) fill();
  });
  const show = () => {
    touched = false;
    $("profile-done").textContent = "";
    fill();
  };
  return { show };
}
