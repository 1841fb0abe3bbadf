// Makes web/static/lean-qr.js from the package that vendor.json names, and prints its hash:
//
//     npm pack lean-qr@2.7.4 && tar xzf lean-qr-2.7.4.tgz && node web/vendor/lean-qr.mjs package

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const folder = process.argv[2];
const { version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
const text = `// lean-qr ${version} (MIT, web/vendor/lean-qr.LICENSE), made by web/vendor/lean-qr.mjs.\n`
  + readFileSync(`${folder}/nano.mjs`, "utf8");
writeFileSync(new URL("../static/lean-qr.js", import.meta.url), text);
console.log("lean-qr.js", createHash("sha256").update(text).digest("hex"));
