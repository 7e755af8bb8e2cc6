"""`horkos bench --resp` against nodes, for fractions of a second: what it says must add up, and what
is wrong must be said. Its cluster speaks through shared memory."""

import json
import socket
import threading
import unittest

from support import harness
from support.bench import bench, measured

SHORT = ("--keys", "2000", "--seconds", "0.3", "--warmup", "0.1", "--runs", "2", "--json")
LATENCIES = ("p50_us", "p99_us", "p999_us", "p9999_us")


class Measured(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(sets=["node.peer_transport=shm"])
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)
        cls.nodes = [cls.cluster[i] for i in (1, 2, 3)]
        cls.servers = ",".join("127.0.0.1:%d" % node.port for node in cls.nodes)
        cls.pids = ",".join(str(node.pid) for node in cls.nodes)

    def measure(self, *options, until=lambda got: True):
        # The kernel tells a process's CPU time in steps of 10 ms, which may be more than a run needs.
        got = measured("--resp", self.servers, "--pids", self.pids, *SHORT, *options, ops=100,
                       seconds=0.3, until=lambda got: got["cpu_ns_per_op"] > 0 and until(got))
        self.assertEqual((got["failed"], got["missing"]), (0, 0))
        self.assertGreater(got["ops"], 100)
        for name in ("ops_per_s", "cpu_ns_per_op", "client_cpu_ns_per_op") + LATENCIES:
            self.assertGreater(got[name], 0, name)
            spread = got["spread"][name]
            self.assertLessEqual(spread["min"], got[name], name)
            self.assertLessEqual(got[name], spread["max"], name)
        values = [got[name] for name in LATENCIES]
        self.assertEqual(values, sorted(values))
        return got

    def test_kinds_of_load(self):
        for options in (("--writes", "0"), ("--writes", "100"), ("--pipeline", "16"),
                        ("--threads", "2", "--io", "epoll", "--connections", "7"),
                        ("--dist", "zipf:0.99", "--value", "1000", "--writes", "50")):
            with self.subTest(options=options):
                got = self.measure(*options)
                self.assertEqual("reads_p50_us" in got, "100" not in options)
                self.assertEqual("writes_p50_us" in got, options != ("--writes", "0"))

    def test_closed_loop_obeys_littles_law(self):
        def in_flight(got):
            return got["ops_per_s"] * got["mean_us"] / 1e6

        # One run: of several it would be the product of two medians. It is short of what waits for an
        # answer when the run ends, and has too much of what waited when it began.
        got = self.measure("--connections", "10", "--writes", "20", "--runs", "1",
                           until=lambda got: abs(in_flight(got) - 10) < 2)
        self.assertAlmostEqual(in_flight(got), 10, delta=2)

    def test_open_loop_has_its_rate(self):
        rate = min(2000.0, self.measure()["ops_per_s"] / 10)
        for even in ((), ("--even",)):
            got = self.measure("--rate", "%g" % rate, *even,
                               until=lambda got: abs(got["ops_per_s"] - rate) < rate / 4)
            self.assertAlmostEqual(got["ops_per_s"], rate, delta=rate / 4)

    def test_keys_are_written(self):
        self.measure("--writes", "0", "--value", "7")
        with self.cluster[2].client() as client:
            for key in (b"key:000000000000", b"key:000000001999"):
                self.assertEqual(client.must("GET", key), b"x" * 7)
            self.assertEqual(client.must("EXISTS", "key:000000002000"), 0)

    def test_wait(self):
        got = self.measure("--wait", "2", "--writes", "100", "--keys", "200")
        self.assertEqual(got["settings"]["wait"], 2)
        # More replicas than there are.
        done = bench("--resp", self.servers, "--wait", "5", "--no-fill", "--writes", "100", *SHORT,
                     status=1)
        self.assertIn("requests failed", done.stderr)

    def test_missing_keys_are_counted(self):
        done = bench("--resp", self.servers, "--no-fill", "--writes", "0", *SHORT, "--keys",
                     "900000000")
        got = json.loads(done.stdout)
        self.assertGreater(got["missing"], got["ops"] * 0.9)
        self.assertIn("found no key", done.stderr)

    def test_values_of_another_length_are_no_answer(self):
        self.measure("--value", "7", "--writes", "0")
        done = bench("--resp", self.servers, "--no-fill", "--writes", "0", "--value", "8", *SHORT,
                     status=1)
        self.assertIn("requests failed", done.stderr)

    def test_all_connections_share_memory(self):
        for node in self.nodes:
            def shared(node=node):
                port = node.must_tell()["port"]
                return (port["connections"], port["shared"]) == (2, 2)

            # It serves when it has a majority, maybe before its last connection stands.
            harness.wait_until(shared, 20, "node %d has all connections" % node.number)


class Refused(unittest.TestCase):
    def test_nobody_listens(self):
        done = bench("--resp", "127.0.0.1:%d" % harness.free_port(), status=1)
        self.assertIn("refused", done.stderr)

    def test_no_such_process(self):
        with StandIn(b"+OK\r\n") as server:
            done = bench("--resp", server.address, "--pids", "2147483647", "--no-fill", *SHORT,
                         "--connections", "1", status=1)
            self.assertIn("no process", done.stderr)

    def test_servers_that_speak_something_else(self):
        for reply, said in ((b"HTTP/1.1 400 Bad Request\r\n", "no reply"), (b"*1\r\n", "no reply"),
                            (b"-ERR go away\r\n", "go away"), (b"", "closed a connection")):
            with self.subTest(reply=reply), StandIn(reply) as server:
                done = bench("--resp", server.address, *SHORT, "--connections", "1", status=1)
                self.assertIn(said, done.stderr)


class StandIn:
    """Says the same to all that comes, and closes if that is nothing."""

    def __init__(self, reply):
        self.reply = reply
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]

    def _serve(self):
        try:
            while True:
                with self.listener.accept()[0] as client:
                    while client.recv(65536) and self.reply:
                        client.sendall(self.reply)
        except OSError:
            pass

    def __enter__(self):
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


if __name__ == "__main__":
    harness.main()
