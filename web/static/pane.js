// The message pane: a window of rows around what is being read, never the whole conversation.

import { $, disc, keep } from "./dom.js";
import { fill, itemsOf, make } from "./rows.js";

const PAGE = 60;
const MOST = 240; // rows in the document
const NEAR = 600; // px from an edge of the window at which the next page is fetched
const AT_END = 40;
const UNREAD_PAGES = 5; // of history that are fetched to find the first unread row

export class Pane {
  constructor(store) {
    this.store = store;
    this.log = $("log");
    this.work = Promise.resolve();
    this.clear();
    this.log.addEventListener("scroll", () => this.scrolled(), { passive: true });
    $("jump").addEventListener("click", () => this.toNewest());
    for (const event of ["focus", "visibilitychange"]) addEventListener(event, () => this.read(), true);
    new ResizeObserver(() => { if (this.pinned) this.toEnd(); }).observe(this.log);
    store.watch((ids) => { if (this.id && (!ids || ids.includes(this.id) || ids.includes(null))) this.refresh(!ids); });
  }

  clear() {
    Object.assign(this, { id: null, rows: [], atTail: true, pinned: true, freshAfter: null, outbox: [] });
  }

  /** Jobs on the window run one after the other. */
  inOrder(job) {
    this.work = this.work.then(job).catch((problem) => console.error(problem));
    return this.work;
  }

  show(id) {
    if (id === this.id) return;
    this.clear();
    this.id = id;
    this.log.replaceChildren();
    if (id) this.inOrder(() => this.id === id && this.start());
  }

  header() {
    const title = this.store.title(this.id);
    $("pane-title").textContent = title;
    $("pane-disc").replaceWith(Object.assign(disc(this.id, title), { id: "pane-disc" }));
    $("open-members").hidden = !this.id.startsWith("g:");
  }

  page(where) { return this.store.db.page(this.id, { limit: PAGE, ...where }); }

  /** Paints what is here at once: around the first unread row, else the newest; the rest comes from the server. */
  async start() {
    const known = () => this.store.conversations.get(this.id) ?? {};
    const { unread, read_to } = known();
    for (let page = 0; unread && page < UNREAD_PAGES && known().floor > read_to + 1; page++) await this.more();
    if (unread && known().floor <= read_to + 1) {
      this.freshAfter = read_to;
      const newer = await this.page({ after: read_to, forward: true });
      this.rows = [...await this.page({ before: read_to + 1, limit: PAGE / 2 }), ...newer];
      this.atTail = newer.length < PAGE;
    } else this.rows = await this.page({});
    await this.render("end");
    if (this.log.scrollHeight < this.log.clientHeight + NEAR) await this.older();
    this.log.querySelector(".fresh-line")?.scrollIntoView({ block: "center" });
    this.scrolled();
  }

  /** One more page from the server; false when there is none, or it cannot be had now. */
  more() { return this.store.fetchOlder(this.id).catch(() => false); }

  /** Rows were added to the database: take them in at the end, if the end is in the window. */
  refresh(anew) {
    const id = this.id;
    return this.inOrder(async () => {
      if (id !== this.id) return;
      if (anew) this.rows = [];
      const known = this.rows.at(-1)?.message_id ?? 0;
      const outbox = this.store.pending(id); // read before the rows, so that a message is never in neither
      let fresh = [];
      if (this.atTail && known) {
        for (let page; ; fresh.push(...page)) {
          page = await this.page({ after: (fresh.at(-1) ?? this.rows.at(-1)).message_id, forward: true });
          if (page.length < PAGE) { fresh.push(...page); break; }
        }
        this.rows.push(...fresh);
      } else if (this.atTail) fresh = this.rows = await this.page({});
      if (this.rows.length > MOST && this.pinned) this.rows.splice(0, this.rows.length - MOST);
      if (fresh.some((row) => row.sender === this.store.self.uid)) this.freshAfter = null;
      const unread = this.store.unread(id);
      if (unread && this.freshAfter === null && !this.reading()) this.freshAfter = this.store.conversations.get(id).read_to;
      await this.render(this.pinned ? "end" : "keep", outbox);
      if (known) this.announce(fresh);
      this.read();
    });
  }

