"""Load that would notice a loss.

Each thread keeps a connection to one node and sends small pipelines of three kinds of requests:

- INCR on shared counters. At the end a counter lies between its acknowledged increments and those
  plus the unknown ones; no two acknowledged increments got the same number; an increment that began
  after another was answered got a greater number.
- SET of a new version into a register that this thread alone writes. After an outcome that is
  unknown the register is left alone for ever (such a write may take effect late, but it is the
  register's last), so versions of a register only ever grow.
- GET of any register or counter. It returns nothing older than what was acknowledged to anybody,
  or returned to anybody, before the request was sent.

Outcomes are: acknowledged; refused (an error other than UNKNOWN: nothing changed); unknown.
"""

import random
import threading
import time

from . import harness, resp

RETRY_S = 0.005


class Counter:
    def __init__(self, key):
        self.key = key
        self.acknowledged = 0
        self.unknown = 0
        self.top = 0  # the greatest number that any finished request has returned
        self.numbers = set()


class Register:
    def __init__(self, key):
        self.key = key
        self.next = 1
        self.acknowledged = 0
        self.unknown = 0  # the version whose outcome is unknown; 0: none
        self.seen = 0  # the greatest version that any finished request has returned

    def floor(self):
        return max(self.acknowledged, self.seen)

    def value(self, version):
        return b"%s/%d/%s" % (self.key, version, b"x" * (version * 7 % 61))

    def version_of(self, value):
        """The version that a value tells; -1 if nobody ever wrote such a value."""
        if value is None:
            return 0
        parts = value.split(b"/")
        if len(parts) != 3 or not parts[1].isdigit():
            return -1
        version = int(parts[1])
        return version if value == self.value(version) else -1


