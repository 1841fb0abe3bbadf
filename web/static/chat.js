// The page: puts its parts together.

import { aboutPanel } from "./about.js";
import { actionsMenu, toggle } from "./actions.js";
import { call } from "./api.js";
import { Badge } from "./badge.js";
import { Banner } from "./banner.js";
import { Beside } from "./beside.js";
import { Blobs } from "./blobs.js";
import { Composer } from "./composer.js";
import { openDb } from "./db.js";
import { dateDialog } from "./date.js";
import { groupDialog } from "./dialogs.js";
import { $ } from "./dom.js";
import { emojiPicker } from "./emoji.js";
import { findDialog } from "./find.js";
import { forwardDialog } from "./forward.js";
import { fragments } from "./fragments.js";
import { hearKeys } from "./keys.js";
import { Line } from "./line.js";
import { List } from "./list.js";
import { listMenu } from "./list_menu.js";
import { hearMouse } from "./mouse.js";
import { muteMenu } from "./mute.js";
import { Notifier } from "./notify.js";
import { showOwnName } from "./own_name.js";
import { Pane } from "./pane.js";
import { pickFor } from "./picking.js";
import { pinsBar } from "./pins.js";
import { Presence } from "./presence.js";
import { readersDialog } from "./readers.js";
import { tellRefusals } from "./refusals.js";
import { remind } from "./reminder.js";
import { reportDialog } from "./report.js";
import { Route } from "./route.js";
import { searchPanel } from "./search_panel.js";
import { sessionEnd } from "./session.js";
import { settingsDialog } from "./settings.js";
import { starredDialog } from "./starred.js";
import { Store } from "./store.js";
import { Subscription } from "./subscription.js";
import { t } from "./texts.js";
import { hearFingers } from "./touch.js";
import { beginWorker } from "./worker.js";

const { uid, name, account, textCharacters } = document.body.dataset;
const self = { uid: Number(uid), name, account, textCharacters: Number(textCharacters) };
const db = await openDb(self).catch((problem) => {
  $("banner").hidden = false;
  $("banner-text").textContent = t("banner.no_storage", { problem: problem.message });
  throw problem;
});

// The data, and the line to the server.
const blobs = new Blobs(self);
const line = new Line(db, blobs);
const store = new Store({
  db, blobs, call, self,
  send: (item) => line.send(item),
  hold: (item) => line.hold(item),
  nudge: (ids) => line.nudge(ids),
});
db.kept = () => store.kept();
db.lost = (isEmpty) => {
  if (isEmpty) line.anew();
  store.load().then(() => store.box.resume());
};

// What leads to a conversation or to a message. `route` is made last, from the parts that it opens.
const go = (id, inPlace) => route.go(id, inPlace);
const lead = (row) => route.lead(row.conversation, row);
const reveal = (of) => route.lead(store.open, of);

// The open conversation.
const composer = new Composer(store, self.textCharacters, {
  sent: (id) => {
    presence.sent(id);
    pane.toNewest(true);
  },
  typing: (id) => presence.typed(id),
});
const emoji = emojiPicker();
const report = reportDialog(store, call);
const forward = forwardDialog(store, call, go);
const view = async (message_id, id) => (await import("./viewer.js")).view(store, message_id, id);
const react = (row, opener) => emoji(opener, (chosen) => toggle(store, row, chosen));
const menu = actionsMenu(store, composer, emoji, { forward, report: report.message, readers: readersDialog(store, call) });
const pane = new Pane(store, {
  menu, reveal,
  toggle: (row, emoji) => toggle(store, row, emoji),
  retry: store.retry,
  discard: store.discard,
  view,
  local: (client_id, n) => blobs.blob(client_id, n),
  takeBack: (row) => composer.takeBack(row),
}, (place) => route.rested(place));
pickFor(composer, store);
store.sending.posted = (item) => pane.posted(item);
pinsBar(store, reveal);
const presence = new Presence(store, {
  say: (frame) => line.say(frame),
  watch: (people) => line.watch(people),
  changed: () => {
    store.show([]);
    pane.about();
  },
});
store.presence = presence;

