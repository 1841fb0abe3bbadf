// The lists that a new browser takes from the server, page by page.

// Pages of settings, stars or friends that are taken, 500 each.
const MOST_PAGES = 100;

/**
 * The list of conversations. A message moves its conversation to the top, past the pages that are to come, so what is newer than the top of
 * several pages is taken again.
 */
export async function conversationsOf(call) {
  const all = new Map();
  for (let done = 0; ;) {
    let [top, pages] = [0, 0];
    for (let path = "/conversations"; path; pages++) {
      const page = await call("GET", path);
      const lines = page.filter(({ last }) => last.message_id > done);
      if (!lines.length) break;
      top ||= lines[0].last.message_id;
      for (const line of lines) all.set(line.id, line);
      path = page.next;
    }
    if (pages < 2) return [...all.values()];
    done = top;
  }
}

/** All of another list, as far as a person has so much. */
export async function pagesOf(call, path, field) {
  const all = [];
  for (let after = "", page = 0; page < MOST_PAGES; page++) {
    const answer = await call("GET", `/${path}${after}`);
    all.push(...answer[field]);
    if (answer.next_after === null) break;
    after = `?after=${encodeURIComponent(answer.next_after)}`;
  }
  return all;
}
