// The dialog that forwards a message to other conversations.

import { conversations } from "./dialogs.js";
import { $, h } from "./dom.js";
import { lineOf } from "./markdown.js";
import { Picker } from "./picker.js";
import { t } from "./texts.js";

// Conversations that one message is forwarded to at once.
const MOST = 20;

/** Answers `open(row)`. `go(id)` opens the conversation, where only one was chosen. */
export function forwardDialog(store, call, go) {
  let row = null;
  let chosen = [];
  const note = (text) => { $("forward-note").textContent = text; };
  const render = () => {
    $("forward-chosen").replaceChildren(...chosen.map(({ id, title }) => h("li", {},
      h("button", { type: "button", "aria-label": t("new_group.take_out", { name: title }), onclick: () => {
        chosen = chosen.filter((each) => each.id !== id);
        render();
        picker.reset();
        $("forward-find").focus();
      } }, h("bdi", {}, title), " ×"))));
    $("forward-find").disabled = chosen.length >= MOST;
    $("forward-send").disabled = !chosen.length;
  };
  const isChosen = ({ id }) => chosen.some((each) => each.id === id);
  const find = conversations(store, call);
  // Enter takes nothing that was not marked: it would send words to somebody by mistake.
  const picker = new Picker($("forward-find"), $("forward-list"), {
    first: -1,
    note,
    find: async (text, show) => {
      const open = (found) => found.filter((each) => !isChosen(each));
      return open(await find(text, (found) => show(open(found))));
    },
    take: (choice) => {
      chosen.push(choice);
      render();
      return picker.reset();
    },
  });
  $("forward-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!chosen.length) return;
    $("forward-send").disabled = true;
    const to = chosen;
    try {
      for (const { id, title } of to) {
        if (id.startsWith("u:")) await store.write(id, (db) => db.learn([{ uid: Number(id.slice(2)), name: title }]));
        await store.post(id, row.body.text, null, null, row);
        // One that went out is not sent again by another try.
        chosen = chosen.filter((each) => each.id !== id);
      }
    } catch (problem) {
      render();
      return note(problem.message);
    }
    $("forward").close();
    if (to.length === 1) go(to[0].id);
    else $("announce").textContent = t("forward.done", { count: to.length });
  });
  return (message) => {
    row = message;
    chosen = [];
    render();
    note("");
    $("forward-quote").textContent = lineOf(store, row);
    $("forward").showModal();
    return picker.reset();
  };
}
