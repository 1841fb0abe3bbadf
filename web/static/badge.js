// How much is unread, in the title, on the icon of the tab and on that of the installed page: one count for all of them.

import { many } from "./store.js";

// Pixels of the icon that is drawn, of its disc, and of the digits by how many there are.
const SIZE = 64;
const RADIUS = 21;
const DIGITS = [0, 34, 28, 22];
// The longest time of a timer.
const LONGEST_MS = 2 ** 31 - 1;

export class Badge {
  constructor(store) {
    this.store = store;
    this.icon = document.querySelector("link[rel=icon]");
    this.plain = this.icon.href;
    this.total = 0;
    this.unwatch = store.watch(() => this.render());
  }

  render() {
    const { open } = this.store;
    const total = this.store.unreadTotal();
    const name = open ? `${this.store.title(open)} · Tidemark` : "Tidemark";
    document.title = total ? `(${many(total)}) ${name}` : name;
    this.wait();
    if (total === this.total) return;
    this.total = total;
    // 0 takes it away. Where the page is not installed, there is nothing to show it on.
    navigator.setAppBadge?.(total).catch(() => {});
    this.draw(total).catch((problem) => console.error(problem));
  }

  /** The session is over: the icon of the installed page stays, and tells nothing of it any more. */
  end() {
    this.unwatch();
    clearTimeout(this.timer);
    navigator.setAppBadge?.(0).catch(() => {});
  }

  /** Messages that a mute kept out count again when it ends. */
  wait() {
    clearTimeout(this.timer);
    const left = this.store.nextUnmute() - Date.now();
    if (left < Infinity) this.timer = setTimeout(() => this.store.show([this.store.open]), Math.min(left + 1, LONGEST_MS));
  }

  async draw(total) {
    const icon = total ? await this.drawn(total) : this.plain;
    if (total === this.total) this.icon.href = icon;
  }

  /** The icon with the count in its corner, as an address of an image. */
  async drawn(total) {
    this.image ??= Object.assign(new Image(), { src: this.plain });
    await this.image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: SIZE, height: SIZE });
    const pen = canvas.getContext("2d");
    const text = total > 99 ? "99+" : String(total);
    pen.drawImage(this.image, 0, 0, SIZE, SIZE);
    pen.fillStyle = "#b3261e";
    pen.beginPath();
    pen.arc(SIZE - RADIUS, SIZE - RADIUS, RADIUS, 0, 2 * Math.PI);
    pen.fill();
    pen.fillStyle = "#fff";
    pen.font = `bold ${DIGITS[text.length]}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, SIZE - RADIUS, SIZE - RADIUS + 2);
    return canvas.toDataURL();
  }
}
