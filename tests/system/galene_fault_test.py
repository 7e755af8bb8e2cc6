"""Nodes of a cluster with a space of engine galene die, leave and join, while clients use it. What a
dead node held is answered -LOSTSLOT, never nil and never an older value; everything else stays.

HORKOS_GALENE_KEYS sets how many keys move when nodes join and leave."""

import signal
import time
import unittest

from support import harness, load, resp
from support.galene import SETS, SPACE, homed, select, slots_command, slots_of, wait_even

KEYS = harness.number_from_environment("HORKOS_GALENE_KEYS", 20000)


def fill(node, count):
    with select(node, timeout=30) as client:
        for start in range(0, count, 1000):
            replies = client.pipeline(("SET", "key:%d" % number, "value %d" % number)
                                      for number in range(start, min(start + 1000, count)))
            assert replies == [b"OK"] * len(replies), replies[:3]


def read_all(node, count):
    """The values of all keys, errors in the place of those that are lost."""
    values = []
    with select(node, timeout=30) as client:
        for start in range(0, count, 1000):
            values += client.pipeline(("GET", "key:%d" % number)
                                      for number in range(start, min(start + 1000, count)))
    return values


def key_slots(node, count):
    slots = []
    with node.client() as client:
        for start in range(0, count, 1000):
            slots += client.pipeline(("HORKOS", "KEYSLOT", "key:%d" % number)
                                     for number in range(start, min(start + 1000, count)))
    return slots


