// The clients `redis` (RESP3) and `ioredis` (of this version RESP2 only) on every node. Arguments:
// the client's name, then the ports. Exits with 1 and the reason at the first answer that is not as
// it should be.
"use strict";

const assert = require("node:assert/strict");
const { createRequire } = require("node:module");
const path = require("node:path");

// The packages lie in the build tree, not beside this file.
const from = createRequire(path.join(process.env.HORKOS_NODE_MODULES, "package.json"));

async function openRedis(port) {
  const { createClient } = from("redis");
  const client = createClient({
    socket: { host: "127.0.0.1", port, reconnectStrategy: false, connectTimeout: 5000 },
    RESP: 3,
    name: "redis-js",
  });
  client.on("error", () => {});
  await client.connect();
  return {
    call: (...words) => client.sendCommand(words.map(String)),
    set: (key, value, ms) =>
      client.set(key, value, ms ? { expiration: { type: "PX", value: ms } } : {}),
    get: (key) => client.get(key),
    incr: (key) => client.incr(key),
    mget: (keys) => client.mGet(keys),
    mset: (pairs) => client.mSet(pairs),
    del: (keys) => client.del(keys),
    pttl: (key) => client.pTTL(key),
    append: (key, value) => client.append(key, value),
    scan: async (pattern) => {
      const keys = [];
      const walk = client.scanIterator({ MATCH: pattern, COUNT: 50 });
      for await (const some of walk) keys.push(...some);
      return keys;
    },
    info: () => client.info(),
    fails: (words) => client.sendCommand(words),
    select: (space) => client.select(space),
    transfer: (one, two, amount) =>
      client.multi().decrBy(one, amount).incrBy(two, amount).mGet([one, two]).exec(),
    // Whether the transaction of one who watched was carried out.
    watched: async (key, meanwhile) => {
      await client.watch(key);
      await meanwhile();
      try {
        await client.multi().set(key, "watched").exec();
        return true;
      } catch (error) {
        assert.equal(error.constructor.name, "WatchError");
        return false;
      }
    },
    close: () => client.close(),
  };
}

async function openIoredis(port) {
  const Redis = from("ioredis");
  const client = new Redis({
    host: "127.0.0.1",
    port,
    lazyConnect: true,
    retryStrategy: null,
    connectionName: "ioredis",
    enableReadyCheck: true,
    maxRetriesPerRequest: 0,
  });
  client.on("error", () => {});
  await client.connect();
  return {
    call: (...words) => client.call(...words),
    set: (key, value, ms) => (ms ? client.set(key, value, "PX", ms) : client.set(key, value)),
    get: (key) => client.get(key),
    incr: (key) => client.incr(key),
    mget: (keys) => client.mget(keys),
    mset: (pairs) => client.mset(pairs),
    del: (keys) => client.del(...keys),
    pttl: (key) => client.pttl(key),
    append: (key, value) => client.append(key, value),
    scan: async (pattern) => {
      const keys = [];
      for await (const some of client.scanStream({ match: pattern, count: 50 })) keys.push(...some);
      return keys;
    },
    info: () => client.info(),
    fails: (words) => client.call(...words),
    select: (space) => client.select(space),
    transfer: async (one, two, amount) => {
      const transaction = client.multi().decrby(one, amount).incrby(two, amount).mget(one, two);
      const replies = await transaction.exec();
      return replies.map(([error, reply]) => {
        assert.equal(error, null);
        return reply;
      });
    },
    watched: async (key, meanwhile) => {
      await client.watch(key);
      await meanwhile();
      return (await client.multi().set(key, "watched").exec()) !== null;
    },
    close: async () => client.quit(),
  };
}

async function useOne(client, prefix) {
  const key = `${prefix}:text`;
  assert.equal(await client.set(key, "grüße\r\n\0"), "OK");
  assert.equal(await client.get(key), "grüße\r\n\0");
  assert.equal(await client.append(key, "!"), 11);
  assert.equal(await client.get(`${prefix}:absent`), null);

  assert.equal(await client.set(`${prefix}:timed`, "v", 100000), "OK");
  const left = await client.pttl(`${prefix}:timed`);
  assert.ok(left > 90000 && left <= 100000, `PTTL ${left}`);

  // Commands of one turn of the loop leave as one pipeline.
  const turns = Array.from({ length: 100 }, () => client.incr(`${prefix}:count`));
  const counts = await Promise.all(turns);
  assert.deepEqual(counts, Array.from({ length: 100 }, (_, i) => i + 1));

  const pairs = {};
  for (let i = 0; i < 100; i++) pairs[`${prefix}:many:${i}`] = `value ${i}`;
  assert.equal(await client.mset(pairs), "OK");
  assert.deepEqual(await client.mget(Object.keys(pairs)), Object.values(pairs));
  const found = new Set(await client.scan(`${prefix}:many:*`));
  assert.deepEqual([...found].sort(), Object.keys(pairs).sort());
  assert.equal(await client.del(Object.keys(pairs)), 100);

  const big = "b".repeat(1 << 20);
  assert.equal(await client.set(`${prefix}:big`, big), "OK");
  assert.equal(await client.get(`${prefix}:big`), big);

  await assert.rejects(client.incr(key), /not an integer/);
  await assert.rejects(client.fails(["NOSUCH", "x"]), /unknown command/);
  await assert.rejects(client.fails(["LPUSH", `${prefix}:list`, "x"]));
  assert.match(await client.info(), /loading:0/);
  assert.equal(await client.get(key), "grüße\r\n\0!", "the connection is in step after errors");
}

// In a space with transactions.
async function transact(client, other, prefix) {
  const [one, two] = [`${prefix}:one`, `${prefix}:two`];
  await client.mset({ [one]: "100", [two]: "0" });
  const replies = await client.transfer(one, two, 30);
  assert.deepEqual(replies.map(String), ["70", "30", "70,30"]);
  assert.deepEqual(await other.mget([one, two]), ["70", "30"]);
  assert.equal(await client.watched(one, () => other.set(one, "changed")), false);
  assert.equal(await client.get(one), "changed");
  assert.equal(await client.watched(one, () => other.get(one)), true);
  assert.equal(await other.get(one), "watched");
  await assert.rejects(client.incr(one), /not an integer/);
}

async function main() {
  const [name, ...ports] = process.argv.slice(2);
  const open = { redis: openRedis, ioredis: openIoredis }[name];
  const clients = await Promise.all(ports.map((port) => open(Number(port))));

  for (const [index, client] of clients.entries()) {
    const hello = await client.call("HELLO");
    const proto = Array.isArray(hello) ? hello[hello.indexOf("proto") + 1] : hello.proto;
    assert.equal(proto, name === "redis" ? 3 : 2);
    await useOne(client, `${name}:${index}`);
  }

  // What one node has acknowledged, the others return at once.
  for (let round = 0; round < 50; round++) {
    const writer = clients[round % clients.length];
    await writer.set(`${name}:shared`, `round ${round}`);
    const values = await Promise.all(clients.map((client) => client.get(`${name}:shared`)));
    for (const value of values) assert.equal(value, `round ${round}`);
  }

  for (const client of clients) await client.select(1);
  for (const [index, client] of clients.entries()) {
    await transact(client, clients[(index + 1) % clients.length], `${name}:${index}`);
  }
  for (const client of clients) await client.close();
  console.log(`${name}: ${clients.length} nodes`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
