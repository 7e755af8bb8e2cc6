"""Reads the transcripts of tests/system/transcripts (their README has the format); replays them."""

import re

from . import resp


class Transcript:
    def __init__(self, path):
        self.path = path
        self.password = None
        self.steps = []  # (line number, kind, data): kind is "send", "expect" or "end"
        with open(path, encoding="ascii") as file:
            for number, line in enumerate(file.read().split("\n"), 1):
                if line and not line.startswith("#"):
                    self._line(number, line)

    def _line(self, number, line):
        if line.startswith("@password "):
            self.password = line[len("@password "):]
        elif line.startswith("> "):
            self.steps.append((number, "send", resp.encode(*words(line[2:]))))
        elif line.startswith("! "):
            self.steps.append((number, "send", line[2:].encode() + b"\r\n"))
        elif line.startswith("< "):
            self.steps.append((number, "expect", Expectation(line[2:]).whole()))
        elif line == "<eof":
            self.steps.append((number, "end", None))
        else:
            raise ValueError("%s:%d: what is %r?" % (self.path, number, line))

    def replay(self, client):
        """Raises AssertionError at the first reply that does not match."""
        pending = b""
        for number, kind, data in self.steps:
            if kind == "send":
                # Commands with no reply between them leave in one piece.
                pending += data
                continue
            if pending:
                client.send_raw(pending)
                pending = b""
            if kind == "end":
                assert client.at_end(), "%s:%d: the connection is still open" % (self.path, number)
                return
            reply = client.read()
            assert data(reply), "%s:%d: %r came" % (self.path, number, client.raw[:2000])
        assert not pending, "%s ends with commands whose replies nobody expects" % self.path
        # Anything more than what is expected would come before this.
        token = b"the end of " + self.path.encode()
        reply = client.call("ECHO", token)
        assert reply == token, "%s: more than expected came: %r" % (self.path, reply)


def words(text):
    """Words of a command, as bytes."""
    found, at = [], 0
    while at < len(text):
        if text[at] == '"':
            value, at = quoted(text, at)
        else:
            end = text.find(" ", at)
            end = len(text) if end < 0 else end
            value, at = text[at:end].encode(), end
        found.append(value)
        if at < len(text):
            if text[at] != " ":
                raise ValueError("a blank is missing in %r" % text)
            at += 1
    return found


ESCAPES = {"r": b"\r", "n": b"\n", '"': b'"', "\\": b"\\"}


def quoted(text, at):
    """The bytes in quotes that begin at text[at], and where they end."""
    value, at = b"", at + 1
    while text[at] != '"':
        if text[at] != "\\":
            value, at = value + text[at].encode(), at + 1
        elif text[at + 1] == "x":
            value, at = value + bytes([int(text[at + 2 : at + 4], 16)]), at + 4
        else:
            value, at = value + ESCAPES[text[at + 1]], at + 2
    return value, at + 1


class Expectation:
    """Turns the text of an expectation into a function from a reply to whether it matches."""

    def __init__(self, text):
        self.text = text
        self.at = 0

    def whole(self):
        if self.text.startswith("-"):
            return error(self.text[1:].encode())
        matches = self._any(nested=False)
        if self.at != len(self.text):
            raise ValueError("cannot read the rest of %r" % self.text)
        return matches

    def _any(self, nested):
        text, kind = self.text, self.text[self.at]
        if kind == "*":
            self.at += 1
            return lambda reply: not isinstance(reply, resp.Error)
        if kind == "+":
            value = self._until(r"[,\])}]" if nested else r"$")[1:].encode()
            return lambda reply: isinstance(reply, resp.Simple) and reply == value
        if kind == ":":
            number = self._until(r"[,\])}]|$")[1:]
            return lambda reply: isinstance(reply, int) and not isinstance(reply, bool) and (
                number == "*" or reply == int(number))
        if kind == '"':
            value, self.at = quoted(text, self.at)
            return lambda reply: is_bulk(reply) and reply == value
        if kind == "~":
            value, self.at = quoted(text, self.at + 1)
            pattern = re.compile(b".*".join(map(re.escape, value.split(b"*"))), re.DOTALL)
            return lambda reply: (is_bulk(reply) or isinstance(reply, resp.Verbatim)) and bool(
                pattern.fullmatch(reply))
        if text.startswith("nil", self.at):
            self.at += 3
            return lambda reply: reply is None
        if kind == "[":
            return self._list("]", lambda reply: type(reply) is list)
        if kind == "(":
            return self._list(")", lambda reply: type(reply) in (list, resp.Set))
        if kind == "{":
            return self._map()
        raise ValueError("cannot read %r at %d" % (text, self.at))

    def _until(self, pattern):
        end = re.compile(pattern).search(self.text, self.at).start()
        value, self.at = self.text[self.at : end], end
        return value

    def _elements(self, closing, pair):
        """The elements up to closing, and whether any more may follow them."""
        elements, more = [], False
        self.at += 1
        while self.text[self.at] != closing:
            if self.text.startswith("...", self.at):
                self.at += 3
                more = True
            else:
                elements.append(self._any(nested=True))
                if pair:
                    self._skip(": ")
                    elements.append(self._any(nested=True))
            if self.text[self.at] != closing:
                self._skip(", ")
        self.at += 1
        return elements, more

    def _skip(self, mark):
        if not self.text.startswith(mark, self.at):
            raise ValueError("%r is missing in %r at %d" % (mark, self.text, self.at))
        self.at += len(mark)

    def _list(self, closing, fits):
        elements, more = self._elements(closing, pair=False)
        return lambda reply: fits(reply) and sequence(elements, more, reply)

    def _map(self):
        elements, more = self._elements("}", pair=True)

        def matches(reply):
            if isinstance(reply, resp.Map):
                return sequence(elements, more, [part for pair in reply for part in pair])
            return type(reply) is list and len(reply) % 2 == 0 and sequence(elements, more, reply)

        return matches


def is_bulk(reply):
    return type(reply) is bytes


def error(text):
    if text.endswith(b"*"):
        return lambda reply: isinstance(reply, resp.Error) and reply.text.startswith(text[:-1])
    return lambda reply: isinstance(reply, resp.Error) and reply.text == text


def sequence(elements, more, reply):
    return (len(reply) == len(elements) or (more and len(reply) > len(elements))) and all(
        matches(part) for matches, part in zip(elements, reply))
