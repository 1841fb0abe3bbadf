// Finding people and conversations by their names, and the dialog that makes groups. When it closes, the browser gives the focus back to
// where it was.

import { folded } from "./characters.js";
import { $, h, isolate } from "./dom.js";
import { Picker, people } from "./picker.js";
import { uuid } from "./store.js";
import { t } from "./texts.js";

const numberOf = (id) => Number(id.slice(2));
// Lines of what was found.
const MOST_FOUND = 20;

/** What finds conversations and people, for a picker. */
export const conversations = (store, call) => async (text, show) => {
  const wanted = folded(text);
  const known = [...store.sorted(), ...store.archived()].map((id) => ({ id, title: store.title(id) }))
    .filter(({ title }) => folded(title).includes(wanted));
  // Conversations are found without the server too.
  show(known.slice(0, MOST_FOUND));
  const others = await people(call, text);
  return [...known, ...others.filter(({ id }) => !known.some((each) => each.id === id))].slice(0, MOST_FOUND);
};

/** The dialog for a new group. */
export function groupDialog(store, call, go) {
  let chosen = [];
  // The keys of what was asked for since the dialog opened: the same request repeated makes no second group.
  const keys = new Map();
  const render = () => $("group-members").replaceChildren(...chosen.map(({ id, title }) => h("li", {},
    h("button", { type: "button", "aria-label": t("new_group.take_out", { name: title }), onclick: () => {
      chosen = chosen.filter((each) => each.id !== id);
      render();
      $("group-find").focus();
    } }, h("bdi", {}, title), " ×"))));
  const problem = (text) => { $("group-problem").textContent = text; };
  const isChosen = (id) => numberOf(id) === store.self.uid || chosen.some((each) => each.id === id);
  const picker = new Picker($("group-find"), $("group-list"), {
    note: problem,
    find: async (text) => (await people(call, text)).filter(({ id }) => !isChosen(id)),
    take: (person) => {
      chosen.push(person);
      render();
      return picker.reset();
    },
  });
  /** Takes who is typed and not chosen, if somebody has exactly this name; else asks, and answers false. */
  const takeTyped = async () => {
    const typed = $("group-find").value.trim();
    if (!typed) return true;
    await picker.asked();
    const found = await people(call, typed);
    const meant = found.find(({ title }) => folded(title) === folded(typed));
    if (meant && isChosen(meant.id)) await picker.reset();
    else if (meant) await picker.take(meant);
    else {
      problem(found.length ? t("new_group.whom", { name: isolate(typed) }) : t("new_group.nobody", { name: isolate(typed) }));
      $("group-find").focus();
    }
    return Boolean(meant);
  };
  // Enter leads on to the members; whoever wants a group of one presses the button.
  $("group-name").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || chosen.length) return;
    event.preventDefault();
    $("group-find").focus();
  });
  $("new-group-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = $("group-name").value.trim();
    if (!name) {
      problem(t("new_group.name_missing"));
      return $("group-name").focus();
    }
    try {
      if (!await takeTyped()) return;
      const wanted = { name, members: chosen.map(({ id }) => numberOf(id)) };
      const same = JSON.stringify(wanted);
      if (!keys.has(same)) keys.set(same, uuid());
      const { gid } = await call("POST", "/groups", wanted, keys.get(same));
      await store.write(`g:${gid}`, (db) => db.patch(`g:${gid}`, { title: name }));
      $("new-group").close();
      go(`g:${gid}`);
    } catch (refusal) {
      problem(refusal.message);
    }
  });
  return () => {
    chosen = [];
    keys.clear();
    render();
    $("group-name").value = "";
    $("new-group").showModal();
    picker.reset();
  };
}
