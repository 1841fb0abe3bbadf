// The slim line that says when the connection is away. Nothing is shown for a short absence.

import { $ } from "./dom.js";
import { t } from "./texts.js";

const PATIENCE_MS = 1_500;

export class Banner {
  /** `now()` tries again at once. */
  constructor(now) {
    this.since = Date.now();
    $("banner-now").addEventListener("click", now);
    setInterval(() => this.render(), 500);
  }

  tell({ phase, retryAt }) {
    if (phase === "open") this.since = null;
    else this.since ??= Date.now();
    Object.assign(this, { phase, retryAt });
    this.render();
  }

  render() {
    const offline = navigator.onLine === false;
    const late = this.since !== null && Date.now() - this.since > PATIENCE_MS;
    $("banner").hidden = !offline && !late;
    const seconds = Math.max(0, Math.ceil((this.retryAt - Date.now()) / 1000));
    const waiting = this.phase === "waiting" && seconds > 0;
    const text = offline ? t("banner.offline") : t("banner.reconnecting");
    if ($("banner-text").textContent !== text) $("banner-text").textContent = text;
    $("banner-wait").textContent = offline ? "" : waiting ? ` ${t("banner.in", { count: seconds })}` : "";
    $("banner-now").hidden = offline || !waiting;
  }
}
