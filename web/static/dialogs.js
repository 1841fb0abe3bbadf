// The dialogs that find people and conversations, make groups and change them. When one closes, the browser
// gives the focus back to where it was.

import { $, disc, h } from "./dom.js";
import { Picker, people } from "./picker.js";

const numberOf = (id) => Number(id.slice(2));

/** Ctrl+K. `go(id)` opens a conversation. */
export function findDialog(store, call, go) {
  const picker = new Picker($("find-text"), $("find-list"), {
    note: (text) => { $("find-note").textContent = text; },
    find: async (text) => {
      const wanted = text.toLowerCase();
      const known = store.sorted().map((id) => ({ id, title: store.title(id) }))
        .filter(({ title }) => title.toLowerCase().includes(wanted));
      // Conversations are found without the server too.
      const others = await people(call, text).catch((refusal) => known.length ? [] : Promise.reject(refusal));
      return [...known, ...others.filter(({ id }) => !known.some((each) => each.id === id))].slice(0, 20);
    },
    take: async ({ id, title }) => {
      $("find").close();
      if (id.startsWith("u:")) await store.write(id, (db) => db.learn([{ uid: numberOf(id), name: title }]));
      go(id);
    },
  });
  return () => {
    $("find").showModal();
    picker.reset();
  };
}

/** The dialog for a new group. */
export function groupDialog(store, call, go) {
  let chosen = [];
  const render = () => $("group-members").replaceChildren(...chosen.map(({ id, title }) => h("li", {},
    h("button", { type: "button", "aria-label": `Take ${title} out`, onclick: () => {
      chosen = chosen.filter((each) => each.id !== id);
      render();
      $("group-find").focus();
    } }, h("bdi", {}, title), " ×"))));
  const problem = (text) => { $("group-problem").textContent = text; };
  const picker = new Picker($("group-find"), $("group-list"), {
    note: problem,
    find: async (text) => (await people(call, text))
      .filter(({ id }) => numberOf(id) !== store.self.uid && !chosen.some((each) => each.id === id)),
    take: (person) => {
      chosen.push(person);
      render();
      picker.reset();
    },
  });
  $("new-group-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = $("group-name").value.trim();
    if (!name) {
      problem("Give the group a name.");
      return $("group-name").focus();
    }
    try {
      const { gid } = await call("POST", "/groups", { name, members: chosen.map(({ id }) => numberOf(id)) });
      await store.write(`g:${gid}`, (db) => db.patch(`g:${gid}`, { title: name }));
      $("new-group").close();
      go(`g:${gid}`);
    } catch (refusal) {
      problem(refusal.message);
    }
  });
  return () => {
    chosen = [];
    render();
    $("group-name").value = "";
    $("new-group").showModal();
    picker.reset();
  };
}

/** The dialog of a group's members. */
export function membersDialog(store, call) {
  let gid = 0;
  let members = [];
  const problem = (text) => { $("members-problem").textContent = text; };
  const load = async () => {
    ({ members } = await call("GET", `/groups/${gid}`));
    await store.write(`g:${gid}`, (db) => db.learn(members));
    $("members-list").replaceChildren(...members.map(({ uid, name }) => h("li", {},
      disc(`u:${uid}`, name), h("span.title", { dir: "auto" }, name),
      uid === store.self.uid ? "you"
        : h("button.link", { "aria-label": `Remove ${name}`, onclick: () => act("DELETE", `/${uid}`) }, "Remove"))));
  };
  /** One change of the group, then its members again. */
  const act = async (method, path, body) => {
    problem("");
    try {
      if (method) await call(method, `/groups/${gid}/members${path}`, body);
      await load();
    } catch (refusal) {
      problem(refusal.message);
    }
  };
  const picker = new Picker($("members-find"), $("members-found"), {
    note: problem,
    find: async (text) => (await people(call, text))
      .filter(({ id }) => !members.some(({ uid }) => uid === numberOf(id))),
    take: async ({ id }) => {
      await act("POST", "", { uid: numberOf(id) });
      picker.reset();
    },
  });
  $("leave").addEventListener("click", async () => {
    try {
      await call("DELETE", `/groups/${gid}/members/${store.self.uid}`);
      await store.write(`g:${gid}`, (db) => db.patch(`g:${gid}`, { left: true }));
      $("members").close();
    } catch (refusal) {
      problem(refusal.message);
    }
  });
  return async (id) => {
    gid = numberOf(id);
    $("invite").href = `/groups/${gid}/invite`;
    members = [];
    $("members-title").textContent = store.title(id);
    $("members-list").replaceChildren();
    $("members").showModal();
    await picker.reset();
    await act();
  };
}
