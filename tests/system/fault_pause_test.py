"""A node that stands still (SIGSTOP) and goes on (SIGCONT) with requests already in its socket: it
never answers with anything stale, loses nothing, and rejoins by itself."""

import signal
import time
import unittest

from support import harness, load, resp

ROUNDS = harness.number_from_environment("HORKOS_FAULT_ROUNDS", 1)
LEASE_MS = 500


class Sleeper:
    """Connections to the node that will stand still, and what must be true of their answers."""

    def __init__(self, node, work):
        self.work = work
        self.node = node
        self.asked = []  # (client, kind, target, floor)

    def open(self, count):
        return [self.node.client(timeout=20 * harness.PATIENCE) for _ in range(count)]

    def ask(self, clients):
        """Writes a GET of a register, a GET and an INCR of a counter into each socket. An answer
        may not be older than what is known now, when it is sent."""
        registers = [register for register in self.work.registers if register.acknowledged]
        for index, client in enumerate(clients):
            register = registers[index % len(registers)]
            counter = self.work.counters[index % len(self.work.counters)]
            with self.work.lock:
                floors = register.floor(), counter.top
                # Its outcome is not known before the answer is read.
                counter.unknown += 1
            client.send_raw(resp.encode("GET", register.key) + resp.encode("GET", counter.key)
                            + resp.encode("INCR", counter.key))
            self.asked.append((client, register, counter, floors))

    def judge(self):
        """Reads all answers. Returns how many were values, and how many errors or nothing."""
        values = errors = 0
        for client, register, counter, (version, count) in self.asked:
            try:
                replies = [client.read() for _ in range(3)]
            except resp.TimedOut:
                self.work.violation("a request in the socket was never answered")
                continue
            except resp.Broken:
                errors += 1
                continue
            finally:
                client.close()
            errors += sum(isinstance(reply, resp.Error) for reply in replies)
            values += sum(not isinstance(reply, resp.Error) for reply in replies)
            self._values(register, counter, version, count, replies)
        return values, errors

    def _values(self, register, counter, version, count, replies):
        if not isinstance(replies[0], resp.Error):
            found = register.version_of(replies[0])
            if found < version:
                self.work.violation("stale: version %d of %r after %d was known" % (
                    found, register.key, version))
        if not isinstance(replies[1], resp.Error) and int(replies[1] or 0) < count:
            self.work.violation("stale: %r = %r after %d was known" % (
                counter.key, replies[1], count))
        if isinstance(replies[2], int):
            with self.work.lock:
                counter.unknown -= 1
                counter.acknowledged += 1
                if replies[2] <= count or replies[2] in counter.numbers:
                    self.work.violation("INCR %r answered %d" % (counter.key, replies[2]))
                counter.numbers.add(replies[2])
                counter.top = max(counter.top, replies[2])
        elif isinstance(replies[2], resp.Error) and replies[2].code != "UNKNOWN":
            with self.work.lock:
                counter.unknown -= 1


class Pause(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(harness.Cluster(lease_ms=LEASE_MS))

    def _pause(self, work, number, writes, dropped):
        """Stops a node until each of the others has acknowledged so many more writes."""
        node = self.cluster[number]
        others = [other.number for other in self.cluster.others(number)]
        sleeper = Sleeper(node, work)
        early, late = sleeper.open(8), sleeper.open(8)
        for client in early + late:
            self.assertEqual(client.call("PING"), b"PONG")
        epoch = self.cluster[others[0]].must_tell()["epoch"]
        began = time.monotonic()
        node.signal(signal.SIGSTOP)
        sleeper.ask(early)
        if dropped:
            harness.wait_until(
                lambda: (self.cluster[others[0]].told() or {}).get("epoch", epoch) > epoch, 10,
                "the others go on without node %d" % number)
            work.wait_acknowledged(writes, others)
        else:
            # The time that it stands is what is tested.
            harness.wait_until(lambda: time.monotonic() - began > 0.4 * LEASE_MS / 1000, 5,
                               "less than a lease passes")
        # Now the others have acknowledged what the sleeping node cannot know.
        sleeper.ask(late)
        node.signal(signal.SIGCONT)
        stood = time.monotonic() - began
        values, errors = sleeper.judge()
        self.cluster.wait_whole()
        work.wait_acknowledged(50, [1, 2, 3])
        harness.say("node %d stood for %.0f ms: %d answers in its sockets, %d refused or closed; "
                    "whole again %.0f ms later" % (
                        number, 1000 * stood, values, errors,
                        1000 * (time.monotonic() - began - stood)))

    def _run(self, dropped):
        with load.Load(self.cluster, timeout=30) as work:
            work.wait_acknowledged(100, [1, 2, 3])
            for number in list(self.cluster.nodes) * ROUNDS:
                self._pause(work, number, 200, dropped)
            work.end()
            self.cluster.wait_whole()
            work.verify()

    def test_longer_than_the_lease(self):
        self._run(dropped=True)

    def test_shorter_than_the_lease(self):
        self._run(dropped=False)


if __name__ == "__main__":
    harness.main()
