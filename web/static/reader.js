// What somebody has read of the open conversation, which is what was in view while somebody looked; and where somebody was in each
// conversation, to open it there again.

// How long somebody rests somewhere before that is kept, and told to the person's other devices.
const REST_MS = 500;

const isThere = () => !document.hidden && document.hasFocus();

export class Reader {
  /** `placed(place)`: somebody rests there, in the open conversation (log.js); null: at the end. */
  constructor(store, log, placed) {
    Object.assign(this, { store, log, placed });
    // By conversation, what is newer than what was read from the database.
    this.places = new Map();
    this.resting = null;
  }

  /** Whether somebody is there, and whether the end is in view. */
  stands() { return { isThere: isThere(), isAtEnd: this.log.isFollowing }; }

  /** Where somebody was in a conversation; null: at its end. `kept`: what the database has. */
  placeIn(id, kept = null) { return this.places.has(id) ? this.places.get(id) : kept; }

  /** Takes in what is in view. At the end all has been read, at once; further up what was seen, a moment later. */
  look(view) {
    if (!view?.isOpen) return;
    this.resting ??= setTimeout(() => this.settle(view), REST_MS);
    if (!isThere() || !view.rows.length) return;
    if (this.isAtEnd(view)) return this.markAll(view);
    view.seenTo = Math.max(view.seenTo, Math.min(this.log.seenTo(), view.last));
  }

  place(view) { return this.isAtEnd(view) ? null : this.log.place(); }
  isAtEnd(view) { return view.atTail && this.log.isFollowing; }

  /** All of the conversation has been read. */
  markAll(view) {
    view.seenTo = this.store.conversations.get(view.id)?.last?.message_id ?? 0;
    return this.mark(view);
  }

  mark({ id, seenTo }) { if (seenTo && this.store.unread(id)) return this.store.markRead(id, seenTo); }

  /** Keeps what was read, and where somebody is. */
  rest(view) {
    this.mark(view);
    const place = this.place(view);
    if (JSON.stringify(this.places.get(view.id)) === JSON.stringify(place)) return;
    this.places.set(view.id, place);
    this.store.db.keepPlace(view.id, place).catch((problem) => console.error(problem));
  }

  /** Somebody stays where they are in the open conversation. */
  settle(view) {
    this.leave(view);
    this.placed(this.places.get(view.id) ?? null);
  }

  /** Somebody goes on to another conversation, or leaves the page. */
  leave(view) {
    clearTimeout(this.resting);
    this.resting = null;
    if (view?.isOpen) this.rest(view);
  }

  /** The ids of rows may mean others now. */
  forget() {
    clearTimeout(this.resting);
    this.resting = null;
    this.places.clear();
  }
}
