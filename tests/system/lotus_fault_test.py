"""A memory server of a cluster with a space of engine lotus dies: what it had is answered -LOSTSLOT,
never nil and never an older value, until an operator gives it up; everything else stays."""

import json
import signal
import unittest

from support import harness
from support.galene import slots_command
from support.lotus import SETS, SPACE, select, settle, slots_of, wait_even

KEYS = 600


class Faults(unittest.TestCase):
    def setUp(self):
        self.cluster = harness.Cluster(lease_ms=500, sets=SETS)
        self.addCleanup(self.cluster.stop)
        wait_even(list(self.cluster.nodes.values()))

    def _fill(self):
        names = ["key:%03d" % number for number in range(KEYS)]
        with select(self.cluster[1], timeout=30) as client:
            client.must("MSET", *(w for n in names for w in (n, "of " + n)))
            slots = client.pipeline(("HORKOS", "KEYSLOT", name) for name in names)
        homes = [home for _, home in slots_of(self.cluster[1])]
        return names, slots, [n for n, slot in zip(names, slots) if homes[slot] == 3]

    def _wait_lost(self, alive):
        def lost():
            return all(sum(state == "lost" for state, _ in slots_of(node)) >= 5461
                       for node in alive)

        harness.wait_until(lost, 20, "slots are lost")

    def test_a_crash_loses_what_it_says(self):
        names, slots, doomed = self._fill()
        self.assertGreater(len(doomed), KEYS // 5)
        self.cluster[3].kill()
        alive = [self.cluster[1], self.cluster[2]]
        self._wait_lost(alive)
        for node in alive:
            with select(node, timeout=30) as client:
                self._check_loss(client, names, slots, set(doomed))
        self._empty(names, doomed)
        self.cluster[3].start()
        self.cluster.wait_whole()
        wait_even(list(self.cluster.nodes.values()))
        for node in self.cluster.nodes.values():
            with select(node, timeout=30) as client:
                self.assertEqual(settle(client, "GET", doomed[0]), b"again")
                self.assertEqual(len(settle(client, "RANGE", "-", "+")) // 2,
                                 KEYS - len(doomed) + 1)

    def _check_loss(self, client, names, slots, doomed):
        for name, slot in zip(names, slots):
            value = settle(client, "GET", name)
            if name in doomed:
                self.assertEqual((value.code, int(value.text.split()[1])), ("LOSTSLOT", slot))
            else:
                self.assertEqual(value, b"of " + name.encode())
        # A range, and a transaction over both kinds, would be wrong without what is lost.
        self.assertEqual(settle(client, "RANGE", "-", "+").code, "LOSTSLOT")
        kept = [name for name in names if name not in doomed][0]
        lost = sorted(doomed)[0]
        self.assertEqual(settle(client, "MSET", kept, "x", lost, "y").code, "LOSTSLOT")
        self.assertEqual(settle(client, "GET", kept), b"of " + kept.encode())
        self.assertEqual(settle(client, "SET", kept, "of " + kept), b"OK")

    def _empty(self, names, doomed):
        status, out, _ = slots_command(self.cluster[1], "--empty-lost", "--yes")
        self.assertEqual(status, 0, out)
        with select(self.cluster[2], timeout=30) as client:
            self.assertIsNone(settle(client, "GET", doomed[0]))
            self.assertEqual(settle(client, "SET", doomed[0], "again"), b"OK")
            keys = [k.decode() for k in settle(client, "RANGE", "-", "+")[0::2]]
            self.assertEqual(keys, sorted(set(names) - set(doomed[1:])))

    def test_the_last_memory_server_says_what_it_loses(self):
        """It leaves, and the others only compute: its rows are lost, and everybody says so."""
        for number in (1, 2):
            node = self.cluster[number]
            node.signal(signal.SIGTERM)
            self.assertEqual(node.ended(30), 0)
            node.add_option("node", "role = compute")
            node.start()
            self.cluster.wait_whole()
        with select(self.cluster[1], timeout=30) as client:
            self.assertEqual(settle(client, "SET", "key", "value"), b"OK")
            self.assertEqual({home for _, home in slots_of(self.cluster[1])}, {3})
            last = self.cluster[3]
            last.signal(signal.SIGTERM)
            self.assertEqual(last.ended(30), 0)
            self.assertIn("16384 slots were not handed over: no other node may have them; what "
                          "they hold is lost", last.log_text())
            self.assertEqual(settle(client, "GET", "key").code, "LOSTSLOT")
            # Nobody could have its slots: the order is refused, by the leader and by the other.
            for number in (1, 2):
                with select(self.cluster[number], timeout=30) as other:
                    order = other.call("HORKOS", "EMPTY-LOST", SPACE)
                    self.assertEqual(order.code, "ERR")
                    self.assertIn(b"nobody could have the lost slots", order.text)
            self.assertEqual(settle(client, "GET", "key").code, "LOSTSLOT")
            last.start()
            self.cluster.wait_whole()
            status, out, _ = slots_command(self.cluster[1], "--empty-lost", "--yes")
            self.assertEqual(status, 0, out)
            self.assertIsNone(settle(client, "GET", "key"))

    def test_no_lock_outlives_its_coordinator(self):
        """Clients of a node that is killed leave no lock behind at the others."""
        self._fill()
        with select(self.cluster[3], timeout=30) as client:
            homes = [home for _, home in slots_of(self.cluster[1])]
            names = ["hot:%d" % number for number in range(60)]
            slots = client.pipeline(("HORKOS", "KEYSLOT", name) for name in names)
            names = [n for n, slot in zip(names, slots) if homes[slot] != 3][:8]
            for _ in range(200):
                for name in names:
                    client.send("INCR", name)
                client.send("MSET", *(w for n in names for w in (n, "1")))
            self.cluster[3].kill()
        self._wait_lost([self.cluster[1], self.cluster[2]])
        for node in (self.cluster[1], self.cluster[2]):
            with select(node, timeout=30) as client:
                for name in names:
                    self.assertIsInstance(settle(client, "INCR", name), int)
                harness.wait_until(
                    lambda: json.loads(client.must("HORKOS", "LOCKS", SPACE))["locks"] == [], 20,
                    "no lock is left")


if __name__ == "__main__":
    harness.main()
