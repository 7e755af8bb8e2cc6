"""Clients and strangers that do harm, by mistake or on purpose: a clear error or a close, memory
bounded, counted, and everybody else undisturbed."""

import os
import random
import socket
import tempfile
import time
import unittest

from support import harness, resp

VALUE_MAX = 64 << 20


class Bystander:
    """An ordinary client at every node. While strangers misbehave, its commands go on."""

    def __init__(self, cluster):
        self.clients = [node.client(timeout=5 * harness.PATIENCE)
                        for node in cluster.nodes.values()]
        self.count = 0

    def check(self, rounds=20):
        for _ in range(rounds):
            self.count += 1
            writer = self.clients[self.count % len(self.clients)]
            assert writer.must("SET", "bystander", self.count) == b"OK"
            for client in self.clients:
                assert client.must("GET", "bystander") == b"%d" % self.count

    def close(self):
        for client in self.clients:
            client.close()


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster()
        cls.addClassCleanup(cls.cluster.stop)

    def setUp(self):
        self.bystander = Bystander(self.cluster)
        self.addCleanup(self.bystander.close)
        self.bystander.check()
        self.node = self.cluster[2]

    def tearDown(self):
        self.bystander.check()
        for node in self.cluster.nodes.values():
            self.assertIsNone(node.exit_status(), "node %d still runs" % node.number)

    def client(self, **options):
        client = self.node.client(**{"timeout": 10 * harness.PATIENCE, **options})
        self.addCleanup(client.close)
        return client

    def refused(self, data, words):
        """These bytes get an error that says so, and the connection is closed."""
        client = self.client()
        try:
            client.send_raw(data)
        except resp.Broken:
            pass  # It may be closed while the rest is still being sent.
        try:
            reply = client.read()
        except resp.Broken:
            return
        self.assertIsInstance(reply, resp.Error)
        self.assertRegex(reply.text, words)
        self.assertTrue(client.at_end(), "it is closed after %r" % data[:40])


