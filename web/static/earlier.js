// What the page of 0.1.0 kept: it called the database of a person by the name, which may change since then.

import { Database, drop } from "./database.js";
import { done } from "./state.js";

/** Puts items into an outbox, each one once: another tab may have been first. */
export async function addMissing(outbox, items) {
  for (const { n, ...item } of items) {
    if (await done(outbox.index("client_id").getKey(item.client_id)) === undefined) outbox.add(item);
  }
}

/**
 * Takes the texts that are nowhere else into `db`, and forgets the rest, which is fetched anew. `made`: how such a database is made
 * (database.js).
 */
export async function takeOver(db, { uid, name }, made) {
  const called = `tidemark-${uid}-${name}`;
  const all = await indexedDB.databases?.() ?? [];
  if (!all.some((each) => each.name === called)) return;
  const earlier = new Database();
  await earlier.open({ ...made, name: called });
  const [drafts, outbox] = [await earlier.all("drafts"), await earlier.all("outbox")];
  earlier.close();
  await db.write(["drafts", "outbox"], async (texts, waiting) => {
    for (const draft of drafts) if (!await done(texts.get(draft.id))) texts.put(draft);
    await addMissing(waiting, outbox);
  });
  await drop(called);
}
