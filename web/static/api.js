// Calls of the HTTP API with the session's cookie. Knows nothing of the page.

import { refused } from "./texts.js";

// How long an answer may take. The outbox repeats its requests afterwards.
const PATIENCE_MS = 30_000;

/** A refusal in words for people; `status` 0 means that the server was not reached. */
export class Refusal extends Error {
  constructor(status, { code = "unreachable", detail, retryable = false } = {}, seconds = 0) {
    super(refused(code, detail, seconds));
    Object.assign(this, { status, code, detail, retryable });
  }
}

/**
 * Calls `method path` under /api/v1; answers the JSON, or null when there is none. A list that goes on has `next`, the path of its next page.
 * Throws a Refusal. `key`: the idempotency key of a call that makes something, where that takes one; `signal`: ends the call, whose answer
 * nobody waits for any more.
 */
export async function call(method, path, body, key, signal) {
  let answer;
  let json = null;
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), PATIENCE_MS);
  signal?.addEventListener("abort", () => patience.abort());
  try {
    answer = await fetch("/api/v1" + path, {
      method,
      headers: { ...(body !== undefined && { "content-type": "application/json" }), ...(key && { "idempotency-key": key }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: patience.signal,
    });
    if (answer.status !== 204) json = await answer.json();
  } catch {
    throw new Refusal(answer && !answer.ok ? answer.status : 0, { retryable: true });
  } finally {
    clearTimeout(timer);
  }
  if (!answer.ok) throw new Refusal(answer.status, json ?? {}, Number(answer.headers.get("retry-after")));
  const [, next] = answer.headers.get("link")?.match(/^<\/api\/v1(.+)>; rel="next"$/) ?? [];
  return next ? Object.assign(json, { next }) : json;
}
