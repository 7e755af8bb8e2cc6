"""A space of engine lotus in a real cluster: keys of all memory servers from every node, alone, in
transactions and in ranges. What a crash does is in lotus_fault_test.py."""

import json
import signal
import threading
import unittest

from support import harness, resp
from support.lotus import SETS, SPACE, select, settle, slots_of, wait_even

WRITERS = 6
ROUNDS = 60


def pairs(reply):
    """Keys and values of RANGE, from their flat list."""
    return list(zip(reply[0::2], reply[1::2]))


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(sets=SETS)
        cls.addClassCleanup(cls.cluster.stop)
        wait_even(list(cls.cluster.nodes.values()))

    def setUp(self):
        self.clients = [select(node) for node in self.cluster.nodes.values()]
        for client in self.clients:
            self.addCleanup(client.close)
        self.assertEqual(self.clients[0].must("FLUSHDB"), b"OK")

    def test_strings_from_every_node(self):
        one, two, three = self.clients
        for number in range(100):
            key = "k:%d" % number
            for at in range(3):
                self.assertEqual(self.clients[at].must("SET", key, "%d by %d" % (number, at)), b"OK")
                for client in self.clients:
                    self.assertEqual(client.must("GET", key), b"%d by %d" % (number, at))
        for number in range(60):
            for client in self.clients:
                client.must("INCR", "c:%d" % (number % 20))
        self.assertEqual(one.must("MGET", *("c:%d" % i for i in range(20))), [b"9"] * 20)
        self.assertEqual(one.must("APPEND", "a", "xy"), 2)
        self.assertEqual(two.must("APPEND", "a", "z"), 3)
        self.assertEqual(three.must("GETRANGE", "a", 1, -1), b"yz")
        self.assertEqual(one.must("GETDEL", "a"), b"xyz")
        self.assertIsNone(two.must("GET", "a"))
        self.assertEqual(three.must("SET", "l", "mine", "NX", "PX", 60000), b"OK")
        self.assertIsNone(one.must("SET", "l", "yours", "NX"))
        self.assertEqual(two.must("DELIFEQ", "l", "mine"), 1)
        one.must("SET", "t", "v", "PX", 60)
        harness.wait_until(lambda: two.must("EXISTS", "t") == 0, 5, "it expires")
        self.assertEqual(three.must("GET", "t"), None)
        for command in (("SET", "", "v"), ("GET", ""), ("DEL", "a", ""), ("RENAME", "a", "")):
            self.assertIn(b"at least one byte", one.call(*command).text)
        big = b"x" * 3000000
        self.assertEqual(one.must("SET", "big", big), b"OK")
        self.assertEqual(two.must("GET", "big"), big)

    def test_several_keys_are_one_step(self):
        one, two, three = self.clients
        names = ["m:%d" % number for number in range(300)]
        self.assertEqual(one.must("MSET", *(w for n in names for w in (n, "of " + n))), b"OK")
        self.assertEqual(two.must("MGET", *names), [b"of " + n.encode() for n in names])
        self.assertEqual(three.must("EXISTS", *names), 300)
        self.assertEqual(two.must("MSETNX", "n:1", "1", "m:1", "2"), 0)
        self.assertIsNone(one.must("GET", "n:1"))
        self.assertEqual(one.must("MSETNX", "n:1", "1", "n:2", "2"), 1)
        self.assertEqual(three.must("RENAME", "n:1", "n:3"), b"OK")
        self.assertEqual(two.must("COPY", "n:3", "n:4"), 1)
        self.assertEqual(one.must("MGET", "n:1", "n:2", "n:3", "n:4"), [None, b"2", b"1", b"1"])
        self.assertEqual(three.must("DEL", *names), 300)
        self.assertEqual(one.must("EXISTS", *names), 0)

    def test_ranges_across_servers(self):
        one, two, three = self.clients
        names = ["r:%04d" % number for number in range(500)]
        one.must("MSET", *(w for n in names for w in (n, "of " + n)))
        homes = {home for _, home in slots_of(self.cluster[1])}
        self.assertEqual(homes, {1, 2, 3})
        expected = [(n.encode(), b"of " + n.encode()) for n in names]
        self.assertEqual(pairs(two.must("RANGE", "-", "+")), expected)
        self.assertEqual(pairs(three.must("RANGE", "r:0010", "r:0020")), expected[10:20])
        self.assertEqual(pairs(one.must("RANGE", "(r:0010", "[r:0020", "LIMIT", 4)), expected[11:15])
        self.assertEqual(pairs(two.must("RANGE", "-", "r:0020", "REV", "LIMIT", 7)),
                         expected[13:20][::-1])
        self.assertEqual(three.must("RANGE", "x", "+"), [])
        self.assertEqual(one.must("RANGECOUNT", "-", "+"), 500)
        self.assertEqual(two.must("DELRANGE", "r:0100", "r:0200", "LIMIT", 60), 60)
        self.assertEqual(three.must("RANGECOUNT", "r:0100", "r:0200"), 40)
        self.assertEqual(pairs(one.must("RANGE", "r:0100", "+", "LIMIT", 1)), expected[160:161])
        with self.cluster[2].client(resp=3) as client:
            client.must("SELECT", SPACE)
            self.assertEqual(client.must("RANGE", "r:0000", "r:0002"),
                             [[b"r:0000", b"of r:0000"], [b"r:0001", b"of r:0001"]])
        # Keys of one {tag} are on one server.
        one.must("MSET", *(w for i in range(50) for w in ("{t}:%02d" % i, str(i))))
        self.assertEqual([k for k, _ in pairs(two.must("RANGE", "{t}:", "{t};"))],
                         [b"{t}:%02d" % i for i in range(50)])

    def test_transactions(self):
        one, two, _ = self.clients
        one.must("MSET", "x:1", "1", "x:2", "2", "x:3", "3")
        self.assertEqual(one.pipeline([("MULTI",), ("SET", "x:4", "4"), ("DEL", "x:1"),
                                       ("RANGE", "x:", "x;"), ("RANGECOUNT", "-", "+"),
                                       ("DELRANGE", "x:3", "+"), ("INCR", "x:2"), ("EXEC",)]),
                         [b"OK"] + [b"QUEUED"] * 6 +
                         [[b"OK", 1, [b"x:2", b"2", b"x:3", b"3", b"x:4", b"4"], 3, 2, 3]])
        self.assertEqual(pairs(two.must("RANGE", "-", "+")), [(b"x:2", b"3")])
        one.must("WATCH", "x:2", "x:9")
        two.must("SET", "x:9", "there")
        self.assertEqual(one.pipeline([("MULTI",), ("SET", "x:2", "lost"), ("EXEC",)]),
                         [b"OK", b"QUEUED", None])
        one.must("WATCH", "x:2", "x:9")
        self.assertEqual(one.pipeline([("MULTI",), ("SET", "x:2", "kept"), ("EXEC",)]),
                         [b"OK", b"QUEUED", [b"OK"]])
        self.assertEqual(two.must("GET", "x:2"), b"kept")

    def test_walks(self):
        one, two, three = self.clients
        names = {b"w:%d" % number for number in range(2000)}
        ordered = sorted(names)
        for start in range(0, 2000, 500):
            one.must("MSET", *(w for n in ordered[start:start + 500] for w in (n, "v")))
        self.assertEqual(two.must("KEYS", "*"), ordered)
        self.assertEqual(set(three.must("KEYS", "w:1??")), {n for n in names if len(n) == 5 and
                                                            n.startswith(b"w:1")})
        found, cursor, calls = [], b"0", 0
        while True:
            cursor, some = two.must("SCAN", cursor, "COUNT", 50)
            found += some
            calls += 1
            if cursor == b"0":
                break
        self.assertEqual(found, ordered)
        self.assertLess(calls, 60)
        cursor, _ = two.must("SCAN", 0)
        self.assertIn(b"this cursor is not known here", one.call("SCAN", cursor).text)
        self.assertIn(three.must("RANDOMKEY"), names)
        self.assertEqual(three.must("FLUSHDB"), b"OK")
        self.assertEqual([client.must("KEYS", "*") for client in self.clients], [[], [], []])
        self.assertIsNone(one.must("RANDOMKEY"))

    def _transfer(self, client, seed, failures):
        """Moves amounts between accounts that all others use as well, and watches their sum."""
        state = seed
        try:
            for _ in range(ROUNDS):
                state = (state * 1103515245 + 12345) % 2 ** 31
                source, target = state % 8, state // 8 % 8
                replies = []
                while True:
                    replies = client.pipeline([("MULTI",), ("DECRBY", "acc:%d" % source, 5),
                                               ("INCRBY", "acc:%d" % target, 5),
                                               ("RANGE", "acc:", "acc;"), ("EXEC",)])[-1]
                    if not isinstance(replies, resp.Error):
                        break
                    if replies.code != "TRYAGAIN":
                        failures.append(replies)
                        return
                if sum(int(v) for v in replies[2][1::2]) != 800:
                    failures.append(replies)
        except Exception as error:  # told by the thread that waits for this one
            failures.append(error)

    def test_contention(self):
        """Eight accounts on three servers, which clients of all nodes write all the time: nobody
        starves, nothing is made or lost, and no range sees a transfer in part."""
        self.clients[0].must("MSET", *(w for i in range(8) for w in ("acc:%d" % i, "100")))
        failures, threads, clients = [], [], []
        for seed in range(WRITERS):
            clients.append(select(self.cluster[seed % 3 + 1], timeout=60))
            threads.append(threading.Thread(target=self._transfer,
                                            args=(clients[-1], seed, failures)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for client in clients:
            client.close()
        self.assertEqual(failures, [])
        values = settle(self.clients[1], "RANGE", "acc:", "acc;")[1::2]
        self.assertEqual(sum(int(value) for value in values), 800)

    def test_locks_and_kill(self):
        client = self.clients[0]
        told = json.loads(client.must("HORKOS", "LOCKS"))
        self.assertEqual((told["space"], told["more"]), (SPACE, False))
        harness.wait_until(lambda: json.loads(client.must("HORKOS", "LOCKS", SPACE))["locks"] == [],
                           10, "no lock is left")
        self.assertIn(b"it has nothing here",
                      client.call("HORKOS", "KILL", "0123456789abcdef").text)
        self.assertIn(b"16 hexadecimal digits", client.call("HORKOS", "KILL", "7").text)
        self.assertIn(b"has no locks", client.call("HORKOS", "LOCKS", 0).text)
        self.assertIn(b"there is no space 9", client.call("HORKOS", "LOCKS", 9).text)

    def test_who_waits_is_told_and_may_be_killed(self):
        """Transactions that are killed while they wait begin again, and nothing is lost."""
        names = ["hot:%d" % number for number in range(12)]
        ended, clients = threading.Event(), [select(self.cluster[i % 3 + 1], timeout=60)
                                             for i in range(WRITERS)]

        def write(client):
            while not ended.is_set():
                client.pipeline([("MULTI",)] + [("INCR", name) for name in names] + [("EXEC",)])

        threads = [threading.Thread(target=write, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        try:
            harness.wait_until(self._kills_one_that_waits, 20, "one that waits is killed")
        finally:
            ended.set()
            for thread in threads:
                thread.join()
            for client in clients:
                client.close()
        self.assertEqual(len(set(settle(self.clients[2], "MGET", *names))), 1)

    def _kills_one_that_waits(self):
        client = self.clients[0]
        for lock in json.loads(client.must("HORKOS", "LOCKS"))["locks"]:
            requests = {one["id"]: one for one in lock["owners"] + lock["waiters"]}
            for waiter in lock["waiters"]:
                self.assertLessEqual(set(waiter["waits_for"]), set(requests))
                if waiter["waits_for"] and client.call("HORKOS", "KILL", waiter["id"]) == b"OK":
                    return True
        return False

    def test_other_spaces_have_no_ranges(self):
        client = self.clients[0]
        client.must("SELECT", 0)
        self.assertIn(b"keys have an order in spaces of the engine lotus",
                      client.call("RANGE", "-", "+").text)
        self.assertEqual(client.must("WAIT", 2, 100), 2)
        client.must("SELECT", SPACE)
        self.assertEqual(client.must("WAIT", 2, 100), 0)

    def test_it_counts(self):
        before = self.cluster[1].info("lotus")
        self.clients[0].pipeline(("SET", "count:%d" % number, "v") for number in range(100))
        names = ("transactions", "tries", "requests")

        def counted():
            after = self.cluster[1].info("lotus")
            return all(int(after[name]) - int(before[name]) >= 100 for name in names)

        harness.wait_until(counted, 5, "all are counted")
        self.assertIn("lotus", self.cluster[2].must_tell())
        rows = [client.must("DBSIZE") for client in self.clients]
        self.assertEqual(sum(rows), 100)
        self.assertTrue(all(rows), rows)


class Policies(unittest.TestCase):
    """The same answers, whoever waits and whoever gives way."""

    def _works(self, *options):
        sets = ["node.workers=2", "space 3.engine=lotus"] + ["space 3." + o for o in options]
        with harness.Cluster(sets=sets) as cluster:
            wait_even(list(cluster.nodes.values()))
            clients = [select(node) for node in cluster.nodes.values()]
            for client in clients:
                for number in range(20):
                    settle(client, "INCR", "n:%d" % number)
            values = settle(clients[0], "RANGE", "n:", "n;")[1::2]
            self.assertEqual(values, [b"3"] * 20)
            for client in clients:
                client.close()

    def test_no_wait(self):
        self._works("cc=no_wait")

    def test_wait_die(self):
        self._works("cc=wait_die", "hints_max=0")

    def test_one_by_one(self):
        self._works("one_trip=no", "batch_inside=no")

    def test_batches_across(self):
        self._works("batch_across=yes")

    def test_values_at_other_nodes(self):
        """Two nodes own the keys, the third keeps what they have no room for."""
        sets = ["node.workers=2", "space 3.engine=lotus", "space 3.near_max=4096"]
        with harness.Cluster(sets=sets) as cluster:
            for number, role in ((1, "compute"), (2, "compute"), (3, "memory")):
                node = cluster[number]
                node.signal(signal.SIGTERM)
                self.assertEqual(node.ended(30), 0)
                node.add_option("node", "role = " + role)
                node.start()
                cluster.wait_whole()
            first, second = select(cluster[1]), select(cluster[2])
            self.assertEqual({home for _, home in slots_of(cluster[1])}, {1, 2})
            values = {"far:%02d" % number: b"%d" % number * 300 for number in range(60)}
            for number, (key, value) in enumerate(values.items()):
                settle((first, second)[number % 2], "SET", key, value)

            def room():
                far = [node.info("lotus")["space3_far"] for node in (cluster[1], cluster[2])]
                near = [int(dict(one.split("=") for one in f.split(","))["near_bytes"]) for f in far]
                return all(n <= 4096 for n in near)

            harness.wait_until(room, 20, "homes have room")
            kept = dict(one.split("=") for one in cluster[3].info("lotus")["space3_far"].split(","))
            self.assertGreaterEqual(int(kept["cells"]), 30)
            self.assertEqual(int(kept["near_bytes"]), 0)
            for key, value in values.items():
                self.assertEqual(settle(second, "GET", key), value)
            said = settle(first, "RANGE", "far:", "far;")
            self.assertEqual(dict(zip(said[0::2], said[1::2])),
                             {key.encode(): value for key, value in values.items()})
            # Who keeps them leaves, and there is nobody else: they go home first.
            cluster[3].signal(signal.SIGTERM)
            self.assertEqual(cluster[3].ended(30), 0)
            self.assertNotIn("they are lost", cluster[3].log_text())
            for key, value in values.items():
                self.assertEqual(settle(first, "GET", key), value)
            self.assertEqual(settle(second, "DELRANGE", "far:", "far;"), len(values))
            for client in (first, second):
                client.close()


if __name__ == "__main__":
    harness.main()
