"""The examples for Redis clients, on a cluster as `horkos dev` makes it: they run and say so."""

import os
import sys
import unittest

from support import harness


class Examples(unittest.TestCase):
    def test_transfer(self):
        with harness.Cluster() as cluster:
            addresses = ["127.0.0.1:%d" % port for port in cluster.ports.values()]
            path = os.path.join(harness.ROOT, "examples", "transfer.py")
            _, out, _ = harness.run([sys.executable, "-B", path, *addresses])
            self.assertRegex(out.decode(), r"^[1-9]\d* payments, 36000 in all accounts$")


if __name__ == "__main__":
    unittest.main()
