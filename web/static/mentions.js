// Mentions: `@name` and `@all` in the messages of groups: where they stand, and the people that a message names.

import { after, before, folded, isAttached, isWordy } from "./characters.js";

// People whom one message names; the server takes no more.
const MOST = 50;
// The words for everybody, in each language of the page. No account is called so (`RESERVED` in server/src/domain/name.rs).
const EVERYBODY = ["all", "所有人"];
/** Everybody, as one of the people of a text. */
export const ALL = { name: EVERYBODY[0], all: true, me: true };

/** `people` ([{name}]) as `parse` of markdown.js looks for them. */
export function byName(people) {
  const known = new Map(people.filter(({ name }) => name).map((person) => [folded(person.name), person]));
  // A word for everybody is never somebody, whatever an account is called.
  for (const word of EVERYBODY) known.delete(word);
  const all = people.find(({ all }) => all);
  if (all) for (const word of EVERYBODY) known.set(word, all);
  const names = [...known.keys()];
  // Other forms of a letter have more code units.
  return { known, begins: new Set(names.map(base)), longest: 3 * Math.max(0, ...names.map((name) => name.length)) };
}

/** The first letter of a text without its marks. */
const base = (text) => folded(after(text.normalize("NFD"), 0));

/** The place behind the underscores there, or before them: marks of Markdown, or parts of a word. */
function beyond(text, at, step) {
  while (text[step < 0 ? at - 1 : at] === "_") at += step;
  return at;
}

/** The mention at the `@` at a place of a text: {length, person}; the longest name counts. Null: there is none. */
export function mentionAt(text, at, { known, begins, longest }) {
  if (!begins.has(base(after(text, at + 1))) || isWordy(before(text, beyond(text, at, -1)))) return null;
  let found = null;
  for (let end = at + 1; end < text.length && end - at <= longest;) {
    const last = after(text, end);
    end += last.length;
    const next = after(text, end);
    const joins = isWordy(last) || last === "_";
    const isEnd = !isAttached(next) && !(joins && isWordy(after(text, beyond(text, end, 1))));
    const person = isEnd && known.get(folded(text.slice(at + 1, end)));
    if (person) found = { length: end - at, person };
  }
  return found;
}

/** The people that a tree of markdown.js names, as a message says it: {users, all}; null: nobody. */
export function mentionsIn(nodes) {
  const people = peopleOf(nodes);
  const users = [...new Set(people.map(({ uid }) => uid).filter(Boolean))].slice(0, MOST);
  const all = people.some(({ all }) => all);
  return users.length || all ? { users, ...(all && { all }) } : null;
}

const peopleOf = (nodes) => nodes.flat().flatMap(({ person, children }) => (person ? [person] : peopleOf(children ?? [])));

/** The people that a row names: [{uid, name, me}]. */
export function named(store, { body }) {
  const { users = [], all = false } = body?.mentions ?? {};
  const people = users.map((uid) => ({ uid, name: store.name(uid), me: uid === store.self.uid }));
  return all ? [...people, ALL] : people;
}
