"""Random commands of the set that horkos has in common with redis-server 7.0.

A draw is a list of arguments with a hint of how it has to be sent. Most are right, many are wrong
in their number of arguments, their syntax or their values. Deadlines are far away and far apart, so
that no answer depends on a few milliseconds.
"""

import time

KEYS = [b"a", b"b", b"key:1", b"key:2", b"key:3", b"KEY:1", b"", b"\0", b"\r\n", b"sp ace",
        b"\xff\xfe\x80", b"long" * 40]
# Words of commands with a wrong number of arguments, which are keys where the number is right.
MORE_KEYS = [b"1000000", b"x"]
INTEGERS = [b"0", b"1", b"-1", b"2", b"10", b"-17", b"1000000", b"9223372036854775806",
            b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808",
            b"-9223372036854775809", b" 1", b"1 ", b"+1", b"01", b"-0", b"1.5", b"x", b"", b"\x001",
            b"99999999999999999999999"]
FLOATS = [b"0.1", b"-2.5", b"1e3", b"3.0e-3", b"5", b"-0", b"1234.56", b"1e17", b"3.14159265358979",
          b"0.30000000000000004", b"100000000000000000000", b"1e-20", b".5", b"5."]
WRONG_FLOATS = [b"nan", b"-nan", b" 1.5", b"1.5 ", b"1e", b"x", b"", b"1,5", b"--1", b"1.5.5"]
# What the page on compatibility tells apart: Redis takes some of these.
STRANGE_FLOATS = [b"0x10", b"inf", b"-inf", b"infinity", b"1e309", b"1e4000", b"1e-4960"]
VALUES = [b"", b"v", b"hello world", b"\0\1\2\r\n\xff", b"x" * 43, b"x" * 44, b"x" * 45, b"0", b"7",
          b"-12", b"12.25", b"y" * 1000]
PATTERNS = [b"*", b"key:*", b"key:?", b"**", b"k*[12]", b"key:[^1]", b"key:[1-2]", b"\\a", b"?",
            b"[", b"", b"**", b"*:*", b"[a-", b"KEY:1", b"*\xfe*", b"[\\a]"]
ARITY = [b"APPEND", b"DECR", b"DECRBY", b"DEL", b"ECHO", b"EXISTS", b"EXPIRE", b"EXPIREAT",
         b"EXPIRETIME", b"GET", b"GETDEL", b"GETEX", b"GETRANGE", b"GETSET", b"INCR", b"INCRBY",
         b"INCRBYFLOAT", b"KEYS", b"MGET", b"MSET", b"PERSIST", b"PEXPIRE", b"PEXPIREAT",
         b"PEXPIRETIME", b"PING", b"PSETEX", b"PTTL", b"RANDOMKEY", b"SCAN", b"SELECT", b"SET",
         b"SETEX", b"SETNX", b"SETRANGE", b"STRLEN", b"SUBSTR", b"TOUCH", b"TTL", b"TYPE",
         b"UNLINK", b"DBSIZE", b"TIME", b"OBJECT", b"WAIT", b"MSETNX", b"RENAME", b"RENAMENX",
         b"COPY", b"ROLE", b"CLIENT", b"CONFIG", b"COMMAND", b"SLOWLOG", b"MEMORY"]
# With so many arguments these would do something that cannot be compared.
TOO_MANY = {b"MSETNX": 2, b"RENAME": 2, b"RENAMENX": 2, b"COPY": 2, b"SCAN": 1, b"WAIT": 2}
# These do something when they have no argument or one, so a wrong number of them has to be more.
MORE_THAN = {b"DBSIZE": 1, b"TIME": 1, b"RANDOMKEY": 1, b"PING": 2, b"ROLE": 1, b"COMMAND": 9,
             b"OBJECT": 9, b"CLIENT": 9, b"CONFIG": 9, b"SLOWLOG": 9, b"MEMORY": 9}


class Draw:
    """One command. alone: not in a pipeline. look: its key is looked at afterwards, since its deadline
    may be in the past: redis counts such a key until somebody does."""

    def __init__(self, *words, alone=False, look=False, withheld=False, walk=False):
        self.words = list(words)
        self.alone = alone
        self.look = look
        self.withheld = withheld  # only horkos gets it
        self.walk = walk  # a SCAN to its end

    @property
    def name(self):
        return self.words[0].upper()

    def __repr__(self):
        return " ".join(repr(word)[1:] if len(word) < 60 else "%r.. (%d)" % (word[:20], len(word))
                        for word in self.words)


