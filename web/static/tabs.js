// The tabs of one browser: one of them leads and owns the socket, all hear what changed.
// Without Web Locks (plain HTTP off this machine) every tab leads; they agree through the database.

export class Tabs {
  /** `lead()` starts leading and answers how to stop; `hear(kind, value)` gets the others' messages. */
  constructor(name, { lead, hear }) {
    Object.assign(this, { name, lead, hear });
    this.channel = new BroadcastChannel(name);
    this.channel.onmessage = ({ data: [kind, value] }) => {
      if (kind === "yours" && !document.hidden) this.run(true);
      else if (kind === "here" && this.stopLeading && document.hidden) this.tell("yours");
      else if (kind !== "yours" && kind !== "here") hear(kind, value);
    };
    document.addEventListener("visibilitychange", () => {
      // Timers of a hidden tab are slow: a tab that someone looks at should lead.
      if (!document.hidden && !this.stopLeading) this.tell("here");
      if (document.hidden && this.stopLeading) this.tell("yours");
    });
    this.run(false);
  }

  /** To the other tabs. */
  tell(kind, value) { this.channel.postMessage([kind, value]); }

  run(steal) {
    if (this.stopLeading) return;
    this.queued?.abort();
    this.queued = new AbortController();
    if (!navigator.locks) return void (this.stopLeading = this.lead());
    const held = () => new Promise(() => { this.stopLeading = this.lead(); });
    navigator.locks.request(this.name, steal ? { steal } : { signal: this.queued.signal }, held).catch(() => {
      if (!this.stopLeading) return;
      // Another tab took over; wait in line again.
      this.stopLeading();
      this.stopLeading = null;
      this.run(false);
    });
  }
}
