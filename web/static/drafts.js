// Texts that were typed and not sent: kept in this browser, and told to the person's other devices. `store.drafts` has them.

import { characters } from "./state.js";

// How long a draft rests before other devices are told.
const TELL_MS = 1_500;

export class Drafts {
  constructor(store) {
    this.store = store;
    // Those that are not written yet, or that the browser has refused to keep; "": there is none.
    this.unsaved = new Map();
    // By conversation: when other devices will be told.
    this.telling = new Map();
  }

  /** The text in the box. It counts from now on; where the browser refuses to write it, as long as the page is open. */
  put(id, text) {
    this.unsaved.set(id, text);
    this.show();
  }

  /** Puts what is not written over what was read. */
  show() {
    const { drafts } = this.store;
    for (const [id, text] of this.unsaved) text ? drafts.set(id, text) : drafts.delete(id);
  }

  /** It is written; there may be a newer one. */
  written(id, text) { if (this.unsaved.get(id) === text) this.unsaved.delete(id); }

  keep(id, text) {
    return this.store.write(id, async (db) => {
      await db.draft(id, text);
      this.written(id, text);
    });
  }

  /** The typed text is in a message now; text that was typed since is another one. */
  async keepEmpty(id) { if (this.unsaved.get(id) === "") await this.keep(id, "").catch(() => {}); }

  async save(id, text) {
    if ((this.store.drafts.get(id) ?? "") === text) return;
    this.put(id, text);
    try {
      await this.keep(id, text);
    } catch (problem) {
      this.store.show([id]);
      throw problem;
    }
    clearTimeout(this.telling.get(id));
    this.telling.set(id, setTimeout(() => this.tell(id).catch((problem) => console.error(problem)), TELL_MS));
  }

  /** Tells of those that an earlier page has kept and that nobody was told of: it was left too soon. */
  resume() { for (const id of this.store.untold) this.tell(id).catch((problem) => console.error(problem)); }

  /**
   * Tells the person's other devices what is written here, if they know something else. A draft that is too long for a message is of
   * its own browser alone: they have nothing, rather than how it once was.
   */
  async tell(id) {
    const { store } = this;
    const whole = store.drafts.get(id) ?? "";
    const text = characters(whole) > store.self.textCharacters ? "" : whole;
    if (text === (store.setting("draft", id)?.text ?? "")) return store.db.told(id);
    return store.set("draft", id, text ? { text } : null);
  }
}
