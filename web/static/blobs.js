// The bytes of files that wait to be sent, in a database of their own beside the outbox, so that an upload goes on after a reload. They
// stay until their message is stored. Any tab keeps them; the one that leads uploads them (uploads.js).

import { Database, drop } from "./database.js";
import { done } from "./state.js";

const VERSION = 1;
// How long bytes without a message stay: the message may be about to be written.
const ORPHAN_MS = 3_600_000;
// The most bytes that wait in all.
const MOST_WAITING = 90;
const MOST_BYTES = 2 ** 30;

const called = ({ account }) => `tidemark-${account}-files`;

/** Forgets the files that this browser kept for {account}. */
export const forgetBlobs = (person) => drop(called(person));

/** Whether these files can wait beside those of `outbox`. */
export function hasRoom(outbox, files) {
  const waiting = [...outbox.filter(({ state }) => state !== "sent").flatMap((item) => item.files ?? []), ...files];
  return waiting.length <= MOST_WAITING && waiting.reduce((sum, { size }) => sum + size, 0) <= MOST_BYTES;
}

export class Blobs extends Database {
  constructor(person) {
    super();
    this.person = person;
    // By client_id: {blobs, at}, those that this page has sent, which are at once here.
    this.own = new Map();
    this.opening = null;
  }

  /** What was in it is gone with the database; `own` has what this page has sent. */
  async refill() {}

  /** The database is opened when the first file needs it. */
  async within(...of) {
    this.opening ??= this.open({
      name: called(this.person),
      version: VERSION,
      make: (db) => {
        // By client_id and the place among its files.
        db.createObjectStore("blobs");
        db.createObjectStore("uploads");
      },
    }).catch((problem) => {
      this.opening = null;
      throw problem;
    });
    await this.opening;
    return super.within(...of);
  }

  /** Keeps the files of a message. */
  keep(client_id, blobs) {
    const at = Date.now();
    this.own.set(client_id, { blobs, at });
    return this.write(["blobs"], (store) => { blobs.forEach((blob, n) => store.put({ blob, at }, [client_id, n])); });
  }

  /** A file of a message; undefined: this browser does not have it. */
  async blob(client_id, n) {
    const own = this.own.get(client_id)?.blobs[n];
    return own ?? (await this.read(["blobs"], (store) => done(store.get([client_id, n]))))?.blob;
  }

  /** The id of the upload that was begun for it. */
  upload(client_id, n) { return this.read(["uploads"], (store) => done(store.get([client_id, n]))); }
  began(client_id, n, id) { return this.write(["uploads"], (store) => { store.put(id, [client_id, n]); }); }

  /** Its message is stored, or given up. */
  drop(client_id) {
    this.own.delete(client_id);
    const all = IDBKeyRange.bound([client_id], [client_id, []]);
    return this.write(["blobs", "uploads"], (blobs, uploads) => {
      blobs.delete(all);
      uploads.delete(all);
    });
  }

  /** Drops what belongs to none of these messages. */
  async prune(clientIds) {
    const old = Date.now() - ORPHAN_MS;
    for (const [client_id, { at }] of this.own) if (!clientIds.has(client_id) && at < old) this.own.delete(client_id);
    // Most browsers never kept a file.
    if (!this.opening && !(await indexedDB.databases?.() ?? []).some(({ name }) => name === called(this.person))) return;
    return this.write(["blobs", "uploads"], async (blobs, uploads) => {
      for (const key of await done(blobs.getAllKeys())) {
        if (!clientIds.has(key[0]) && (await done(blobs.get(key))).at < old) {
          blobs.delete(key);
          uploads.delete(key);
        }
      }
    });
  }
}
