"""Random commands to a cluster and to redis-server 7.0: every reply is the same, byte for byte.

The replies come over RESP2 and RESP3, one by one and in pipelines, from a node drawn anew for each
pipeline. DIFFERENCES lists what is meant to differ; docs/COMPATIBILITY.md tells the reasons, and
the test refuses a difference that the page does not name, and one that no longer shows.

HORKOS_DIFFERENTIAL_COMMANDS and HORKOS_DIFFERENTIAL_SEED set how many and which.
"""

import random
import unittest

from support import commands, harness, resp

COUNT = harness.number_from_environment("HORKOS_DIFFERENTIAL_COMMANDS", 20000)
SEED = harness.number_from_environment("HORKOS_DIFFERENTIAL_SEED", 1)

# How far apart the two servers may be in what depends on the moment of a command.
CLOCK = {b"TTL": 2, b"EXPIRETIME": 2, b"PTTL": 2000, b"PEXPIRETIME": 2000}


def is_error(reply, *codes):
    return isinstance(reply, resp.Error) and (not codes or reply.code in codes)


def both_numbers(ours, theirs):
    return isinstance(ours, int) and isinstance(theirs, int)


def named(*names):
    return lambda draw: draw.name in names


def subcommand(name, *subs):
    return lambda draw: draw.name == name and len(draw.words) > 1 and draw.words[1].upper() in subs


class Difference:
    """applies(draw) says where, accepts(draw, ours, theirs) what is then right."""

    def __init__(self, applies, accepts):
        self.applies = applies
        self.accepts = accepts
        self.met = 0


def refuses(*words):
    """A command that only horkos got is an error that says one of these words."""
    def accepts(draw, ours, _):
        return is_error(ours) and any(word in ours.text.lower() for word in words)
    return accepts


# Each under the words with which docs/COMPATIBILITY.md tells of it.
DIFFERENCES = {
    "`MSETNX`, `RENAME`, `RENAMENX`, `COPY` of two keys": Difference(
        lambda draw: draw.withheld and draw.name in (b"MSETNX", b"RENAME", b"RENAMENX", b"COPY"),
        refuses(b"atomic")),
    "`MULTI`, `WATCH` and `UNWATCH` are refused": Difference(
        named(b"MULTI", b"WATCH", b"UNWATCH"), refuses(b"transactions are for")),
    "horkos keeps strings": Difference(
        named(b"LPUSH", b"HSET", b"SADD", b"ZADD", b"XADD", b"SETBIT"), refuses(b"keeps strings")),
    "horkos runs no scripts": Difference(named(b"EVAL"), refuses(b"no scripts")),
    "horkos has no publish and subscribe": Difference(
        named(b"SUBSCRIBE", b"PUBLISH"), refuses(b"no publish")),
    "there are no backups": Difference(named(b"SAVE", b"BGSAVE"), refuses(b"no backups")),
    "spaces are kept by different engines": Difference(named(b"SWAPDB"), refuses(b"engines")),
    "| `SELECT` | the error names the spaces": Difference(
        named(b"SELECT"), lambda draw, ours, theirs: is_error(ours)),
    "| `READONLY`, `READWRITE` | answer `OK`": Difference(
        named(b"READONLY", b"READWRITE"), lambda draw, ours, theirs: ours == b"OK"),
    "| `WAIT` | answers at once": Difference(
        lambda draw: draw.name == b"WAIT" and draw.withheld,
        lambda draw, ours, theirs: ours == 2),
    "| `ROLE` | `master`, offset 0, no replicas": Difference(
        named(b"ROLE"), lambda draw, ours, theirs: ours == [b"master", 0, []]),
    "| values | up to `proto-max-bulk-len`, 64 MiB": Difference(
        lambda draw: draw.name == b"SETRANGE" and draw.alone,
        lambda draw, ours, theirs: is_error(ours) and isinstance(theirs, int)),
    "| `INCRBYFLOAT` | takes decimal texts": Difference(
        named(b"INCRBYFLOAT"),
        lambda draw, ours, theirs: is_error(ours) and draw.words[2] in commands.STRANGE_FLOATS),
    "`**`": Difference(
        lambda draw: draw.name in (b"KEYS", b"SCAN") and b"**" in draw.words,
        lambda draw, ours, theirs: isinstance(ours, list) and isinstance(theirs, list)
        and sorted(theirs + [b""]) == sorted(ours)),
    "`OBJECT ENCODING`": Difference(
        subcommand(b"OBJECT", b"ENCODING"),
        lambda draw, ours, theirs: {ours, theirs} <= {b"int", b"embstr", b"raw"}),
    "`MEMORY USAGE`": Difference(
        subcommand(b"MEMORY", b"USAGE"),
        lambda draw, ours, theirs: both_numbers(ours, theirs) and ours > 0),
}