# What a space with transactions takes as Redis does; elsewhere only horkos gets them.
SEVERAL_KEYS = (b"MSETNX", b"RENAME", b"RENAMENX", b"COPY")
TRANSACTIONS = (b"MULTI", b"WATCH", b"UNWATCH")


class Chooser:
    def __init__(self, rng, transactions=False):
        self.rng = rng
        self.transactions = transactions
        self.began = int(time.time())
        self.simple = [
            (30, self.set), (20, self.get), (6, self.plain), (8, self.mget), (6, self.mset),
            (10, self.integer), (5, self.float), (6, self.append), (5, self.getrange),
            (5, self.setrange), (8, self.delete), (5, self.exists), (14, self.expire),
            (8, self.deadline), (5, self.getex), (5, self.setex), (4, self.getset),
            (6, self.object), (6, self.wrong_number), (3, self.unknown), (2, self.keys),
            (2, self.scan), (2, self.connection), (2, self.server), (5, self.withheld),
            (2, self.strange)]
        if transactions:
            self.simple.append((10, self.several_keys))
        self.weights = [weight for weight, _ in self.simple]
        self.makers = [maker for _, maker in self.simple]

    def draw(self):
        made = self.rng.choices(self.makers, self.weights)[0]()
        word = made.words[0]
        dice = self.rng.random()
        if dice < 0.1:
            made.words[0] = word.lower()
        elif dice < 0.15:
            made.words[0] = word.capitalize()
        return made

    # Arguments.
    def key(self):
        return self.rng.choice(KEYS)

    def value(self):
        dice = self.rng.random()
        if dice < 0.5:
            return self.rng.choice(VALUES)
        if dice < 0.7:
            return b"%d" % self.rng.randint(-1000, 1000)
        if dice < 0.75:
            return self.rng.choice(INTEGERS)
        return bytes(self.rng.randrange(256) for _ in range(self.rng.randrange(30)))

    def far_seconds(self):
        return 1000 + 200 * self.rng.randrange(100000)

    def duration(self, milliseconds):
        dice = self.rng.random()
        if dice < 0.7:
            return b"%d" % (self.far_seconds() * (1000 if milliseconds else 1))
        if dice < 0.85:
            return self.rng.choice([b"0", b"-1", b"-100000"])
        return self.rng.choice(INTEGERS[8:])

    def moment(self, milliseconds):
        dice = self.rng.random()
        if dice < 0.7:
            return b"%d" % ((self.began + 100 + self.far_seconds()) * (1000 if milliseconds else 1))
        if dice < 0.85:
            return self.rng.choice([b"0", b"-1", b"1", b"1000000"])
        return self.rng.choice(INTEGERS[8:])

    def lifetime(self):
        word = self.rng.choice([b"EX", b"PX", b"EXAT", b"PXAT"])
        if word in (b"EX", b"PX"):
            return [word, self.duration(word == b"PX")]
        return [word, self.moment(word == b"PXAT")]

    # Commands.
    def set(self):
        words = [b"SET", self.key(), self.value()]
        if self.rng.random() < 0.5:
            return Draw(*words)
        for _ in range(self.rng.choice([1, 1, 1, 2, 2, 3])):
            dice = self.rng.random()
            if dice < 0.6:
                words.append(self.rng.choice([b"NX", b"XX", b"GET", b"KEEPTTL", b"nx", b"get"]))
            elif dice < 0.95:
                words += self.lifetime()
            else:
                words.append(self.rng.choice([b"EX", b"FOO", b"", b"PERSIST", b"PXAT"]))
        return Draw(*words, look=True)

    def get(self):
        return Draw(self.rng.choice([b"GET", b"GET", b"GET", b"STRLEN", b"TYPE"]), self.key())

    def plain(self):
        return Draw(b"SETNX", self.key(), self.value())

    def mget(self):
        return Draw(b"MGET", *(self.key() for _ in range(self.rng.randint(1, 8))))

    def mset(self):
        words = [b"MSET"]
        for _ in range(self.rng.randint(1, 6)):
            words += [self.key(), self.value()]
        if self.rng.random() < 0.1:
            words.append(self.key())
        if self.rng.random() < 0.1:
            return Draw(b"MSETNX", self.key(), self.value())
        return Draw(*words)

    def integer(self):
        name = self.rng.choice([b"INCR", b"DECR", b"INCRBY", b"DECRBY"])
        if len(name) == 4:
            return Draw(name, self.key())
        return Draw(name, self.key(), self.rng.choice(INTEGERS))

    def float(self):
        dice = self.rng.random()
        if dice < 0.8:
            return Draw(b"INCRBYFLOAT", self.key(), self.rng.choice(FLOATS + INTEGERS[:7]))
        return Draw(b"INCRBYFLOAT", self.key(), self.rng.choice(WRONG_FLOATS))

    def strange(self):
        if self.rng.random() < 0.8:
            return Draw(b"INCRBYFLOAT", self.key(), self.rng.choice(STRANGE_FLOATS), alone=True)
        return Draw(b"SETRANGE", self.key(), b"70000000", b"v", alone=True)

    def append(self):
        return Draw(b"APPEND", self.key(), self.value())

    def getrange(self):
        ends = [b"0", b"1", b"-1", b"-3", b"5", b"100", b"-100", b"4294967296", b"x", b"",
                b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808"]
        return Draw(self.rng.choice([b"GETRANGE", b"SUBSTR"]), self.key(), self.rng.choice(ends),
                    self.rng.choice(ends))

    def setrange(self):
        offset = self.rng.choice([b"0", b"1", b"5", b"60", b"-1", b"x", b"",
                                  b"9223372036854775807"])
        return Draw(b"SETRANGE", self.key(), offset, self.rng.choice([b"", b"zz", self.value()]))

    def delete(self):
        dice = self.rng.random()
        if dice < 0.6:
            return Draw(self.rng.choice([b"DEL", b"UNLINK", b"GETDEL"]), self.key())
        return Draw(self.rng.choice([b"DEL", b"UNLINK"]),
                    *(self.key() for _ in range(self.rng.randint(1, 5))))

    def exists(self):
        return Draw(self.rng.choice([b"EXISTS", b"TOUCH"]),
                    *(self.key() for _ in range(self.rng.randint(1, 5))))

    def expire(self):
        name = self.rng.choice([b"EXPIRE", b"PEXPIRE", b"EXPIREAT", b"PEXPIREAT"])
        milliseconds = name[0:1] == b"P"
        words = [name, self.key(),
                 self.moment(milliseconds) if name.endswith(b"AT") else self.duration(milliseconds)]
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            words.append(self.rng.choice([b"NX", b"XX", b"GT", b"LT", b"gt", b"FOO"]))
        return Draw(*words, look=True)

    def deadline(self):
        return Draw(self.rng.choice([b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME", b"PERSIST"]),
                    self.key())

    def getex(self):
        words = [b"GETEX", self.key()]
        dice = self.rng.random()
        if dice < 0.2:
            words.append(b"PERSIST")
        elif dice < 0.7:
            words += self.lifetime()
        elif dice < 0.85:
            words += [self.rng.choice([b"EX", b"NX", b"KEEPTTL", b"", b"PERSIST"]),
                      self.rng.choice([b"PERSIST", b"10000", b"x"])]
        return Draw(*words, look=True)

    def setex(self):
        name = self.rng.choice([b"SETEX", b"PSETEX"])
        return Draw(name, self.key(), self.duration(name == b"PSETEX"), self.value(), look=True)

    def getset(self):
        return Draw(b"GETSET", self.key(), self.value())

    def object(self):
        dice = self.rng.random()
        if dice < 0.6:
            return Draw(b"OBJECT", self.rng.choice([b"ENCODING", b"encoding"]), self.key())
        if dice < 0.75:
            return Draw(b"OBJECT", b"FREQ", self.key())
        if dice < 0.9:
            return Draw(b"OBJECT", self.rng.choice([b"NOSUCH", b"ENCODING", b""]))
        return Draw(b"MEMORY", b"USAGE", self.key())

    def wrong_number(self):
        name = self.rng.choice(ARITY)
        more = MORE_THAN.get(name)
        if more is None:
            count = self.rng.randrange(TOO_MANY.get(name, 4))
            words = [name] + [self.rng.choice([b"key:1"] + MORE_KEYS) for _ in range(count)]
            return Draw(*words, look=True)
        if more == 9:
            return Draw(name) if name != b"COMMAND" else Draw(name, b"NOSUCH")
        return Draw(name, *(b"x" for _ in range(self.rng.randint(more, more + 2))))

    def unknown(self):
        name = self.rng.choice([b"NOSUCH", b"GETT", b"foo bar", b"", b"x" * 200, b"SE", b"\xff\xfe",
                                b"a'b", b"new\r\nline"])
        arguments = [self.rng.choice([b"", b"arg", b"y" * 100, b"'", b"\xff", b"a\r\nb"])
                     for _ in range(self.rng.randrange(6))]
        return Draw(name, *arguments)

    def keys(self):
        return Draw(b"KEYS", self.rng.choice(PATTERNS))

    def scan(self):
        dice = self.rng.random()
        if dice < 0.5:
            words = [b"SCAN", b"0"]
            if self.rng.random() < 0.6:
                words += [b"MATCH", self.rng.choice(PATTERNS)]
            if self.rng.random() < 0.6:
                words += [b"COUNT", self.rng.choice([b"1", b"3", b"1000"])]
            if self.rng.random() < 0.3:
                words += [b"TYPE", self.rng.choice([b"string", b"list", b"STRING"])]
            return Draw(*words, alone=True, walk=True)
        return Draw(*self.rng.choice([
            (b"SCAN", b"x"), (b"SCAN", b"1x"), (b"SCAN", b"0", b"COUNT", b"0"),
            (b"SCAN", b"0", b"COUNT", b"x"), (b"SCAN", b"0", b"MATCH"),
            (b"SCAN", b"0", b"FOO", b"1"),
            (b"SCAN", b"99999999999999999999999")]))

    def connection(self):
        return Draw(*self.rng.choice([
            (b"PING",), (b"PING", b"te xt"), (b"ECHO", b"\0\xff"), (b"SELECT", b"0"),
            (b"SELECT", b"x"), (b"SELECT", b"-1"), (b"SELECT", b""), (b"SELECT", b"1000000"),
            (b"CLIENT", b"SETNAME", b"me"), (b"CLIENT", b"SETNAME", b"a b"),
            (b"CLIENT", b"GETNAME"), (b"CLIENT", b"SETNAME", b""), (b"CLIENT", b"NOSUCH"),
            (b"CLIENT", b"ID", b"x"),
            (b"CLIENT", b"REPLY", b"ON"), (b"CLIENT", b"REPLY", b"x"), (b"CLIENT", b"KILL", b"x"),
            (b"CLIENT", b"NO-EVICT", b"on"), (b"CLIENT", b"NO-EVICT", b"x"),
            (b"CLIENT", b"KILL", b"ID", b"x"), (b"CLIENT", b"LIST", b"x"),
            (b"CLIENT", b"KILL", b"ID", b"123456789"), (b"CLIENT", b"KILL", b"TYPE", b"x"),
            (b"AUTH", b"secret"), (b"AUTH", b"user", b"secret"), (b"AUTH", b"a", b"b", b"c"),
            (b"HELLO", b"9"), (b"HELLO", b"x"), (b"HELLO", b"2", b"FOO"), (b"HELLO", b"2", b"AUTH"),
            (b"HELLO", b"3", b"SETNAME", b"a b"), (b"HELLO", b"3", b"AUTH", b"nobody", b"x"),
        ]))

    def server(self):
        return Draw(*self.rng.choice([
            (b"DBSIZE",), (b"TIME",), (b"RANDOMKEY",), (b"INFO", b"nosuchsection"),
            (b"CONFIG", b"GET", b"save"), (b"CONFIG", b"GET", b"appendonly"),
            (b"CONFIG", b"GET", b"nosuchoption"), (b"CONFIG", b"NOSUCH"), (b"CONFIG", b"GET"),
            (b"CONFIG", b"SET", b"nosuchoption", b"1"), (b"CONFIG", b"SET", b"timeout"),
            (b"CONFIG", b"GET", b"databases", b"save"), (b"CONFIG", b"RESETSTAT"),
            (b"SLOWLOG", b"LEN", b"x"), (b"SLOWLOG", b"NOSUCH"), (b"SLOWLOG", b"GET", b"x"),
            (b"SLOWLOG", b"GET", b"-2"), (b"COMMAND", b"NOSUCH"),
            (b"COMMAND", b"GETKEYS", b"GET", b"a"),
            (b"COMMAND", b"GETKEYS", b"MSET", b"a", b"1", b"b", b"2"),
            (b"COMMAND", b"GETKEYS", b"NOSUCH", b"a"),
            (b"COMMAND", b"INFO", b"nosuch"),
            (b"COMMAND", b"DOCS", b"nosuch"), (b"COMMAND", b"COUNT", b"x"),
            (b"LATENCY", b"LATEST"), (b"LATENCY", b"RESET"), (b"LATENCY", b"NOSUCH"),
            (b"MEMORY", b"NOSUCH"), (b"MEMORY", b"USAGE"), (b"FLUSHALL", b"x"), (b"FLUSHDB", b"x"),
            (b"WAIT", b"x", b"1"), (b"WAIT", b"0", b"x"), (b"WAIT", b"0", b"-1"),
            (b"COPY", b"a", b"a"), (b"COPY", b"a", b"b", b"FOO"), (b"FLUSHALL",), (b"FLUSHDB",),
            (b"FLUSHDB", b"SYNC"), (b"FLUSHALL", b"ASYNC"), (b"SHUTDOWN", b"x"), (b"EXEC",),
            (b"DISCARD",), (b"CLUSTER", b"INFO"), (b"ASKING",),
        ]))

    # Of spaces with transactions.
    def several_keys(self):
        one, two, three = (self.key() for _ in range(3))
        words = self.rng.choice([
            (b"MSETNX", one, b"1", two, b"2"), (b"MSETNX", one, self.value(), one, b"again"),
            (b"MSETNX", one, b"1", two, b"2", three, b"3"), (b"MSETNX", one, b"1", two),
            (b"RENAME", one, two), (b"RENAMENX", one, two), (b"COPY", one, two),
            (b"COPY", one, two, b"REPLACE"), (b"COPY", one, two, b"DB", b"x"),
            (b"RENAME", one), (b"COPY", one, two, b"FOO")])
        return Draw(*words)

    def queued(self):
        """A command that may stand between MULTI and EXEC on either side; some may not on both."""
        makers = [self.set, self.get, self.mget, self.mset, self.integer, self.float, self.append,
                  self.getrange, self.setrange, self.delete, self.exists, self.expire,
                  self.deadline, self.getex, self.setex, self.getset, self.several_keys]
        dice = self.rng.random()
        if dice < 0.05:
            return Draw(*self.rng.choice([
                (b"PING",), (b"ECHO", b"\0\xff"), (b"CLIENT", b"SETNAME", b"me"),
                (b"CLIENT", b"GETNAME"), (b"CLIENT", b"SETNAME", b"a b"), (b"SELECT", b"x"),
                (b"SELECT", b"1"), (b"SELECT", b"-1"), (b"UNWATCH",), (b"TIME",)]))
        if dice < 0.06:
            return Draw(*self.rng.choice([(b"MULTI",), (b"WATCH", self.key())]))
        if dice < 0.08:
            return self.rng.choice([self.unknown, self.several_arguments])()
        return self.rng.choice(makers)()

    def several_arguments(self):
        return Draw(self.rng.choice([b"GET", b"SET", b"INCRBY", b"WATCH", b"MULTI", b"DISCARD"]),
                    *(b"x" for _ in range(self.rng.choice([0, 4]))))

    def transaction(self):
        """What stands between MULTI and its end, and that."""
        draws = [Draw(b"MULTI")] + [self.queued() for _ in range(self.rng.randrange(9))]
        end = self.rng.choices([(b"EXEC",), (b"DISCARD",), (b"EXEC", b"x")], [20, 1, 1])[0]
        return draws + [Draw(*end)]

    def watch(self):
        return Draw(b"WATCH", *(self.key() for _ in range(self.rng.randint(1, 3))))

    def withheld(self):
        two = self.rng.sample(KEYS, 2)
        made = self._withheld(two)
        while self.transactions and made.name in SEVERAL_KEYS + TRANSACTIONS:
            made = self._withheld(two)
        return made

    def _withheld(self, two):
        return Draw(*self.rng.choice([
            (b"MSETNX", two[0], b"1", two[1], b"2"), (b"RENAME", *two), (b"RENAMENX", *two),
            (b"COPY", *two), (b"COPY", *two, b"REPLACE"), (b"SWAPDB", b"0", b"1"),
            (b"MULTI",), (b"WATCH", two[0]), (b"UNWATCH",),
            (b"LPUSH", two[0], b"x"), (b"HSET", two[0], b"f", b"v"), (b"SADD", two[0], b"x"),
            (b"ZADD", two[0], b"1", b"x"), (b"XADD", two[0], b"*", b"f", b"v"),
            (b"EVAL", b"return 1", b"0"), (b"SUBSCRIBE", b"c"), (b"PUBLISH", b"c", b"m"),
            (b"SETBIT", two[0], b"1", b"1"), (b"SAVE",), (b"BGSAVE",), (b"SELECT", b"9"),
            (b"READONLY",), (b"READWRITE",), (b"WAIT", b"2", b"100"), (b"ROLE",),
        ]), withheld=True, alone=True)
