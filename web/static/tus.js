// Uploads of files by tus 1.0 (docs/API.md, "Files"). One pass: asks how far an upload has come, and sends the rest, part by part.
// Failures are thrown; uploads.js tries again.

import { Refusal } from "./api.js";

// Bytes of one request. A lost connection costs at most one part, and each tells how far it is.
const PART = 2 * 1_048_576;
// How long nothing may move before a request counts as lost.
const STILL_MS = 60_000;
const BYTES = "application/offset+octet-stream";
// Refusals after which the upload is asked how far it has come.
const ELSEWHERE = 409;
const MOST_ELSEWHERE = 5;

/** The text in Base64, as the protocol writes names. */
const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

/**
 * Makes a request that says how far its body is on the way, which `fetch` does not. Answers {status, header(name), json}. Throws a Refusal
 * with the status 0 where no answer comes, and an AbortError when `signal` says so.
 */
export function request({ method, path, headers, body, progressed = () => {}, signal }) {
  return new Promise((resolve, reject) => {
    const asked = new XMLHttpRequest();
    let patience;
    const lost = () => reject(new Refusal(0, { retryable: true }));
    const moves = () => {
      clearTimeout(patience);
      patience = setTimeout(() => asked.abort(), STILL_MS);
    };
    const stop = () => {
      asked.abort();
      reject(signal.reason);
    };
    if (signal?.aborted) return stop();
    signal?.addEventListener("abort", stop, { once: true });
    asked.open(method, path);
    for (const [name, value] of Object.entries(headers)) asked.setRequestHeader(name, value);
    asked.upload.onprogress = ({ loaded }) => {
      moves();
      progressed(loaded);
    };
    asked.onerror = asked.onabort = lost;
    asked.onload = () => {
      let json = null;
      try {
        json = JSON.parse(asked.responseText);
      } catch {}
      resolve({ status: asked.status, header: (name) => asked.getResponseHeader(name), json });
    };
    asked.onloadend = () => {
      clearTimeout(patience);
      signal?.removeEventListener("abort", stop);
    };
    moves();
    asked.send(body);
  });
}

/** Throws what an answer refuses. An answer to `HEAD` has no body: its status alone says what is wrong. */
function check({ status, header, json }) {
  if (status >= 200 && status < 300) return;
  const { code, detail, retryable = status >= 500 || status === 408 || status === 429 } = json ?? {};
  throw Object.assign(new Refusal(status, { code: code ?? `http_${status}`, detail, retryable }), { seconds: Number(header("retry-after")) });
}

/**
 * Uploads `blob`, called `name`. `id`: the upload that was begun before, if there was one; `began(id)` keeps that of a new one.
 * `progressed(bytes)`: so much is there. `send` makes the requests. Answers the id of the file.
 */
export async function upload(blob, { name, id = null, began, progressed = () => {}, signal, send = request }) {
  const ask = async (method, path, headers = {}, more = {}) => {
    const answer = await send({ method, path, headers: { "tus-resumable": "1.0.0", ...headers }, signal, ...more });
    check(answer);
    return answer;
  };
  const offsetOf = ({ header }) => {
    const offset = Number(header("upload-offset") ?? NaN);
    // A proxy has answered, say.
    if (!Number.isSafeInteger(offset)) throw new Refusal(0, { retryable: true });
    return offset;
  };
  /** How far it is; null: the server knows nothing of it any more. */
  const look = async () => {
    try {
      return offsetOf(await ask("HEAD", `/files/${id}`));
    } catch (refusal) {
      if (refusal.status === 404 || refusal.status === 410) return null;
      throw refusal;
    }
  };
  let offset = id && await look();
  if (offset === null) {
    const answer = await ask("POST", "/files", { "upload-length": String(blob.size), "upload-metadata": `filename ${base64(name)}` });
    id = answer.header("location").split("/").at(-1);
    offset = 0;
    await began(id);
  }
  for (let moved = 0; offset < blob.size;) {
    progressed(offset);
    const from = offset;
    const part = blob.slice(from, Math.min(from + PART, blob.size));
    try {
      const headers = { "upload-offset": String(from), "content-type": BYTES };
      offset = offsetOf(await ask("PATCH", `/files/${id}`, headers, { body: part, progressed: (loaded) => progressed(Math.min(from + loaded, blob.size)) }));
    } catch (refusal) {
      if (refusal.status !== ELSEWHERE || ++moved > MOST_ELSEWHERE) throw refusal;
      offset = await look() ?? 0;
    }
  }
  progressed(blob.size);
  return id;
}

/** Ends an upload that nobody needs any more. If the server does not hear of it, the upload goes by itself within a day. */
export const end = (id, send = request) => send({ method: "DELETE", path: `/files/${id}`, headers: { "tus-resumable": "1.0.0" } }).catch(() => {});