def pairs(reply):
    return sorted(reply if isinstance(reply, resp.Map) else zip(reply[::2], reply[1::2]))


def unordered(draw, ours, theirs):
    """KEYS and CONFIG GET answer in any order."""
    if draw.name == b"CONFIG" and isinstance(ours, list) and isinstance(theirs, list):
        return pairs(ours) == pairs(theirs)
    return draw.name == b"KEYS" and isinstance(ours, list) and isinstance(theirs, list) and (
        sorted(ours) == sorted(theirs))


def by_shape(draw, ours, theirs):
    """Answers that depend on the moment or on chance."""
    if draw.name in CLOCK and both_numbers(ours, theirs):
        return ours > 0 and theirs > 0 and abs(ours - theirs) <= CLOCK[draw.name]
    if draw.name == b"TIME" and isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == 2 and abs(int(ours[0]) - int(theirs[0])) <= 2
    if draw.name == b"RANDOMKEY":
        known = commands.KEYS + commands.MORE_KEYS + [None]
        return ours in known and theirs in known and (ours is None) == (theirs is None)
    return False


class Side:
    """Connections of both protocols: one to each node of a cluster, or as many to one server, since
    some commands change their connection."""

    def __init__(self, ports, space):
        self.ports = ports
        self.space = space
        self.clients = {}

    def client(self, node, protocol):
        at = (node, protocol)
        if at not in self.clients:
            self.clients[at] = resp.Client(
                self.ports[node % len(self.ports)], resp=protocol, timeout=20 * harness.PATIENCE)
            if self.space:
                self.clients[at].must("SELECT", self.space)
        return self.clients[at]

    def forget(self):
        for client in self.clients.values():
            client.close()
        self.clients = {}


def ask(client, draws):
    """[(reply, its bytes), ...] of one pipeline."""
    client.send_raw(b"".join(resp.encode(*draw.words) for draw in draws))
    return [(client.read(), client.raw) for _ in draws]


def walk(client, words):
    """A SCAN to its end: its keys in order, each once, or the first error."""
    cursor, found = b"0", set()
    for _ in range(100000):
        reply = client.call(words[0], cursor, *words[2:])
        if is_error(reply):
            return reply
        cursor = reply[0]
        found.update(reply[1])
        if cursor == b"0":
            return sorted(found)
    raise AssertionError("a SCAN does not end")


