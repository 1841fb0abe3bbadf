// State rows (settings, friends) and rows about other rows, as they change the stored ones. Knows the stores that it is given, and
// nothing else.

/** The answer to an IndexedDB request. */
export const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/** The name that all copies of a message share. */
export const nameOf = ({ sender, client_id }) => `${sender} ${client_id}`;

/** The person that wrote the text of a row first. */
export const authorOf = (row) => row?.body.forwarded_from ?? row?.sender;

/** The length of a text as limits count it: in code points. `length` counts most emoji twice. */
export const characters = (text) => [...text].length;

/** Where moments lie. */
export const MOMENTS = "u:0";

/** Whether a row counts as unread for `uid`. */
export const counts = (row, uid) => (row.kind === "message" || row.kind === "moment") && row.sender !== uid;

/** Whether a row counts as unread for `uid` and names that person, or everybody. */
export const mentions = (row, uid) => counts(row, uid) && row.conversation?.[0] === "g"
  && Boolean(row.body?.mentions?.all || row.body?.mentions?.users?.includes(uid));

/** Whether a row is told as a sentence: a change of a group, or of the time for which messages are kept. Such rows stay however old they are. */
export const isEvent = ({ kind }) => kind === "membership" || kind === "keep";

/** Whether a row is a line of a conversation; unknown kinds are kept and skipped. A deleted message is one in lists alone. */
export const shown = (row) => isEvent(row) || row.kind === "message" || row.kind === "recalled";

const AMENDING = ["edit", "recall", "reaction", "like", "comment", "delete"];
/** Whether a row is about an earlier one, which it names in `body.of`. */
export const amends = ({ kind }) => AMENDING.includes(kind);

const STATE = ["receipt", "setting", "friend", "seen", "pin", "star"];
/** Whether a row only says what holds now. */
export const isState = ({ kind }) => STATE.includes(kind);

/** Takes in a setting, a star or what somebody says about being friends. `drafts`: those of this browser; `people`: names and profiles; `textCharacters`: those of the longest text; `isOwn`: this browser has set it. */
export async function keepState({ kind, conversation, sender, body }, { settings, friends, drafts, people, stars }, { uid, textCharacters }, isOwn = false) {
  if (kind === "setting") {
    const { name, value } = body;
    const mine = name === "draft" && await done(drafts.get(conversation));
    // An own draft may have been changed here since, and one that is not told yet, or too long for that, is nowhere else.
    if (name === "draft" && !isOwn && !mine?.untold && characters(mine?.text ?? "") <= textCharacters) {
      value ? drafts.put({ id: conversation, text: value.text }) : drafts.delete(conversation);
    }
    value ? settings.put({ name, conversation, value }) : settings.delete([name, conversation]);
  } else if (kind === "star") {
    // Also that there is none: what earlier versions starred is a setting, which does not know of it.
    stars.put({ message_id: body.message_id, conversation, starred: body.starred });
  } else if (kind === "friend") {
    const other = Number(conversation.slice(2));
    const friend = (await done(friends.get(other))) ?? { uid: other, mine: false, theirs: false };
    if (sender === uid) Object.assign(friend, { mine: body.wanted, declined: !body.wanted });
    else Object.assign(friend, { theirs: body.wanted, text: body.text, declined: false });
    if (body.deleted) people.put({ deleted: true, at: Date.now() }, `profile ${sender}`);
    friend.mine || friend.theirs ? friends.put(friend) : friends.delete(other);
  }
}

/** Other devices have been told of a draft. */
export async function told(drafts, id) {
  const { text, untold } = (await done(drafts.get(id))) ?? {};
  if (untold) text ? drafts.put({ id, text }) : drafts.delete(id);
}

/** The row with what came before it, which is not kept any longer. */
export async function withEarly(early, row) {
  const known = await done(early.get(nameOf(row)));
  if (!known) return row;
  early.delete(known.of);
  const { change, by, likes, comments } = known;
  if (change) changeMessage(row, change);
  return { ...row, ...(by && { reactions: by }), ...(likes && { likes }), ...(comments && { comments }) };
}

/** The reactions, likes and comments of a row, for when the row itself is dropped; `null`: nothing. */
export const saidAbout = (row) => (row.reactions || row.likes || row.comments)
  && { of: nameOf(row), by: row.reactions, likes: row.likes, comments: row.comments };

/** The body of a message that `by` took back: it says so where that is not its sender. */
export const withoutText = ({ sender }, by) => (sender === by ? {} : { by });

