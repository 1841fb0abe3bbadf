// The message pane: a window of rows around what is being read, never the whole conversation.

import { $, append, disc, isolate, keep } from "./dom.js";
import { plain } from "./markdown.js";
import { showMute } from "./mute.js";
import { showPins } from "./pins.js";
import { fill, itemsOf, make, withAmendments } from "./rows.js";
import { counts } from "./state.js";
import { many } from "./store.js";
import { t } from "./texts.js";

// Rows taken from the database at once.
const PAGE = 60;
// The most rows in the document.
const MOST = 240;
// Pixels from an edge of the window at which the next page is fetched.
const NEAR = 600;
// Pixels from the end that still count as being there.
const AT_END = 40;
// The most messages that are shown before they are stored.
const MOST_AHEAD = 20;
// The longest wait for a frame.
const FRAME_MS = 50;
// How long what was announced stays in the document.
const HEARD_MS = 10_000;
// Pages of history that are fetched at once, to have enough to show.
const MOST_PAGES = 5;
// The same, to find the first unread row.
const MOST_UNREAD_PAGES = 30;

/** Kept after the next frame; a page that nobody sees has none. */
const painted = () => document.hidden ? null : new Promise((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve));
  setTimeout(resolve, FRAME_MS);
});

export class Pane {
  /** `acts`: what the buttons of a message do (rows.js). */
  constructor(store, acts) {
    this.store = store;
    this.acts = acts;
    this.log = $("log");
    this.work = Promise.resolve();
    this.wanted = null;
    // Whether a refresh waits for its turn.
    this.renewing = false;
    // Whether the conversation was painted since it was opened.
    this.painted = false;
    // Whether it is still open where it will stand; until then nobody has read anything.
    this.opening = false;
    // Lets the latest opening go; which one it is, too.
    this.letGo = () => {};
    // New messages that are shown before they are stored, and the id up to which rows are.
    this.ahead = [];
    this.settled = 0;
    this.log.addEventListener("scroll", () => this.scrolled(), { passive: true });
    $("jump").addEventListener("click", () => this.toNewest().then(() => $("text").focus()));
    for (const event of ["focus", "visibilitychange"]) addEventListener(event, () => this.read(), true);
    // The newest line, until it has been laid out.
    this.added = null;
    this.resized = new ResizeObserver((changes) => {
      if (changes.some(({ target }) => target === this.added)) this.follow(null);
      if (this.following && !this.opening) this.toEnd();
    });
    this.resized.observe(this.log);
    store.watch((ids) => {
      if (!ids) this.show(this.wanted);
      else if (ids.includes(this.id) || ids.includes(null)) this.renew();
    });
  }

  /** Jobs on the window run one after the other. */
  inOrder(job) {
    this.work = this.work.then(job).catch((problem) => console.error(problem));
    return this.work;
  }

  /** Something has changed. A refresh that has not begun yet sees it, too. */
  renew() {
    if (this.renewing) return;
    this.renewing = true;
    this.inOrder(() => {
      this.renewing = false;
      return this.id && this.refresh();
    });
  }

  /** Opens a conversation, or the same one anew; what is still under way for another one is let go. */
  show(id) {
    this.letGo(false);
    this.wanted = id;
    const gone = new Promise((resolve) => { this.letGo = resolve; });
    const { letGo } = this;
    this.inOrder(async () => {
      // Someone who went on meanwhile sees only where it ends.
      if (letGo !== this.letGo) return;
      // Shown anew, what was new is new still.
      const freshAfter = id === this.id ? this.freshAfter : null;
      Object.assign(this, { id, gone, rows: [], ahead: [], atTail: true, following: true, freshAfter, painted: false, opening: Boolean(id) });
      if (id?.startsWith("g:")) this.store.meet(id);
      if (!id) return;
      this.learnPins();
      await this.start();
      // To be shown anew, it does not stand where it will.
      if (letGo !== this.letGo && id === this.wanted) return;
      this.opening = false;
      this.scrolled();
    });
  }

  header() {
    const title = this.store.title(this.id);
    $("pane-title").textContent = title;
    $("pane-disc").replaceWith(Object.assign(disc(this.id, title), { id: "pane-disc" }));
    const { left } = this.store.conversations.get(this.id) ?? {};
    const isIn = this.id.startsWith("g:") && !left && !this.store.nobody.has(this.id);
    $("open-members").hidden = !isIn;
    $("open-mute").hidden = this.store.nobody.has(this.id) || Boolean(left);
    const isPinned = Boolean(this.store.setting("pin", this.id));
    $("pin").hidden = $("open-mute").hidden;
    $("pin").ariaPressed = String(isPinned);
    const uid = this.id.startsWith("u:") && Number(this.id.slice(2));
    $("open-person").hidden = !uid || uid === this.store.self.uid || this.store.isDeleted(uid) || this.store.nobody.has(this.id);
    $("open-person").title = t("members.more_about", { name: title });
    showMute(this.store, this.id, $("open-mute"));
    showPins(this.store, this.id);
    this.about();
  }

