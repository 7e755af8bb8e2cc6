"""The checkers of the system tests see what they are there to see; a checker that has caught
nothing proves nothing. All against a redis-server, in which a test can tamper with the data."""

import unittest

from support import harness, load, resp


class OneServer:
    """Looks like a cluster to the load: three nodes, all of them the same server."""

    def __init__(self, port):
        self.ports = {1: port, 2: port, 3: port}


class Checkers(unittest.TestCase):
    def setUp(self):
        self.server = harness.StandIn()
        self.addCleanup(self.server.stop)
        self.client = resp.Client(self.server.port)
        self.addCleanup(self.client.close)
        self.load = load.Load(OneServer(self.server.port))

    def _run(self):
        with self.load:
            self.load.wait_acknowledged(200, [1, 2, 3])
        self.load.verify()

    def _refused(self, words):
        with self.assertRaisesRegex(AssertionError, words):
            self.load.verify()

    def _written(self):
        return next(register for register in self.load.registers if register.acknowledged > 2)

    def test_an_increment_that_is_lost(self):
        self._run()
        self.client.must("DECR", self.load.counters[0].key)
        self._refused("acknowledged")

    def test_an_increment_that_nobody_asked_for(self):
        self._run()
        self.client.must("INCR", self.load.counters[0].key)
        self._refused("acknowledged")

    def test_a_version_that_is_lost(self):
        self._run()
        register = self._written()
        self.client.must("SET", register.key, register.value(register.acknowledged - 1))
        self._refused("acknowledged")

    def test_a_key_that_is_lost(self):
        self._run()
        self.client.must("DEL", self._written().key)
        self._refused("acknowledged")

    def test_a_value_that_is_damaged(self):
        self._run()
        self.client.must("APPEND", self._written().key, "y")
        self._refused("holds")

    def test_values_that_go_back_while_the_load_runs(self):
        with self.load:
            self.load.wait_acknowledged(200, [1, 2, 3])
            self.client.must("SET", self.load.counters[0].key, "1")
            harness.wait_until(lambda: self.load.violations, 10, "the load sees it")

    def test_a_server_that_ends_makes_outcomes_unknown(self):
        with self.load:
            self.load.wait_acknowledged(100, [1, 2, 3])
            self.server.process.kill()
            harness.wait_until(lambda: all(worker.client is None for worker in self.load.workers),
                               10, "all connections are gone")
        self.assertGreater(sum(worker.unknown for worker in self.load.workers), 0)
        self.assertEqual(self.load.violations, [])

    def test_gaps(self):
        worker = self.load.workers[0]
        worker.acknowledgements = [10.0, 10.5, 12.0]
        self.assertEqual(self.load.longest_gap([worker.node], 10.0, 12.25), 1.5)
        self.assertEqual(self.load.longest_gap([worker.node], 10.0, 14.0), 2.0)

    def test_waiting_has_a_bound(self):
        with self.assertRaises(AssertionError):
            harness.wait_until(lambda: False, 0.05, "never")


if __name__ == "__main__":
    harness.main()