/** Does to a row what an edit, a recall or a deletion says; what is taken back stays so. */
function changeMessage(message, { kind, body }) {
  if (kind === "delete") Object.assign(message, { kind: "deleted", body: {} });
  else if (message.kind === "message") Object.assign(message, kind === "recall" ? { kind: "recalled", body } : { body });
}

/** The row as it is after such a change. */
export function changed(row, change) {
  const copy = { ...row };
  changeMessage(copy, change);
  return copy;
}

/**
 * Applies the row to its message or moment, and answers that as it was before. A change to one that is not here is kept until it is.
 * `last`: the same message, as the list of conversations has it.
 */
export async function amend(rows, early, row, last = null) {
  const { kind, sender, message_id, body: { of, body, emoji, liked, text } } = row;
  const message = await done(rows.index("message").get([of.sender, of.client_id]));
  const known = message ?? (await done(early.get(nameOf(of)))) ?? { of: nameOf(of) };
  const before = message ?? last;
  const was = before && { ...before };
  if (kind === "reaction" || kind === "like") {
    const place = kind === "like" ? "likes" : message ? "reactions" : "by";
    const by = known[place] ?? {};
    // A page of history may be older than what is known.
    if (!(by[sender]?.at > message_id)) by[sender] = { at: message_id, emoji, liked };
    known[place] = by;
  } else if (kind === "comment") {
    const others = (known.comments ?? []).filter((each) => nameOf(each) !== nameOf(row));
    const comment = { sender, client_id: row.client_id, message_id, sent_at: row.sent_at, text };
    known.comments = [...others, comment].sort((a, b) => a.message_id - b.message_id);
  } else {
    if (kind === "delete") await withoutComment(rows, early, message);
    const change = { kind, body: kind === "recall" ? withoutText(of, sender) : body };
    if (message) changeMessage(message, change);
    else if (known.change?.kind !== "delete" && (known.change?.kind !== "recall" || kind === "delete")) known.change = change;
    if (last) changeMessage(last, change);
  }
  (message ? rows : early).put(known);
  return was;
}

/** Takes a comment, if the row is one, from the moment that it is about. */
export async function withoutComment(rows, early, row) {
  if (row?.kind !== "comment") return;
  const { sender, client_id, body: { of } } = row;
  const moment = await done(rows.index("message").get([of.sender, of.client_id]));
  const known = moment ?? (await done(early.get(nameOf(of))));
  if (!known?.comments) return;
  known.comments = known.comments.filter((each) => each.sender !== sender || each.client_id !== client_id);
  (moment ? rows : early).put(known);
}

// Messages of which it is kept how many have read them.
const MOST_COUNTED = 60;

/** How far the person's messages have come, from a `seen` row. It never goes back; the message may come later (`arrived`). */
export async function seen(rows, conversation, { body: { of, state, counts } }) {
  if (counts) return void (conversation.readBy = grown(conversation.readBy, counts));
  conversation.told = { ...conversation.told, [state]: nameOf(of) };
  const message = await done(rows.index("message").get([of.sender, of.client_id]));
  if (message) reached(conversation, state, message);
}

/** An own message is here now; it may be the one up to which others have told, and the last that the person said there. */
export function arrived(conversation, row) {
  // By the clock of this browser, which may be behind.
  if (row.kind === "message") conversation.spoke = Math.max(conversation.spoke ?? 0, Math.min(Date.parse(row.sent_at), Date.now()));
  for (const [state, name] of Object.entries(conversation.told ?? {})) if (name === nameOf(row)) reached(conversation, state, row);
}

function reached(conversation, state, { message_id }) {
  const known = conversation.seen ?? {};
  conversation.seen = { ...known, [state]: Math.max(known[state] ?? 0, message_id) };
}

/** Counts by client_id, the newest message first. */
function grown(known = {}, counts) {
  const now = counts.map(({ client_id, count }) => [client_id, Math.max(count, known[client_id] ?? 0)]);
  const older = Object.entries(known).filter(([id]) => !counts.some(({ client_id }) => client_id === id));
  return Object.fromEntries([...now, ...older].slice(0, MOST_COUNTED));
}

