// The message box, and the files above it: Enter sends and Shift+Enter breaks, but where a finger writes Enter breaks, too. What is typed is
// kept.

import { Completions, mentioning } from "./completions.js";
import { $, isolate } from "./dom.js";
import { naming } from "./emoji.js";
import { muteIn, waitIn } from "./groups.js";
import { lineOf, parse } from "./markdown.js";
import { ALL, mentionsIn } from "./mentions.js";
import { characters } from "./state.js";
import { momentOf, refused, t } from "./texts.js";
import { pictured } from "./thumbnails.js";
import { isTouch } from "./touch.js";
import { Tray } from "./tray.js";
import { voiceButton } from "./voice.js";

const SAVE_MS = 250;
// Characters left from which on the counter shows.
const WARN_AT = 200;
// The longest that a timer of browsers can wait.
const LONGEST_MS = 2 ** 31 - 1;

export class Composer {
  /** `sent(id)` runs when a message went into the outbox, `typing(id)` when somebody types one. */
  constructor(store, limit, { sent, typing }) {
    // `quoted`: the row that is replied to; `edited`: the one that is changed, with the draft that waits meanwhile.
    Object.assign(this, { store, limit, sent, typing, id: null, quoted: null, edited: null, known: "", saving: null });
    this.text = $("text");
    // By conversation: files that were chosen there and are not sent, as long as the page is open.
    this.trays = new Map();
    this.tray = new Tray(store, () => this.measure());
    $("tray").append(this.tray.element);
    this.voice = voiceButton((file) => this.sendVoice(file));
    this.text.enterKeyHint = isTouch() ? "enter" : "send";
    this.text.addEventListener("input", () => this.typed());
    const sources = [mentioning(() => this.people()), naming(() => document.activeElement === this.text && this.completions.look())];
    this.completions = new Completions(this.text, sources, () => this.typed());
    this.text.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (this.completions.key(event));
      else if (event.key === "Enter" && !event.shiftKey && (!isTouch() || event.ctrlKey || event.metaKey)) this.send();
      else if (event.key === "Escape" && (this.quoted || this.edited)) this.cancel();
      else if (event.key === "ArrowUp" && !this.text.value) this.editLast();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    $("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    // The focus stays in the box, and with it the keyboard of a phone.
    $("send").addEventListener("mousedown", (event) => event.preventDefault());
    $("context-cancel").addEventListener("click", () => this.cancel());
    addEventListener("pagehide", () => this.save());
    document.addEventListener("visibilitychange", () => this.save());
    store.watch(() => this.id && this.changed());
    store.sending.unsent = ({ conversation, body, quoted }, { code, reason }) => {
      const why = refused(code, reason);
      this.comeBack(conversation, body.text, quoted, why, t("row.not_sent", { reason: why }));
    };
  }

  show(id) {
    this.cancel(false);
    this.save();
    this.voice.cancel();
    this.id = id;
    this.showFiles();
    if (id) this.address();
    this.write(id ? this.store.drafts.get(id) ?? "" : "");
    this.lock();
    this.measure();
  }

  /** The files that were chosen for the open conversation. */
  showFiles() {
    if (this.id && !this.trays.has(this.id)) this.trays.set(this.id, []);
    this.tray.show(this.trays.get(this.id) ?? []);
  }

  /** Whether files were chosen that are nowhere else. */
  get hasFiles() { return [...this.trays.values()].some(({ length }) => length > 0); }

  /** Takes files in that were pasted, dropped or picked. */
  async attach(files) {
    if (!this.id || this.text.disabled || !files.length) return;
    if (this.edited) this.cancel();
    await this.tray.add(files);
    this.text.focus();
  }

  /** The kept draft has changed, by another device perhaps; text that was written here since is left alone. */
  changed() {
    this.lock();
    this.address();
    const draft = this.store.drafts.get(this.id) ?? "";
    const isBusy = this.edited || this.saving || this.text.value !== this.known;
    if (isBusy || draft === this.known) return;
    this.write(draft);
    this.measure();
  }

  /** Puts the draft as it is kept into the box. */
  write(text) { this.text.value = this.known = text; }

  /** The box says to whom the message goes. */
  address() { this.text.placeholder = this.text.ariaLabel = t("composer.to", { name: isolate(this.store.title(this.id)) }); }

  /** The people who may be mentioned here. */
  people() { return this.id?.startsWith("g:") ? this.store.people(this.id) : []; }

  /** Nobody writes to a group that they left or are muted in, to a deleted account, or to nobody. */
  lock() {
    clearTimeout(this.opens);
    const isDeleted = this.id?.startsWith("u:") && this.store.isDeleted(Number(this.id.slice(2)));
    const isOver = isDeleted || Boolean(this.store.conversations.get(this.id)?.left);
    const mute = isOver ? null : muteIn(this.store, this.id);
    const isLocked = isOver || Boolean(mute);
    $("locked-text").textContent = isDeleted ? t("composer.deleted") : !mute ? t("composer.left_group")
      : mute.until ? t("composer.muted_until", { when: momentOf(mute.until) }) : t("composer.muted");
    if (mute?.until) this.opens = setTimeout(() => this.lock(), Math.min(Date.parse(mute.until) - Date.now(), LONGEST_MS));
    const nobody = this.store.nobody.has(this.id);
    const tools = [$("open-emoji"), $("open-files")];
    this.text.disabled = isLocked || nobody;
    this.text.hidden = $("send").hidden = $("record").hidden = isLocked;
    for (const tool of tools) Object.assign(tool, { disabled: isLocked || nobody, hidden: isLocked });
    $("locked").hidden = !isLocked;
    $("archive").hidden = !isOver;
    $("composer").hidden = nobody;
    this.pace();
  }

  /** In slow mode the next message waits, and the box says how long. */
  pace() {
    clearTimeout(this.ticks);
    const wait = this.edited || this.text.disabled ? 0 : waitIn(this.store, this.id);
    $("slow-wait").textContent = wait ? t("composer.slow_wait", { count: Math.ceil(wait / 1_000) }) : "";
    $("send").disabled = this.text.disabled || wait > 0;
    $("record").disabled = $("send").disabled || Boolean(this.edited);
    if (wait) this.ticks = setTimeout(() => this.pace(), wait % 1_000 || 1_000);
    return wait;
  }

  typed() {
    this.measure();
    if (this.text.value && !this.edited) this.typing(this.id);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), SAVE_MS);
  }

  save() {
    clearTimeout(this.timer);
    // An unchanged text is not saved: another device may have written meanwhile.
    if (!this.id || this.edited || this.text.value === this.known) return;
    this.known = this.text.value;
    return this.during(this.store.draft(this.id, this.known)).catch((problem) => console.error(problem));
  }

  /** Until this is done, what is kept is older than the box. */
  during(saving) {
    const own = saving.finally(() => { if (this.saving === own) this.saving = null; });
    this.saving = own;
    return own;
  }

  /** The next message replies to `row`. */
  reply(row) {
    this.cancel();
    this.quoted = row;
    const { uid } = this.store.self;
    const text = isolate(lineOf(this.store, row));
    this.context(row.sender === uid ? t("composer.reply_own", { text })
      : t("composer.reply", { name: isolate(this.store.name(row.sender)), text }));
  }

  /** Puts `text` where the caret is. */
  insert(text) {
    const { selectionStart, selectionEnd } = this.text;
    this.text.setRangeText(text, selectionStart, selectionEnd, "end");
    this.text.focus();
    this.typed();
  }

  /** The typed text takes the place of the text of `row`. */
  edit(row) {
    this.cancel();
    this.save();
    this.edited = row;
    this.text.value = row.body.text;
    this.context(t("composer.edit"));
    this.measure();
  }

  /** The last message that the person sent here. */
  async editLast() {
    const rows = await this.store.db.page(this.id, { limit: 30 });
    const last = rows.findLast((row) => row.kind === "message" && row.sender === this.store.self.uid && row.client_id);
    if (last) this.edit(last);
  }

  context(text) {
    $("context").hidden = !text;
    $("context-text").textContent = text;
    this.text.focus();
  }

  /** Neither replies nor edits any more; the draft is back. */
  cancel(focus = true) {
    if (!this.quoted && !this.edited) return;
    if (this.edited) this.write(this.store.drafts.get(this.id) ?? "");
    this.quoted = this.edited = null;
    $("context").hidden = true;
    $("context-text").textContent = "";
    this.measure();
    if (focus) this.text.focus();
  }

  /** Characters left, once that matters; and the height, where the style sheet cannot tell it. */
  measure() {
    const left = this.limit - characters(this.text.value);
    $("counter").textContent = left > WARN_AT ? "" : left < 0 ? t("composer.over", { count: -left }) : t("composer.left", { count: left });
    $("counter").classList.toggle("over", left < 0);
    $("tray").hidden = Boolean(this.edited);
    // On a narrow screen either the microphone or the button that sends has room.
    $("composer").toggleAttribute("data-empty", !this.text.value && !this.tray.size && !this.edited);
    this.pace();
    if (CSS.supports("field-sizing", "content")) return;
    this.text.style.height = "auto";
    this.text.style.height = `${this.text.scrollHeight + 2}px`;
  }

  async send() {
    // The first line keeps its indentation.
    const text = this.text.value.replace(/^(?:\s*\n)+/, "").trimEnd();
    const { id, quoted, edited } = this;
    const mayBeEmpty = edited ? edited.body.files : this.tray.size;
    if (!edited && this.tray.isTooMany()) return;
    if (!text && !mayBeEmpty || characters(text) > this.limit || this.text.disabled || this.pace()) return;
    clearTimeout(this.timer);
    if (edited) {
      if (text !== edited.body.text) {
        try {
          await this.store.edit(edited, text);
        } catch (problem) {
          return void ($("counter").textContent = t("composer.not_kept", { problem: problem.message }));
        }
      }
      return this.cancel();
    }
    const files = this.tray.take();
    this.trays.delete(id);
    this.showFiles();
    const posting = this.post(id, text, quoted, files);
    this.write("");
    this.cancel();
    this.measure();
    await posting;
  }

  /** Sends a recording; what is in the box stays, and is a draft still. */
  async sendVoice(file) {
    const { id, quoted } = this;
    if (!id || this.pace()) return;
    this.cancel(false);
    this.known = "";
    await this.post(id, "", quoted, [file]);
    if (id === this.id) this.save();
  }

  /** Sends a message; what cannot be kept comes back. */
  async post(id, text, quoted, files) {
    const mentions = id.startsWith("g:") ? mentionsIn(parse(text, [...this.people(), ALL])) : null;
    try {
      await this.during(this.store.post(id, text, quoted, mentions, null, files));
      this.sent(id);
    } catch (problem) {
      this.comeBack(id, text, quoted, problem.message, t("composer.not_kept", { problem: problem.message }), files);
    }
  }

  /** A message whose files are on their way, or were refused, is a draft again. */
  async takeBack(row) {
    const item = await this.store.sending.takeBack(row);
    // It has gone out meanwhile.
    if (!item) return;
    const quoted = item.body.reply_to ? await this.store.db.row(item.body.reply_to) : null;
    this.comeBack(item.conversation, item.body.text, quoted, "", "", await pictured(item));
    if (item.conversation === this.id) this.text.focus();
  }

  /**
   * A message that was not sent stands in the box of its conversation again, above what was typed there since. `said`: why, for the
   * conversation that is open.
   */
  comeBack(id, text, quoted, why, said, files = []) {
    const isHere = id === this.id && !this.edited;
    const since = isHere ? this.text.value : this.store.drafts.get(id) ?? "";
    const all = [text, since].filter(Boolean).join("\n");
    if (files.length) this.trays.set(id, [...files, ...this.trays.get(id) ?? []]);
    if (files.length && id === this.id) this.showFiles();
    if (isHere) {
      if (quoted && !this.quoted) this.reply(quoted);
      this.text.value = all;
      this.measure();
      this.save();
    } else this.store.draft(id, all).catch((problem) => console.error(problem));
    if (why) $("counter").textContent = id === this.id ? said : t("composer.draft_again", { name: isolate(this.store.title(id)), problem: why });
  }
}
