// The message box: Enter sends, Shift+Enter breaks, and what is typed is kept.

import { $ } from "./dom.js";

const SAVE_MS = 250;
// Characters left from which on the counter shows.
const WARN_AT = 200;

export class Composer {
  /** `sent()` runs when a message went into the outbox. */
  constructor(store, limit, sent) {
    Object.assign(this, { store, limit, sent, id: null });
    this.text = $("text");
    this.text.addEventListener("input", () => this.typed());
    this.text.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.send();
    });
    $("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    addEventListener("pagehide", () => this.save());
    document.addEventListener("visibilitychange", () => this.save());
    store.watch(() => this.id && this.lock());
  }

  show(id) {
    this.save();
    this.id = id;
    this.text.value = id ? this.store.drafts.get(id) ?? "" : "";
    this.lock();
    this.measure();
  }

  /** Nobody writes to a group that he left. */
  lock() {
    const left = Boolean(this.store.conversations.get(this.id)?.left);
    this.text.disabled = $("send").disabled = left;
    this.text.placeholder = left ? "You are no longer in this group" : "Message";
  }

  typed() {
    this.measure();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), SAVE_MS);
  }

  save() {
    clearTimeout(this.timer);
    if (this.id) this.store.draft(this.id, this.text.value);
  }

  /** Characters left, once that matters; and the height, where the style sheet cannot tell it. */
  measure() {
    const left = this.limit - [...this.text.value].length;
    $("counter").textContent = left > WARN_AT ? "" : `${Math.abs(left)} characters ${left < 0 ? "too many" : "left"}`;
    $("counter").classList.toggle("over", left < 0);
    if (CSS.supports("field-sizing", "content")) return;
    this.text.style.height = "auto";
    this.text.style.height = `${this.text.scrollHeight + 2}px`;
  }

  async send() {
    const text = this.text.value.trim();
    if (!text || [...text].length > this.limit || this.text.disabled) return;
    clearTimeout(this.timer);
    this.text.value = "";
    this.measure();
    try {
      await this.store.post(this.id, text);
      this.sent();
    } catch (problem) {
      this.text.value = text;
      $("counter").textContent = `Not kept: ${problem.message}`;
    }
  }
}