class Compare(unittest.TestCase):
    """A cluster, a redis-server, and what compares them."""

    SPACE = 0
    SETS = ()

    @classmethod
    def setUpClass(cls):
        cls.cluster = harness.Cluster(sets=cls.SETS)
        cls.addClassCleanup(cls.cluster.stop)
        cls.stand_in = harness.StandIn()
        cls.addClassCleanup(cls.stand_in.stop)

    def setUp(self):
        self.ours = Side(list(self.cluster.ports.values()), self.SPACE)
        self.theirs = Side([self.stand_in.port], self.SPACE)
        self.addCleanup(self.ours.forget)
        self.addCleanup(self.theirs.forget)
        self.found = {}
        self.sent = 0

    def _random_commands(self, count, skipped=(), transactions=False):
        """So many commands, but for those of these names. {difference: how often it was met}"""
        harness.say("differential: %d commands, HORKOS_DIFFERENTIAL_SEED=%d" % (count, SEED))
        before = {name: difference.met for name, difference in DIFFERENCES.items()}
        rng = random.Random(SEED)
        chooser = commands.Chooser(rng, transactions)
        self._clean()
        while self.sent < count and len(self.found) < 40:
            at = rng.randrange(3), rng.choice([2, 3])
            ours, theirs = self.ours.client(*at), self.theirs.client(*at)
            draws = [self._of_this_space(chooser.draw())
                     for _ in range(rng.choice([1, 1, 2, 5, 20, 50]))]
            draws = [draw for draw in draws if draw.name not in skipped]
            together = [draw for draw in draws if not draw.alone]
            if together:
                self._compare(ours, theirs, self._with_looks(together))
            for draw in draws:
                if draw.alone:
                    self._alone(ours, theirs, draw)
        for draw, told in self.found.values():
            harness.say("DIFFERENT %r: %s" % (draw, told))
        met = {name: difference.met - before[name] for name, difference in DIFFERENCES.items()}
        harness.say("differential: %d commands sent; differences met: %r" % (self.sent, met))
        self.assertEqual(len(self.found), 0, "seed %d" % SEED)
        self.assertGreaterEqual(self.sent, count)
        return met

    def _of_this_space(self, draw):
        return draw

    def _clean(self):
        for side in (self.ours, self.theirs):
            for node in range(len(side.ports) if self.SPACE else 1):
                side.client(node, 2).must("FLUSHDB" if self.SPACE else "FLUSHALL")

    def _compare(self, ours, theirs, draws):
        draws = list(draws)
        self.sent += len(draws)
        answers = zip(draws, ask(ours, draws), ask(theirs, draws))
        different = False
        for draw, (our_reply, our_raw), (their_reply, their_raw) in answers:
            if our_raw == their_raw or self._meant(draw, our_reply, their_reply):
                continue
            different = True
            self._different(draw, "horkos %r, redis %r" % (our_raw[:300], their_raw[:300]))
        if different:
            # One fault would show in every later command on that key.
            self._clean()

    def _alone(self, ours, theirs, draw):
        if draw.walk:
            self.sent += 1
            found, expected = walk(ours, draw.words), walk(theirs, draw.words)
            if found != expected and not self._meant(draw, found, expected):
                self._different(draw, "horkos %r, redis %r" % (found, expected))
        elif draw.withheld:
            self.sent += 1
            reply = ours.call(*draw.words)
            if not self._meant(draw, reply, None):
                self._different(draw, "horkos %r" % (reply,))
            if draw.name == b"MULTI":
                # Until the end of the transaction that it refused, nothing is run.
                self.assertIsInstance(ours.call("SET", "a", "in vain"), resp.Error)
                ours.call("DISCARD")
        else:
            met = sum(difference.met for difference in DIFFERENCES.values())
            self._compare(ours, theirs, [draw])
            if sum(difference.met for difference in DIFFERENCES.values()) != met:
                self._clean()

    @staticmethod
    def _with_looks(draws):
        for draw in draws:
            yield draw
            if draw.look:
                yield commands.Draw(b"EXISTS", *draw.words[1:2])

    def _meant(self, draw, ours, theirs):
        if not draw.withheld and (unordered(draw, ours, theirs) or by_shape(draw, ours, theirs)):
            return True
        for difference in DIFFERENCES.values():
            if difference.applies(draw) and difference.accepts(draw, ours, theirs):
                difference.met += 1
                return True
        return False

    def _different(self, draw, told):
        # One report for each kind of difference is enough.
        kind = (draw.name, len(draw.words), told[:12])
        self.found.setdefault(kind, (draw, told))


