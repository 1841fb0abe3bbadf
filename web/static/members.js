// The dialog of a group: its members and their rights, its name, topic and history, bans, and open invitations. Actions that somebody
// may not take are not offered.

import { ask } from "./ask.js";
import { $, disc, h, isolate } from "./dom.js";
import { leaveGroup } from "./leave.js";
import { item, openMenu } from "./menu.js";
import { Picker, people } from "./picker.js";
import { momentOf, t } from "./texts.js";

const numberOf = (id) => Number(id.slice(2));

/** `store` knows the names of groups, `call` asks the API. Answers what opens the dialog for a group. */
export function membersDialog(store, call) {
  let gid = 0;
  let group = { members: [] };
  const path = (rest = "") => `/groups/${gid}${rest}`;
  const title = () => isolate(group.name ?? store.title(`g:${gid}`));
  const problem = (text) => { $("members-problem").textContent = text; };
  const governs = () => group.role === "owner" || group.role === "administrator";

  const load = async () => {
    group = await call("GET", path());
    await store.write(`g:${gid}`, async (db) => {
      await db.learn(group.members);
      await db.patch(`g:${gid}`, { title: group.name, topic: group.topic, members: group.member_count,
        people: group.members.map(({ uid }) => uid) });
    });
    $("members-title").textContent = group.name;
    $("describe").hidden = $("banned").hidden = !governs();
    $("describe-name").value = group.name;
    $("describe-topic").value = group.topic;
    $("describe-history").checked = group.history === "visible";
    lines();
    await Promise.all([invitations(), governs() && bans()]);
  };

  const lines = () => {
    seen = whatIsSeen();
    $("members-list").replaceChildren(...group.members.map(line));
  };
  // The colours and lines of people may come later; nobody's focus is taken for them.
  let seen = "";
  const whatIsSeen = () => JSON.stringify(group.members.map(({ uid }) => {
    const { hue, about } = store.profile(uid);
    return [hue, about];
  }));
  store.watch(() => {
    if ($("members").open && seen !== whatIsSeen() && !$("members-list").contains(document.activeElement)) lines();
  });

  /** One change of the group, then all of it again. */
  const act = async (method, rest, body) => {
    problem("");
    try {
      if (method) await call(method, path(rest), body);
      await load();
    } catch (refusal) {
      problem(refusal.message);
    }
  };
  const sure = async (method, rest, body, question) => {
    if (await ask(question)) await act(method, rest, body);
  };

  /** A member. An administrator may remove and ban all members, the owner everybody else. */
  const line = ({ uid, name, role }) => {
    const own = uid === store.self.uid;
    const above = !own && (group.role === "owner" || governs() && role === "member");
    const { about } = store.profile(uid);
    return h("li", {}, disc(`u:${uid}`, name),
      h("div.heading", {}, h("p.title", { dir: "auto" }, name), about ? h("p.quiet.title", { dir: "auto" }, about) : null),
      role === "member" ? null : h("span.quiet", {}, role === "owner" ? t("members.role_owner") : t("members.role_administrator")),
      own ? h("span.quiet", {}, t("members.you")) : null,
      above ? h("button.link", { "aria-label": t("members.remove_who", { name }), onclick: () => remove(uid, name) }, t("members.remove")) : null,
      above ? h("button.link", { "aria-label": t("members.more_about", { name }), "aria-haspopup": "menu",
        onclick: (event) => more(event.currentTarget, uid, name, role) }, t("members.more")) : null);
  };
  const more = (opener, uid, name, role) => openMenu(opener, [
    group.role === "owner" && role === "member" && item(t("members.make_administrator"), () => give(uid, "administrator")),
    group.role === "owner" && role === "administrator" && item(t("members.make_member"), () => give(uid, "member")),
    group.role === "owner" && item(t("members.make_owner"), () => handOver(uid, name)),
    item(t("members.ban"), () => ban(uid, name)),
  ]);
  const give = (uid, role) => act("PUT", `/members/${uid}/role`, { role });
  const remove = (uid, name) => sure("DELETE", `/members/${uid}`, undefined, {
    title: t("members.remove_title", { name: isolate(name), group: title() }),
    text: t("members.remove_about"),
    yes: t("members.remove"),
  });
  const handOver = (uid, name) => sure("PUT", `/members/${uid}/role`, { role: "owner" }, {
    title: t("members.owner_title", { name: isolate(name), group: title() }),
    text: t("members.owner_about", { name: isolate(name) }),
    yes: t("members.make_owner"),
  });
  const ban = (uid, name) => sure("PUT", `/bans/${uid}`, undefined, {
    title: t("members.ban_title", { name: isolate(name), group: title() }),
    text: t("members.ban_about"),
    yes: t("members.ban"),
  });

  const bans = async () => {
    const banned = await call("GET", path("/bans"));
    $("bans").replaceChildren(...banned.map(({ uid, name }) => h("li", {},
      disc(`u:${uid}`, name), h("span.title", { dir: "auto" }, name),
      h("button.link", { "aria-label": t("members.unban_who", { name }), onclick: () => act("DELETE", `/bans/${uid}`) }, t("members.unban")))));
    $("no-bans").hidden = banned.length > 0;
  };

  const invitations = async () => {
    const open = [];
    for (let after = ""; after !== null;) {
      const page = await call("GET", path(`/invites${after && `?after=${encodeURIComponent(after)}`}`));
      open.push(...page.invites);
      after = page.next;
    }
    $("invites").replaceChildren(...open.map(({ code, made_by, uses_left, expires_at }) => h("li", {},
      h("span.title", { dir: "auto" }, t("members.invite_line", { name: isolate(made_by.name), count: uses_left, when: momentOf(expires_at) })),
      h("button.link", { "aria-label": t("members.revoke_who", { name: made_by.name }), onclick: () => revoke(code) }, t("members.revoke")))));
    $("no-invites").hidden = open.length > 0;
  };
  const revoke = (code) => sure("DELETE", `/invites/${encodeURIComponent(code)}`, undefined, {
    title: t("members.revoke_title"),
    text: t("members.revoke_about"),
    yes: t("members.revoke"),
  });

  $("describe-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const wanted = { name: $("describe-name").value.trim(), topic: $("describe-topic").value.trim(),
      history: $("describe-history").checked ? "visible" : "hidden" };
    const changes = Object.entries(wanted).filter(([part, text]) => text !== group[part]);
    if (changes.length) await act("PATCH", "", Object.fromEntries(changes));
    if (!$("members-problem").textContent) $("describe").open = false;
  });
  const picker = new Picker($("members-find"), $("members-found"), {
    note: problem,
    find: async (text) => (await people(call, text))
      .filter(({ id }) => !group.members.some(({ uid }) => uid === numberOf(id))),
    take: async ({ id }) => {
      await act("POST", "/members", { uid: numberOf(id) });
      picker.reset();
    },
  });
  $("leave").addEventListener("click", async () => {
    if (await leaveGroup(store, call, `g:${gid}`)) $("members").close();
  });
  return async (id) => {
    gid = numberOf(id);
    $("invite").href = path("/invite");
    group = { members: [] };
    $("members-title").textContent = store.title(id);
    for (const list of ["members-list", "bans", "invites"]) $(list).replaceChildren();
    for (const part of ["describe", "banned", "open-invites"]) $(part).open = false;
    $("describe").hidden = $("banned").hidden = true;
    $("members").showModal();
    await picker.reset();
    await act();
  };
}