  /** `hold`: "end" stays at the end, "keep" keeps what is being read where it is. */
  async render(hold, outbox = this.store.pending(this.id)) {
    const { log, store } = this;
    this.header();
    const bottom = (element) => element.offsetTop + element.offsetHeight - log.scrollTop;
    const anchor = hold === "keep" && [...log.querySelectorAll(".msg, .event")].find((each) => bottom(each) > 0);
    const offset = anchor && bottom(anchor);
    const floor = store.conversations.get(this.id)?.floor;
    const first = this.rows[0]?.message_id ?? Infinity;
    const whole = floor === 0 && !(await this.page({ before: first, limit: 1 })).length;
    const title = store.title(this.id);
    const start = whole && `This is where ${this.id.startsWith("u:") ? "your conversation with " : ""}${title} begins.`;
    const items = itemsOf(store, this.rows, this.atTail ? outbox : [], this.freshAfter, start);
    keep(log, items, make, (item, element) => fill(item, element, store));
    if (anchor?.isConnected) log.scrollTop += bottom(anchor) - offset;
    else this.toEnd();
    this.jump();
  }

  toEnd() { this.log.scrollTop = this.log.scrollHeight; }

  async toNewest() {
    await this.inOrder(async () => {
      if (!this.atTail) this.rows = await this.page({});
      this.atTail = this.pinned = true;
      await this.render("end");
      this.read();
    });
    $("text").focus();
  }

  scrolled() {
    const { log } = this;
    this.pinned = this.atTail && log.scrollHeight - log.scrollTop - log.clientHeight < AT_END;
    if (log.scrollTop < NEAR) this.turn(() => this.older());
    else if (!this.atTail && log.scrollHeight - log.scrollTop - log.clientHeight < NEAR) this.turn(() => this.newer());
    this.jump();
    this.read();
  }

  /** One page at a time. */
  turn(page) {
    if (this.turning || !this.id) return;
    this.turning = true;
    this.inOrder(page).then(() => { this.turning = false; });
  }

  async older() {
    const before = this.rows[0]?.message_id;
    let page = await this.page({ before });
    if (page.length < PAGE && await this.more()) page = await this.page({ before });
    if (page.length) {
      this.rows.unshift(...page);
      if (this.rows.length > MOST) {
        this.rows.length = MOST;
        this.atTail = false;
      }
    }
    await this.render(this.pinned && this.atTail ? "end" : "keep");
  }

  async newer() {
    const page = await this.page({ after: this.rows.at(-1)?.message_id, forward: true });
    this.rows.push(...page);
    this.atTail = page.length < PAGE;
    this.rows.splice(0, this.rows.length - MOST);
    await this.render("keep");
  }

  jump() {
    const unread = this.store.unread(this.id);
    $("jump").hidden = this.pinned;
    $("jump-text").textContent = unread ? `Jump to newest (${unread} new)` : "Jump to newest";
  }

  /** Whether someone is looking at the newest row. */
  reading() { return this.pinned && !document.hidden && document.hasFocus(); }

  /** What someone looks at has been read. */
  read() { if (this.id && this.reading()) this.markRead(); }

  markRead() {
    const newest = this.store.conversations.get(this.id)?.last?.message_id;
    if (newest && this.store.unread(this.id)) this.store.markRead(this.id, newest);
  }

  /** Esc: everything here is read. */
  settle() {
    this.freshAfter = null;
    this.markRead();
    this.toNewest();
  }

  /** New messages of others, politely, for those who listen to the page. */
  announce(rows) {
    const heard = rows.filter((row) => row.kind === "message" && row.sender !== this.store.self.uid).slice(-3);
    if (heard.length) $("announce").textContent = heard.map((row) => `${this.store.name(row.sender)}: ${row.body.text}`).join("\n");
  }
}
