// As much of IndexedDB as one frame of rows needs; the real one is tested in browsers.

const valueAt = (row, path) => (Array.isArray(path) ? path.map((part) => row[part]) : row[path]);
const order = (one, other) => {
  const [a, b] = [one, other].map((key) => [key].flat());
  const at = a.findIndex((part, index) => part !== b[index]);
  return at < 0 ? 0 : a[at] < b[at] ? -1 : 1;
};
const within = (range) => (key) => range === undefined || (range.from ? order(range.from, key) < 0 && order(key, range.to) < 0 : order(range, key) === 0);
globalThis.IDBKeyRange = { bound: (from, to) => ({ from, to }) };

/** An object store. */
export class Kept {
  constructor({ keyPath, rows = [], made = { last: 0 } } = {}) { Object.assign(this, { keyPath, rows, made, indexes: {} }); }
  createIndex(name, keyPath) { this.indexes[name] = keyPath; }
  /** The same, in a transaction: `run(work)` makes a request. */
  in(run, keyOf = ({ key }) => key) {
    const found = (range) => this.rows.filter((entry) => !keyOf(entry).includes?.(undefined) && within(range)(keyOf(entry)))
      .sort((a, b) => order(keyOf(a), keyOf(b)));
    return {
      index: (name) => this.in(run, ({ value }) => valueAt(value, this.indexes[name])),
      get: (key) => run(() => structuredClone(found(key)[0]?.value)),
      getKey: (key) => run(() => found(key)[0]?.key),
      getAll: (range) => run(() => found(range).map(({ value }) => structuredClone(value))),
      getAllKeys: () => run(() => found().map(({ key }) => key)),
      count: () => run(() => found().length),
      delete: (key) => run(() => { this.rows = this.rows.filter((entry) => order(entry.key, key)); }),
      clear: () => run(() => { this.rows = []; }),
      put: (value, key = valueAt(value, this.keyPath)) => run(() => {
        this.rows = [...this.rows.filter((entry) => order(entry.key, key)), { key, value: structuredClone(value) }];
      }),
      add: (value) => this.in(run).put({ ...value, [this.keyPath]: ++this.made.last }),
      openCursor: (range, direction) => run((request) => {
        const left = direction === "prev" ? found(range).reverse() : found(range);
        const next = () => {
          const entry = left.shift();
          return entry && { value: entry.value, continue: () => queueMicrotask(() => {
            request.result = next();
            request.onsuccess();
          }) };
        };
        return next();
      }),
    };
  }
}

/** The version and the object stores of each database. */
export const databases = {};
globalThis.indexedDB = { deleteDatabase: (name) => {
  const request = {};
  queueMicrotask(() => {
    delete databases[name];
    request.onsuccess();
  });
  return request;
}, open: (name, version) => {
  const had = databases[name] ?? { version: 0, stores: {} };
  if (had.version > version) {
    const request = { error: Object.assign(new Error("a larger version is here"), { name: "VersionError" }) };
    queueMicrotask(() => request.onerror());
    return request;
  }
  databases[name] = { version, stores: had.stores };
  const { stores } = had;
  const transaction = () => {
    const tx = {};
    let end = setImmediate(() => tx.oncomplete());
    const run = (work) => {
      clearImmediate(end);
      end = setImmediate(() => tx.oncomplete());
      const request = {};
      queueMicrotask(() => {
        request.result = work(request);
        request.onsuccess?.();
      });
      return request;
    };
    return Object.assign(tx, { objectStore: (name) => stores[name].in(run) });
  };
  const request = { result: {
    get objectStoreNames() { return Object.keys(stores); },
    createObjectStore: (name, options) => (stores[name] = new Kept(options)),
    deleteObjectStore: (name) => { delete stores[name]; },
    transaction,
    close: () => {},
  } };
  queueMicrotask(() => {
    if (had.version < version) request.onupgradeneeded();
    request.onsuccess();
  });
  return request;
} };
