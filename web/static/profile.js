// The settings of a person's looks to others: the picture, the colour of the disc and a line of text, shown as they will be; and of privacy.

import { $, disc, paint } from "./dom.js";
import { pictureButtons } from "./portrait.js";
import { t } from "./texts.js";

// Code points of the line, as the server counts them; `maxlength` would count most emoji twice.
const MOST_ABOUT = 120;

/** `store` keeps the settings. Answers {show}, for each time that the settings open. */
export function profileSettings(store) {
  const form = $("profile-form");
  const about = $("profile-about");
  const colours = [...form.elements.hue];
  // A colour that was set elsewhere may not be in the list: it has a place of its own there.
  const other = $("hue-other");
  const listed = colours.filter((colour) => !other.contains(colour));
  const hue = () => {
    const { value = "" } = colours.find(({ checked }) => checked) ?? {};
    return value === "" ? undefined : Number(value);
  };
  const preview = () => {
    const shown = paint(disc(`u:${store.self.uid}`, store.self.name), { hue: hue(), picture: store.ownPicture() });
    $("profile-disc").replaceWith(Object.assign(shown, { id: "profile-disc" }));
    $("profile-line").textContent = about.value.trim();
  };
  const swatch = ({ value, nextElementSibling }) => paint(nextElementSibling, { hue: Number(value) });
  for (const colour of listed) if (colour.value) swatch(colour);
  // Changes by other devices are shown until something is chosen here.
  let touched = false;
  form.addEventListener("input", ({ isComposing }) => {
    touched = true;
    const line = [...about.value];
    if (line.length > MOST_ABOUT && !isComposing) about.value = line.slice(0, MOST_ABOUT).join("");
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

  const pictured = pictureButtons($("profile-picture"), {
    note: $("profile-picture-problem"),
    set: (file) => store.setForAll("picture", file && { file }),
  });

  const privacy = $("privacy-form");
  // The defaults. They are left out of the setting.
  const USUAL = { write: "everybody", groups: "everybody", found_by: "part", typing: true, presence: true, last_seen: true, quiet: false };
  // Choices that are still on their way to the store.
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
    const chosen = `${profile.hue ?? ""}`;
    other.hidden = listed.some(({ value }) => value === chosen);
    const [own] = colours.filter((colour) => other.contains(colour));
    if (!other.hidden) own.value = chosen;
    if (!other.hidden) swatch(own);
    // A colour that is hidden is none to choose.
    own.disabled = other.hidden;
    for (const colour of colours) colour.checked = !colour.disabled && colour.value === chosen;
    preview();
  };
  store.watch(() => {
    if (store.refusedSetting()) $("profile-done").textContent = "";
    if (!$("settings").open) return;
    pictured(store.ownPicture());
    touched ? preview() : fill();
  });
  const show = () => {
    touched = false;
    $("profile-done").textContent = "";
    pictured(store.ownPicture());
    fill();
  };
  return { show };
}
