// Where people make accounts by invitation: a link for somebody new, and those that are open.

import { ask } from "./ask.js";
import { h } from "./dom.js";
import { uuid } from "./store.js";
import { momentOf, t } from "./texts.js";

/** The part of the page of contacts for it; nothing where everybody may create an account, or nobody. */
export function signUpInvites(call, uid) {
  if (!("invites" in document.body.dataset)) return "";
  const problem = h("p.problem", { role: "alert" });
  const told = h("p.quiet", { role: "status" });
  const link = h("input", { id: "invite-link", readonly: "", "aria-describedby": "invite-note" });
  const shown = h("div.field", { hidden: "" }, h("label", { for: "invite-link" }, t("sign_up_invite.link")),
    h("div.together", {}, link, h("button.button", { type: "button", hidden: navigator.clipboard ? null : "", onclick: async () => {
      link.select();
      await navigator.clipboard.writeText(link.value);
      told.textContent = t("contacts.copied");
    } }, t("contacts.copy"))));
  const open = h("ul.people", {});
  const attempt = (work) => async () => {
    problem.textContent = told.textContent = "";
    await work().catch((refusal) => { problem.textContent = refusal.message; });
  };
  const list = async () => {
    const invites = await call("GET", "/sign-up-invites");
    open.replaceChildren(...invites.map(({ id, expires_at: end }) => {
      const until = t("sign_up_invite.until", { when: momentOf(end) });
      return h("li", {}, h("span.grow.quiet", {}, until), h("button.link", { type: "button",
        "aria-label": `${t("sign_up_invite.end")} (${until})`, onclick: attempt(async () => {
          const yes = await ask({ title: t("sign_up_invite.end_title"), text: t("sign_up_invite.end_about"), yes: t("sign_up_invite.end") });
          if (!yes) return;
          await call("DELETE", `/sign-up-invites/${id}`);
          shown.hidden = true;
          await list();
          make.focus();
        }) }, t("sign_up_invite.end")));
    }));
  };
  // The key of the invitation that is asked for: asked again after a lost answer, it is the same one.
  let key = null;
  const make = h("button.button", { type: "button", id: "invite-somebody", onclick: attempt(async () => {
    key ??= uuid();
    const { path } = await call("POST", "/sign-up-invites", {}, key);
    key = null;
    link.value = `${location.origin}${path}&next=/c/u:${uid}`;
    shown.hidden = false;
    link.focus();
    link.select();
    await list();
  }) }, t("sign_up_invite.make"));
  attempt(list)();
  return h("section", { "aria-labelledby": "invite-title" }, h("h3", { id: "invite-title" }, t("sign_up_invite.title")),
    h("p.quiet", { id: "invite-note" }, t("sign_up_invite.about")), make, shown, told, open, problem);
}
