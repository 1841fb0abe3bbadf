// A QR code as a picture that stays sharp: dark squares on white, whatever the colours of the page, since many readers know no other.

import { generate } from "./lean-qr.js";
import { h } from "./dom.js";

// White modules around the code, as ISO/IEC 18004 wants them.
const QUIET = 4;
const SVG = "http://www.w3.org/2000/svg";

/** The picture of `text`; `label` says what it is to those who do not see it. */
export function qrCode(text, label) {
  const code = generate(text);
  const size = code.size + 2 * QUIET;
  const part = (name, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const picture = part("svg", { viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": label, "shape-rendering": "crispEdges" });
  picture.append(part("rect", { width: size, height: size, fill: "#fff" }), part("path", { d: squares(code), fill: "#000" }));
  return h("div.qr", {}, picture);
}

/** The dark modules, as a path: each run of a line is one rectangle. */
export function squares(code) {
  let path = "";
  for (let y = 0; y < code.size; y++) {
    for (let x = 0; x < code.size; x++) {
      if (!code.get(x, y)) continue;
      const from = x;
      while (code.get(x + 1, y)) x++;
      const [left, top, width] = [from + QUIET, y + QUIET, x + 1 - from];
      path += `M${left},${top}h${width}v1h-${width}z`;
    }
  }
  return path;
}
