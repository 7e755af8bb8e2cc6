"""Nodes of a cluster with a space of engine zeus die while clients use it: what is lost says so until
the operator gives it up, and EXEC of a client that outlives its node happened wholly or not at all."""

import json
import os
import signal
import threading
import unittest

from support import harness, resp

SPACE = 1
KEYS = 60


def select(node, **options):
    client = node.client(**options)
    client.must("SELECT", SPACE)
    return client


def key_of(number):
    return "key:%d" % number


def told_of(node, key):
    """HORKOS OBJECT."""
    with select(node) as client:
        return json.loads(client.must("HORKOS", "OBJECT", key))


class Lost(unittest.TestCase):
    """Every object has one copy, so that a crash loses those of the node that dies."""

    def test_lost_objects_are_given_up(self):
        with harness.Cluster(lease_ms=500, sets=["space 1.degree=1"]) as cluster:
            for number in range(KEYS):
                with select(cluster[1 + number % 3]) as client:
                    client.must("SET", key_of(number), "value %d" % number)
            cluster[3].kill()
            alive = [cluster[1], cluster[2]]
            lost = [number for number in range(KEYS) if number % 3 == 2]
            kept = [number for number in range(KEYS) if number % 3 != 2]
            harness.wait_until(lambda: self._lost(alive) == len(lost), 20, "all lost ones are met")
            for node in alive:
                self._says_lost(node, lost)
                self._has(node, kept)
            self._tells(cluster)
            self._refuses_orders(cluster[1])
            with cluster[2].client() as client:
                self.assertEqual(client.must("HORKOS", "EMPTY-LOST", SPACE), b"OK")
            harness.wait_until(
                lambda: "space 1: by the operator's word" in cluster[2].log_text(), 10,
                "the log says so")
            harness.wait_until(lambda: self._lost(alive) == 0, 20, "all lost ones are given up")
            self._is_absent(alive, lost)
            cluster[3].start()
            cluster.wait_whole()
            for node in cluster.nodes.values():
                self._has(node, kept)
                with select(node) as client:
                    self.assertEqual(client.must("GET", key_of(lost[0])), b"again")
                    self.assertIsNone(client.must("GET", key_of(lost[2])))

    def _lost(self, nodes):
        """Each is counted by one node, a live one of its directory."""
        return sum(int(node.info("zeus")["own_lost"]) for node in nodes)

    def _says_lost(self, node, lost):
        """Reads, writes and transactions over what is lost, and nothing else of them happens."""
        one, other = key_of(lost[0]), key_of(lost[1])
        with select(node) as client:
            for command in (("GET", one), ("SET", one, "x"), ("DEL", one), ("INCR", one),
                            ("EXISTS", one), ("EXPIRE", one, 10), ("MGET", key_of(0), one),
                            ("MSET", "beside", "x", one, "x"), ("MSETNX", one, "x"),
                            ("RENAME", one, other), ("COPY", key_of(0), one, "REPLACE")):
                reply = client.call(*command)
                self.assertIsInstance(reply, resp.Error, command)
                self.assertEqual(reply.code, "LOST", command)
            self.assertIsNone(client.must("GET", "beside"))
            client.must("MULTI")
            client.must("SET", "beside", "x")
            client.must("INCR", one)
            reply = client.call("EXEC")
            self.assertIsInstance(reply, resp.Error)
            self.assertEqual(reply.code, "LOST")
            self.assertIsNone(client.must("GET", "beside"))

    def _has(self, node, kept):
        with select(node) as client:
            values = client.pipeline(("GET", key_of(number)) for number in kept)
            self.assertEqual(values, [b"value %d" % number for number in kept])

    def _tells(self, cluster):
        """Who has what, and what is lost; the log of who counts them says so."""
        kept = told_of(cluster[2], key_of(1))
        self.assertEqual(kept["entry"]["owner"], 2)
        self.assertEqual(kept["entry"]["degree"], 1)
        self.assertFalse(kept["entry"]["lost"])
        self.assertTrue(kept["data"]["owned"] and kept["data"]["readable"])
        gone = told_of(cluster[1], key_of(2))
        self.assertIsNone(gone["entry"]["owner"])
        self.assertIsNone(gone["data"])
        self.assertTrue(gone["entry"]["lost"])
        for node in (cluster[1], cluster[2]):
            if self._lost([node]) > 0:
                harness.wait_until(lambda node=node: "answered -LOST" in node.log_text(), 10,
                                   "the log of node %d says so" % node.number)

    def _refuses_orders(self, node):
        with node.client() as client:
            for space, word in ((0, b"has no slots"), (16, b"a space is a number"),
                                ("-1", b"a space is a number"), ("", b"a space is a number")):
                reply = client.call("HORKOS", "EMPTY-LOST", space)
                self.assertIsInstance(reply, resp.Error, space)
                self.assertIn(word, reply.text)

    def _is_absent(self, alive, lost):
        with select(alive[0]) as client, select(alive[1]) as other:
            self.assertEqual(client.must("MGET", *map(key_of, lost)), [None] * len(lost))
            self.assertEqual(other.must("EXISTS", *map(key_of, lost)), 0)
            client.must("SET", key_of(lost[0]), "again")
            self.assertEqual(other.must("GET", key_of(lost[0])), b"again")
            self.assertEqual(other.must("INCR", key_of(lost[1])), 1)