class Worker(threading.Thread):
    def __init__(self, load, number, node):
        super().__init__(daemon=True, name="load-%d-node-%d" % (number, node))
        self.load = load
        self.node = node
        self.random = random.Random("%d/%d" % (load.seed, number))
        self.client = None
        self.number = number
        self.fresh = 0
        self.mine = [self._new_register() for _ in range(4)]
        # When writes were acknowledged to this thread.
        self.acknowledgements = []
        self.longest_s = 0.0  # of an answer
        self.refusals = {}
        self.unknown = 0
        self.timed_out = 0

    def _new_register(self):
        self.fresh += 1
        register = Register(b"reg:%d:%d" % (self.number, self.fresh))
        self.load.registers.append(register)
        return register

    def run(self):
        try:
            while not self.load.ending.is_set():
                if self.client is None and not self._connect():
                    continue
                self._batch()
        except Exception as error:  # A thread that dies quietly would be a test that cannot fail.
            self.load.violation("thread %s died: %r" % (self.name, error))
        finally:
            if self.client is not None:
                self.client.close()

    def _connect(self):
        try:
            self.client = self.load.connect(self.node)
            return True
        except resp.Broken:
            self.load.ending.wait(RETRY_S)
            return False

    def _draw(self):
        """The requests of one pipeline: (kind, object, number)."""
        requests, used = [], set()
        for _ in range(self.load.depth):
            dice = self.random.random()
            if dice < 0.4:
                requests.append(("incr", self.random.choice(self.load.counters), 0))
            elif dice < 0.7:
                register = self.random.choice(self.mine)
                if register in used:
                    continue
                used.add(register)
                requests.append(("set", register, register.next))
            elif dice < 0.95:
                requests.append(("get", self.random.choice(self.load.registers), 0))
            else:
                requests.append(("count", self.random.choice(self.load.counters), 0))
        return requests

    @staticmethod
    def _encode(kind, target, number):
        if kind == "incr":
            return resp.encode(b"INCR", target.key)
        if kind == "set":
            return resp.encode(b"SET", target.key, target.value(number))
        return resp.encode(b"GET", target.key)

    def _batch(self):
        requests = self._draw()
        for kind, register, _ in requests:
            if kind == "set":
                register.next += 1
        data = b"".join(self._encode(*request) for request in requests)
        # What every answer has to be at least as new as. An increment of this same pipeline only
        # makes it newer.
        floors = [target.top if isinstance(target, Counter) else target.floor()
                  for _, target, _ in requests]
        began = time.monotonic()
        answered = 0
        refused = 0
        try:
            self.client.send_raw(data)
            for request, floor in zip(requests, floors):
                reply = self.client.read()
                refused += self._answered(request, floor, reply)
                answered += 1
        except (resp.Broken, resp.Malformed) as error:
            if isinstance(error, resp.Malformed):
                self.load.violation("%s: %s" % (self.name, error))
            self.timed_out += isinstance(error, resp.TimedOut)
            self.client.close()
            self.client = None
            for request in requests[answered:]:
                self._unknown(request)
        self.longest_s = max(self.longest_s, time.monotonic() - began)
        if refused or self.client is None:
            self.load.ending.wait(RETRY_S)

    def _answered(self, request, floor, reply):
        kind, target, number = request
        if isinstance(reply, resp.Error):
            self.refusals[reply.code] = self.refusals.get(reply.code, 0) + 1
            if reply.code == "UNKNOWN":
                self._unknown(request)
            elif kind == "set":
                # It changed nothing, so the version may be written again, and the order holds.
                target.next = number
            return 1
        with self.load.lock:
            if kind == "incr":
                self._incremented(target, floor, reply)
            elif kind == "set":
                if reply != b"OK":
                    self.load.violation("SET %r answered %r" % (target.key, reply))
                target.acknowledged = max(target.acknowledged, number)
                self.acknowledgements.append(time.monotonic())
            elif kind == "get":
                self._read(target, floor, reply)
            else:
                count = int(reply or 0)
                if count < floor:
                    self.load.violation("node %d returned %r = %d after %d was known" % (
                        self.node, target.key, count, floor))
                target.top = max(target.top, count)
        return 0

    def _incremented(self, counter, floor, reply):
        if not isinstance(reply, int):
            self.load.violation("INCR %r answered %r" % (counter.key, reply))
            return
        if reply <= floor:
            self.load.violation("node %d: INCR %r answered %d after %d was known" % (
                self.node, counter.key, reply, floor))
        if reply in counter.numbers:
            self.load.violation("INCR %r answered %d twice" % (counter.key, reply))
        counter.numbers.add(reply)
        counter.acknowledged += 1
        counter.top = max(counter.top, reply)
        self.acknowledgements.append(time.monotonic())

    def _read(self, register, floor, reply):
        version = register.version_of(reply)
        if version < 0:
            self.load.violation("%r holds %r, which nobody wrote" % (register.key, reply))
        elif version < floor:
            self.load.violation("node %d returned version %d of %r after %d was known" % (
                self.node, version, register.key, floor))
        register.seen = max(register.seen, version)

    def _unknown(self, request):
        kind, target, number = request
        self.unknown += kind in ("incr", "set")
        with self.load.lock:
            if kind == "incr":
                target.unknown += 1
            elif kind == "set":
                target.unknown = number
                self.mine[self.mine.index(target)] = self._new_register()


