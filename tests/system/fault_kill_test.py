"""kill -9 of each node in turn under load: the others go on within a lease, nothing acknowledged is
lost, and the node rejoins with all data while writes continue."""

import time
import unittest

from support import harness, load

# Above the lease, for a machine that is busy with other tests; and so many of the longest gaps that
# there were while nothing was wrong, for one that is slow.
ALLOWED_S = 1.0
ALLOWED_GAPS = 10
LEASES_MS = [500, 150]
ROUNDS = harness.number_from_environment("HORKOS_FAULT_ROUNDS", 1)


class Kill(unittest.TestCase):
    def _kill_each(self, lease_ms):
        with harness.Cluster(lease_ms=lease_ms) as cluster, load.Load(cluster) as work:
            work.wait_acknowledged(300, [1, 2, 3])
            for number in list(cluster.nodes) * ROUNDS:
                self._kill_one(cluster, work, number, lease_ms)
            work.end()
            cluster.wait_whole()
            work.verify()
            self.assertEqual(work.timed_out(), 0, "no request waits for ever")

    def _kill_one(self, cluster, work, number, lease_ms):
        others = [node.number for node in cluster.others(number)]
        calm = time.monotonic()
        work.wait_acknowledged(300, others)
        killed = time.monotonic()
        usual = work.longest_gap(others, calm, killed)
        cluster[number].kill()
        work.wait_acknowledged(300, others)
        gap = work.longest_gap(others, killed)
        harness.say("lease %d ms, kill -9 of node %d: longest gap between writes %.0f ms, before it "
                    "%.0f ms" % (lease_ms, number, 1000 * gap, 1000 * usual))
        allowed = (lease_ms / 1000 + ALLOWED_S) * harness.PATIENCE + ALLOWED_GAPS * usual
        self.assertLess(gap, allowed)

        began = time.monotonic()
        cluster[number].start()
        cluster.wait_whole()
        gap = work.longest_gap(others, began)
        harness.say("node %d is back after %.0f ms, longest gap meanwhile %.0f ms" % (
            number, 1000 * (time.monotonic() - began), 1000 * gap))
        self.assertLess(gap, allowed)
        work.wait_acknowledged(100, [1, 2, 3])

    def test_lease_of_500_ms(self):
        self._kill_each(500)

    def test_lease_of_150_ms(self):
        self._kill_each(150)


if __name__ == "__main__":
    harness.main()
