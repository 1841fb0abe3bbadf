// A database of this browser (IndexedDB): opens it, runs transactions, and opens it again when the browser has taken it away under an
// open page, as "clear site data" does. Knows nothing of what lies in it.

import { done } from "./state.js";

/** Forgets a database. */
export const drop = (name) => done(indexedDB.deleteDatabase(name));

async function opened(what) {
  const request = indexedDB.open(what.name, what.version);
  request.onupgradeneeded = () => {
    const db = request.result;
    for (const name of [...db.objectStoreNames]) db.deleteObjectStore(name);
    what.make(db);
  };
  try {
    return await done(request);
  } catch (problem) {
    if (problem.name !== "VersionError") throw problem; // Theirs is larger.
    await drop(what.name);
    return opened(what);
  }
}

export class Database {
  // The opening after the browser has closed the database, as long as it lasts.
  renewing = null;
  isClosed = false;

  /** `what`: {name, version, make(db)}; `make` puts the object stores into an empty database. Data of another version is dropped. */
  async open(what) {
    this.what = what;
    this.take(await opened(what));
  }

  take(db) {
    this.db = db;
    // Another tab has a newer version of the page, or has forgotten the person: this one follows.
    db.onversionchange = () => {
      this.close();
      // A service worker has no page.
      location.reload?.();
    };
    db.onclose = () => this.renew().catch((problem) => console.error(problem));
  }

  /** For good. */
  close() {
    this.isClosed = true;
    this.db?.close();
  }

  /** Opens the database again. Everything else that is asked of it waits until `refill(write)` has written what the page still has. */
  renew() {
    const write = (names, work) => this.run(this.db.transaction(names, "readwrite"), names, work);
    this.renewing ??= opened(this.what).then((db) => {
      this.take(db);
      return this.refill(write);
    }).finally(() => { this.renewing = null; });
    return this.renewing;
  }

  /** Runs `work` on the named stores in one transaction and answers when it is committed. Transactions begin in the order of the calls. */
  async within(mode, names, work) {
    if (this.renewing) await this.renewing;
    let tx;
    try {
      tx = this.db.transaction(names, mode);
    } catch (problem) {
      // It is closed, and the event that tells so is still to come.
      if (this.isClosed || problem.name !== "InvalidStateError") throw problem;
      await this.renew();
      tx = this.db.transaction(names, mode);
    }
    return this.run(tx, names, work);
  }

  run(tx, names, work) {
    return new Promise((resolve, reject) => {
      let result;
      tx.oncomplete = () => resolve(result);
      tx.onabort = () => reject(tx.error ?? new DOMException("the browser has closed its database", "AbortError"));
      (async () => { result = await work(...names.map((name) => tx.objectStore(name))); })().catch((problem) => {
        reject(problem);
        // One that has ended by itself cannot be ended.
        try {
          tx.abort();
        } catch {}
      });
    });
  }

  read(names, work) { return this.within("readonly", names, work); }
  write(names, work) { return this.within("readwrite", names, work); }
  all(name) { return this.read([name], (store) => done(store.getAll())); }
}
