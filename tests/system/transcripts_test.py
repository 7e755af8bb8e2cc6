"""What client libraries say first, replayed over TCP on every node."""

import glob
import os
import unittest

from support import harness, resp, transcript

FOLDER = os.path.join(harness.ROOT, "tests", "system", "transcripts")


def transcripts():
    return [transcript.Transcript(path) for path in sorted(glob.glob(FOLDER + "/*.txt"))]


class Transcripts(unittest.TestCase):
    def _replay(self, which, sets=()):
        self.assertTrue(which)
        with harness.Cluster(sets=sets) as cluster:
            for one in which:
                for node in cluster.nodes.values():
                    with self.subTest(os.path.basename(one.path), node=node.number):
                        with node.client() as client:
                            one.replay(client)

    def test_without_a_password(self):
        self._replay([one for one in transcripts() if one.password is None])

    def test_with_a_password(self):
        which = [one for one in transcripts() if one.password is not None]
        passwords = {one.password for one in which}
        for password in sorted(passwords):
            self._replay([one for one in which if one.password == password],
                         ["clients.requirepass=" + password])


class Expectations(unittest.TestCase):
    """The language of expectations says no where it should."""

    def test_matches(self):
        bulk_map = resp.Map([(b"a", 1), (b"b", [b"x"])])
        for text, yes, no in (
            ("*", [b"x", None, 5], [resp.Error(b"ERR x")]),
            ("+OK", [resp.Simple(b"OK")], [b"OK", resp.Simple(b"OKAY")]),
            ("-ERR a, b]", [resp.Error(b"ERR a, b]")], [resp.Error(b"ERR a"), b"ERR a, b]"]),
            ("-ERR *", [resp.Error(b"ERR any")], [resp.Error(b"WRONG")]),
            (":5", [5], [6, b"5", True]),
            (":*", [0, -7], [b"5", None]),
            ('"a\\r\\n\\x00\\""', [b'a\r\n\0"'], [b"a", resp.Simple(b'a\r\n\0"')]),
            ('~"a*b"', [b"ab", b"a\nxb", resp.Verbatim(b"a b")], [b"abc", resp.Simple(b"ab")]),
            ("nil", [None], [b"", []]),
            ('[+a, :1, "x"]', [[resp.Simple(b"a"), 1, b"x"]], [[resp.Simple(b"a"), 1], None]),
            ("[:1, ...]", [[1], [1, b"x"]], [[], [2]]),
            ("[]", [[]], [[1], None]),
            ('("a")', [[b"a"], resp.Set([b"a"])], [[b"b"], []]),
            ('{"a": :1, "b": ["x"]}', [bulk_map, [b"a", 1, b"b", [b"x"]]], [[b"a", 1], b"a"]),
            ('{"a": :*, ...}', [bulk_map], [resp.Map([(b"b", 1)])]),
        ):
            matches = transcript.Expectation(text).whole()
            for reply in yes:
                self.assertTrue(matches(reply), "%s: %r" % (text, reply))
            for reply in no:
                self.assertFalse(matches(reply), "%s: %r" % (text, reply))

    def test_words(self):
        self.assertEqual(transcript.words('set "a b" \\x "\\x00\\\\"'),
                         [b"set", b"a b", b"\\x", b"\0\\"])


if __name__ == "__main__":
    harness.main()