class Faults(unittest.TestCase):
    def _right(self, node, count):
        for number, value in enumerate(read_all(node, count)):
            self.assertEqual(value, b"value %d" % number, "key:%d on node %d" % (
                number, node.number))

    def test_a_crash_loses_what_it_says(self):
        # Nobody reads the hot keys any more when their home is killed: an epoch of the hot set is so
        # long that they are hot still.
        sets = [line.replace("hot_epoch_ms=100", "hot_epoch_ms=1000") for line in SETS]
        with harness.Cluster(lease_ms=500, sets=sets) as cluster:
            wait_even(list(cluster.nodes.values()))
            count = 3000
            fill(cluster[1], count)
            slots = key_slots(cluster[1], count)
            owners = [home for _, home in slots_of(cluster[1])]
            doomed = [number for number in range(count) if owners[slots[number]] == 3]
            self.assertGreater(len(doomed), count // 5)
            hot = doomed[:4]
            self._heat(cluster, hot)
            cluster[3].kill()
            alive = [cluster[1], cluster[2]]
            self._wait_lost(alive)
            # Those of space 3, of engine lotus, as well.
            harness.wait_until(lambda: "10922 slots are lost with the node" in alive[0].log_text(),
                               10, "the log says so")
            for node in alive:
                self._check_loss(node, count, set(doomed), set(hot), slots)
            self._hot_go_on(alive, hot)
            self._lost_refuse(alive, doomed, hot, slots)
            self._empty(cluster, count, doomed)
            cluster[3].start()
            cluster.wait_whole()
            wait_even(list(cluster.nodes.values()))
            for node in cluster.nodes.values():
                with select(node) as client:
                    self.assertEqual(client.must("GET", "key:%d" % doomed[0]), b"again")
                    self.assertIsNone(client.must("GET", "key:%d" % doomed[1]))
                    for number in (n for n in range(count) if n not in set(doomed)):
                        self.assertEqual(client.must("GET", "key:%d" % number),
                                         b"value %d" % number)

    def _heat(self, cluster, hot):
        """Reads these keys on all nodes until they are cached there."""
        clients = [select(node) for node in cluster.nodes.values()]
        homes = {node.number: node for node in cluster.nodes.values()}

        def cached():
            for client in clients:
                client.pipeline(("GET", "key:%d" % number) for number in hot * 10)
            # On nodes 1 and 2, which are not their home, all of such reads are hits.
            for number in (1, 2):
                before = homes[number].info("galene")
                clients[number - 1].pipeline(("GET", "key:%d" % key) for key in hot)
                after = homes[number].info("galene")
                if int(after["hits"]) - int(before["hits"]) != len(hot):
                    return False
            return True

        harness.wait_until(cached, 20, "keys %r are hot" % (hot,))
        for client in clients:
            client.close()

    def _wait_lost(self, alive, count=5461):
        def lost():
            return all(sum(state == "lost" for state, _ in slots_of(node)) >= count
                       for node in alive)

        harness.wait_until(lost, 20, "%d slots are lost" % count)

    def _check_loss(self, node, count, doomed, hot, slots):
        for number, value in enumerate(read_all(node, count)):
            if number in doomed - hot and isinstance(value, resp.Error):
                self.assertEqual(value.code, "LOSTSLOT")
                self.assertEqual(int(value.text.split()[1]), slots[number])
            else:
                # Whatever else became hot by chance is as good.
                self.assertEqual(value, b"value %d" % number, "key:%d" % number)

    def _hot_go_on(self, alive, hot):
        for at, node in enumerate(alive):
            with select(node) as client, select(alive[at - 1]) as other:
                for number in hot:
                    key = "key:%d" % number
                    self.assertEqual(client.must("SET", key, "newer by %d" % at), b"OK")
                    self.assertEqual(other.must("GET", key), b"newer by %d" % at)

    def _lost_refuse(self, alive, doomed, hot, slots):
        status, out, _ = slots_command(alive[0])
        self.assertEqual(status, 1)
        self.assertIn("lost      5461 slots", out.decode())
        cold = [number for number in doomed if number not in hot]
        for node in alive:
            with select(node) as client:
                refused = 0
                for number in cold[:200]:
                    reply = client.call("SET", "key:%d" % number, "value %d" % number)
                    if isinstance(reply, resp.Error):
                        self.assertEqual(reply.code, "LOSTSLOT")
                        refused += 1
                self.assertGreater(refused, 150)
                reply = client.call("MGET", *("key:%d" % number for number in cold[-20:]))
                self.assertIsInstance(reply, resp.Error)
                self.assertIn(int(reply.text.split()[1]), [slots[number] for number in cold])
                reply = client.call("DEL", *("key:%d" % number for number in cold[-20:]))
                self.assertIn(b"others of the command may be changed", reply.text)

    def _empty(self, cluster, count, doomed):
        status, _, err = slots_command(cluster[1], "--empty-lost")
        self.assertEqual(status, 2, "nobody is there to be asked")
        self.assertIn("--yes", err.decode())
        status, out, err = slots_command(cluster[2], "--empty-lost", "--yes")
        self.assertEqual(status, 0, err)
        self.assertIn("0 slots left", out.decode())
        for node in (cluster[1], cluster[2]):
            values = read_all(node, count)
            self.assertEqual([values[number] for number in doomed], [None] * len(doomed))
            self.assertEqual([number for number in range(count) if values[number] is None], doomed)
        with select(cluster[1]) as client, select(cluster[2]) as other:
            client.must("SET", "key:%d" % doomed[0], "again")
            self.assertEqual(other.must("GET", "key:%d" % doomed[0]), b"again")
        harness.wait_until(lambda: "no slot is lost any more" in cluster[1].log_text(), 10,
                           "the log says so")
        status, out, _ = slots_command(cluster[1], "--empty-lost", "--yes")
        self.assertEqual((status, out), (0, b"no slot is lost: nothing to do\n"))

    def test_crashes_under_load(self):
        """Nobody ever reads nil, or an older value, of what was acknowledged."""
        with harness.Cluster(lease_ms=500, sets=SETS) as cluster:
            wait_even(list(cluster.nodes.values()))
            with load.Load(cluster, space=SPACE) as work:
                work.wait_acknowledged(500, [1, 2, 3])
                cluster[3].kill()
                self._wait_lost([cluster[1], cluster[2]])
                work.wait_acknowledged(300, [1, 2])
                cluster[3].start()
                cluster.wait_whole()
                work.wait_acknowledged(100, [1, 2, 3])
            harness.say("lost: %d" % work.verify(lost=True))

    def test_leaving_without_time(self):
        """What was not handed over when its time is over is lost, and said to be."""
        with harness.Cluster(lease_ms=500, sets=SETS) as cluster:
            wait_even(list(cluster.nodes.values()))
            count = 300
            fill(cluster[1], count)
            slots = key_slots(cluster[1], count)
            with cluster[3].client() as client:
                client.must("CONFIG", "SET", "node.handover_ms", 0)
            cluster[3].signal(signal.SIGTERM)
            self.assertEqual(cluster[3].ended(bound=20), 0)
            self.assertRegex(cluster[3].log_text(), r"leaving: [1-9]\d* slots were not handed over: "
                             r"handover_ms is over; what they hold is lost")
            self._wait_lost([cluster[1], cluster[2]], 1)
            lost = {slot for slot, (state, _) in enumerate(slots_of(cluster[1])) if state == "lost"}
            for number, value in enumerate(read_all(cluster[2], count)):
                if isinstance(value, resp.Error):
                    self.assertEqual(value.code, "LOSTSLOT")
                    self.assertIn(slots[number], lost)
                else:
                    self.assertEqual(value, b"value %d" % number)

    def test_leaving_and_joining_under_load(self):
        with harness.Cluster(lease_ms=500, sets=SETS) as cluster:
            everybody = list(cluster.nodes.values())
            wait_even(everybody)
            fill(cluster[1], KEYS)
            with load.Load(cluster, space=SPACE) as work:
                work.wait_acknowledged(200, [1, 2, 3])
                began = time.monotonic()
                cluster[2].signal(signal.SIGTERM)
                self.assertEqual(cluster[2].ended(bound=60), 0)
                left = time.monotonic()
                self.assertIn("slots to hand over", cluster[2].log_text())
                work.wait_acknowledged(200, [1, 3])
                wait_even([cluster[1], cluster[3]])
                self._right(cluster[3], KEYS)
                joining = time.monotonic()
                cluster[2].start()
                cluster.wait_whole()
                wait_even(everybody, bound=60)
                joined = time.monotonic()
                work.wait_acknowledged(200, [1, 2, 3])
            harness.say("%d keys: left after %.1f s, joined and got its share after %.1f s" % (
                KEYS, left - began, joined - joining))
            work.verify()
            for node in everybody:
                self._right(node, KEYS)
            shares, _ = homed(cluster[1])
            self.assertEqual(sorted(shares.values()), [5461, 5461, 5462])


if __name__ == "__main__":
    harness.main()
