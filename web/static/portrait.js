// The buttons that choose and take away the picture of a person or a group. The script that cuts it is fetched when somebody has chosen one.

import { pickWith } from "./picking.js";

/**
 * `place` has the two buttons. `note` shows why it did not work; `set(file)` gives the person or the group this file of the server, null: none.
 * Answers what shows whether there is a picture.
 */
export function pictureButtons(place, { note, set }) {
  const [choose, remove] = place.children;
  const act = async (work) => {
    note.textContent = "";
    try {
      await work();
    } catch (problem) {
      note.textContent = problem.message;
    }
  };
  pickWith(choose, ([file]) => file && act(async () => {
    const { cut } = await import("./crop.js");
    const id = await cut(file);
    if (id) await set(id);
    choose.focus();
  }), { accept: "image/*", multiple: null });
  remove.addEventListener("click", () => act(async () => {
    choose.focus();
    await set(null);
  }));
  return (picture) => { remove.hidden = !picture; };
}
