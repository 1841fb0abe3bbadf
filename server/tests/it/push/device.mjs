// A device's half of Web Push (RFC 8291), by the cryptography of Node.js: `keys` makes a pair and a secret, `open PRIVATE AUTH BODY` reads
// what was sent to them. All in base64url.

import { createDecipheriv, createECDH, hkdfSync, randomBytes } from "node:crypto";

const bytes = (text) => Buffer.from(text, "base64url");
const ecdh = createECDH("prime256v1");

function keys() {
  ecdh.generateKeys();
  return { secret: ecdh.getPrivateKey("base64url"), p256dh: ecdh.getPublicKey("base64url"), auth: randomBytes(16).toString("base64url") };
}

function open(secret, auth, body) {
  ecdh.setPrivateKey(secret);
  const [salt, size, length] = [body.subarray(0, 16), body.readUInt32BE(16), body[20]];
  const sender = body.subarray(21, 21 + length);
  const record = body.subarray(21 + length);
  if (record.length > size) throw new Error("more than one record");
  const derive = (salt, material, info, length) => Buffer.from(hkdfSync("sha256", material, salt, info, length));
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), ecdh.getPublicKey(), sender]);
  const material = derive(auth, ecdh.computeSecret(sender), info, 32);
  const key = derive(salt, material, "Content-Encoding: aes128gcm\0", 16);
  const nonce = derive(salt, material, "Content-Encoding: nonce\0", 12);
  const cipher = createDecipheriv("aes-128-gcm", key, nonce);
  cipher.setAuthTag(record.subarray(-16));
  const text = Buffer.concat([cipher.update(record.subarray(0, -16)), cipher.final()]);
  const end = text.lastIndexOf(2);
  if (end < 0 || text.subarray(end + 1).some((byte) => byte)) throw new Error("no end of the last record");
  return text.subarray(0, end).toString();
}

const [what, ...rest] = process.argv.slice(2);
console.log(what === "keys" ? JSON.stringify(keys()) : open(...rest.map(bytes)));