class Leaves(unittest.TestCase):
    def test_each_node_in_turn_keeps_what_has_one_replica(self):
        with harness.Cluster(lease_ms=500, sets=["space 1.degree=1"]) as cluster:
            for number in range(KEYS):
                with select(cluster[1 + number % 3]) as client:
                    client.must("SET", key_of(number), "value %d" % number)
            for number in (1, 2, 3):
                cluster[number].signal(signal.SIGTERM)
                self.assertEqual(cluster[number].ended(bound=20), 0)
                self.assertIn("the others have all objects", cluster[number].log_text())
                cluster[number].start()
                cluster.wait_whole()
            for number in range(KEYS):
                with select(cluster[1 + (number + 1) % 3]) as client:
                    self.assertEqual(client.must("GET", key_of(number)), b"value %d" % number)


class Pairs(threading.Thread):
    """Increments two keys at once until it is stopped, at one node after another; each pair of
    threads uses the same keys, so that they move."""

    def __init__(self, cluster, number):
        super().__init__(daemon=True)
        self.cluster = cluster
        self.number = number
        self.keys = ("left:%d" % (number // 2), "right:%d" % (number // 2))
        self.done = self.unknown = self.refused = 0
        self.node = 1 + number % 3
        self.stopped = threading.Event()
        self.wrong = None

    def run(self):
        client = None
        while not self.stopped.is_set() and self.wrong is None:
            under_way = False
            try:
                client = client or select(self.cluster[self.node], timeout=20 * harness.PATIENCE)
                queued = client.pipeline([("MULTI",), ("INCR", self.keys[0]),
                                          ("INCR", self.keys[1])])
                under_way = True
                self._count(queued, client.call("EXEC"))
            except resp.Broken:
                self.unknown += under_way
                self.node = 1 + self.node % 3
                client = None
        if client is not None:
            client.close()

    def _count(self, queued, reply):
        if isinstance(reply, list) and len(reply) == 2 and reply[0] == reply[1]:
            self.done += 1
        elif isinstance(reply, resp.Error) and reply.code == "UNKNOWN":
            self.unknown += 1
        elif isinstance(reply, resp.Error) and reply.code in ("CLUSTERDOWN", "LOADING", "TRYAGAIN"):
            self.refused += 1
        else:
            self.wrong = (queued, reply)


class Killed(unittest.TestCase):
    def test_all_or_nothing_when_nodes_are_killed(self):
        with harness.Cluster(lease_ms=500) as cluster:
            threads = [Pairs(cluster, number) for number in range(6)]
            for thread in threads:
                thread.start()
            self._wait_done(threads, 200)
            for number in (3, 1):
                cluster[number].kill()
                self._wait_done(threads, 200)
                cluster[number].start()
                cluster.wait_whole(60)
                self._wait_done(threads, 100)
                # Two may not be killed before what the first had is somewhere else again.
                harness.wait_until(lambda: all(int(node.info("zeus")["own_poor"]) == 0
                                               for node in cluster.nodes.values()), 30, "repaired")
            for thread in threads:
                thread.stopped.set()
            for thread in threads:
                thread.join(60 * harness.PATIENCE)
                self.assertIsNone(thread.wrong)
            for pair in range(3):
                self._right(cluster, threads[2 * pair:2 * pair + 2])

    def _wait_done(self, threads, more):
        before = sum(thread.done for thread in threads)
        harness.wait_until(lambda: sum(thread.done for thread in threads) >= before + more or
                           any(thread.wrong for thread in threads), 60, "%d are done" % more)

    def _right(self, cluster, threads):
        done = sum(thread.done for thread in threads)
        unknown = sum(thread.unknown for thread in threads)
        for node in cluster.nodes.values():
            with select(node) as client:
                left, right = map(int, client.must("MGET", *threads[0].keys))
            self.assertEqual(left, right)
            self.assertTrue(done <= left <= done + unknown, (done, left, unknown))


class Newcomer(unittest.TestCase):
    def test_what_the_readme_shows(self):
        """The lines that README.md gives to somebody who tries transactions do what it says."""
        with open(os.path.join(harness.ROOT, "README.md")) as file:
            text = file.read()
        begin = text.index("```\n", text.index("Transactions, over any keys")) + 4
        lines = text[begin:text.index("```", begin)].splitlines()
        with harness.Cluster() as cluster:
            said = []
            for line in lines:
                for number in (1, 2, 3):
                    line = line.replace("-p %d " % (7000 + number), "-p %d " % cluster[number].port)
                said.append(harness.run(["sh", "-c", line])[1].decode().split())
        self.assertEqual(said[0], ["OK"])
        self.assertEqual(said[1], ["OK", "QUEUED", "QUEUED", "70", "30"])
        self.assertEqual(said[2], ["70", "30"])
        self.assertEqual(json.loads("".join(said[3]))["entry"]["owner"], 2)
        self.assertEqual(said[4], ["OK", "OK", "OK", "QUEUED"])  # and a nil, as redis-cli writes it
        self.assertEqual(said[5], ["70"])
        self.assertEqual(len(said), 6)


class Objects(unittest.TestCase):
    def test_what_a_node_tells_of_an_object(self):
        with harness.Cluster() as cluster:
            nobody = told_of(cluster[1], "nobody's")
            self.assertEqual(nobody, {"node": 1, "space": SPACE, "directory": [1, 2, 3],
                                      "entry": None, "data": None})
            with select(cluster[2]) as client:
                client.must("SET", "a", 1)
            first = told_of(cluster[2], "a")
            self.assertEqual(first["node"], 2)
            self.assertEqual(first["entry"]["owner"], 2)
            self.assertEqual(first["entry"]["degree"], 3)
            self.assertTrue(first["data"]["owned"])
            self.assertEqual(first["data"]["deleted"], False)
            harness.wait_until(lambda: told_of(cluster[1], "a")["entry"]["readers"] == [1, 3], 20,
                               "the other nodes have a copy")
            copy = told_of(cluster[1], "a")
            self.assertFalse(copy["data"]["owned"])
            self.assertEqual(copy["data"]["t_version"], told_of(cluster[2], "a")["data"]["t_version"])
            with select(cluster[3]) as client:
                client.must("INCR", "a")
            moved = told_of(cluster[3], "a")
            self.assertEqual(moved["entry"]["owner"], 3)
            self.assertGreater(moved["entry"]["o_ts"]["version"], first["entry"]["o_ts"]["version"])
            self.assertGreater(moved["data"]["t_version"]["version"],
                               first["data"]["t_version"]["version"])
            moves = int(cluster[1].info("zeus")["own_moves"])
            told_of(cluster[1], "a")
            self.assertEqual(int(cluster[1].info("zeus")["own_moves"]), moves)
            with select(cluster[3]) as client:
                client.must("DEL", "a")
            self.assertTrue(told_of(cluster[3], "a")["data"]["deleted"])
            with cluster[1].client() as client:
                reply = client.call("HORKOS", "OBJECT", "a")
                self.assertIn(b"no key of space 0 has an owner", reply.text)
                client.must("SELECT", SPACE)
                self.assertIsInstance(client.call("HORKOS", "OBJECT"), resp.Error)
                self.assertIn(b"too long", client.call("HORKOS", "OBJECT", "k" * 65537).text)
                self.assertIsNone(json.loads(client.must("HORKOS", "OBJECT", "k" * 65536))["entry"])
                self.assertIsNone(json.loads(client.must("HORKOS", "OBJECT", ""))["entry"])

    def test_the_copies_of_one_object(self):
        """HORKOS DEGREE: fewer, more, and as the space has them; a crash then costs what it must."""
        with harness.Cluster(sets=["space 1.repair_ms=100"]) as cluster:
            with select(cluster[2]) as owner, select(cluster[1]) as other:
                owner.must("SET", "a", 1)
                for copies, readers, degree in ((1, [], 1), (2, None, 2), (0, [1, 3], 3)):
                    self.assertEqual(owner.must("HORKOS", "DEGREE", "a", copies), b"OK")
                    harness.wait_until(lambda: self._has_copies(cluster, degree, readers), 20,
                                       "there are %d copies" % degree)
                    self.assertEqual(other.must("GET", "a"), b"1")
                    owner.must("SET", "a", 1)  # a reader has come, and goes again
                self.assertIn(b"node 2 owns the key", other.call("HORKOS", "DEGREE", "a", 1).text)
                self.assertIn(b"no such key", owner.call("HORKOS", "DEGREE", "none", 1).text)
                for wrong in ("4", "-1", "x", ""):
                    self.assertIn(b"copies are a number",
                                  owner.call("HORKOS", "DEGREE", "a", wrong).text)
                owner.must("SELECT", 0)
                self.assertIn(b"no key of space 0", owner.call("HORKOS", "DEGREE", "a", 1).text)

    def _has_copies(self, cluster, degree, readers):
        entry = told_of(cluster[2], "a")["entry"]
        return (entry["degree"] == degree and len(entry["readers"]) == degree - 1 and
                readers in (None, entry["readers"]))


if __name__ == "__main__":
    harness.main()