class Differential(Compare):
    def test_the_page_names_every_difference(self):
        told = " ".join(harness.page("COMPATIBILITY.md").split())
        self.assertEqual([name for name in DIFFERENCES if name not in told], [])

    def test_random_commands(self):
        met = self._random_commands(COUNT)
        if COUNT >= 20000:
            self.assertEqual([name for name, count in met.items() if count == 0], [])

    def test_a_planted_difference_is_seen(self):
        ours, theirs = self.ours.client(0, 2), self.theirs.client(0, 2)
        self._clean()
        ours.must("SET", "a", "1")
        self._compare(ours, theirs, [commands.Draw(b"GET", b"a")])
        self._alone(ours, theirs, commands.Draw(b"SCAN", b"0", alone=True, walk=True))
        self.assertEqual(len(self.found), 1, "the first look cleans up, the second is equal")

    def test_replies_stay_in_step_at_every_break(self):
        """The same pipeline cut at random bytes gives the same replies."""
        rng = random.Random(SEED)
        chooser = commands.Chooser(rng)
        for protocol in (2, 3):
            self._clean()
            draws = [draw for draw in (chooser.draw() for _ in range(600)) if not draw.alone]
            data = b"".join(resp.encode(*draw.words) for draw in draws)
            ours = self.ours.client(1, protocol)
            at = 0
            while at < len(data):
                step = rng.choice([1, 2, 3, 17, 200])
                ours.send_raw(data[at : at + step])
                at += step
            replies = [(ours.read(), ours.raw) for _ in draws]
            expected = ask(self.theirs.client(1, protocol), draws)
            for draw, (reply, raw), (their_reply, their_raw) in zip(draws, replies, expected):
                self.assertTrue(raw == their_raw or self._meant(draw, reply, their_reply),
                                "%r: %r, %r" % (draw, raw, their_raw))

    def test_big_values(self):
        rng = random.Random(7)
        ours, theirs = self.ours.client(0, 3), self.theirs.client(0, 3)
        for size in (65535, 65536, 1 << 20, (8 << 20) + 1):
            value = rng.randbytes(size)
            draws = [commands.Draw(b"SET", b"big", value), commands.Draw(b"GET", b"big"),
                     commands.Draw(b"STRLEN", b"big"), commands.Draw(b"APPEND", b"big", value[:77]),
                     commands.Draw(b"GETRANGE", b"big", b"-100", b"-1"),
                     commands.Draw(b"SETRANGE", b"big", b"%d" % (size // 2), b"middle"),
                     commands.Draw(b"GET", b"big")]
            self.assertEqual(ask(ours, draws), ask(theirs, draws))
            for node in range(3):
                self.assertEqual(self.ours.client(node, 3).must("GET", "big"),
                                 theirs.must("GET", "big"))


class Owned(Compare):
    """A space of engine zeus: transactions, and commands over several keys. Left out as with Homed is
    what goes through all keys."""

    SPACE = 1
    # What a watched key's deletion was is not forgotten meanwhile (COMPATIBILITY.md, WATCH).
    SETS = ("space 0.engine=hermes", "space 1.engine=zeus", "space 1.forget_ms=600000")
    SKIPPED = (b"KEYS", b"SCAN", b"DBSIZE", b"RANDOMKEY", b"FLUSHALL", b"FLUSHDB", b"SELECT",
               b"WAIT")

    def test_random_commands(self):
        self._random_commands(COUNT // 4, self.SKIPPED, transactions=True)

    def test_random_transactions(self):
        rng = random.Random(SEED)
        chooser = commands.Chooser(rng, transactions=True)
        self.conflicts = self.executed = 0
        self._clean()
        while self.sent < COUNT // 4 and len(self.found) < 40:
            self._round(rng, chooser)
        for draw, told in self.found.values():
            harness.say("DIFFERENT %r: %s" % (draw, told))
        harness.say("differential: %d commands, %d EXEC, %d of them found a change" %
                    (self.sent, self.executed, self.conflicts))
        self.assertEqual(len(self.found), 0, "seed %d" % SEED)
        self.assertGreater(self.executed - self.conflicts, self.sent // 100)
        self.assertGreater(self.conflicts, self.sent // 1000)

    def _round(self, rng, chooser):
        """One connection watches or not, another changes something or not, then the first's
        transaction, in a pipeline or one by one."""
        at = rng.randrange(3), rng.choice([2, 3])
        other = (at[0] + rng.randrange(1, 3)) % 3, rng.choice([2, 3])
        ours, theirs = self.ours.client(*at), self.theirs.client(*at)
        if rng.random() < 0.5:
            self._compare(ours, theirs, [self._of_this_space(chooser.watch())])
        if rng.random() < 0.5:
            draws = [self._of_this_space(chooser.queued()) for _ in range(rng.randrange(1, 6))]
            draws = [draw for draw in draws if draw.name not in commands.TRANSACTIONS + (
                b"SELECT", b"DISCARD")]
            self._compare(self.ours.client(*other), self.theirs.client(*other), draws)
        draws = [self._of_this_space(draw) for draw in chooser.transaction()]
        pipelines = [draws] if rng.random() < 0.5 else [[draw] for draw in draws]
        replies = []
        for pipeline in pipelines:
            self.sent += len(pipeline)
            replies += zip(pipeline, ask(ours, pipeline), ask(theirs, pipeline))
        self._compare_transaction(replies)
        if rng.random() < 0.3:
            self._compare(ours, theirs, [commands.Draw(b"UNWATCH"),
                                         self._of_this_space(chooser.several_keys())])

    def _compare_transaction(self, replies):
        queued, different = [], False
        for draw, (ours, our_raw), (theirs, their_raw) in replies:
            if theirs == b"QUEUED":
                queued.append(draw)
            if draw.name == b"EXEC":
                self.executed += isinstance(theirs, list) or theirs is None
                self.conflicts += theirs is None
            if our_raw == their_raw or self._meant(draw, ours, theirs):
                continue
            if draw.name == b"EXEC" and isinstance(ours, list) and isinstance(theirs, list) and \
                    len(ours) == len(theirs) == len(queued):
                for inner, our_one, their_one in zip(queued, ours, theirs):
                    if our_one != their_one and not self._meant(inner, our_one, their_one):
                        different = True
                        self._different(inner, "in EXEC: horkos %r, redis %r" % (our_one, their_one))
                continue
            different = True
            self._different(draw, "horkos %r, redis %r" % (our_raw[:300], their_raw[:300]))
        if different:
            self._clean()


class Tables(Owned):
    """A space of engine lotus: the same, and what goes through all keys: every node reaches all of
    them. DBSIZE counts those of one node."""

    SPACE = 3
    SETS = ("space 0.engine=hermes", "space 3.engine=lotus", "space 3.forget_ms=600000")
    SKIPPED = (b"DBSIZE", b"FLUSHALL", b"SELECT", b"WAIT")

    def _of_this_space(self, draw):
        """No key is empty; and SELECT of another space is refused, where Redis goes there."""
        if draw.words == [b"SELECT", b"1"]:
            draw.words[1] = b"%d" % self.SPACE
        draw.words = [word or b"x" for word in draw.words]
        return draw


class Homed(Compare):
    """A space of engine galene. What goes through all keys is left out, for a node has but its own,
    and WAIT, for there are no replicas."""

    SPACE = 2
    SETS = ("space 0.engine=hermes", "space 2.engine=galene", "space 2.hot_epoch_ms=100")
    SKIPPED = (b"KEYS", b"SCAN", b"DBSIZE", b"RANDOMKEY", b"FLUSHALL", b"FLUSHDB", b"SELECT",
               b"WAIT")

    def test_random_commands(self):
        self._random_commands(COUNT // 4, self.SKIPPED)


if __name__ == "__main__":
    harness.main()