/** Takes in that a message is pinned or no longer. `pins` has the messages as they are; null: they have to be asked for again. */
export async function pinned(rows, conversation, { message_id, body: { of, pinned } }) {
  conversation.pinsAt = message_id;
  if (!conversation.pins) return;
  const message = pinned && await done(rows.index("message").get([of.sender, of.client_id]));
  const others = conversation.pins.filter((row) => nameOf(row) !== nameOf(of));
  // A message that was taken back is pinned no more, whatever came first.
  const added = message?.kind === "message" ? [message] : [];
  conversation.pins = pinned && !message ? null : [...others, ...added].sort((a, b) => a.message_id - b.message_id);
}

/** A message has changed: if it is pinned, the pins have to be asked for again. */
export function unpinned(conversation, { message_id, body: { of } }) {
  conversation.pinsAt = message_id;
  if (conversation.pins?.some((pin) => nameOf(pin) === nameOf(of))) conversation.pins = null;
}

/** The newest row of a conversation to show; the one that stood for it, where that may be in the history that is not here, or has expired.
 * Rows below the floor may have others above them that are not here. */
export function newest(rows, { id, last, floor }) {
  const isShell = last?.kind === "deleted" && !last.client_id;
  return new Promise((resolve, reject) => {
    const request = rows.index("conversation").openCursor(IDBKeyRange.bound([id, 0], [id, Infinity]), "prev");
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const cursor = request.result;
      if (!cursor || cursor.value.message_id < floor) resolve(floor > 1 || isShell ? last : null);
      else if (shown(cursor.value)) resolve(cursor.value);
      else cursor.continue();
    };
  });
}

/**
 * Whether something that is put into the outbox takes the place of what is there: a value of a setting that of an earlier one, and a call
 * the same one that was refused. Each moment and each comment is one of its own.
 */
export function replaces({ conversation, frame, call }, there) {
  if (frame?.type === "setting") return there.frame?.type === "setting" && there.frame.name === frame.name && there.conversation === conversation;
  return Boolean(call) && !/(moments|comments)$/.test(call.path) && there.state === "failed" && there.call?.path === call.path;
}

/** Whether a newer value of the same setting waits to go out. */
export async function isOvertaken(outbox, { kind, conversation, client_id, body }) {
  if (kind !== "setting") return false;
  const waiting = (await done(outbox.getAll())).filter(({ frame, state }) => frame?.type === "setting" && state !== "failed");
  return waiting.some((item) => item.conversation === conversation && item.frame.name === body.name && item.client_id !== client_id);
}

/** A conversation of which no row is here. */
export const blank = (id, floor) => ({ id, title: null, last: null, unread: 0, mentions: 0, counted: 0, read_to: 0, acked: 0, floor });

/** Names, whether the person is still in the group, and when they may speak there, from a membership row. */
export function learn(conversation, { action, name, uid, user_name, by, by_name, owner, owner_name, slow_seconds, picture, until }, people, self) {
  conversation.title = name ?? conversation.title;
  if (user_name) people.put(user_name, uid);
  if (by_name) people.put(by_name, by);
  if (owner_name) people.put(owner_name, owner);
  if (action === "slow") conversation.slow = slow_seconds;
  if (action === "picture") conversation.picture = picture;
  if (uid !== self) return;
  conversation.left = ["removed", "left", "banned"].includes(action);
  if (action === "muted") conversation.muted = { until };
  if (action === "unmuted") conversation.muted = null;
}

/**
 * Takes in for how long messages of a conversation are kept, if the row says that. Rows of two people may cross: the one that was sent last
 * counts, whichever came first. Answers whether it does.
 */
export function keeping(conversation, row) {
  const said = isEvent(row) && row.body.keep;
  if (!said) return false;
  const { at = 0, by = 0, seconds = 0, gone_before = 0 } = conversation.keep ?? {};
  const sent = Date.parse(row.sent_at);
  const isLater = sent > at || sent === at && row.sender >= by;
  const now = isLater ? { at: sent, by: row.sender, seconds: said.seconds } : { at, by, seconds };
  conversation.keep = { ...now, gone_before: Math.max(gone_before, said.gone_before ?? 0) };
  return true;
}

/** The same, in the conversation as it is stored. */
export async function learnKeep(conversations, row) {
  const conversation = await done(conversations.get(row.conversation));
  if (conversation && keeping(conversation, row)) conversations.put(conversation);
}

/** What was sent there before this time goes: milliseconds since 1970; 0: nothing does. */
export const goesBefore = ({ keep }, now) => (keep ? Math.max(keep.gone_before, keep.seconds && now - 1_000 * keep.seconds) : 0);