  /** The line under the title: who is typing; else who is in the group, or when the person was online. The dot of who is online stays. */
  about() {
    if (!this.id) return;
    const { presence, conversations, nobody } = this.store;
    const { left, members, topic } = conversations.get(this.id) ?? {};
    const isIn = this.id.startsWith("g:") && !left && !nobody.has(this.id);
    const uid = this.id.startsWith("u:") && Number(this.id.slice(2));
    const isOnline = uid && presence.isOnline(uid);
    const isAbsent = uid && !isOnline && uid !== this.store.self.uid && !this.store.isDeleted(uid) && !nobody.has(this.id);
    const typing = presence.typingIn(this.id);
    const line = uid && !nobody.has(this.id) ? this.store.profile(uid).about : "";
    const group = isIn && members ? [t("pane.members", { count: members }), topic && isolate(topic)].filter(Boolean).join(" · ") : "";
    const there = isOnline ? t("presence.online") : isAbsent && presence.lastSeen(uid);
    $("pane-about").textContent = typing || ([there, line && isolate(line)].filter(Boolean).join(" · ") || group);
    $("pane-about").classList.toggle("online", Boolean(isOnline));
  }

  page(where) { return this.store.db.page(this.id, { limit: PAGE, ...where }); }

  /** Fetches back to the first unread row where it is not here, within limits; then paints what is around it, else the newest. */
  async start() {
    this.waiting = this.outgoing();
    const known = () => this.store.conversations.get(this.id) ?? {};
    const { unread, read_to } = known();
    for (let page = 0; unread && page < MOST_UNREAD_PAGES && known().floor > read_to + 1; page++) {
      if (!await this.more()) break;
    }
    if (unread) {
      this.freshAfter = read_to;
      // Unread rows that are not here yet stand above; then the oldest that is here comes first.
      const from = Math.max(read_to, known().floor - 1);
      const newer = await this.page({ after: from, forward: true });
      this.rows = [...await this.page({ before: from + 1, limit: PAGE / 2 }), ...newer];
      this.atTail = newer.length < PAGE;
    } else {
      this.rows = await this.page({});
      // A server that was restored has less than what stood below the line.
      if (!this.rows.some(({ message_id }) => message_id > this.freshAfter)) this.freshAfter = null;
    }
    await this.render({ end: true });
    if (this.log.scrollHeight < this.log.clientHeight + NEAR) await this.older();
    this.log.querySelector(".fresh-line")?.scrollIntoView({ block: "center" });
  }

  /** One more page from the server; false when there is none, or it cannot be had now. */
  more() { return Promise.race([this.gone, this.store.fetchOlder(this.id).catch(() => false)]); }

  /** The pins are shown when they are known. */
  learnPins() { this.store.learnPins(this.id).catch(() => {}); }

  /** The items of this conversation in the outbox: messages, and changes of rows. */
  outgoing() { return { messages: this.store.pending(this.id), changes: this.store.amending(this.id) }; }

  /** Something changed in the database: takes new rows in at the end, if the end is in the window. */
  async refresh() {
    const { rows, store } = this;
    // Read before the rows and shown with them, so that a message or a change of one is never in neither.
    const outgoing = this.outgoing();
    const known = rows.at(-1)?.message_id ?? 0;
    const { settled } = this;
    const { same, fresh, isTail } = await store.db.window(this.id, rows[0]?.message_id ?? 0, known, this.atTail ? MOST : 0);
    rows.splice(0, rows.length, ...same, ...fresh);
    this.waiting = outgoing;
    this.ahead = this.ahead.filter(({ message_id }) => message_id > settled);
    if (this.atEnd()) rows.splice(0, Math.max(0, rows.length - MOST));
    this.atTail &&= isTail;
    const { unread, read_to, pins } = store.conversations.get(this.id) ?? {};
    if (pins === null) this.learnPins();
    if (unread) this.markFresh(read_to);
    if (fresh.some(({ kind }) => kind === "membership")) store.meet(this.id);
    await this.render();
    if (known) this.announce(fresh);
    this.read();
  }

