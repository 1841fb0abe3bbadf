// Ctrl+K, and the field above the list: people and conversations by their names, and below them messages and moments by their words.

import { conversations } from "./dialogs.js";
import { $, keep } from "./dom.js";
import { fillHit, hitItem, makeHit, said } from "./hits.js";
import { Picker } from "./picker.js";
import { oneStop } from "./roving.js";
import { Search } from "./search.js";

// Hits that are shown here; the panel has all.
const MOST_HITS = 5;

/**
 * Answers what opens it. `go(id)` opens a conversation, `lead(row, sought)` shows a message or a moment, `all(text)` everything that a
 * search finds.
 */
export function findDialog(store, call, { go, lead, all }) {
  const [dialog, field] = [$("find"), $("find-text")];
  const toAll = () => {
    dialog.close();
    all(field.value);
  };
  const picker = new Picker(field, $("find-list"), {
    note: (text) => { $("find-note").textContent = text; },
    find: conversations(store, call),
    take: async ({ id, title }) => {
      dialog.close();
      if (id.startsWith("u:")) await store.write(id, (db) => db.learn([{ uid: Number(id.slice(2)), name: title }]));
      go(id);
    },
    none: () => search.hits.length && toAll(),
  });
  const render = () => {
    const { hits, query: { sought }, problem } = search;
    const shown = hits.slice(0, MOST_HITS).map((hit) => hitItem(store, hit, { sought, isAll: true }));
    $("find-messages").hidden = Boolean(problem);
    $("find-said").textContent = problem ? "" : said(search, shown.length);
    keep($("find-hits"), shown, makeHit, (item, element) => fillHit(item, element, (row) => {
      dialog.close();
      lead(row, sought);
    }));
  };
  const search = new Search(store, call, { changed: render, limit: MOST_HITS });
  field.addEventListener("input", ({ isComposing }) => isComposing || search.ask({ text: field.value }));
  field.addEventListener("compositionend", () => search.ask({ text: field.value }));
  $("find-all").addEventListener("click", toAll);
  oneStop($("find-hits"), ".hit");
  dialog.addEventListener("close", () => search.clear());
  return () => {
    dialog.showModal();
    picker.reset();
    search.ask({ text: "" });
  };
}
