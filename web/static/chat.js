// The page: puts the parts together, and follows the address.

import { aboutPanel, hasRoom } from "./about.js";
import { actionsMenu, toggle } from "./actions.js";
import { isOwn, named, pathOf } from "./address.js";
import { call } from "./api.js";
import { ask } from "./ask.js";
import { Badge } from "./badge.js";
import { Banner } from "./banner.js";
import { settleCodes } from "./codes.js";
import { Composer } from "./composer.js";
import { forget, openDb } from "./db.js";
import { dateDialog } from "./date.js";
import { findDialog, groupDialog } from "./dialogs.js";
import { $, hues, paint } from "./dom.js";
import { emojiPicker, forgetEmoji } from "./emoji.js";
import { forwardDialog } from "./forward.js";
import { fragments } from "./fragments.js";
import { hearKeys } from "./keys.js";
import { List } from "./list.js";
import { listMenu } from "./list_menu.js";
import { hearMouse } from "./mouse.js";
import { muteMenu } from "./mute.js";
import { Notifier } from "./notify.js";
import { showOwnName } from "./own_name.js";
import { Pane } from "./pane.js";
import { pinsBar } from "./pins.js";
import { Presence } from "./presence.js";
import { readersDialog } from "./readers.js";
import { tellRefusals } from "./refusals.js";
import { remind } from "./reminder.js";
import { reportDialog } from "./report.js";
import { settingsDialog } from "./settings.js";
import { MOMENTS } from "./state.js";
import { starredDialog } from "./starred.js";
import { Store, many, uuid } from "./store.js";
import { Sync } from "./sync.js";
import { Tabs } from "./tabs.js";
import { t } from "./texts.js";
import { hearFingers, isTouch } from "./touch.js";
import { beginWorker } from "./worker.js";

const { uid, name, account, textCharacters } = document.body.dataset;
const self = { uid: Number(uid), name, account, textCharacters: Number(textCharacters) };
const db = await openDb(self).catch((problem) => {
  $("banner").hidden = false;
  $("banner-text").textContent = t("banner.no_storage", { problem: problem.message });
  throw problem;
});
// Only in the tab that leads.
let sync = null;
let tabs = null;
let leaving = false;
let state = { phase: "connecting", cursor: 0, beats: [] };

const store = new Store({ db, call, self, send: (item) => sync?.send(item), hold: (item) => sync?.hold(item), nudge: (ids) => {
  tabs?.tell("changed", ids);
  sync ? sync.nudge() : tabs?.tell("nudge");
} });
const composer = new Composer(store, self.textCharacters, {
  sent: (id) => {
    presence.sent(id);
    pane.toNewest(true);
  },
  typing: (id) => presence.typed(id),
});
const emoji = emojiPicker();
const pane = new Pane(store, {
  menu: actionsMenu(store, composer, emoji, {
    forward: (row) => forward(row),
    report: (row) => report.message(row),
    readers: readersDialog(store, call),
  }),
  toggle: (row, emoji) => toggle(store, row, emoji),
  reveal: (of) => lead(store.open, of),
  retry: store.retry,
  discard: store.discard,
}, rested);
db.kept = () => store.kept();
db.lost = (isEmpty) => {
  if (isEmpty) sync?.anew();
  store.load().then(() => store.box.resume());
};
store.sending.posted = (item) => pane.posted(item);
// The conversation of which the tab that leads was told.
let openedHere = null;
const presence = new Presence(store, {
  say: (frame) => (sync ? sync.say(frame) : tabs?.tell("say", frame)),
  watch: (people) => {
    if (sync) return sync.watch(people);
    if (store.open === openedHere || !store.open?.startsWith("u:")) return;
    openedHere = store.open;
    tabs?.tell("opened", Number(openedHere.slice(2)));
  },
  changed: () => {
    store.show([]);
    pane.about();
  },
});
store.presence = presence;
const mute = muteMenu(store);
const list = new List(store, listMenu(store, call, mute));
const badge = new Badge(store);
const notifier = new Notifier(store, go);
const banner = new Banner(() => (sync ? sync.now() : tabs.tell("now")));
const showReminder = remind(store);
const settings = settingsDialog(store, call, () => state, {
  over: async (path) => await mayForget() && leave("DELETE", path),
  leave: (password) => leave("POST", "/me/delete", { password }),
  renamed: (name) => passOn({ type: "renamed", name }),
  closed: () => fragment.leave("settings"),
  kept: showReminder,
});