// What stands around it.
const mute = muteMenu(store);
const list = new List(store, listMenu(store, call, mute));
const beside = new Beside(store, call);
const badge = new Badge(store);
const notifier = new Notifier(store, (path) => route.visit(path));
const banner = new Banner(() => line.now());
const subscription = new Subscription(call, self);
const end = sessionEnd(call, { db, store, composer, badge, notifier, subscription, line });
tellRefusals(store);

// What opens beside it or over it.
const date = dateDialog(async (time) => {
  const row = await pane.firstSince(time);
  if (row) lead(row);
});
const search = searchPanel(store, call, {
  lead: (hash, inPlace) => fragment.lead(hash, inPlace), leave: () => fragment.leave("search"), found: (row) => route.found(row),
});
const find = findDialog(store, call, {
  go,
  lead: (row, sought) => {
    lead(row);
    store.seek(sought);
  },
  all: (text) => {
    search.write(text);
    fragment.lead("#search/all");
  },
});
const newGroup = groupDialog(store, call, go);
const starred = starredDialog(store, call, lead);
const settings = settingsDialog(store, call, () => line.state, {
  over: async (path) => await end.mayForget() && end.leave("DELETE", path),
  leave: (password) => end.leave("POST", "/me/delete", { password }),
  renamed: (name) => line.pass({ type: "renamed", name }),
  closed: () => fragment.leave("settings"),
  kept: remind(store),
  opened: () => subscription.open(),
});
const fragment = fragments({
  about: aboutPanel(store, call, {
    lead: (hash, inPlace) => fragment.lead(hash, inPlace), leave: () => fragment.leave("about"), reveal, mute, date,
    report: report.person,
  }),
  search,
  settings,
});
const route = new Route({ store, list, pane, composer, beside, fragment });

// Keys, fingers, the mouse, and buttons.
hearKeys({ find, search, move: (step) => route.move(step), leave: () => {
  if (search.isOpen()) return fragment.leave("search");
  store.seek(null);
  pane.toNewest(true);
} });
/** Does something with the message of this row, if it is still to be seen. */
const withMessage = (act) => (id, opener) => {
  const row = pane.message(id);
  if (row?.kind === "message") act(row, opener);
};
const reply = withMessage((row) => composer.reply(row));
hearFingers(reply);
hearMouse({ reply, react: withMessage(react) });
const buttons = {
  "open-find": find, "start-find": find, "open-group": newGroup, "start-group": newGroup, "open-settings": () => fragment.lead("#settings"),
  "open-starred": () => starred(),
  "open-emoji": () => emoji($("open-emoji"), (chosen) => composer.insert(chosen)),
  "open-mute": () => mute($("open-mute")),
  skip: (event) => {
    event.preventDefault();
    $("text").focus();
  },
  pin: () => store.set("pin", store.open, store.setting("pin", store.open) ? null : { pinned: true }),
  archive: () => store.archive(store.open).then(() => go(null)),
};
for (const [id, act] of Object.entries(buttons)) $(id).addEventListener("click", act);

/** What the server, or the connection, is like now. */
function notified(state) {
  document.body.dataset.phase = state.phase;
  banner.tell(state);
  if (state.phase === "waiting" || state.phase === "offline") presence.lost();
  pane.told(state);
  search.told(state);
  settings.facts();
  if (state.phase === "ended") end.ended();
}

await store.load([]);
route.begin();
store.box.resume();
line.begin({
  call, store, pane, presence, notifier, notified,
  name: `tidemark-${uid}`,
  renamed: (name) => showOwnName(store, name),
  over: () => location.replace("/login"),
});
beginWorker();
const prune = () => {
  db.prune();
  blobs.prune(new Set(store.outbox.map(({ client_id }) => client_id))).catch((problem) => console.error(problem));
};
setTimeout(prune, 5_000);
setInterval(prune, 3_600_000);
