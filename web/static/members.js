// The part of the panel that is a group's: its members and their rights, its picture, name, topic, history, slow mode and time for messages,
// bans, reports, and open invitations.
// Actions that somebody may not take are not offered.

import { removalOf } from "./actions.js";
import { ask } from "./ask.js";
import { $, disc, h, icon, isolate } from "./dom.js";
import { isWanted, offer } from "./keep.js";
import { leaveGroup } from "./leave.js";
import { item, openMenu } from "./menu.js";
import { Picker, people } from "./picker.js";
import { pictureButtons } from "./portrait.js";
import { reportLine } from "./report.js";
import { many, uuid } from "./store.js";
import { lastingOf, momentOf, t } from "./texts.js";

// The paces of slow mode that are offered.
const SLOW_SECONDS = [0, 10, 30, 60, 300, 900, 3_600];

const numberOf = (id) => Number(id.slice(2));
// The order of members; within it, that of names.
const RANK = { owner: 0, administrator: 1, member: 2 };

/** `store` knows the names of groups, `call` asks the API; `left()`: the person has left the group. Answers {show(id)}. */
export function groupPart(store, call, left) {
  let gid = 0;
  let group = { members: [] };
  const path = (rest = "") => `/groups/${gid}${rest}`;
  const title = () => isolate(group.name ?? store.title(`g:${gid}`));
  const isShown = () => $("members-list").checkVisibility();
  const problem = (text) => { $("members-problem").textContent = text; };
  const governs = () => group.role === "owner" || group.role === "administrator";

  const load = async () => {
    const asked = gid;
    const found = await call("GET", path());
    // Another one is shown by now.
    if (asked !== gid) return;
    group = found;
    $("members-list").toggleAttribute("data-loading", false);
    await store.learnGroup(`g:${gid}`, group);
    $("describe").hidden = $("banned").hidden = $("reported").hidden = !governs();
    pictured(group.picture);
    $("describe-name").value = group.name;
    $("describe-topic").value = group.topic;
    $("describe-history").checked = group.history === "visible";
    const paces = [...new Set([...SLOW_SECONDS, group.slow_seconds])].sort((a, b) => a - b);
    $("describe-slow").replaceChildren(...paces.map((seconds) =>
      h("option", { value: seconds, selected: seconds === group.slow_seconds }, seconds ? lastingOf(seconds) : t("members.slow_off"))));
    offer($("describe-keep"), group.keep_seconds);
    lines();
    await Promise.all([invitations(), governs() && bans(), governs() && reports()]);
  };

  const lines = () => {
    seen = whatIsSeen();
    const byRole = group.members.toSorted((a, b) => RANK[a.role] - RANK[b.role] || a.name.localeCompare(b.name));
    $("members-list").replaceChildren(...byRole.map(line));
  };
  // The colours and lines of people may come later; nobody's focus is taken for them.
  let seen = "";
  const whatIsSeen = () => JSON.stringify(group.members.map(({ uid }) => {
    const { hue, about } = store.profile(uid);
    return [hue, about];
  }));
  store.watch(() => {
    if (isShown() && seen !== whatIsSeen() && !$("members-list").contains(document.activeElement)) lines();
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

  /** Whether the person may act on this member: an administrator on all members, the owner on everybody else. */
  const isAbove = ({ uid, role }) => uid !== store.self.uid && (group.role === "owner" || governs() && role === "member");
  const line = ({ uid, name, role, muted }) => {
    const own = uid === store.self.uid;
    const above = isAbove({ uid, role });
    const { about } = store.profile(uid);
    return h("li", {}, disc(`u:${uid}`, name),
      h("div.heading", {}, h("a.title", { href: `#about/u:${uid}`, dir: "auto" }, name), about ? h("p.quiet.title", { dir: "auto" }, about) : null,
        muted ? h("p.quiet", {}, muted.until ? t("members.muted_until", { when: momentOf(muted.until) }) : t("members.muted")) : null),
      own || role !== "member" ? h("span.quiet.role", {}, [role === "owner" && t("members.role_owner"),
        role === "administrator" && t("members.role_administrator"), own && t("members.you")].filter(Boolean).join(", ")) : null,
      above ? h("button.tool", { type: "button", title: t("members.more_about", { name }), "aria-haspopup": "menu",
        onclick: (event) => more(event.currentTarget, { uid, name, role, muted }) }, icon("dots")) : null);
  };
  const more = (opener, { uid, name, role, muted }) => openMenu(opener, [
    group.role === "owner" && role === "member" && item(t("members.make_administrator"), () => give(uid, "administrator")),
    group.role === "owner" && role === "administrator" && item(t("members.make_member"), () => give(uid, "member")),
    group.role === "owner" && item(t("members.make_owner"), () => handOver(uid, name)),
    muted ? item(t("members.unmute"), () => act("DELETE", `/members/${uid}/mute`)) : item(t("members.mute"), () => muting(opener, uid)),
    item(t("members.remove_menu"), () => remove(uid, name)),
    item(t("members.ban_menu"), () => ban(uid, name)),
  ]);
  const muting = (opener, uid) => {
    const mute = (seconds) => () => act("PUT", `/members/${uid}/mute`, { seconds });
    openMenu(opener, [
      item(t("members.mute_hour"), mute(3_600)),
      item(t("members.mute_day"), mute(86_400)),
      item(t("members.mute_week"), mute(7 * 86_400)),
      item(t("members.mute_always"), mute()),
    ]);
  };
  const give = (uid, role) => act("PUT", `/members/${uid}/role`, { role });
  const removal = (name) => ({
    title: t("members.remove_title", { name: isolate(name), group: title() }),
    text: t("members.remove_about"),
    yes: t("members.remove"),
  });
  const remove = (uid, name) => sure("DELETE", `/members/${uid}`, undefined, removal(name));
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

  /** All pages of a list of the group: of its `invites` or `reports`. */
  const allOf = async (list) => {
    const all = [];
    for (let after = ""; after !== null;) {
      const page = await call("GET", path(`/${list}${after && `?after=${encodeURIComponent(after)}`}`));
      all.push(...page[list]);
      after = page.next;
    }
    return all;
  };

  const reports = async () => {
    const open = await allOf("reports");
    $("reports").replaceChildren(...open.map((report) => {
      const member = group.members.find(({ uid }) => uid === report.about.uid);
      return reportLine(report, { dismiss, recall, remove: member && isAbove(member) && removeReported });
    }));
    $("reports-count").hidden = !open.length;
    $("reports-count").textContent = many(open.length);
    $("no-reports").hidden = open.length > 0;
  };
  const dismiss = ({ number }) => act("DELETE", `/reports/${number}`);
  /** Does what a report asks for; then it is off the list. */
  const settle = async (report, question, method, where, body) => {
    if (!await ask(question)) return;
    problem("");
    try {
      await call(method, where, body);
      await dismiss(report);
    } catch (refusal) {
      problem(refusal.message);
    }
  };
  const recall = (report) => settle(report, removalOf(report.about.name, report.message.text),
    "POST", `/conversations/g:${gid}/messages/${report.message.message_id}/recall`, { client_id: uuid() });
  const removeReported = (report) => settle(report, removal(report.about.name), "DELETE", path(`/members/${report.about.uid}`));

  const invitations = async () => {
    const open = await allOf("invites");
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
      history: $("describe-history").checked ? "visible" : "hidden", slow_seconds: Number($("describe-slow").value), keep_seconds: Number($("describe-keep").value) };
    const changes = Object.entries(wanted).filter(([part, value]) => value !== group[part]);
    if (!await isWanted(group.keep_seconds, wanted.keep_seconds)) return;
    if (changes.length) await act("PATCH", "", Object.fromEntries(changes));
    if (!$("members-problem").textContent) $("describe").open = false;
  });
  const pictured = pictureButtons($("describe-picture"), { note: $("members-problem"), set: (picture) => act("PATCH", "", { picture }) });
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
    if (await leaveGroup(store, call, `g:${gid}`)) left();
  });
  const show = async (id) => {
    gid = numberOf(id);
    $("invite").href = path("/invite");
    group = { members: [] };
    $("members-list").toggleAttribute("data-loading", true);
    for (const list of ["members-list", "bans", "invites", "reports"]) $(list).replaceChildren();
    for (const part of ["describe", "banned", "open-invites", "reported"]) $(part).open = false;
    $("describe").hidden = $("banned").hidden = $("reported").hidden = true;
    await picker.reset();
    await act();
  };
  return { show };
}
