// Counts with node-redis and with ioredis, as they are: count.js PORT.

const assert = require("node:assert");
const { createClient } = require("redis");
const { Redis } = require("ioredis");

const port = Number(process.argv[2]);

async function byRedis(RESP) {
  const key = `node${RESP}`;
  const client = createClient({ url: `redis://127.0.0.1:${port}`, RESP, name: key });
  await client.connect();
  assert.equal(await client.ping(), "PONG");
  assert.equal(await client.incr(key), 1);
  assert.equal(await client.incrBy(key, 9), 10);
  assert.equal(await client.get(key), "10");
  assert.deepEqual(await client.mGet([key, "none"]), ["10", null]);
  // Commands of one tick leave in one pipeline.
  const many = await Promise.all(Array.from({ length: 100 }, () => client.incr(key)));
  assert.deepEqual(many, Array.from({ length: 100 }, (_, n) => 11 + n));
  assert.deepEqual(await client.multi().incr(key).incr(key).exec(), [111, 112]);
  await assert.rejects(client.decr(key), /counters only grow/);
  await client.close();
}

async function byIoredis() {
  const key = "io";
  const client = new Redis({ port, connectionName: key });
  assert.equal(await client.incr(key), 1);
  assert.equal(await client.incrby(key, 9), 10);
  assert.equal(await client.get(key), "10");
  const piped = await client.pipeline().incr(key).incr(key).exec();
  assert.deepEqual(piped, [[null, 11], [null, 12]]);
  const multi = await client.multi().incr(key).incr(key).exec();
  assert.deepEqual(multi, [[null, 13], [null, 14]]);
  await assert.rejects(client.del(key), /never removed/);
  await client.quit();
}

(async () => {
  await byRedis(2);
  await byRedis(3);
  await byIoredis();
  console.log("counted by redis and ioredis");
})();
