import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Socket } from "../static/socket.js";
import { page } from "./page.js";

let world;
let states;
let failed;
let socket;

beforeEach(() => {
  world = page();
  states = [];
  failed = 0;
  socket = new Socket({
    url: "ws://localhost/ws",
    onFrame: () => {},
    onState: ({ phase }) => states.push(phase),
    onFail: () => { failed += 1; },
    beat: () => ({ type: "heartbeat", seq: 7 }),
    // The longest wait of each step.
    random: () => 1,
  });
  socket.start();
});

const open = () => {
  world.last.receive({ type: "welcome" });
  socket.opened(20);
  socket.heartbeat();
  world.last.receive({ type: "alive" });
  socket.works();
};

test("a send without a connection is refused and not kept", () => {
  assert.equal(socket.send({ type: "send" }), false);
  assert.deepEqual(world.last.sent, []);
  open();
  assert.equal(socket.send({ type: "send" }), true);
  assert.equal(world.last.sent.at(-1).type, "send");
});

test("an idle connection beats once an interval", () => {
  open();
  for (let beats = 2; beats <= 4; beats += 1) {
    world.pass(20_000);
    assert.equal(world.last.sent.length, beats);
    world.last.receive({ type: "alive" });
  }
  assert.equal(world.made.length, 1);
});

test("a heartbeat without an answer costs the connection", () => {
  open();
  world.pass(20_000);
  world.pass(16_000);
  assert.equal(world.made[0].closed, true);
  assert.ok(states.includes("waiting"));
});

test("the pauses double up to thirty seconds, and begin anew after a connection that opened", () => {
  const pauses = [];
  for (let tries = 0; tries < 9; tries += 1) {
    world.last.end(1006);
    pauses.push(socket.retryAt - Date.now());
    world.pass(pauses.at(-1) + 1_000);
  }
  assert.deepEqual(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  assert.equal(failed, 9);
  open();
  world.last.end(1006);
  assert.equal(socket.retryAt - Date.now(), 500);
  assert.equal(failed, 9, "a connection that opened is no failed one");
});

test("chance shortens each pause by up to a half", () => {
  const pauses = [];
  for (const chance of [0, 0.5, 1]) {
    socket.tries = 3;
    socket.random = () => chance;
    world.last.end(1006);
    pauses.push(socket.retryAt - Date.now());
    socket.connect();
  }
  assert.deepEqual(pauses, [2_000, 3_000, 4_000]);
});

test("a server that opens connections and does no work is asked less and less", () => {
  const pauses = [];
  for (let tries = 0; tries < 4; tries += 1) {
    socket.opened(20);
    world.last.end(1011);
    pauses.push(socket.retryAt - Date.now());
    world.pass(pauses.at(-1) + 1_000);
  }
  assert.deepEqual(pauses, [500, 1_000, 2_000, 4_000]);
});

test("a tab that becomes visible connects at once, and doubts a connection that stands", () => {
  for (let tries = 0; tries < 6; tries += 1) {
    world.last.end(1006);
    world.pass(socket.retryAt - Date.now() + 1_000);
  }
  world.last.end(1006);
  const made = world.made.length;
  world.visible(false);
  assert.equal(world.made.length, made, "a hidden one waits");
  world.visible(true);
  assert.equal(world.made.length, made + 1);
  open();
  const beats = world.last.sent.length;
  world.visible(true);
  assert.equal(world.last.sent.length, beats + 1);
  world.pass(7_000);
  assert.equal(world.made[made].closed, true, "without an answer within five seconds");
});

test("close codes say when to come back, or that the session is over", () => {
  open();
  world.last.end(1008);
  assert.equal(socket.retryAt - Date.now(), 5_500, "one that broke a rule waits longer");
  world.pass(7_000);
  open();
  world.last.end(4401);
  assert.equal(states.at(-1), "ended");
  const made = world.made.length;
  world.pass(120_000);
  assert.equal(world.made.length, made, "it does not come back");
});

test("after a sleep the connection is probed and given five seconds", () => {
  open();
  world.sleep(60_000);
  world.pass(1_000);
  assert.equal(world.made[0].closed, true, "its deadline passed during the sleep");
  world.pass(2_000);
  open();
  const before = world.last.sent.length;
  world.sleep(16_000);
  world.pass(1_000);
  assert.equal(world.last.sent.length, before + 1);
  world.pass(7_000);
  assert.equal(world.made[1].closed, true);
});

test("offline waits, and online connects at once", () => {
  open();
  world.online(false);
  assert.equal(states.at(-1), "offline");
  const made = world.made.length;
  world.online(true);
  assert.equal(world.made.length, made + 1);
});

test("after stop nothing moves any more", () => {
  open();
  socket.stop();
  const { length } = states;
  world.online(false);
  world.online(true);
  world.pass(120_000);
  assert.equal(states.length, length);
  assert.equal(world.made.length, 1);
});
