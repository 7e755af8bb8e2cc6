"""A client that speaks RESP and hides nothing.

It keeps the bytes of each reply, tells apart the types of RESP3, does not retry, and says honestly
what is known of a request: answered, refused, or unknown because the connection ended first.
"""

import socket


class Broken(Exception):
    """The connection ended, or the time-out passed before a reply was whole: of no more use."""


class TimedOut(Broken):
    """No byte came for as long as the time-out allows."""


class Malformed(Exception):
    """The server sent something that is no RESP."""


class Error:
    """An error reply. Its code is the first word: ERR, CLUSTERDOWN, UNKNOWN, ..."""

    def __init__(self, text):
        self.text = text
        self.code = text.split(b" ", 1)[0].decode("latin-1")

    def __repr__(self):
        return "Error(%r)" % self.text

    def __eq__(self, other):
        return isinstance(other, Error) and other.text == self.text

    def __hash__(self):
        return hash(self.text)


class Simple(bytes):
    """A status reply, as +OK."""


class Verbatim(bytes):
    """The text of a verbatim string of RESP3, without its format."""


class Set(list):
    """A set of RESP3, in the order in which it came."""


class Push(list):
    """A push message of RESP3."""


class Map(list):
    """A map of RESP3: a list of pairs, in the order in which they came."""

    def get(self, key, default=None):
        for name, value in self:
            if name == key:
                return value
        return default


def encode(*arguments):
    """One command as a multibulk. Arguments may be bytes, text or numbers."""
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        if not isinstance(argument, (bytes, bytearray)):
            argument = str(argument).encode()
        parts.append(b"$%d\r\n" % len(argument))
        parts.append(argument)
        parts.append(b"\r\n")
    return b"".join(parts)


class Client:
    """One connection. Every call ends within the time-out (seconds without progress)."""

    def __init__(self, port, host="127.0.0.1", timeout=10.0, resp=2):
        self.port = port
        self.raw = b""
        self.buffer = bytearray()
        self.at = 0
        try:
            self.socket = socket.create_connection((host, port), timeout)
        except OSError as error:
            raise Broken("connect to port %d: %s" % (port, error)) from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if resp == 3:
            hello = self.call("HELLO", 3)
            if not isinstance(hello, Map):
                self.close()
                raise Malformed("HELLO 3 answered %r" % (hello,))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send_raw(self, data):
        try:
            self.socket.sendall(data)
        except socket.timeout as error:
            raise TimedOut("send: %s" % error) from error
        except OSError as error:
            raise Broken("send: %s" % error) from error

    def send(self, *arguments):
        self.send_raw(encode(*arguments))

    def call(self, *arguments):
        """Sends one command and returns its reply; an error is returned, not raised."""
        self.send(*arguments)
        return self.read()

    def must(self, *arguments):
        """As call, but an error reply is a failure of the test."""
        reply = self.call(*arguments)
        if isinstance(reply, Error):
            raise AssertionError("port %d, %r: %s" % (self.port, arguments[:4], reply.text))
        return reply

    def pipeline(self, commands):
        """Sends all commands at once, then reads all replies."""
        commands = list(commands)
        self.send_raw(b"".join(encode(*command) for command in commands))
        return [self.read() for _ in commands]

    def read(self):
        """The next reply. Its bytes are in self.raw."""
        if self.at > 1 << 16:
            del self.buffer[: self.at]
            self.at = 0
        start = self.at
        value = self._value()
        self.raw = bytes(self.buffer[start : self.at])
        return value

    def at_end(self):
        """Whether the server has closed the connection; waits for that as long as the time-out."""
        if len(self.buffer) > self.at:
            return False
        try:
            self._receive()
        except TimedOut:
            return False
        except Broken:
            return True
        return False

    def _receive(self):
        try:
            data = self.socket.recv(1 << 18)
        except socket.timeout as error:
            raise TimedOut("no reply on port %d within the time-out" % self.port) from error
        except OSError as error:
            raise Broken("receive: %s" % error) from error
        if not data:
            raise Broken("port %d closed the connection" % self.port)
        self.buffer += data

    def _line(self):
        begin = self.at
        searched = begin
        while True:
            end = self.buffer.find(b"\r\n", searched)
            if end >= 0:
                self.at = end + 2
                return bytes(self.buffer[begin:end])
            searched = max(begin, len(self.buffer) - 1)
            self._receive()

    def _bytes(self, count):
        while len(self.buffer) < self.at + count + 2:
            self._receive()
        data = bytes(self.buffer[self.at : self.at + count])
        if self.buffer[self.at + count : self.at + count + 2] != b"\r\n":
            raise Malformed("%d bytes are not followed by CRLF" % count)
        self.at += count + 2
        return data

    def _value(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        try:
            return self._typed(kind, rest)
        except ValueError as error:
            raise Malformed("reply %r: %s" % (line[:80], error)) from error

    def _typed(self, kind, rest):
        if kind == b"+":
            return Simple(rest)
        if kind == b"-":
            return Error(rest)
        if kind in b":(" and kind:
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._bytes(int(rest))
        if kind == b"*":
            return None if rest == b"-1" else [self._value() for _ in range(int(rest))]
        if kind == b"%":
            return Map((self._value(), self._value()) for _ in range(int(rest)))
        if kind == b"~":
            return Set(self._value() for _ in range(int(rest)))
        if kind == b">":
            return Push(self._value() for _ in range(int(rest)))
        if kind == b"_":
            return None
        if kind == b"#":
            return {b"t": True, b"f": False}[rest]
        if kind == b",":
            return float(rest)
        if kind == b"!":
            return Error(self._bytes(int(rest)))
        if kind == b"=":
            return Verbatim(self._bytes(int(rest))[4:])
        raise Malformed("a reply begins with %r" % (kind + rest[:40]))
