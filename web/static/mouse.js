// Beside the message under the mouse: to react and to reply, which its menu has for everybody else.

import { $, h, icon } from "./dom.js";
import { t } from "./texts.js";

/** Begins to hear the mouse. `react(id, opener)`, `reply(id)`: with the id of the message's row. */
export function hearMouse({ react, reply }) {
  const tool = (sign, title, act) =>
    h("span.tool", { title, onclick: () => act(Number(bar.closest(".msg").dataset.row), bar) }, icon(sign));
  const bar = h("span.hover", { "aria-hidden": "true" }, tool("smile", t("actions.reactions"), react), tool("bubble", t("actions.reply"), reply));
  $("log").addEventListener("pointerover", ({ target, pointerType }) => {
    const more = pointerType === "mouse" ? target.closest(".msg")?.querySelector(".more") : null;
    if (!more) bar.remove();
    else if (more.nextElementSibling !== bar) more.after(bar);
  });
}