/** Whether nothing unsent is lost when this browser forgets it, or the person says that it may be. */
function mayForget() {
  const isUnsent = ({ state, body, frame, call }) => state !== "sent" && (body ?? frame?.body ?? call?.body)?.text;
  const count = store.outbox.filter(isUnsent).length;
  return !count || ask({ title: t("settings.log_out"), text: t("settings.unsent", { count }), yes: t("settings.log_out") });
}

/** Ends the session by a call, and forgets everything here. */
async function leave(method, path, body) {
  leaving = true;
  await call(method, path, body).catch((refusal) => {
    leaving = false;
    throw refusal;
  });
  await over(true, path === "/me/delete");
}

const report = reportDialog(store, call);
const date = dateDialog(async (time) => {
  const row = await pane.firstSince(time);
  if (row) lead(row.conversation, row);
});
const find = findDialog(store, call, go);
const forward = forwardDialog(store, call, go);
const newGroup = groupDialog(store, call, go);
const starred = starredDialog(store, call, (row) => lead(row.conversation, row));
const reveal = (row) => lead(store.open, row);
pinsBar(store, reveal);
const fragment = fragments({
  about: aboutPanel(store, call, {
    lead: (hash, inPlace) => fragment.lead(hash, inPlace), leave: () => fragment.leave("about"), reveal, mute, date,
    report: report.person,
  }),
  settings,
});
tellRefusals(store);

/** The session is over: nothing of it stays in this browser but, unless logged out here, what was not sent. */
async function over(everything, isDeleted = false) {
  sync?.stop();
  // The text in the box is a draft of the next session.
  await composer.save();
  badge.end();
  await notifier.end();
  if (everything) settleCodes();
  await forgetPage();
  if (everything) {
    tabs.tell("over");
    forgetEmoji();
    db.close();
    await forget(self);
  } else await db.begin(0, undefined, []);
  if (isDeleted) sessionStorage.setItem("deleted", "yes");
  location.replace(everything ? "/login" : `/login?ended=yes&next=${location.pathname}`);
}

/** The page that the service worker keeps names the person. */
async function forgetPage() {
  const names = await globalThis.caches?.keys() ?? [];
  await Promise.all(names.filter((name) => name.startsWith("page-")).map((name) => caches.delete(name)));
}

function notified(next) {
  state = next;
  document.body.dataset.phase = state.phase;
  banner.tell(state);
  if (state.phase === "waiting" || state.phase === "offline") presence.lost();
  pane.told(state);
  settings.facts();
  if (state.phase !== "ended" || leaving) return;
  // Once, however many calls are refused.
  leaving = true;
  over(false);
}

const hear = {
  changed: (ids) => store.load(ids),
  state: notified,
  nudge: () => sync?.nudge(),
  now: () => sync?.now(),
  hello: () => {
    if (!sync) return;
    tabs.tell("state", sync.state);
    tabs.tell("passed", { type: "presence", online: [...presence.online] });
  },
  passed: (frame) => hearPassed(frame),
  say: (frame) => sync?.say(frame),
  opened: (uid) => {
    presence.opened.add(uid);
    sync?.watch(presence.people());
  },
  over: () => location.replace("/login"),
};

/** A frame that nobody stores, or that the person has another name. */
function hearPassed(frame) {
  frame.type === "renamed" ? showOwnName(store, frame.name) : presence.hear(frame);
}

