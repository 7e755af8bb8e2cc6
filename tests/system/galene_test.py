"""A space of engine galene in a real cluster: every command from every node. What a crash does, joins
and leaves are in galene_fault_test.py."""

import json
import unittest

from support import harness
from support.galene import CACHE_KEYS, SETS, SPACE, select, slots_command, slots_of, wait_even


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
            client.must("FLUSHDB")

    def test_keys_from_every_node(self):
        one, two, three = self.clients
        for number in range(300):
            key = "k:%d" % number
            for at in range(3):
                self.assertEqual(self.clients[at].must("SET", key, "%d by %d" % (number, at)), b"OK")
                for client in self.clients:
                    self.assertEqual(client.must("GET", key), b"%d by %d" % (number, at))
        for number in range(60):
            key = "c:%d" % (number % 20)
            for client in self.clients:
                client.must("INCR", key)
        self.assertEqual([one.must("GET", "c:%d" % i) for i in range(20)], [b"9"] * 20)
        self.assertEqual(two.must("INCRBYFLOAT", "f", "0.5"), b"0.5")
        self.assertEqual(three.must("INCRBYFLOAT", "f", "0.25"), b"0.75")
        self.assertEqual(one.must("APPEND", "a", "xy"), 2)
        self.assertEqual(two.must("APPEND", "a", "z"), 3)
        self.assertEqual(three.must("GETRANGE", "a", 1, -1), b"yz")
        self.assertEqual(three.must("SETRANGE", "a", 1, "--"), 3)
        self.assertEqual(one.must("STRLEN", "a"), 3)
        self.assertEqual(one.must("GETSET", "a", "new"), b"x--")
        self.assertEqual(two.must("GETDEL", "a"), b"new")
        self.assertIsNone(three.must("GET", "a"))
        self.assertEqual(three.must("EXISTS", "a", "f", "c:1"), 2)
        self.assertEqual(one.must("TYPE", "f"), b"string")
        self.assertEqual(one.call("INCR", "f").text, b"ERR value is not an integer or out of range")

    def test_locks(self):
        for key in ("lock:%d" % number for number in range(30)):
            takers = [client.must("SET", key, "by %d" % at, "NX", "PX", 60000)
                      for at, client in enumerate(self.clients)]
            self.assertEqual(takers, [b"OK", None, None])
            self.assertIsNone(self.clients[1].must("SET", key, "mine", "IFEQ", "by 1"))
            self.assertEqual(self.clients[1].must("DELIFEQ", key, "by 1"), 0)
            self.assertEqual(self.clients[2].must("DELIFEQ", key, "by 0"), 1)
            self.assertIsNone(self.clients[0].must("SET", key, "x", "XX"))

    def test_deadlines(self):
        one, two, three = self.clients
        for number in range(30):
            key = "t:%d" % number
            one.must("SET", key, "v", "PX", 60)
            self.assertTrue(two.must("PTTL", key) <= 60)
        for number in range(30):
            harness.wait_until(lambda: three.must("EXISTS", "t:%d" % number) == 0, 5, "it expires")
        two.must("SET", "p", "v")
        self.assertEqual(three.must("EXPIRE", "p", 100), 1)
        self.assertTrue(0 < one.must("TTL", "p") <= 100)
        self.assertEqual(two.must("PERSIST", "p"), 1)
        self.assertEqual(three.must("TTL", "p"), -1)

    def test_several_keys(self):
        """Keys of all homes in one command, in order, and more than may be under way at once."""
        names = ["m:%d" % number for number in range(2000)]
        pairs = [word for name in names for word in (name, "of " + name)]
        for at, client in enumerate(self.clients):
            self.assertEqual(client.must("MSET", *pairs), b"OK")
            self.assertEqual(self.clients[at - 1].must("MGET", *names),
                             [b"of " + name.encode() for name in names])
            self.assertEqual(self.clients[at - 2].must("EXISTS", *names), 2000)
            self.assertEqual(client.must("DEL", *names), 2000)
            self.assertEqual(self.clients[at - 1].must("MGET", *names), [None] * 2000)
        big = [b"x" * 200000, b"y" * 3000000]
        self.clients[0].must("MSET", "big:1", big[0], "big:2", big[1], "big:3", big[0])
        for client in self.clients:
            self.assertEqual(client.must("MGET", "big:1", "big:2", "big:3"),
                             [big[0], big[1], big[0]])

    def test_walks_see_the_keys_at_home(self):
        names = {b"w:%d" % number for number in range(1000)}
        for name in names:
            self.clients[0].must("SET", name, "v")
        # Hot ones are on every node, and listed by their home alone.
        for _ in range(200):
            for client in self.clients:
                client.must("MGET", "w:1", "w:2", "w:3", "w:4")
        found = []
        for client, node in zip(self.clients, self.cluster.nodes.values()):
            slots = slots_of(node)
            keys, cursor = set(), b"0"
            while True:
                cursor, some = client.must("SCAN", cursor, "COUNT", 100)
                keys.update(some)
                if cursor == b"0":
                    break
            self.assertEqual(set(client.must("KEYS", "*")), keys)
            # It counts what the node holds, copies of other nodes' hot keys as well.
            self.assertTrue(len(keys) <= client.must("DBSIZE") <= len(keys) + CACHE_KEYS)
            self.assertIn(client.must("RANDOMKEY"), keys)
            for key in list(keys)[:50]:
                self.assertEqual(slots[client.must("HORKOS", "KEYSLOT", key)],
                                 ("stable", node.number))
            found += keys
        self.assertEqual(len(found), len(names), "each key at one home")
        self.assertEqual(set(found), names)
        self.clients[1].must("FLUSHDB")
        self.assertEqual(self.clients[1].must("KEYS", "*"), [])
        self.assertEqual(len(self.clients[0].must("KEYS", "*") + self.clients[2].must("KEYS", "*")),
                         len(names) - self.clients_own(found, 2))

    def clients_own(self, keys, number):
        slots = slots_of(self.cluster[number])
        with self.cluster[number].client() as client:
            return sum(slots[client.must("HORKOS", "KEYSLOT", key)][1] == number for key in keys)

    def test_what_is_refused(self):
        client = self.clients[0]
        self.assertIn(b"atomic in space 2 (engine galene)", client.call("RENAME", "a", "b").text)
        self.assertIn(b"atomic", client.call("MSETNX", "a", "1", "b", "2").text)
        self.assertIn(b"engine galene", client.call("WATCH", "a").text)
        self.assertEqual(client.must("WAIT", 2, 100), 0)
        self.assertEqual(client.must("HORKOS", "KEYSLOT", "foo"), 12182)
        self.assertEqual(client.must("HORKOS", "KEYSLOT", "a{foo}b"), 12182)
        self.assertIn(b"space 0 (engine hermes) has no slots",
                      client.call("HORKOS", "SLOTS", 0).text)
        self.assertIn(b"there is no space 5", client.call("HORKOS", "SLOTS", 5).text)
        self.assertIn(b"has no slots", client.call("HORKOS", "EMPTY-LOST", 0).text)
        self.assertIn(b"a space is a number", client.call("HORKOS", "EMPTY-LOST", "x").text)

    def test_spaces_are_apart(self):
        client = self.clients[0]
        client.must("SET", "apart", "in 2")
        client.must("SELECT", 0)
        self.assertEqual(client.must("WAIT", 2, 100), 2)
        self.assertIsNone(client.must("GET", "apart"))
        client.must("SET", "apart", "in 0")
        client.must("SELECT", 2)
        self.assertEqual(client.must("GET", "apart"), b"in 2")

    def test_it_counts(self):
        """Every operation of this node's clients is a hit, at home, or a miss, and only one of them."""
        def counted():
            info = self.cluster[3].info("galene")
            return [int(info[name]) for name in ("hits", "at_home", "misses")]

        self.assertIn("hits", self.cluster[3].info("default"))
        self.clients[2].must("PING")
        before = counted()
        self.clients[2].pipeline(("SET", "count:%d" % number, "v") for number in range(300))
        self.clients[2].pipeline(("GET", "count:%d" % number) for number in range(300))
        harness.wait_until(lambda: sum(counted()) - sum(before) >= 600, 5, "all are counted")
        hits, at_home, misses = (new - old for new, old in zip(counted(), before))
        self.assertEqual(hits + at_home + misses, 600)
        self.assertGreater(at_home, 100)
        self.assertGreater(misses, 200)
        status, out, _ = harness.run([harness.PROGRAM, "status", "-p", self.cluster[3].port])
        self.assertEqual(status, 0)
        self.assertRegex(out.decode(), r"space 2: home of 546[12] slots\nspace 3: home of \d+ slots\n"
                                       r"hit rate \d+\.\d %: \d+ hits, ")

    def test_it_tells_of_itself(self):
        status, out, _ = slots_command(self.cluster[1])
        self.assertEqual(status, 0)
        self.assertIn("space 2 (galene)", out.decode())
        self.assertIn("all slots have a home", out.decode())
        status, out, _ = slots_command(self.cluster[1], "--json")
        self.assertEqual(json.loads(out)["spaces"][0]["slots"]["stable"], 16384)
        told = [space for space in self.cluster[2].must_tell()["spaces"] if space["space"] == SPACE][0]
        self.assertEqual(told["engine"], "galene")
        self.assertIn(told["homed"], (5461, 5462))


class Modes(unittest.TestCase):
    """[G]'s baselines: the same answers, and nothing is cached."""

    def _works(self, mode):
        sets = ["node.workers=2", "space 2.engine=galene", "space 2.hot_epoch_ms=50",
                "space 2.hot_sample=1", "space 2.mode=" + mode]
        with harness.Cluster(sets=sets) as cluster:
            wait_even(list(cluster.nodes.values()))
            # Two of a node, so that both of its workers have one.
            clients = [select(node) for node in list(cluster.nodes.values()) * 2]
            for _ in range(20):
                for number in range(40):
                    key = "k:%d" % number
                    for client in clients:
                        client.must("INCR", key)
            for client in clients:
                self.assertEqual(client.must("MGET", *("k:%d" % number for number in range(40))),
                                 [b"120"] * 40)
                client.close()
            for node in cluster.nodes.values():
                info = node.info("galene")
                self.assertEqual((info["hits"], info["hot_keys"]), ("0", "0"))
                self.assertGreater(int(info["misses"]), 0)

    def test_base(self):
        self._works("base")

    def test_base_erew(self):
        self._works("base-erew")


if __name__ == "__main__":
    harness.main()
