// Zoom of the one picture within an element: by wheel, by two fingers, by a double tap, and moved by one finger or the mouse.

const MOST = 8;
const DOUBLE = 2.5;
// Pixels that a finger may move in a tap, and those of a swipe.
const STILL = 8;
const SWIPE = 60;
const TWICE_MS = 300;

export class Zoom {
  /** `zoomed(scale)`: it is shown larger or smaller; `swiped(step)`: somebody goes on (1) or back (-1). */
  constructor(stage, { zoomed, swiped }) {
    Object.assign(this, { stage, zoomed, swiped, scale: 1, x: 0, y: 0, pointers: new Map(), hasMoved: false, tappedAt: -Infinity });
    stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.by(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), event.clientX, event.clientY);
    }, { passive: false });
    stage.addEventListener("pointerdown", (event) => this.down(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) stage.addEventListener(end, (event) => this.up(event));
  }

  reset() { this.set(1, 0, 0); }

  /** Multiplies the scale; what is at this place of the window stays there, else the middle. */
  by(factor, clientX = null, clientY = null) {
    const { left, top, width, height } = this.stage.getBoundingClientRect();
    const scale = Math.max(1, Math.min(MOST, this.scale * factor));
    const [x, y] = clientX === null ? [0, 0] : [clientX - left - width / 2, clientY - top - height / 2];
    const ratio = scale / this.scale;
    this.set(scale, x - (x - this.x) * ratio, y - (y - this.y) * ratio);
  }

  /** The picture never leaves the window. */
  set(scale, x, y) {
    const image = this.stage.firstElementChild;
    if (!image) return;
    const room = (inner, outer) => Math.max(0, (inner * scale - outer) / 2);
    const [right, down] = [room(image.offsetWidth, this.stage.clientWidth), room(image.offsetHeight, this.stage.clientHeight)];
    Object.assign(this, { scale, x: Math.max(-right, Math.min(right, x)), y: Math.max(-down, Math.min(down, y)) });
    image.style.transform = `translate(${this.x}px, ${this.y}px) scale(${scale})`;
    this.stage.classList.toggle("zoomed", scale > 1);
    this.zoomed(scale);
  }

  down(event) {
    if (event.button) return;
    event.preventDefault();
    this.stage.setPointerCapture(event.pointerId);
    if (!this.pointers.size) Object.assign(this, { hasMoved: false, from: { x: event.clientX, y: event.clientY } });
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  }

  move({ pointerId, clientX: x, clientY: y }) {
    const last = this.pointers.get(pointerId);
    if (!last) return;
    const others = [...this.pointers].filter(([id]) => id !== pointerId);
    this.pointers.set(pointerId, { x, y });
    if (Math.hypot(x - this.from.x, y - this.from.y) > STILL) this.hasMoved = true;
    if (others.length) {
      const [, other] = others[0];
      this.hasMoved = true;
      const apart = (one) => Math.max(1, Math.hypot(one.x - other.x, one.y - other.y));
      this.by(apart({ x, y }) / apart(last), (x + other.x) / 2, (y + other.y) / 2);
    } else if (this.scale > 1) this.set(this.scale, this.x + x - last.x, this.y + y - last.y);
  }

  up({ pointerId, type, clientX: x, clientY: y, timeStamp }) {
    const wasAlone = this.pointers.size === 1;
    if (!this.pointers.delete(pointerId) || !wasAlone || type === "pointercancel") return;
    if (!this.hasMoved) {
      const isTwice = timeStamp - this.tappedAt < TWICE_MS;
      this.tappedAt = isTwice ? -Infinity : timeStamp;
      if (isTwice) this.scale > 1 ? this.reset() : this.by(DOUBLE, x, y);
    } else if (this.scale === 1) {
      const [right, down] = [x - this.from.x, y - this.from.y];
      if (Math.abs(right) > SWIPE && Math.abs(right) > 2 * Math.abs(down)) this.swiped(right < 0 ? 1 : -1);
    }
  }
}