/** Something else is to be seen of a person: the name, say. */
async function seen(person) {
  const name = await store.meetAgain(person);
  if (person === self.uid && name) passOn({ type: "renamed", name });
}

/** Passes a frame that nobody stores on to all tabs. */
function passOn(frame) {
  hearPassed(frame);
  tabs?.tell("passed", frame);
}

const PAGES = { moments: () => import("./moments.js"), contacts: () => import("./contacts.js") };
// The page beside the conversations that is open: {name, render}.
let beside = null;

/** Opens one of the pages beside the conversations, whose script is fetched now. */
async function openBeside(name) {
  if (beside?.name === name) return;
  beside = { name, render: () => {} };
  const { title, open } = await PAGES[name]();
  if (beside?.name !== name) return;
  $("page-title").textContent = title();
  beside.render = open(store, { call, body: $("page-body"), limit: self.textCharacters }).render;
  beside.render();
  $("page-body").focus();
}

/** How much is new on the pages beside the conversations. */
async function marks() {
  const counts = { moments: store.unread(MOMENTS), contacts: store.requests().length };
  for (const [name, count] of Object.entries(counts)) {
    const link = $(`to-${name}`);
    link.ariaCurrent = beside?.name === name ? "page" : null;
    const badge = link.querySelector(".badge");
    badge.hidden = !count;
    badge.textContent = many(count);
    badge.ariaLabel = t("shell.new", { count });
  }
}
store.watch(() => {
  paint(document.querySelector(".side .disc"), hues.get(self.uid));
  marks();
  beside?.render();
});

// The visit that was followed last: entries of the browser's history that differ in what is open beside the page have the same key.
let followed = null;

/** Opens what the address names. `isBack`: the browser has gone there by itself. */
function follow(isBack = false) {
  // A menu is that of the conversation over which it was opened.
  document.querySelector(":popover-open")?.hidePopover();
  const { id, at, page: name } = named(location.pathname);
  // Back at an address, one is where one was.
  const { place, isLed, key } = history.state ?? {};
  store.open = id;
  $("app").dataset.view = id || name ? "conversation" : "list";
  $("page").hidden = !name;
  name ? openBeside(name) : beside = null;
  $("open").hidden = !id;
  $("pane-blank").hidden = Boolean(id || name);
  $("skip").hidden = !id;
  store.show();
  if (id) store.unmark(id);
  composer.show(id);
  if (id !== pane.id || place) pane.show(id, place ? { place } : at);
  else if (at) pane.lead(at);
  else if (isBack) pane.toNewest();
  $("jump-back").hidden = !isLed;
  if (id && !isTouch() && matchMedia("(min-width: 720px)").matches) $("text").focus();
  followed = key;
  fragment.follow();
}

/** Opens an address of this page. `isLed`: to another message of the conversation that is open. */
function visit(path, isLed = false) {
  fragment.whenLeft(() => {
    // Where there is room for both, the panel stays beside the message.
    const to = isLed && hasRoom() ? path + location.hash : path;
    if (to !== location.pathname + location.hash) {
      rested(pane.place());
      history.pushState({ fromList: !store.open && !beside, isLed, key: uuid() }, "", to);
    } else history.replaceState({ ...history.state, place: null }, "");
    follow();
  });
}

/** Shows a message: {message_id} or {sender, client_id}. The browser's back button leads back to where one was. */
function lead(id, of) { visit(pathOf(id, of), id === store.open); }

/** Somebody rests there in the open conversation (log.js); null: at its end. The entry of the browser's history keeps that. */
function rested(place) {
  fragment.whenLeft(() => {
    const { id } = named(location.pathname);
    if (!id || id !== pane.id) return;
    const { isLed } = history.state ?? {};
    const path = place ? location.pathname : pathOf(id);
    history.replaceState({ ...history.state, place, isLed: Boolean(isLed && place) }, "", path + location.hash);
    $("jump-back").hidden = !history.state.isLed;
  });
}