class Garbage(Hostile):
    def test_bytes_that_are_no_commands(self):
        for data, words in (
            (b"*x\r\n", rb"Protocol error: invalid multibulk length"),
            (b"*-x\r\n", rb"Protocol error"),
            (b"*1\r\nx\r\n", rb"Protocol error: expected '\$'"),
            (b"*1\r\n$x\r\n", rb"Protocol error: invalid bulk length"),
            (b"*1\r\n$-5\r\n", rb"Protocol error: invalid bulk length"),
            (b"*99999999999\r\n", rb"Protocol error: invalid multibulk length"),
            (b'set "a\r\n', rb"Protocol error: unbalanced quotes"),
        ):
            client = self.client()
            client.send_raw(data)
            reply = client.read()
            self.assertIsInstance(reply, resp.Error, data)
            self.assertRegex(reply.text, words)
            self.assertTrue(client.at_end(), "closed after %r" % data)

    def test_random_bytes(self):
        rng = random.Random(5)
        for _ in range(200):
            client = self.client(timeout=2)
            data = bytes([rng.choice(b"*$+:\r\n0123456789-\0\xff gGeEtT")
                          for _ in range(rng.randrange(1, 300))])
            try:
                client.send_raw(data)
                client.socket.shutdown(socket.SHUT_WR)
                for _ in range(1000):
                    client.read()
            except (resp.Broken, OSError):
                pass
            client.close()

    def test_what_came_before_the_garbage_is_answered(self):
        client = self.client()
        client.send_raw(resp.encode("SET", "before", "1") + resp.encode("GET", "before") + b"*x\r\n"
                        + resp.encode("SET", "before", "2"))
        self.assertEqual(client.read(), b"OK")
        self.assertEqual(client.read(), b"1")
        self.assertIsInstance(client.read(), resp.Error)
        self.assertTrue(client.at_end())
        self.assertEqual(self.client().must("GET", "before"), b"1")

    def test_half_a_command_then_silence(self):
        halves = [b"*", b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$10\r\nabc", b"*2\r\n$3\r\nGE", b"PIN",
                  b"*1\r\n$4\r\nPING\r", b"*2\r\n$3\r\nGET\r\n$5\r\n"]
        silent = [self.client() for _ in range(len(halves) * 20)]
        for index, client in enumerate(silent):
            client.send_raw(halves[index % len(halves)])
        self.bystander.check()
        # The halves are still open: the rest makes a whole command.
        silent[1].send_raw(b"defghij\r\n")
        self.assertEqual(silent[1].read(), b"OK")
        self.assertEqual(self.client().must("GET", "a"), b"abcdefghij")

    def test_silence_is_bounded_where_it_is_configured(self):
        with harness.Cluster(nodes=1, sets=["clients.timeout_s=1"]) as cluster:
            # The time-outs are the bound.
            with cluster[1].client(timeout=5 * harness.PATIENCE) as half, \
                    cluster[1].client(timeout=5 * harness.PATIENCE) as idle:
                half.send_raw(b"*2\r\n$3\r\nGE")
                self.assertEqual(idle.must("PING"), b"PONG")
                self.assertTrue(half.at_end(), "half a command is closed")
                self.assertTrue(idle.at_end(), "an idle client is closed")

    def test_a_bulk_of_4_gib(self):
        before = harness.memory_kib(self.node.pid)
        self.refused(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$4294967296\r\n" + b"x" * 100000,
                     rb"Protocol error: invalid bulk length")
        self.refused(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$%d\r\n" % (VALUE_MAX + 1),
                     rb"Protocol error: invalid bulk length")
        self.refused(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$18446744073709551617\r\n",
                     rb"Protocol error: invalid bulk length")
        self.assertIsNone(self.client().must("GET", "b"))
        self.assertLess(harness.memory_kib(self.node.pid) - before, harness.memory_bound_kib(32))

    def test_lengths_that_are_announced_cost_nothing(self):
        """Many clients announce the largest value that is allowed, and send none of it."""
        before = harness.memory_kib(self.node.pid)
        clients = [self.client() for _ in range(50)]
        for client in clients:
            client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$%d\r\nabc" % VALUE_MAX)
        self.bystander.check()
        self.assertLess(harness.memory_kib(self.node.pid) - before, harness.memory_bound_kib(200))

    def test_a_million_arguments(self):
        client = self.client(timeout=20 * harness.PATIENCE)
        count = 1 << 20
        client.send_raw(b"*%d\r\n$6\r\nEXISTS\r\n" % count + b"$1\r\nx\r\n" * (count - 1))
        self.assertEqual(client.read(), 0)
        self.refused(b"*%d\r\n" % (count + 1), rb"Protocol error: invalid multibulk length")
        self.refused(b"*2147483648\r\n", rb"Protocol error: invalid multibulk length")

    def test_a_huge_inline_command(self):
        before = harness.memory_kib(self.node.pid)
        self.refused(b"a" * (1 << 20), rb"Protocol error: too big inline request")
        self.refused(b"GET " + b"a" * (1 << 18) + b"\r\n", rb"too big inline request")
        self.refused(b"*" + b"1" * (1 << 18), rb"Protocol error: too big (mbulk count|inline)")
        self.assertLess(harness.memory_kib(self.node.pid) - before, harness.memory_bound_kib(32))

    def test_a_command_over_the_query_limit(self):
        """Each argument is allowed, all together are not."""
        before = harness.memory_kib(self.node.pid)
        value = b"v" * (1 << 20)
        pairs = b"".join(b"$4\r\nq%03d\r\n$%d\r\n%s\r\n" % (number, len(value), value)
                         for number in range(140))
        self.refused(b"*281\r\n$4\r\nMSET\r\n" + pairs, rb"(?i)protocol error|query|too big")
        self.assertIsNone(self.client().must("GET", "q000"))
        harness.wait_until(
            lambda: harness.memory_kib(self.node.pid) - before < harness.memory_bound_kib(200), 5,
            "the memory of that command is given back")