  /** Rows that have come since somebody last looked here stand below a line. */
  markFresh(readTo) {
    // Rows that were marked as new and have been read since are no longer new.
    if (!this.looking()) this.freshAfter = Math.max(this.freshAfter ?? 0, readTo);
  }

  /**
   * Rows that are about to be stored. New messages of this conversation are shown at once, if its end is in the window; the answer tells
   * when the browser has painted them.
   */
  arriving(rows) {
    const isPlain = ({ kind, body, client_id }) => kind === "message" && client_id && !body.reply_to;
    const here = rows.filter((row) => row.conversation === this.id);
    if (!here.length || here.length > MOST_AHEAD || !here.every(isPlain) || !this.atTail || !this.painted) return;
    const { store } = this;
    const newest = this.ahead.at(-1) ?? this.rows.at(-1);
    this.ahead.push(...here);
    if (here.some((row) => counts(row, store.self.uid))) this.markFresh(store.conversations.get(this.id)?.read_to ?? 0);
    // Nothing else changes, and it stands at the end.
    const isSimple = newest && !this.waiting.messages.length && here.every(({ sender }) => sender !== store.self.uid);
    this.paint({ below: isSimple ? newest : null });
    return painted();
  }

  /** Shows the window. Stays at the end, or goes there (`end`); else keeps what is being read where it is. */
  async render({ end = false } = {}) {
    const { store } = this;
    const before = this.rows[0]?.message_id;
    this.whole = store.conversations.get(this.id)?.floor === 0 && !(await this.page({ before, limit: 1 })).length;
    this.quoted = await store.db.quoted([...this.rows, ...this.atTail ? this.waiting.messages : []]);
    this.header();
    this.painted = true;
    this.paint({ end });
  }

  /** Puts into the document what `render` has found; `below`: only what follows this row, since nothing else is different. */
  paint({ end = false, below = null } = {}) {
    const { log } = this;
    const put = (item, element) => fill(item, element, this.acts);
    const isAtEnd = end || this.atEnd();
    const added = below && this.items(below);
    if (added) append(log, added, make, put);
    else {
      const bottom = (element) => element.offsetTop + element.offsetHeight - log.scrollTop;
      const anchor = !isAtEnd && [...log.querySelectorAll(".msg, .event")].find((each) => bottom(each) > 0);
      const offset = anchor && bottom(anchor);
      keep(log, this.items(), make, put);
      if (anchor?.isConnected) log.scrollTop += bottom(anchor) - offset;
      else this.toEnd();
    }
    if (isAtEnd) added ? this.follow(log.lastElementChild) : this.toEnd();
    this.jump();
  }

  /** Goes to the end when the browser lays out `element`, which stands there: sooner would be a layout more. */
  follow(element) {
    if (this.added) this.resized.unobserve(this.added);
    this.added = element;
    if (element) this.resized.observe(element);
  }

  /** The items in the window; or only those that follow the row `below`; `null`: that row does not stand there. */
  items(below = null) {
    const { store, waiting } = this;
    const newest = this.rows.at(-1)?.message_id ?? 0;
    const all = this.atTail ? [...this.rows, ...this.ahead.filter(({ message_id }) => message_id > newest)] : this.rows;
    const from = below ? all.findIndex(({ message_id }) => message_id === below.message_id) : 0;
    const rows = withAmendments(all.slice(Math.max(0, from)), waiting.changes, store.self.uid);
    const hasLine = below && this.log.querySelector(".fresh-line");
    const start = below ? "" : store.nobody.has(this.id) ? this.nobody() : this.whole && this.beginning(isolate(store.title(this.id)));
    const items = itemsOf(store, rows, this.atTail ? waiting.messages : [], hasLine ? null : this.freshAfter, start, this.quoted);
    if (!below) return items;
    const painted = items.findIndex(({ id }) => id === below.message_id);
    return painted < 0 ? null : items.slice(painted + 1);
  }

  nobody() {
    return this.id.startsWith("u:") ? t("pane.nobody") : t("pane.no_group");
  }

  /** The text above the oldest row. A group has rows from when the person came in, and the newest from before where it shows them. */
  beginning(title) {
    if (this.id.startsWith("u:")) return t("pane.begins_with", { name: title });
    const [first] = this.rows;
    if (first && first.kind !== "membership") return t("pane.newest_before");
    const fromTheStart = first?.body.action === "created";
    return fromTheStart ? t("pane.begins", { group: title }) : t("pane.joined");
  }

