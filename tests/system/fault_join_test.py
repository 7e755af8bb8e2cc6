"""A node is restarted and rejoins while the others take writes as fast as they can: joining ends,
and the copy is complete: every key with its value is compared on all nodes.

HORKOS_JOIN_KEYS sets how many keys there are."""

import re
import subprocess
import time
import unittest

from support import harness, load, resp

KEYS = harness.number_from_environment("HORKOS_JOIN_KEYS", 100000)
BOUND_S = 60 + KEYS / 2000


class Flood:
    """redis-benchmark as a source of writes: random keys get random values until it is ended."""

    def __init__(self, port):
        self.process = subprocess.Popen(
            ["redis-benchmark", "-p", str(port), "-c", "8", "-P", "16", "-n", "1000000000", "-r",
             str(KEYS), "-q", "SET", "key:__rand_int__", "value:__rand_int__"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        """True if it ran until now; it would have ended at the first error reply."""
        ran = self.process.poll() is None
        if ran:
            self.process.kill()
            self.process.wait()
        return ran


class Join(unittest.TestCase):
    def _fill(self, port):
        with resp.Client(port, timeout=30) as client:
            for start in range(0, KEYS, 1000):
                client.pipeline(("SET", "key:%012d" % number, "first:%d" % number)
                                for number in range(start, min(start + 1000, KEYS)))

    @staticmethod
    def _all_keys(port):
        keys, cursor = set(), b"0"
        with resp.Client(port, timeout=30) as client:
            while True:
                cursor, some = client.must("SCAN", cursor, "COUNT", 5000)
                keys.update(some)
                if cursor == b"0":
                    return keys

    def _compare(self, ports):
        """Every key of any node has the same value on all. Returns how many there are."""
        keys = [self._all_keys(port) for port in ports]
        for port, found in zip(ports, keys):
            self.assertEqual(found, keys[0], "port %d has other keys than port %d" % (
                port, ports[0]))
        clients = [resp.Client(port, timeout=30) for port in ports]
        try:
            ordered = sorted(keys[0])
            for start in range(0, len(ordered), 2000):
                part = ordered[start : start + 2000]
                values = [client.must("MGET", *part) for client in clients]
                for other in values[1:]:
                    if other != values[0]:
                        index = next(i for i, pair in enumerate(zip(other, values[0]))
                                     if pair[0] != pair[1])
                        self.fail("%r: %r" % (part[index], [v[index] for v in values]))
                self.assertNotIn(None, values[0])
        finally:
            for client in clients:
                client.close()
        return len(ordered)

    def _writes_per_second(self, node, seconds=1.0):
        def writes():
            return int(node.info("stats")["total_commands_processed"])

        began, first = time.monotonic(), writes()
        harness.wait_until(lambda: time.monotonic() - began >= seconds, 10, "a second passes")
        return (writes() - first) / (time.monotonic() - began)

    def test_join_under_full_write_load(self):
        with harness.Cluster(lease_ms=500) as cluster:
            self._fill(cluster.ports[1])
            cluster[3].kill()
            with load.Load(cluster, threads=1, nodes=[1, 2]) as work:
                work.wait_acknowledged(50, [1, 2], bound=30)
                with Flood(cluster.ports[1]) as one, Flood(cluster.ports[2]) as two:
                    before = self._writes_per_second(cluster[1])
                    began = time.monotonic()
                    done, first = began, int(
                        cluster[1].info("stats")["total_commands_processed"])
                    cluster[3].start(bound=BOUND_S)
                    cluster.wait_whole(bound=BOUND_S)
                    done = time.monotonic()
                    during = (int(cluster[1].info("stats")["total_commands_processed"])
                              - first) / (done - began)
                    self.assertTrue(one.end(), "the load was refused")
                    self.assertTrue(two.end(), "the load was refused")
            harness.say("join with %d keys: %.1f s; a node's commands a second before %.0f, "
                        "meanwhile %.0f" % (KEYS, done - began, before, during))
            work.verify()
            count = self._compare(list(cluster.ports.values()))
            self.assertGreaterEqual(count, KEYS)
            for node in cluster.nodes.values():
                self.assertEqual(node.must_tell()["spaces"][0]["keys"], count)

    def test_join_finds_what_was_deleted_gone(self):
        """Keys that were deleted and written anew while a node was away are so there, too."""
        with harness.Cluster(lease_ms=500) as cluster:
            with cluster[1].client() as client:
                client.pipeline(("SET", "d:%d" % number, "old") for number in range(3000))
                cluster[2].kill()
                client.pipeline(("DEL", "d:%d" % number) for number in range(0, 3000, 2))
                client.pipeline(("SET", "d:%d" % number, "new") for number in range(0, 3000, 3))
                client.pipeline(("PEXPIRE", "d:%d" % number, 10000000)
                                for number in range(0, 3000, 7))
            cluster[2].start()
            cluster.wait_whole()
            expected = {}
            for number in range(3000):
                if number % 3 == 0:
                    expected[b"d:%d" % number] = b"new"
                elif number % 2:
                    expected[b"d:%d" % number] = b"old"
            for port in cluster.ports.values():
                self.assertEqual(self._all_keys(port), set(expected))
                with resp.Client(port) as client:
                    self.assertEqual(client.must("MGET", *expected), list(expected.values()))
                    ttls = client.pipeline(("PEXPIRETIME", key) for key in expected)
                    timed = {key for key, ttl in zip(expected, ttls) if ttl > 0}
                    self.assertEqual(timed, {key for key in expected
                                             if int(re.sub(rb"d:", b"", key)) % 7 == 0})


if __name__ == "__main__":
    harness.main()
