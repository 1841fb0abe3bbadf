// Messages on their way from the box into the outbox. They are shown and sent before the browser has stored them; one that it refuses
// to store while it is under way is kept here until the server has answered. `store.outbox` has them among the others.

import { done } from "./state.js";

export class Sending {
  /**
   * `send(item)`: a message is about to be put into the outbox; true: it is under way. `hold(item)`: such a one has to come again from
   * memory until it is answered.
   */
  constructor(store, { send, hold }) {
    Object.assign(this, { store, send, hold });
    // By client_id: messages that are not in the outbox yet.
    this.leaving = new Map();
    // By client_id: messages that were under way when the browser refused to keep them. Nobody but this page has them.
    this.unkept = new Map();
    /** `posted(item)`: a message has left the box. */
    this.posted = () => {};
    /** `unsent(item, reason)`: the server has refused a message of `unkept`. */
    this.unsent = () => {};
  }

  /**
   * Sends and shows a message, and puts it into the outbox. `quoted`: the row that it replies to; `blobs`: the bytes of its files. Where the
   * browser refuses to keep it, this fails, unless the message is under way: somebody may have it already, so nothing else is made of it.
   */
  async post(message, quoted, blobs) {
    const { store } = this;
    const { client_id, conversation } = message;
    const item = { ...message, n: (store.outbox.at(-1)?.n ?? 0) + 1, state: "waiting", message_id: null, quoted };
    this.leaving.set(client_id, item);
    // Before anything else, since somebody waits for it.
    const isOut = this.send(message);
    store.outbox.push(item);
    store.box.put(conversation, "");
    this.posted(item);
    try {
      // The message is written before its bytes are, so that nothing overtakes it.
      const keeping = blobs && store.blobs.keep(client_id, blobs);
      await Promise.all([store.db.post(message), keeping]).catch(async (problem) => {
        if (blobs) await this.discard(message);
        throw problem;
      });
      store.box.written(conversation, "");
    } catch (problem) {
      if (!isOut) {
        store.outbox = store.outbox.filter((other) => other.client_id !== client_id);
        store.show([conversation]);
        throw problem;
      }
      this.unkept.set(client_id, item);
      if (!item.message_id) this.hold(message);
    } finally {
      this.leaving.delete(client_id);
    }
    if (this.unkept.has(client_id)) await store.box.keepEmpty(conversation);
    // Sending does not wait for the page.
    store.nudge([conversation]);
    await store.load([conversation]).catch((problem) => console.error(problem));
    if (!this.unkept.has(client_id)) await store.box.tell(conversation).catch((problem) => console.error(problem));
  }

  /**
   * Adds them to the outbox as it was read. A message of `unkept` goes when its row is here; after a new beginning (no `ids`) it may
   * never come.
   */
  add(ids) {
    const { outbox, conversations } = this.store;
    for (const [client_id, { conversation, message_id }] of this.unkept) {
      const isHere = conversations.get(conversation)?.last?.message_id >= message_id;
      if (message_id && (isHere || !ids)) this.unkept.delete(client_id);
    }
    const read = new Set(outbox.map(({ client_id }) => client_id));
    outbox.push(...[...this.unkept.values(), ...this.leaving.values()].filter(({ client_id }) => !read.has(client_id)));
  }

  /** Whether a message is not in the outbox. */
  has(client_id) { return this.leaving.has(client_id) || this.unkept.has(client_id); }

  /** Messages that nobody has but this page, as far as it knows. */
  onlyHere() { return [...this.unkept.values()].filter(({ state }) => state === "waiting"); }

  /** Gives a message up, and the bytes of its files. */
  async discard({ client_id }) {
    await Promise.allSettled([this.store.db.outgoing(client_id, null), this.store.blobs.drop(client_id)]);
  }

  /**
   * Takes a message with files back, as long as nobody can have it: its files are on their way, or it was refused. Answers the message and
   * the bytes; null: it is too late.
   */
  async takeBack({ client_id, conversation }) {
    const { store } = this;
    const item = await store.write(conversation, (db) => db.write(["outbox"], async (outbox) => {
      const known = await done(outbox.index("client_id").get(client_id));
      if (!known || known.state === "sent" || known.state === "waiting" && known.up) return null;
      outbox.delete(known.n);
      return known;
    }));
    if (!item) return null;
    const blobs = await Promise.all(item.files.map((_, n) => store.blobs.blob(client_id, n)));
    await store.blobs.drop(client_id);
    return { ...item, blobs };
  }

  /** The server has stored a message. */
  sent(client_id, message_id) {
    const hasFiles = this.store.outbox.some((one) => one.client_id === client_id && one.files);
    if (hasFiles) this.store.blobs.drop(client_id).catch((problem) => console.error(problem));
    const item = this.leaving.get(client_id) ?? this.unkept.get(client_id);
    if (!item) return;
    Object.assign(item, { state: "sent", message_id });
    if (this.unkept.has(client_id)) this.store.load([item.conversation]);
  }

  /** The server has refused a message that is not in the outbox. */
  async notSent(client_id, reason) {
    const item = this.unkept.get(client_id);
    if (!this.unkept.delete(client_id)) return;
    await this.store.load([item.conversation]);
    this.unsent(item, reason);
  }
}
