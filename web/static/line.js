// The line of this tab to the server: its own (sync.js) where the tab leads, else through the tab that leads (tabs.js).

import { showProgress } from "./attached.js";
import { Sync } from "./sync.js";
import { Tabs } from "./tabs.js";

export class Line {
  /** `blobs`: the bytes of files that wait (blobs.js). */
  constructor(db, blobs) {
    Object.assign(this, { db, blobs });
    /** What sync told last, here or in the tab that leads. */
    this.state = { phase: "connecting", cursor: 0, beats: [] };
    // Only in the tab that leads.
    this.sync = null;
    this.tabs = null;
    // The conversation that is open here, as the tab that leads was told.
    this.opened = null;
  }

  /**
   * Takes the line up. `notified(state)` hears each state, `renamed(name)` that the person has another name, `over()` that another tab has
   * logged out; what else arrives goes to the parts themselves.
   */
  begin({ call, name, store, pane, presence, notifier, notified, renamed, over }) {
    Object.assign(this, { call, store, pane, presence, notifier, notified, renamed, over });
    this.tabs = new Tabs(name, { hear: (kind, value) => this.hear(kind, value), lead: () => this.lead() });
    this.tabs.tell("hello");
  }

  /** Something was written here: of these conversations, or of all. */
  nudge(ids) {
    this.tabs?.tell("changed", ids);
    this.sync ? this.sync.nudge() : this.tabs?.tell("nudge");
  }

  /** Sends a message before it is stored here, if this tab leads; otherwise it goes out from the outbox. */
  send(item) { return this.sync?.send(item); }

  /** Keeps a message that this browser cannot store, if this tab leads, and sends it until it is answered. */
  hold(item) { this.sync?.hold(item); }

  /** Sends a frame that nobody stores. */
  say(frame) { this.sync ? this.sync.say(frame) : this.tabs?.tell("say", frame); }

  /** Connects at once instead of waiting. */
  now() { this.sync ? this.sync.now() : this.tabs?.tell("now"); }

  /** The browser has lost all that was kept. */
  anew() { this.sync?.anew(); }

  /** Wants to be told of these people. The tab that leads has a list of its own, and adds the one whose conversation is open here. */
  watch(people) {
    const { open } = this.store;
    if (this.sync) return this.sync.watch(people);
    if (open === this.opened || !open?.startsWith("u:")) return;
    this.opened = open;
    this.tabs?.tell("opened", Number(open.slice(2)));
  }

  /** A frame that nobody stores is for this tab and all others. */
  pass(frame) {
    this.passed(frame);
    this.tabs?.tell("passed", frame);
  }

  stop() { this.sync?.stop(); }

  /** The person has logged out here: other tabs leave, too. */
  tellOver() { this.tabs?.tell("over"); }

  tell(state) {
    this.state = state;
    this.notified(state);
  }

  passed(frame) {
    switch (frame.type) {
      case "renamed": return this.renamed(frame.name);
      case "uploading": return showProgress(frame.client_id, frame.share);
      default: return this.presence.hear(frame);
    }
  }

  /** What another tab says. */
  hear(kind, value) {
    const { sync, presence } = this;
    switch (kind) {
      case "changed": return this.store.load(value);
      case "state": return this.tell(value);
      case "passed": return this.passed(value);
      case "over": return this.over();
      case "opened":
        presence.opened.add(value);
        return sync?.watch(presence.people());
      case "hello":
        if (!sync) return;
        this.tabs.tell("state", sync.state);
        return this.tabs.tell("passed", { type: "presence", online: [...presence.online] });
      case "nudge": return sync?.nudge();
      case "now": return sync?.now();
      case "say": return sync?.say(value);
    }
  }

  /** This tab leads from now on. Answers how to stop that. */
  lead() {
    const { db, blobs, call, store, pane, presence, notifier } = this;
    const { sending } = store;
    this.sync = new Sync({ db, call, blobs,
      changed: (ids, arrived = []) => {
        store.load(ids).then(() => notifier.arrived(arrived));
        if (arrived.length) this.pass({ type: "arrived", rows: arrived.map(({ conversation, sender }) => ({ conversation, sender })) });
        this.tabs?.tell("changed", ids);
      },
      notified: (state) => {
        this.tell(state);
        this.tabs?.tell("state", state);
      },
      arriving: (rows) => pane.arriving(rows),
      sent: (client_id, message_id) => sending.sent(client_id, message_id),
      notSent: (client_id, reason) => sending.notSent(client_id, reason),
      watching: (people) => store.meetAnew(people),
      passed: (frame) => (frame.type === "person" ? this.meetAgain(frame.uid) : this.pass(frame)),
    });
    this.sync.start();
    for (const item of sending.onlyHere()) this.sync.hold(item);
    this.sync.watch(presence.people());
    return () => {
      this.sync.stop();
      this.sync = null;
    };
  }

  /** Something else is to be seen of a person: the name, say. */
  async meetAgain(person) {
    const name = await this.store.meetAgain(person);
    if (person === this.store.self.uid && name) this.pass({ type: "renamed", name });
  }
}
