// The download of one's own data. Of a link alone that is refused the browser gives no reason.

import { h } from "./dom.js";
import { momentOf, refused, t } from "./texts.js";

const MINUTE_MS = 60_000;

/** Has the file saved, or answers why it is refused. What comes lies on the disk, not in memory. */
async function save(address, uid) {
  const answer = await fetch(address);
  const wait = answer.headers.get("retry-after") * 1_000;
  // Rounded up, since it stands there in minutes.
  if (answer.status === 429) return t("data.again", { when: momentOf(Date.now() + wait + MINUTE_MS) });
  if (!answer.ok) {
    const { code, detail } = await answer.json();
    return refused(code, detail);
  }
  const href = URL.createObjectURL(await answer.blob());
  h("a", { href, download: `tidemark-${uid}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(href), MINUTE_MS);
  return "";
}

/** Makes each link say how it goes. */
export function dataLinks(uid) {
  let isComing = false;
  for (const link of document.querySelectorAll("a[href$='/me/data']")) {
    const note = h("p", { role: "status" });
    const say = (className, textContent) => Object.assign(note, { className, textContent });
    link.parentElement.after(note);
    link.addEventListener("click", async (event) => {
      event.preventDefault();
      if (isComing) return;
      isComing = true;
      say("quiet", t("data.coming"));
      say("problem", await save(link.href, uid).catch(() => t("error.unreachable")));
      isComing = false;
    });
  }
}