class Readers(Hostile):
    def test_a_client_that_never_reads(self):
        self.client().must("SET", "big", b"b" * (1 << 20))
        self.client().must("CONFIG", "SET", "clients.output_bytes_max", "16mb")
        before = harness.memory_kib(self.node.pid)
        greedy = [self.client(timeout=5 * harness.PATIENCE) for _ in range(4)]
        highest = 0
        sent = [0] * len(greedy)
        get = resp.encode("GET", "big") * 50
        for client in greedy:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.socket.setblocking(False)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            for index, client in enumerate(greedy):
                try:
                    sent[index] += client.socket.send(get)
                except OSError:
                    pass
            highest = max(highest, harness.memory_kib(self.node.pid) - before)
            harness.pause(0.02)
        self.bystander.check()
        harness.say("4 clients asked for %d MiB and read nothing: the process grew by %d MiB" % (
            sum(sent) // len(resp.encode("GET", "big")), highest // 1024))
        self.assertLess(highest, harness.memory_bound_kib(200))

    def test_a_slow_reader_gets_all(self):
        """Back-pressure, not loss: whoever reads in the end gets every reply in order."""
        client = self.client(timeout=20 * harness.PATIENCE)
        client.must("SET", "block", b"c" * 100000)
        client.send_raw(b"".join(
            resp.encode("GET", "block") + resp.encode("ECHO", number) for number in range(300)))
        self.bystander.check(rounds=100)
        for number in range(300):
            self.assertEqual(len(client.read()), 100000)
            self.assertEqual(client.read(), b"%d" % number)

    def test_too_many_clients(self):
        with self.node.client() as client:
            client.must("CONFIG", "SET", "maxclients", "40")
            # Those of other tests have left: one connection of the bystander, and this one.
            harness.wait_until(lambda: client.must("CLIENT", "LIST").count(b"\n") <= 2, 10,
                               "closed connections are forgotten")
        crowd = []
        try:
            for _ in range(80):
                crowd.append(self.node.client(timeout=5 * harness.PATIENCE))
            served = refused = 0
            for client in crowd:
                try:
                    reply = client.call("PING")
                except resp.Broken:
                    refused += 1
                    continue
                if isinstance(reply, resp.Error):
                    self.assertRegex(reply.text, rb"max number of clients")
                    refused += 1
                else:
                    served += 1
            self.assertLessEqual(served, 40)
            self.assertGreaterEqual(served, 30)
            self.assertGreaterEqual(refused, 40)
        finally:
            for client in crowd:
                client.close()

        def normal():
            # The crowd has left, so a new client may come in and raise the limit again.
            try:
                with self.node.client() as client:
                    return client.call("CONFIG", "SET", "maxclients", "10000") == b"OK"
            except resp.Broken:
                return False

        harness.wait_until(normal, 10, "new clients are served again")
        # More than the node has made room for is refused, not promised.
        reply = self.client().call("CONFIG", "SET", "maxclients", "10001")
        self.assertIsInstance(reply, resp.Error)
        self.assertRegex(reply.text, rb"cannot be raised")

    def test_clients_that_come_and_go(self):
        """Connections that end at once, in the middle of commands and of replies, leave nothing."""
        self.client().must("SET", "gone", b"g" * 100000)
        for number in range(600):
            client = self.node.client()
            client.send_raw(resp.encode("GET", "gone")[: 1 + number % 22] if number % 2 else
                            resp.encode("GET", "gone") * 10)
            client.close()
        with self.node.client() as client:
            harness.wait_until(
                lambda: client.must("CLIENT", "LIST").count(b"\n") < 20, 10,
                "closed connections are forgotten")

    def test_limits_of_values(self):
        """A value over the limit is an error at any node, and nothing has changed anywhere."""
        for node in self.cluster.nodes.values():
            with node.client(timeout=20 * harness.PATIENCE) as client:
                client.must("SET", "limit", b"x" * 100)
                for words in (("SETRANGE", "limit", VALUE_MAX, "v"),
                              ("SETRANGE", "limit", 500 << 20, "v")):
                    self.assertIsInstance(client.call(*words), resp.Error)
            for other in self.cluster.nodes.values():
                with other.client() as client:
                    self.assertEqual(client.must("GET", "limit"), b"x" * 100)

    def test_before_a_client_has_authenticated(self):
        """A stranger gets small limits and none of the data."""
        with harness.Cluster(nodes=1, sets=["clients.requirepass=secret"]) as cluster:
            node = cluster[1]
            with node.client() as client:
                self.assertEqual(client.call("GET", "a").code, "NOAUTH")
                self.assertEqual(client.call("HORKOS", "STATUS").code, "NOAUTH")
                self.assertEqual(client.call("AUTH", "wrong").code, "WRONGPASS")
                self.assertEqual(client.must("AUTH", "secret"), b"OK")
                self.assertEqual(client.must("SET", "a", "1"), b"OK")
            with node.client() as client:
                client.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1000000\r\n")
                self.assertRegex(client.read().text, rb"unauthenticated bulk length")
            with node.client() as client:
                client.send_raw(b"*1000\r\n")
                self.assertRegex(client.read().text, rb"unauthenticated multibulk length")
            with node.client() as client:
                hello = client.must("HELLO", 3, "AUTH", "default", "secret")
                self.assertEqual(hello.get(b"proto"), 3)


class Buffers(unittest.TestCase):
    """The bound of all clients' buffers together."""

    LIMIT = 64 << 20

    def setUp(self):
        self.cluster = harness.Cluster(
            nodes=1, sets=["clients.clients_memory_max=%d" % self.LIMIT, "node.workers=2"])
        self.addCleanup(self.cluster.stop)
        self.node = self.cluster[1]

    def client(self):
        client = self.node.client(timeout=20 * harness.PATIENCE)
        self.addCleanup(client.close)
        return client

    def held(self):
        return int(self.node.info("memory")["mem_clients_normal"])

    def test_replies_that_were_read_do_not_count(self):
        """Idle clients hold nothing, so that they are no reason to close anybody."""
        self.client().must("SET", "value", b"v" * 900000)
        idle = [self.client() for _ in range(100)]
        for client in idle:
            self.assertEqual(len(client.must("GET", "value")), 900000)
        harness.wait_until(lambda: self.held() < 4 << 20, 10, "what was read is not counted")
        for client in idle:
            self.assertEqual(client.must("PING"), b"PONG")
        self.assertEqual(self.node.info("stats")["evicted_clients"], "0")

    def test_the_largest_clients_go(self):
        """Those who hoard are closed, not those who happen to grow when the bound is reached."""
        ordinary = [self.client() for _ in range(20)]
        ordinary[0].must("SET", "value", b"v" * (1 << 20))
        for _ in range(100):
            client = self.client()
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            try:
                client.send_raw(resp.encode("GET", "value") * 8)
            except resp.Broken:
                pass  # closed already
        commands = [resp.encode("SET", "own:%d" % number, b"%x" % number * 200000)
                    for number in range(len(ordinary))]
        for client, command in zip(ordinary, commands):
            client.send_raw(command[:-10])
        harness.wait_until(lambda: int(self.node.info("stats")["evicted_clients"]) > 0 and
                           self.held() <= self.LIMIT, 10, "hoarders were closed")
        for client, command in zip(ordinary, commands):
            client.send_raw(command[-10:])
            self.assertEqual(client.read(), b"OK")

    def test_last_replies_are_read_late(self):
        """Whoever says goodbye behind a large question gets the whole answer, however slowly."""
        size = 24 << 20
        self.client().must("SET", "large", b"l" * size)
        quits, shuts = self.client(), self.client()
        quits.send_raw(resp.encode("GET", "large") + resp.encode("QUIT"))
        shuts.send_raw(resp.encode("GET", "large"))
        shuts.socket.shutdown(socket.SHUT_WR)
        harness.pause(2.5)  # the time that last replies below 16 KiB get
        harness.wait_until(lambda: self.held() > 2 * (size - (10 << 20)), 20,
                           "what waits for them is counted")
        self.assertEqual(quits.read(), b"l" * size)
        self.assertEqual(quits.read(), b"OK")
        self.assertTrue(quits.at_end())
        self.assertEqual(shuts.read(), b"l" * size)
        self.assertTrue(shuts.at_end())
        harness.wait_until(lambda: self.held() < 4 << 20, 10, "and is given back")


class BigValues(unittest.TestCase):
    SIZE = 32 << 20

    def test_big_values_cost_nobody_the_lease(self):
        """Big values go to and fro; ordinary clients go on, and no member is dropped. How short a
        lease may be for that depends on the machine; that no step of the work is long is for the
        tests of node and net to show."""
        with harness.Cluster() as cluster:
            bystander = Bystander(cluster)
            self.addCleanup(bystander.close)
            epoch = cluster[1].must_tell()["epoch"]
            longest = max(self._round(cluster, bystander) for _ in range(2))
            harness.say("longest 12 commands beside values of %d MiB: %.0f ms" % (
                self.SIZE >> 20, 1000 * longest))
            self.assertEqual(cluster[1].must_tell()["epoch"], epoch, "no member was dropped")

    def _round(self, cluster, bystander):
        clients = [node.client(timeout=30 * harness.PATIENCE) for node in cluster.nodes.values()]
        values = [bytes([number]) * self.SIZE for number in range(len(clients))]
        longest = 0.0
        try:
            for number, client in enumerate(clients):
                client.send("SET", "huge:%d" % number, values[number])
                began = time.monotonic()
                bystander.check(rounds=3)
                longest = max(longest, time.monotonic() - began)
            for client in clients:
                self.assertEqual(client.read(), b"OK")
            for number, client in enumerate(clients[::-1]):
                self.assertEqual(client.must("GET", "huge:%d" % number), values[number])
        finally:
            for client in clients:
                client.close()
        return longest


class Memory(unittest.TestCase):
    def _fill(self, client, prefix):
        """Until the first refusal: the values that were acknowledged."""
        kept = {}
        for number in range(100000):
            key, value = b"%s:%d" % (prefix, number), b"%d/" % number + b"m" * 16000
            reply = client.call("SET", key, value)
            if isinstance(reply, resp.Error):
                self.assertEqual(reply.code, "OOM", reply)
                return kept, key
            kept[key] = value
        self.fail("memory has no limit")

    def test_full_memory(self):
        """One node of three has less memory. Whoever is asked refuses, and what was acknowledged
        is everywhere."""
        with harness.Cluster() as cluster:
            small = cluster[3]
            small.signal(15)
            small.ended()
            small.add_option("space 0", "memory_max = 16mb")
            small.start()
            cluster.wait_whole()
            with cluster[1].client() as one:
                kept, first = self._fill(one, b"full")
                refused = [first]
                self.assertGreater(len(kept), 100)
                harness.say("%d values of 16 kB were taken" % len(kept))
            for node in cluster.nodes.values():
                with node.client() as client:
                    # A node hears that another one is full with that one's next frame.
                    more, last = self._fill(client, b"more:%d" % node.number)
                    self.assertLess(len(more), 100)
                    kept.update(more)
                    refused.append(last)
                    for words in (("SET", last, "y" * 16000), ("APPEND", b"full:0", "y" * 16000),
                                  ("SETRANGE", b"new", 16000, "y")):
                        reply = client.call(*words)
                        self.assertIsInstance(reply, resp.Error, "%d: %r" % (node.number, words))
                        self.assertEqual(reply.code, "OOM")
            for node in cluster.nodes.values():
                with node.client() as client:
                    for unwritten in refused:
                        self.assertIsNone(client.must("GET", unwritten))
                    self.assertIsNone(client.must("GET", b"new"))
                    keys = list(kept)
                    for start in range(0, len(keys), 200):
                        part = keys[start : start + 200]
                        self.assertEqual(client.must("MGET", *part), [kept[key] for key in part])
            with cluster[2].client() as client:
                # What takes no memory still works, and deleting makes room.
                self.assertEqual(client.must("DEL", *list(kept)[:200]), 200)

                def room():
                    return client.call("SET", "after", "1") == b"OK"

                harness.wait_until(room, 20, "deleting makes room")


class Strangers(unittest.TestCase):
    """On the peer port."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster()
        cls.addClassCleanup(cls.cluster.stop)

    def setUp(self):
        self.node = self.cluster[2]
        self.bystander = Bystander(self.cluster)
        self.addCleanup(self.bystander.close)
        self.before = self.refusals()

    def tearDown(self):
        self.bystander.check()
        self.cluster.wait_whole()

    def refusals(self):
        """Counted refusals by reason, as HORKOS STATUS tells them."""
        gate = self.node.must_tell()["gate"]
        return {**gate["refused"], "timed_out": gate["timed_out"], "crowded": gate["crowded"]}

    def stranger(self):
        connection = socket.create_connection(("127.0.0.1", self.node.peer_port), 5)
        connection.settimeout(20 * harness.PATIENCE)
        self.addCleanup(connection.close)
        return connection

    def closed(self, connection):
        """Reads until it is closed; returns what came before."""
        data = b""
        while True:
            try:
                some = connection.recv(4096)
            except socket.timeout:
                self.fail("the stranger is not refused")
            except OSError:
                return data
            if not some:
                return data
            data += some

    def counted(self, reason, times=1):
        harness.wait_until(
            lambda: self.refusals()[reason] >= self.before[reason] + times, 10,
            "%s counts %d more than in %r" % (reason, times, self.before))

    def test_random_bytes(self):
        rng = random.Random(3)
        for _ in range(10):
            connection = self.stranger()
            connection.sendall(rng.randbytes(500))
            self.closed(connection)
        self.counted("magic", 10)

    def test_an_http_request(self):
        connection = self.stranger()
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20 + b"\r\n")
        self.assertEqual(self.closed(connection), b"", "a stranger is told nothing")
        self.counted("magic")

    def test_a_redis_client(self):
        connection = self.stranger()
        connection.sendall(resp.encode("SET", "k" * 50, "v" * 100))
        self.assertEqual(self.closed(connection), b"")
        self.counted("magic")

    def test_silence(self):
        connections = [self.stranger() for _ in range(5)]
        self.bystander.check()
        for connection in connections:
            self.assertEqual(self.closed(connection), b"")
        self.counted("timed_out", 5)

    def test_many_at_once(self):
        connections = []
        for _ in range(300):
            connections.append(self.stranger())
        self.bystander.check(rounds=100)
        for connection in connections:
            connection.close()

    def recorded_hello(self, target):
        """What node 1 says when it calls another node that is down."""
        port = self.cluster[target].peer_port
        with socket.socket() as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", port))
            listener.listen()
            listener.settimeout(20 * harness.PATIENCE)
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(20 * harness.PATIENCE)
                hello = b""
                while len(hello) < 96:
                    some = connection.recv(96 - len(hello))
                    self.assertTrue(some, "node 1 said only %r" % hello)
                    hello += some
                return hello

    def test_a_recorded_hello(self):
        """A greeting that was true once proves nothing; neither does one of another cluster, of
        another version or with a damaged proof."""
        self.node.kill()
        hello = self.recorded_hello(self.node.number)
        self.node.start()
        self.cluster.wait_whole()
        # The bystander's connection to this node died with it.
        self.bystander.close()
        self.bystander = Bystander(self.cluster)
        self.addCleanup(self.bystander.close)
        self.before = self.refusals()

        connection = self.stranger()
        connection.sendall(hello)
        answer = b""
        while len(answer) < 96:
            some = connection.recv(4096)
            if not some:
                break
            answer += some
        if answer:
            # The proof over this node's fresh nonce is what the recorder cannot know; the best that
            # he can do is to say something he has heard.
            connection.sendall(answer[:48])
            self.closed(connection)
        self.counted("proof" if answer[:4] == b"HKSH"[::-1] or not answer else "magic")

        for at, reason in ((16, "cluster"), (10, "version"), (70, "proof"), (0, "magic")):
            damaged = bytearray(hello)
            damaged[at] ^= 0x55
            if reason == "version":
                damaged[10:14] = b"\xfe\xff\xff\xff"
            connection = self.stranger()
            connection.sendall(bytes(damaged))
            self.closed(connection)
            self.counted(reason)

    def test_the_log_stays_short(self):
        """Refusals are told at most once a minute."""
        def told():
            return sum("refused" in line or "stranger" in line
                       for line in self.node.log_text().splitlines())

        before = told()
        began = time.monotonic()
        for _ in range(100):
            connection = self.stranger()
            connection.sendall(b"x" * 200)
            self.closed(connection)
        self.counted("magic", 100)
        took = time.monotonic() - began
        self.assertLessEqual(told() - before, 1 + int(took / 60))
        harness.wait_until(lambda: told() >= 1, 10, "it is told once")


class Configurations(unittest.TestCase):
    """A server that cannot start says why and what to do, and ends with status 1."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="horkos-test-"))
        self.client_port = harness.free_port()
        self.key = os.path.join(self.folder, "key")
        with open(self.key, "w") as file:
            file.write("ab" * 32)
        os.chmod(self.key, 0o600)

    def write(self, peers, node="id = 1", clients=None, more=""):
        clients = clients or "listen = 127.0.0.1:%d" % self.client_port
        path = os.path.join(self.folder, "node.conf")
        with open(path, "w") as file:
            file.write("[node]\n%s\n[cluster]\nname = c\nkey_file = key\n[peers]\n%s\n"
                       "[clients]\n%s\n%s" % (node, peers, clients, more))
        return path

    def refused(self, path, *words, status=1):
        code, out, err = harness.run([harness.PROGRAM, "server", "--config", path], check=False,
                                     bound=10)
        said = (out + err).decode("utf-8", "replace")
        self.assertEqual(code, status, said)
        for word in words:
            self.assertRegex(said, word)
        return said

    def peers(self, *numbers):
        return "\n".join("%d = 127.0.0.1:%d" % (number, harness.free_port()) for number in numbers)

    def test_two_equal_ids(self):
        path = self.write(self.peers(1, 2, 2))
        self.refused(path, r"node\.conf:9: node 2 ")

    def test_unknown_option(self):
        path = self.write(self.peers(1), node="id = 1\nthreads = 4")
        self.refused(path, r"node\.conf:3: ", r"threads")

    def test_unknown_section(self):
        path = self.write(self.peers(1), more="[spaces]\nengine = hermes\n")
        self.refused(path, r"node\.conf:(9|10): ", r"spaces")

    def test_bad_value(self):
        path = self.write(self.peers(1), node="id = 1\nworkers = many")
        self.refused(path, r"node\.conf:3: ", r"workers", r"many")
        path = self.write(self.peers(1), node="id = 64")
        self.refused(path, r"node\.conf:2: ")

    def test_no_file(self):
        self.refused(os.path.join(self.folder, "nosuch.conf"), r"nosuch\.conf", r"(?i)no such file")

    def test_not_among_the_peers(self):
        self.refused(self.write(self.peers(2, 3)), r"node\.conf:2: ", r"\[peers\]")

    def test_a_key_that_others_can_read(self):
        os.chmod(self.key, 0o644)
        self.refused(self.write(self.peers(1, 2, 3)), r"node\.conf:5: ", r"chmod 600")

    def test_a_client_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            path = self.write(self.peers(1), clients="listen = 127.0.0.1:%d" % port)
            self.refused(path, str(port), r"(?i)in use")

    def test_a_peer_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            path = self.write("1 = 127.0.0.1:%d\n%s" % (port, self.peers(2, 3)))
            self.refused(path, str(port), r"(?i)in use")

    def test_an_unreachable_peer(self):
        """It starts, says whom it cannot reach, and answers -CLUSTERDOWN or -LOADING meanwhile."""
        path = self.write(self.peers(1, 2, 3))
        log_path = os.path.join(self.folder, "log")
        child = harness.child([harness.PROGRAM, "server", "--config", path], log_path)
        try:
            def said():
                with open(log_path) as file:
                    return [line for line in file if "2" in line and "127.0.0.1:" in line
                            and "refused" in line.lower()]

            harness.wait_until(said, 15, "the log names the peer that cannot be reached")
            with resp.Client(self.client_port) as client:
                self.assertIn(client.call("GET", "a").code, ("CLUSTERDOWN", "LOADING"))
            code = harness.run([harness.PROGRAM, "status", "--port", self.client_port],
                               check=False)[0]
            self.assertEqual(code, 1)
        finally:
            child.terminate()
            harness.wait_until(lambda: child.poll() is not None, 10, "its end")
        self.assertEqual(child.returncode, 0)

    def test_status_of_nobody(self):
        code, out, err = harness.run(
            [harness.PROGRAM, "status", "--port", harness.free_port()], check=False)
        self.assertEqual(code, 2)
        self.assertTrue(err)


if __name__ == "__main__":
    harness.main()
