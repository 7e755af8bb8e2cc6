"""SIGTERM under load: the node drains, gives its lease up and ends with status 0; the others go on
at once, and nothing acknowledged is lost."""

import signal
import time
import unittest

from support import harness, load

# So long that going on before it has run out shows that it was given up, on a slow machine too.
LEASE_MS = 10000
ALLOWED_S = 5.0
ROUNDS = harness.number_from_environment("HORKOS_FAULT_ROUNDS", 1)


class Leave(unittest.TestCase):
    def _leave(self, cluster, work, number):
        others = [node.number for node in cluster.others(number)]
        began = time.monotonic()
        cluster[number].signal(signal.SIGTERM)
        status = cluster[number].ended(bound=10)
        ended = time.monotonic()
        work.wait_acknowledged(200, others)
        gap = work.longest_gap(others, began)
        harness.say("SIGTERM of node %d: ended after %.0f ms, longest gap between writes of the "
                    "others %.0f ms" % (number, 1000 * (ended - began), 1000 * gap))
        self.assertEqual(status, 0)
        self.assertLess(gap, ALLOWED_S * harness.PATIENCE)

    def test_each_node_in_turn(self):
        with harness.Cluster(lease_ms=LEASE_MS) as cluster, load.Load(cluster) as work:
            work.wait_acknowledged(200, [1, 2, 3])
            for number in list(cluster.nodes) * ROUNDS:
                self._leave(cluster, work, number)
                cluster[number].start()
                cluster.wait_whole()
            work.wait_acknowledged(100, [1, 2, 3])
            work.end()
            work.verify()
            self.assertEqual(work.timed_out(), 0)

    def test_waits_for_a_missing_node(self):
        """One of three is down, so the others could not go on without a second one: that one waits
        until the first is back, and leaves then."""
        with harness.Cluster(lease_ms=1000, sets=["node.leave_ms=60000"]) as cluster:
            with cluster[1].client() as client:
                client.must("SET", "key", "value")
                cluster[3].kill()

                def dropped():
                    members = cluster[2].must_tell()["members"]
                    return [m["live"] for m in members] == [True, True, False]

                harness.wait_until(dropped, 20, "node 3 is dropped")
                cluster[2].signal(signal.SIGTERM)
                harness.wait_until(lambda: "stopping:" in cluster[2].log_text(), 10, "it drains")
                self.assertEqual(client.must("GET", "key"), b"value")
                cluster[3].start()
                self.assertEqual(cluster[2].ended(bound=20), 0)
                client.must("SET", "key", "newer")
            with cluster[3].client() as client:
                self.assertEqual(client.must("GET", "key"), b"newer")
            self.assertIn("serves on without this node", cluster[2].log_text())

    def test_stop_by_command(self):
        """All at once. The last ones cannot be dropped by a majority any more, so `dev` tells them
        a second time, which is status 2."""
        with harness.Cluster() as cluster:
            with load.Load(cluster) as work:
                work.wait_acknowledged(100, [1, 2, 3])
                cluster.stop_by_command()
            for node in cluster.nodes.values():
                self.assertIn(node.ended(), (0, 2), "node %d" % node.number)
            self.assertEqual(work.violations, [])


if __name__ == "__main__":
    harness.main()