  /** A message of this conversation, when everything down to it has been fetched. */
  async fetched(row) {
    const floor = () => this.store.conversations.get(this.id)?.floor ?? 0;
    for (let page = 0; page < MOST_UNREAD_PAGES && floor() > row.message_id; page++) if (!await this.more()) break;
    return this.store.db.row(row.message_id);
  }

  /** Shows the message that a quote names, or a row; false when it is not in this browser. */
  reveal(of) {
    return this.inOrder(async () => {
      const message = of.conversation ? await this.fetched(of) : await this.store.db.message(of);
      if (message?.conversation !== this.id) return false;
      const { message_id } = message;
      if (!this.rows.some((row) => row.message_id === message_id)) {
        const newer = await this.page({ after: message_id - 1, forward: true });
        this.rows = [...await this.page({ before: message_id, limit: PAGE / 2 }), ...newer];
        this.atTail = newer.length < PAGE;
        this.following = false;
        await this.render();
      }
      const element = this.log.querySelector(`[data-row="${message_id}"]`);
      element?.scrollIntoView({ block: "center" });
      element?.querySelector(".more")?.focus({ preventScroll: true });
      return Boolean(element);
    });
  }

  /** Pixels below what is in view. */
  below() { return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight; }

  toEnd() {
    this.log.scrollTop = this.log.scrollHeight;
    this.endAt = this.log.scrollTop;
  }

  /** Whether the end is in view: someone may have scrolled although the event that tells so is still to come. */
  atEnd() {
    if (this.below() > AT_END && this.log.scrollTop < this.endAt - AT_END) this.following = false;
    return this.following;
  }

  /** Shows the newest row; `read`: and nothing counts as new any more. */
  toNewest(read) {
    return this.inOrder(async () => {
      if (read) this.freshAfter = null;
      if (!this.atTail) this.rows = await this.page({});
      this.atTail = this.following = true;
      await this.render({ end: true });
      // Before anything else here: a conversation that is shown anew looks at what is unread.
      if (read) await this.markRead();
      this.read();
    });
  }

  scrolled() {
    // Rows that were added and not laid out stand below the end as it was.
    const isFollowing = this.added && this.log.scrollTop > this.endAt - AT_END;
    this.following = this.atTail && (isFollowing || this.below() < AT_END);
    if (this.log.scrollTop < NEAR) this.turn(() => this.older());
    else if (!this.atTail && this.below() < NEAR) this.turn(() => this.newer());
    this.jump();
    this.read();
  }

  /** One page at a time. */
  turn(page) {
    if (this.turning || !this.id) return;
    this.turning = true;
    this.inOrder(() => this.id && page()).then(() => { this.turning = false; });
  }

  async older() {
    const before = this.rows[0]?.message_id;
    let page = await this.page({ before });
    // A page of the server may hold few rows to show, and many reactions.
    for (let tries = 0; page.length < PAGE && tries < MOST_PAGES && await this.more(); tries++) {
      page = await this.page({ before });
    }
    this.rows.unshift(...page);
    if (this.rows.splice(MOST).length) this.atTail = this.following = false;
    await this.render();
  }

  async newer() {
    const page = await this.page({ after: this.rows.at(-1)?.message_id, forward: true });
    this.rows.push(...page);
    this.atTail = page.length < PAGE;
    this.rows.splice(0, Math.max(0, this.rows.length - MOST));
    await this.render();
  }

  jump() {
    const unread = this.store.unread(this.id);
    $("jump").hidden = this.following;
    $("jump-text").textContent = unread ? t("pane.jump_new", { count: many(unread) }) : t("pane.jump");
  }

  /** Whether someone is looking at the newest row, or will be when the conversation is open. */
  looking() { return this.following && !document.hidden && document.hasFocus(); }
  reading() { return this.looking() && !this.opening && this.rows.length > 0; }

  /** The rows that someone looks at have been read. */
  read() { if (this.id && this.reading()) this.markRead(); }

  markRead() {
    const newest = this.store.conversations.get(this.id)?.last?.message_id;
    if (newest && this.store.unread(this.id)) return this.store.markRead(this.id, newest);
  }

  /** New messages of others, politely, for those who listen to the page. */
  announce(rows) {
    const { store } = this;
    const heard = rows.filter((row) => counts(row, store.self.uid)).slice(-3);
    const lines = heard.map((row) => t("list.of", { name: store.name(row.sender), text: plain(row.body.text) }));
    if (!lines.length) return;
    $("announce").textContent = lines.join("\n");
    // It has been said; whoever searches the page should find the message alone.
    clearTimeout(this.hush);
    this.hush = setTimeout(() => $("announce").replaceChildren(), HEARD_MS);
  }
}