class Load:
    """Starts on entry, ends on exit. verify() afterwards, when the nodes are whole."""

    def __init__(self, cluster, threads=2, depth=4, counters=6, timeout=20.0, seed=None,
                 nodes=None, space=0):
        self.cluster = cluster
        self.space = space
        self.ports = dict(cluster.ports)
        self.depth = depth
        self.timeout = timeout * harness.PATIENCE
        self.seed = seed if seed is not None else random.SystemRandom().randrange(1 << 32)
        self.lock = threading.Lock()
        self.ending = threading.Event()
        self.violations = []
        self.counters = [Counter(b"count:%d" % number) for number in range(counters)]
        self.registers = []
        nodes = nodes or sorted(self.ports)
        self.workers = [Worker(self, number, node)
                        for number, node in enumerate(nodes * threads)]
        harness.say("load: seed %d" % self.seed)

    def connect(self, node):
        """A client of that node, in the space of this load."""
        client = resp.Client(self.ports[node], timeout=self.timeout)
        if self.space != 0:
            client.must("SELECT", self.space)
        return client

    def __enter__(self):
        for worker in self.workers:
            worker.start()
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.ending.set()
        for worker in self.workers:
            worker.join(self.timeout + 5)
            if worker.is_alive():
                self.violation("%s does not end" % worker.name)

    def violation(self, text):
        if len(self.violations) < 50:
            self.violations.append(text)
            harness.say("VIOLATION: " + text)

    def acknowledged(self, nodes=None):
        """How many writes were acknowledged, by these nodes or by all."""
        return sum(len(worker.acknowledgements) for worker in self.workers
                   if nodes is None or worker.node in nodes)

    def wait_acknowledged(self, count, nodes, bound=20):
        """Until each of these nodes has acknowledged count more writes."""
        targets = {node: self.acknowledged([node]) + count for node in nodes}

        def reached():
            if self.violations:
                raise AssertionError("the load saw violations")
            return all(self.acknowledged([node]) >= target for node, target in targets.items())

        harness.wait_until(reached, bound, "%d more writes acknowledged by each of %r" % (
            count, list(nodes)))

    def longest_gap(self, nodes, since, until=None):
        """The longest time in which one of these nodes acknowledged no write, in seconds."""
        until = until or time.monotonic()
        longest = 0.0
        for node in nodes:
            times = sorted(when for worker in self.workers if worker.node == node
                           for when in list(worker.acknowledgements) if since <= when <= until)
            edges = [since, *times, until]
            longest = max(longest, max(b - a for a, b in zip(edges, edges[1:])))
        return longest

    def timed_out(self):
        return sum(worker.timed_out for worker in self.workers)

    def summary(self):
        refusals = {}
        for worker in self.workers:
            for code, count in worker.refusals.items():
                refusals[code] = refusals.get(code, 0) + count
        return "%d writes acknowledged, %d unknown, refusals %r, longest answer %.0f ms" % (
            self.acknowledged(), sum(worker.unknown for worker in self.workers), refusals,
            1000 * max(worker.longest_s for worker in self.workers))

    def verify(self, nodes=None, lost=False):
        """Reads everything back on every node. Fails on the first sign of a loss. lost: a key may
        also be answered -LOSTSLOT, but nothing else than that or its value. Returns how often."""
        harness.say("load: " + self.summary())
        nodes = nodes or sorted(self.ports)
        answered_lost = 0
        for node in nodes:
            with self.connect(node) as client:
                answered_lost += self._verify_counters(client, node, lost)
                answered_lost += self._verify_registers(client, node, lost)
        if self.violations:
            raise AssertionError("%d violations, the first: %s" % (
                len(self.violations), self.violations[0]))
        return answered_lost

    def _values(self, client, keys, lost):
        """Their values; an error for those that are lost, if they may be."""
        replies = client.pipeline(("GET", key) for key in keys)
        for key, reply in zip(keys, replies):
            if isinstance(reply, resp.Error) and not (lost and reply.code == "LOSTSLOT"):
                raise AssertionError("GET %r answered %r" % (key, reply))
        return replies

    def _verify_counters(self, client, node, lost):
        values = self._values(client, [counter.key for counter in self.counters], lost)
        for counter, value in zip(self.counters, values):
            if isinstance(value, resp.Error):
                continue
            value = int(value or 0)
            if not counter.acknowledged <= value <= counter.acknowledged + counter.unknown:
                self.violation("node %d: %r is %d; acknowledged %d, unknown %d" % (
                    node, counter.key, value, counter.acknowledged, counter.unknown))
            if value < counter.top:
                self.violation("node %d: %r is %d after %d was known" % (
                    node, counter.key, value, counter.top))
            counter.top = max(counter.top, value)
        return sum(isinstance(value, resp.Error) for value in values)

    def _verify_registers(self, client, node, lost):
        answered_lost = 0
        for start in range(0, len(self.registers), 500):
            part = self.registers[start : start + 500]
            values = self._values(client, [register.key for register in part], lost)
            for register, value in zip(part, values):
                if isinstance(value, resp.Error):
                    answered_lost += 1
                    continue
                version = register.version_of(value)
                allowed = {register.acknowledged}
                if register.unknown:
                    allowed.add(register.unknown)
                if version not in allowed or version < register.seen:
                    self.violation("node %d: %r holds %r; acknowledged %d, unknown %d, seen %d" % (
                        node, register.key, value, register.acknowledged, register.unknown,
                        register.seen))
                register.seen = max(register.seen, version)
        return answered_lost
