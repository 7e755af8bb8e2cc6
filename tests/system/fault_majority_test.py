"""More nodes are gone than a minority: what is left says so and never serves, and only the operator
decides to go on with it."""

import time
import unittest

from support import harness, load, resp

ANSWER_S = 10.0  # a refusal comes within this time
REFUSED = ("CLUSTERDOWN", "LOADING")


class Majority(unittest.TestCase):
    def _refuses(self, *nodes, rounds=2):
        """Reads and writes are refused by each of the nodes, within a bound."""
        requests = [("GET", "kept"), ("SET", "kept", "changed"), ("INCR", "number"),
                    ("DEL", "kept"), ("MGET", "kept", "number"), ("EXISTS", "kept")]
        for _ in range(rounds):
            began = time.monotonic()
            asked = []
            for node in nodes:
                for words in requests:
                    client = node.client(timeout=ANSWER_S * harness.PATIENCE)
                    self.addCleanup(client.close)
                    client.send(*words)
                    asked.append((client, words))
            for client, words in asked:
                reply = client.read()
                self.assertIsInstance(reply, resp.Error, "%r answered %r" % (words, reply))
                self.assertIn(reply.code, REFUSED)
            self.assertLess(time.monotonic() - began, ANSWER_S * harness.PATIENCE)

    def _fill(self, cluster):
        with cluster[1].client() as client:
            client.must("SET", "kept", "value")
            client.must("SET", "number", "41")
            client.pipeline(("SET", "m:%d" % number, number) for number in range(2000))

    def _whole_again(self, cluster):
        """Everything is there on every node, and it takes writes."""
        for node in cluster.nodes.values():
            with node.client() as client:
                self.assertEqual(client.must("GET", "kept"), b"value")
                keys = ["m:%d" % number for number in range(2000)]
                self.assertEqual(client.must("MGET", *keys), [b"%d" % n for n in range(2000)])
        with cluster[2].client() as client:
            self.assertEqual(client.must("INCR", "number"), 42)
        with cluster[3].client() as client:
            self.assertEqual(client.must("GET", "number"), b"42")

    def test_the_last_of_three_refuses_until_recovered(self):
        with harness.Cluster(lease_ms=500) as cluster:
            self._fill(cluster)
            with load.Load(cluster, nodes=[1]) as work:
                work.wait_acknowledged(50, [1])
                cluster[2].kill()
                cluster[3].kill()
                with work.lock:
                    acknowledged = work.acknowledged()
                last = cluster[1]
                harness.wait_until(lambda: not (last.told() or {"can_serve": True})["can_serve"],
                                   10, "the last node has no lease any more")
                self._refuses(last)
            # An INV that both others had acknowledged before they died may have been answered a
            # moment after; nothing later.
            self.assertLessEqual(work.acknowledged() - acknowledged, work.depth * len(work.workers))
            code, told = last.status()
            self.assertNotEqual(code, 0)
            self.assertFalse(told["can_serve"])

            self._recover(cluster, last)
            work.verify(nodes=[1])
            for number in (2, 3):
                cluster[number].start()
            cluster.wait_whole()
            self._whole_again(cluster)
            work.verify()

    def _recover(self, cluster, last):
        recover = [harness.PROGRAM, "recover", "--port", last.port]
        code, out, err = harness.run(recover, check=False)
        self.assertNotEqual(code, 0)
        self.assertRegex((out + err).decode(), r"(?i)los[te]")
        self.assertIn("--yes", (out + err).decode())
        self._refuses(last, rounds=1)
        began = time.monotonic()
        code, out, err = harness.run(recover + ["--yes"], check=False)
        self.assertEqual(code, 0, (out + err).decode())
        harness.wait_until(last.serves, 20, "the recovered node serves")
        harness.say("recovered after %.0f ms" % (1000 * (time.monotonic() - began)))

    def test_the_middle_of_five_goes_on(self):
        """Two of five are a minority."""
        with harness.Cluster(nodes=5, lease_ms=500) as cluster:
            self._fill(cluster)
            cluster[4].kill()
            cluster[5].kill()
            with cluster[1].client(timeout=20) as client:
                self.assertEqual(client.must("INCR", "number"), 42)
                self.assertEqual(client.must("GET", "kept"), b"value")

    def test_all_lost_needs_bootstrap(self):
        with harness.Cluster(lease_ms=500) as cluster:
            self._fill(cluster)
            for node in cluster.nodes.values():
                node.kill()
            for node in cluster.nodes.values():
                node.serve()
            for node in cluster.nodes.values():
                harness.wait_until(lambda node=node: node.told() is not None, 10,
                                   "node %d says something" % node.number)
            self._refuses(*cluster.nodes.values())
            for node in cluster.nodes.values():
                self.assertIsNone(node.exit_status(), "it waits for the operator")
            harness.wait_until(lambda: "--bootstrap" in cluster[1].log_text(), 20,
                               "the log says what the operator can do")
            # The operator's word: an empty cluster.
            cluster[1].signal(15)
            cluster[1].ended()
            cluster[1].serve("--bootstrap")
            cluster.wait_whole()
            with cluster[2].client() as client:
                self.assertIsNone(client.must("GET", "kept"))
                client.must("SET", "kept", "anew")
            with cluster[3].client() as client:
                self.assertEqual(client.must("GET", "kept"), b"anew")

    def test_an_old_node_alone_refuses(self):
        with harness.Cluster(lease_ms=500) as cluster:
            self._fill(cluster)
            for node in cluster.nodes.values():
                node.kill()
            code, out, err = harness.run(
                [harness.PROGRAM, "dev", "--start", 1, "--dir", cluster.folder, "--wait", 2],
                check=False)
            self.assertNotEqual(code, 0, "it cannot serve, so --start does not say that it does")
            if cluster[1].exit_status() is None:
                self._refuses(cluster[1])


if __name__ == "__main__":
    harness.main()
