// A server of tus in memory, as the tests of uploads need it: it can be cut off, can refuse, and can forget.

/** Answers {files, send, log, …}; `send` makes requests as `request` of tus.js does. */
export function server() {
  const files = new Map();
  const log = [];
  const world = { files, log, made: 0, answers: [] };
  const answer = (status, headers = {}, json = null) => ({ status, json, header: (name) => headers[name] ?? null });
  world.send = async ({ method, path, headers, body, progressed, signal }) => {
    await null;
    signal?.throwIfAborted();
    log.push(`${method} ${path}${headers["upload-offset"] ? ` ${headers["upload-offset"]}` : ""}`);
    const next = world.answers.shift();
    if (next?.before) throw next.before;
    if (next?.refuse) return answer(...next.refuse);
    const id = path.split("/")[2];
    const file = files.get(id);
    if (method === "POST") {
      const made = `f${++world.made}`;
      files.set(made, { length: Number(headers["upload-length"]), name: atob(headers["upload-metadata"].split(" ")[1]), bytes: [] });
      return answer(201, { location: `/files/${made}`, "upload-offset": "0" });
    }
    if (!file) return answer(404, {}, method === "HEAD" ? null : { code: "unknown_file", retryable: false });
    if (method === "DELETE") {
      files.delete(id);
      return answer(204);
    }
    if (method === "PATCH") {
      if (Number(headers["upload-offset"]) !== file.bytes.length) return answer(409, {}, { code: "upload_elsewhere", retryable: true });
      const bytes = new Uint8Array(await body.arrayBuffer());
      const taken = next?.cut === undefined ? bytes : bytes.slice(0, next.cut);
      progressed(taken.length);
      file.bytes = file.bytes.concat(Array.from(taken));
      if (next?.cut !== undefined) throw next.lost;
    }
    return answer(method === "PATCH" ? 204 : 200, { "upload-offset": String(file.bytes.length) });
  };
  return world;
}

/** A file of so many bytes, each another one. */
export const blobOf = (size) => new Blob([Uint8Array.from({ length: size }, (_, at) => (at * 7) % 251)]);

export const bytesOf = async (blob) => [...new Uint8Array(await blob.arrayBuffer())];