/** `inPlace`: not as a step of its own for the browser's back button. */
function go(id, inPlace = false) {
  const path = pathOf(id);
  if (!inPlace) return visit(path);
  fragment.whenLeft(() => {
    history.replaceState({ fromList: history.state?.fromList, key: uuid() }, "", path);
    follow();
  });
}

function neighbour(step) {
  const ids = list.shown;
  const at = ids.indexOf(store.open);
  const next = ids[at < 0 ? 0 : at + step];
  if (next) go(next, at >= 0);
}

// The conversation is left alone where something only opens or closes beside it.
addEventListener("popstate", () => {
  // What somebody writes after `#` is an entry without a key.
  if (!history.state) history.replaceState({ key: followed }, "");
  if (history.state.key !== followed) return follow(true);
  fragment.follow();
  if (pane.view?.isOpen) rested(pane.place());
});
addEventListener("beforeunload", (event) => { if (store.sending.onlyHere().length && !leaving) event.preventDefault(); });
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (event.defaultPrevented || !link || !isOwn(link) || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  visit(link.pathname);
});
for (const back of document.querySelectorAll(".back")) {
  back.addEventListener("click", (event) => {
    event.preventDefault();
    history.state?.fromList ? history.back() : go(null);
  });
}
hearKeys({ find, move: neighbour, leave: () => pane.toNewest(true) });
/** Does something with the message of this row, if it is still to be seen. */
const withMessage = (act) => (id, opener) => {
  const row = pane.message(id);
  if (row?.kind === "message") act(row, opener);
};
const reply = withMessage((row) => composer.reply(row));
hearFingers(reply);
hearMouse({ reply, react: withMessage((row, opener) => emoji(opener, (chosen) => toggle(store, row, chosen))) });
const buttons = {
  "open-find": find, "start-find": find, "open-group": newGroup, "start-group": newGroup, "open-settings": () => fragment.lead("#settings"),
  "open-starred": () => starred(),
  "open-emoji": () => emoji($("open-emoji"), (chosen) => composer.insert(chosen)),
  "open-mute": () => mute($("open-mute")),
  // Past the panel, if that was opened meanwhile.
  "jump-back": () => history.go(-1 - (history.state.steps ?? 0)),
  skip: (event) => {
    event.preventDefault();
    $("text").focus();
  },
  pin: () => store.set("pin", store.open, store.setting("pin", store.open) ? null : { pinned: true }),
  archive: () => store.archive(store.open).then(() => go(null)),
};
for (const [id, act] of Object.entries(buttons)) $(id).addEventListener("click", act);

await store.load([]);
if (!history.state?.key) history.replaceState({ ...history.state, key: uuid() }, "");
follow();
store.box.resume();
tabs = new Tabs(`tidemark-${uid}`, {
  hear: (kind, value) => hear[kind]?.(value),
  lead: () => {
    sync = new Sync({ db, call,
      changed: (ids, arrived = []) => {
        store.load(ids).then(() => notifier.arrived(arrived));
        if (arrived.length) passOn({ type: "arrived", rows: arrived.map(({ conversation, sender }) => ({ conversation, sender })) });
        tabs?.tell("changed", ids);
      },
      notified: (next) => {
        notified(next);
        tabs?.tell("state", next);
      },
      arriving: (rows) => pane.arriving(rows),
      sent: (client_id, message_id) => store.sending.sent(client_id, message_id),
      notSent: (client_id, reason) => store.sending.notSent(client_id, reason),
      watching: (people) => store.meetAnew(people),
      passed: (frame) => (frame.type === "person" ? seen(frame.uid) : passOn(frame)),
    });
    sync.start();
    for (const item of store.sending.onlyHere()) sync.hold(item);
    sync.watch(presence.people());
    return () => {
      sync.stop();
      sync = null;
    };
  },
});
tabs.tell("hello");
beginWorker();
setTimeout(() => db.prune(), 5_000);
setInterval(() => db.prune(), 3_600_000);
