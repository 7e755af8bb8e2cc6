"""Clients that people use, on every node of a real cluster, and what one node acknowledges is read
at once at the others."""

import hashlib
import os
import re
import shutil
import unittest

import redis

from support import harness, resp

NODE_FOLDER = os.path.join(harness.ROOT, "tests", "system", "node")
MODULES = os.environ.get(
    "HORKOS_NODE_MODULES", os.path.join(harness.ROOT, "build", "node-clients"))


def install_node_clients():
    """npm ci into the build tree, unless the same lock file was installed there before."""
    names = ["package.json", "package-lock.json"]
    digest = hashlib.sha256()
    for name in names:
        with open(os.path.join(NODE_FOLDER, name), "rb") as file:
            digest.update(file.read())
    stamp = os.path.join(MODULES, "installed")
    if os.path.exists(stamp):
        with open(stamp) as file:
            if file.read() == digest.hexdigest():
                return
    shutil.rmtree(MODULES, ignore_errors=True)
    os.makedirs(MODULES)
    for name in names:
        shutil.copy(os.path.join(NODE_FOLDER, name), MODULES)
    for attempt in range(3):
        status, out, err = harness.run(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], bound=120, cwd=MODULES,
            check=attempt == 2)
        if status == 0:
            break
        harness.say("npm ci: %s" % (out + err).decode("utf-8", "replace"))
    with open(stamp, "w") as file:
        file.write(digest.hexdigest())


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster()
        cls.ports = list(cls.cluster.ports.values())
        cls.addClassCleanup(cls.cluster.stop)

    def run(self, result=None):
        failures = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > failures:
            self.cluster.print_logs()

    def cli(self, port, *words, stdin=b"", options=()):
        return harness.run(["redis-cli", "-p", port, *options, *words], stdin=stdin)[1]

    def test_dev_prints_how_to_connect(self):
        for port in self.ports:
            self.assertIn(str(port), self.cluster.printed)
        harness.say("horkos dev served after %.0f ms" % (1000 * self.cluster.start_seconds))

    def test_write_at_one_node_is_read_at_the_others(self):
        clients = [resp.Client(port, resp=2 + index % 2) for index, port in enumerate(self.ports)]
        self.addCleanup(lambda: [client.close() for client in clients])
        for number in range(200):
            value = b"%d" % number
            self.assertEqual(clients[number % 3].must("SET", "a", value), b"OK")
            for client in clients:
                client.send("GET", "a")
            self.assertEqual([client.read() for client in clients], [value] * 3)
        self.assertEqual(clients[0].must("DEL", "a"), 1)
        self.assertEqual([client.must("GET", "a") for client in clients], [None] * 3)

    def test_redis_cli_answers_for_people(self):
        for index, port in enumerate(self.ports):
            key = "cli:%d" % index
            raw = ["--no-raw"]
            self.assertEqual(self.cli(port, "set", key, "a b", options=raw), b"OK\n")
            for other in self.ports:
                self.assertEqual(self.cli(other, "get", key, options=raw), b'"a b"\n')
                self.assertEqual(self.cli(other, "get", key), b"a b\n")
            self.assertEqual(self.cli(port, "get", "absent", options=raw), b"(nil)\n")
            self.assertEqual(self.cli(port, "incr", key + ":n", options=raw), b"(integer) 1\n")
            self.assertEqual(self.cli(port, "mget", key, "absent", options=raw),
                             b'1) "a b"\n2) (nil)\n')
            self.assertRegex(self.cli(port, "incr", key, options=raw),
                             rb"^\(error\) ERR value is not")
            self.assertRegex(self.cli(port, "nosuch", "x", options=raw),
                             rb"unknown command 'nosuch'")
            self.assertRegex(self.cli(port, "hello", "3", options=["--no-raw", "-3"]),
                             rb'"proto" => \(integer\) 3')
            self.assertEqual(self.cli(port, "ping", options=["-3"]), b"PONG\n")
            self.assertEqual(self.cli(port, "-x", "set", key + ":x", stdin=b"\0\xff\r\n"), b"OK\n")
            self.assertEqual(self.cli(port, "get", key + ":x", options=raw),
                             b'"\\x00\\xff\\r\\n"\n')

    def test_redis_cli_reads_commands_from_its_input(self):
        for port in self.ports:
            out = self.cli(port, stdin=b"set cli:in 1\nincr cli:in\nget cli:in\nhelp set\n")
            self.assertEqual(out.split(b"\n")[:3], [b"OK", b"2", b"2"])
            self.assertRegex(out, rb"SET\S* \S*key value")

    def test_redis_cli_asks_for_the_documents_of_commands(self):
        with resp.Client(self.ports[0]) as client:
            documents = client.must("COMMAND", "DOCS")
            count = client.must("COMMAND", "COUNT")
            self.assertEqual(len(documents), 2 * count)
            infos = client.must("COMMAND")
            self.assertEqual(len(infos), count)
            one = client.must("COMMAND", "DOCS", "set", "nosuch", "get")
            self.assertEqual([name for name in one[::2]], [b"set", b"get"])
            fields = dict(zip(one[1][::2], one[1][1::2]))
            for name in (b"summary", b"since", b"group"):
                self.assertIn(name, fields)
            self.assertEqual(client.must("COMMAND", "GETKEYS", "mset", "a", "1", "b", "2"),
                             [b"a", b"b"])
            self.assertEqual(client.must("COMMAND", "INFO", "get", "nosuch")[1], None)
        with resp.Client(self.ports[0], resp=3) as client:
            self.assertIsInstance(client.must("COMMAND", "DOCS"), resp.Map)

    def test_redis_cli_pipe_mode(self):
        for index, port in enumerate(self.ports):
            commands = b"".join(resp.encode("SET", "pipe:%d:%d" % (index, number), number)
                                for number in range(3000))
            out = self.cli(port, stdin=commands, options=["--pipe"])
            self.assertIn(b"errors: 0, replies: 3000", out)
            with resp.Client(self.ports[index - 1]) as client:
                keys = ["pipe:%d:%d" % (index, number) for number in range(3000)]
                self.assertEqual(client.must("MGET", *keys),
                                 [b"%d" % number for number in range(3000)])
                self.assertEqual(client.must("UNLINK", *keys[:300]), 300)

    def test_redis_cli_scans_and_reports(self):
        for port in self.ports:
            self.cli(port, "mset", "scan:1", "a", "scan:2", "b", "scan:3", "c")
            found = self.cli(port, options=["--scan", "--pattern", "scan:*"]).split()
            self.assertEqual(sorted(found), [b"scan:1", b"scan:2", b"scan:3"])
            self.assertIn(b"# Server", self.cli(port, "info"))
            self.assertRegex(self.cli(port, "client", "list"), rb"(?m)^id=\d+ addr=127\.0\.0\.1:")

    def test_redis_benchmark_string_tests(self):
        for port in self.ports:
            status, out, err = harness.run(
                ["redis-benchmark", "-p", port, "-t", "ping,set,get,incr,mset", "-n", "1000", "-c",
                 "10", "-P", "16", "-r", "100000", "-q"], bound=60)
            text = out.decode("utf-8", "replace").replace("\r", "\n")
            self.assertEqual(status, 0, err)
            # It divides by whole milliseconds: 1,000 requests may take none of them, and it says inf.
            for name in ("PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "MSET"):
                self.assertRegex(text, r"%s[^:\n]*: ([0-9.]+|inf) requests per second" % name)
            self.assertNotRegex((out + err).decode("utf-8", "replace"), r"(?i)error|warning")

    def test_redis_benchmark_speaks_resp3(self):
        out = harness.run(["redis-benchmark", "-p", self.ports[1], "-3", "-t", "set,get", "-n",
                           "1000", "-r", "100000", "-q"], bound=60)[1]
        self.assertEqual(out.count(b"requests per second"), 2)

    def test_python_redis(self):
        for index, port in enumerate(self.ports):
            with redis.Redis(port=port, socket_timeout=10, client_name="py") as db:
                self._use_python(db, "py:%d" % index)
                with redis.Redis(port=self.ports[index - 1], socket_timeout=10) as other:
                    self.assertEqual(other.get("py:%d:left" % index), b"for the other")

    def _use_python(self, db, prefix):
        name = prefix + ":a"
        self.assertTrue(db.set(name, "1"))
        self.assertEqual(db.get(name), b"1")
        self.assertEqual(db.incr(name, 41), 42)
        self.assertEqual(db.decr(name), 41)
        self.assertEqual(db.incrbyfloat(name, 0.5), 41.5)
        self.assertIsNone(db.set(name, "2", nx=True))
        self.assertEqual(db.set(name, "3", get=True), b"41.5")
        self.assertTrue(db.set(name, "4", xx=True, ex=1000))
        self.assertTrue(990 <= db.ttl(name) <= 1000)
        self.assertTrue(db.persist(name))
        self.assertEqual(db.ttl(name), -1)
        self.assertTrue(db.expire(name, 500))
        self.assertTrue(0 < db.pttl(name) <= 500000)
        self.assertEqual(db.getex(name, persist=True), b"4")
        self.assertEqual(db.append(name, "56"), 3)
        self.assertEqual(db.strlen(name), 3)
        self.assertEqual(db.getrange(name, 1, -1), b"56")
        self.assertEqual(db.setrange(name, 1, "xx"), 3)
        self.assertEqual(db.type(name), b"string")
        self.assertEqual(db.getdel(name), b"4xx")
        self.assertEqual(db.exists(name), 0)
        with db.pipeline(transaction=False) as pipe:
            for number in range(300):
                pipe.set("%s:p:%d" % (prefix, number), number)
                pipe.get("%s:p:%d" % (prefix, number))
            results = pipe.execute()
        self.assertEqual(results[0::2], [True] * 300)
        self.assertEqual(results[1::2], [b"%d" % number for number in range(300)])
        found = set(db.scan_iter(match=prefix + ":p:*", count=100))
        self.assertEqual(len(found), 300)
        self.assertEqual(set(db.keys(prefix + ":p:*")), found)
        self.assertEqual(db.delete(*found), 300)
        self.assertTrue(db.mset({prefix + ":m1": "a", prefix + ":m2": "b"}))
        self.assertEqual(db.mget(prefix + ":m1", prefix + ":m2", prefix + ":m3"),
                         [b"a", b"b", None])
        with self.assertRaises(redis.ResponseError):
            db.incr(prefix + ":m1")
        with self.assertRaises(redis.ResponseError):
            db.execute_command("LPUSH", prefix + ":list", "x")
        self.assertEqual(db.client_getname(), "py")
        self.assertIn("redis_version", db.info())
        self.assertIn("maxmemory", db.config_get("max*"))
        self.assertTrue(any(client["name"] == "py" for client in db.client_list()))
        self.assertTrue(db.set(prefix + ":left", "for the other"))

    def test_python_lock(self):
        """SET NX PX and its release are what most people use a small store for."""
        with redis.Redis(port=self.ports[0]) as one, redis.Redis(port=self.ports[1]) as other:
            self.assertTrue(one.set("lock", "mine", nx=True, px=60000))
            self.assertIsNone(other.set("lock", "theirs", nx=True, px=60000))
            self.assertEqual(other.execute_command("DELIFEQ", "lock", "theirs"), 0)
            self.assertEqual(one.execute_command("DELIFEQ", "lock", "mine"), 1)
            self.assertTrue(other.set("lock", "theirs", nx=True, px=60000))
            self.assertEqual(other.delete("lock"), 1)

    def test_redis_cli_transaction(self):
        words = (b"set cli:t 1\nmulti\nincr cli:t\nget cli:absent\nlpush cli:t x\nexec\n"
                 b"watch cli:t\nset cli:t 5\nmulti\nget cli:t\nexec\n"
                 b"multi\nincr cli:t\nmset cli:u 1 cli:v 2\nexec\nrename cli:u cli:w\n"
                 b"mget cli:u cli:w\n")
        for port in self.ports:
            out = self.cli(port, stdin=words, options=["--no-raw", "-n", "1"]).split(b"\n")
            self.assertEqual([line for line in out if line][:6],
                             [b"OK", b"OK", b"QUEUED", b"QUEUED",
                              b"(error) ERR 'lpush' is not supported: horkos keeps strings only",
                              b"(error) EXECABORT Transaction discarded because of previous errors."])
            self.assertEqual([line for line in out if line][6:],
                             [b"OK", b"OK", b"OK", b"QUEUED", b"(nil)", b"OK", b"QUEUED", b"QUEUED",
                              b"1) (integer) 6", b"2) OK", b"OK", b"1) (nil)", b'2) "1"'])

    def test_python_transactions(self):
        for index, port in enumerate(self.ports):
            with redis.Redis(port=port, db=1, socket_timeout=10) as db, \
                    redis.Redis(port=self.ports[index - 1], db=1, socket_timeout=10) as other:
                self._transact_python(db, other, "py:%d" % index)

    def _transact_python(self, db, other, prefix):
        one, two = prefix + ":one", prefix + ":two"
        self.assertTrue(db.mset({one: 100, two: 0}))
        with db.pipeline(transaction=True) as pipe:
            pipe.decrby(one, 30).incrby(two, 30).mget(one, two)
            self.assertEqual(pipe.execute(), [70, 30, [b"70", b"30"]])
        self.assertEqual(other.mget(one, two), [b"70", b"30"])
        # A command that fails leaves the others done, and the library reports it.
        with db.pipeline(transaction=True) as pipe:
            pipe.set(prefix + ":word", "w").incr(prefix + ":word").incr(two)
            replies = pipe.execute(raise_on_error=False)
        self.assertEqual((replies[0], replies[2]), (True, 31))
        self.assertIsInstance(replies[1], redis.ResponseError)
        # Somebody else was quicker.
        with db.pipeline() as pipe:
            pipe.watch(one)
            self.assertEqual(pipe.get(one), b"70")
            other.incr(one)
            pipe.multi()
            pipe.set(one, "lost")
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        self.assertEqual(db.get(one), b"71")

        def transfer(pipe):
            have = int(pipe.get(one))
            if not seen:
                other.incr(two)
            seen.append(have)
            pipe.multi()
            pipe.set(one, have - 1)
            pipe.incr(two)

        seen = []
        self.assertEqual(db.transaction(transfer, one, two), [True, 33])
        self.assertEqual(seen, [71, 71])
        self.assertEqual(other.mget(one, two), [b"70", b"33"])
        self.assertTrue(other.msetnx({prefix + ":x": 1, prefix + ":y": 2}))
        self.assertFalse(db.msetnx({prefix + ":y": 1, prefix + ":z": 2}))
        self.assertTrue(db.rename(prefix + ":x", prefix + ":z"))
        self.assertFalse(db.renamenx(prefix + ":y", prefix + ":z"))
        self.assertTrue(db.copy(prefix + ":z", prefix + ":x"))
        self.assertEqual(other.delete(prefix + ":x", prefix + ":y", prefix + ":z"), 3)

    def _node(self, name):
        install_node_clients()
        env = dict(os.environ, HORKOS_NODE_MODULES=MODULES)
        status, out, err = harness.run(
            ["node", os.path.join(NODE_FOLDER, "clients.js"), name, *self.ports], env=env,
            check=False, bound=60)
        self.assertEqual(status, 0, (out + err).decode("utf-8", "replace"))

    def test_node_redis_with_resp3(self):
        self._node("redis")

    def test_node_ioredis(self):
        self._node("ioredis")

    def test_wait_and_role(self):
        for port in self.ports:
            with resp.Client(port) as client:
                client.must("SET", "waited", "1")
                self.assertEqual(client.must("WAIT", 2, 1000), 2)
                self.assertEqual(client.must("WAIT", 0, 0), 2)
                role = client.must("ROLE")
                self.assertEqual(role[0], b"master")

    def test_expiry_agrees_on_all_nodes(self):
        clients = [resp.Client(port) for port in self.ports]
        self.addCleanup(lambda: [client.close() for client in clients])
        clients[0].must("SET", "soon", "v", "PX", 150)
        seen_gone = [False] * 3

        def gone():
            for index, client in enumerate(clients):
                there = client.must("GET", "soon") is not None
                # Once one node has said that it is gone, no node may show it.
                self.assertFalse(there and any(seen_gone))
                seen_gone[index] = not there
            return all(seen_gone)

        harness.wait_until(gone, 5, "a key with 150 ms to live expires everywhere")
        self.assertEqual([client.must("TTL", "soon") for client in clients], [-2] * 3)

    def test_status_command(self):
        for number, node in self.cluster.nodes.items():
            code, told = node.status()
            self.assertEqual(code, 0)
            self.assertEqual(told["node"], number)
            self.assertTrue(told["can_serve"])
            self.assertGreater(told["lease_ms_left"], 0)
            self.assertEqual(sorted(member["id"] for member in told["members"]), [1, 2, 3])
            for member in told["members"]:
                self.assertTrue(member["live"])
                self.assertTrue(re.match(r"127\.0\.0\.1:\d+$", member["address"]), member)
            self.assertEqual(told["spaces"][0]["engine"], "hermes")
            self.assertIn("keys", told["spaces"][0])
            self.assertIn("bytes", told["spaces"][0])


if __name__ == "__main__":
    harness.main()
