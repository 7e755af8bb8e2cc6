"""The baselines of `horkos bench --workload` for fractions of a second: what they say must add up."""

import json
import subprocess
import unittest

from support import harness

SHORT = ("--objects", "2000", "--seconds", "0.1", "--warmup", "0.05", "--runs", "2",
         "--in-flight", "8")


def bench(*options, status=0):
    done = subprocess.run([harness.PROGRAM, "bench", *options], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=60 * harness.PATIENCE)
    if done.returncode != status:
        raise AssertionError("status %d, not %d: %s\n%s%s" % (
            done.returncode, status, " ".join(options), done.stdout, done.stderr))
    return done


def measured(workload, *options):
    return json.loads(bench("--workload", workload, *SHORT, *options, "--json").stdout)


class Baselines(unittest.TestCase):
    def check(self, design, writes):
        self.assertEqual(design["failed"], 0)
        self.assertGreater(design["txns"], 0)
        self.assertGreater(design["cpu_ns_per_txn"], 0)
        self.assertEqual(design["remote"], 0)
        if writes:
            self.assertGreater(design["writes"], 0)
        else:
            self.assertEqual(design["writes"], 0)

    def test_one_sided(self):
        for workload in ("ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-f"):
            with self.subTest(workload=workload):
                got = measured(workload, "--cc", "one_sided_no_wait,one_sided_wait_die",
                               "--cache", "20")
                self.assertEqual(list(got["designs"]), ["one_sided_no_wait", "one_sided_wait_die"])
                self.assertEqual(got["config"]["cache_percent"], 20)
                for design in got["designs"].values():
                    self.check(design, workload != "ycsb-c")
                    self.assertIsNone(design["cache_hits"])

    def test_dex(self):
        for workload in ("ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f"):
            for more in ((), ("--requests", "8")):
                with self.subTest(workload=workload, more=more):
                    got = measured(workload, "--partitioned", "--cc", "dex", "--cache", "30",
                                   "--nodes", "4", "--memory", "1", *more)
                    self.assertTrue(got["config"]["partitioned"])
                    self.assertEqual(got["config"]["value_bytes"], 8)
                    dex = got["designs"]["dex"]
                    self.check(dex, workload != "ycsb-c")
                    self.assertEqual(dex["aborts_per_txn"], 0)
                    self.assertGreater(dex["cache_hits"], 0)
                    self.assertLess(dex["cache_hits"], 1)
                    self.assertGreater(dex["bytes_per_txn"], 0)

    def test_values_beside_index_nodes(self):
        """Lotus keeps values near, the baseline nodes of the index."""
        got = measured("ycsb-a", "--partitioned", "--cc", "wound_wait,dex", "--cache", "30",
                       "--nodes", "4", "--memory", "2")
        for name in ("lotus", "dex"):
            design = got["designs"][name]
            self.check(design, True)
            self.assertGreater(design["cache_hits"], 0)
            self.assertLess(design["cache_hits"], 1)

    def test_a_larger_cache_asks_for_less(self):
        for name, policy in (("dex", "dex"), ("lotus", "wound_wait")):
            with self.subTest(name=name):
                self._asks_for_less(name, policy)

    def _asks_for_less(self, name, policy):
        said = []
        for cache in ("10", "100"):
            got = measured("ycsb-c", "--partitioned", "--cc", policy, "--cache", cache)
            said.append(got["designs"][name])
        self.assertGreater(said[1]["cache_hits"], said[0]["cache_hits"])
        self.assertLess(said[1]["bytes_per_txn"], said[0]["bytes_per_txn"])

    def test_what_is_printed(self):
        text = bench("--workload", "ycsb-a", *SHORT, "--partitioned", "--cc", "dex").stdout
        self.assertIn("co-partitioned", text)
        self.assertIn("found in the cache", text)

    def test_what_makes_no_sense(self):
        for options, says in (
                (("--cc", "dex"), "--partitioned is for lotus and --cc dex"),
                (("--partitioned",), "--partitioned is for lotus and --cc dex"),
                (("--partitioned", "--engine", "zeus"), "--partitioned is for lotus and --cc dex"),
                (("--partitioned", "--cc", "no_wait", "--nodes", "1"), "another node"),
                (("--partitioned", "--cc", "dex", "--payload", "100"), "values of 8 bytes"),
                (("--partitioned", "--cc", "dex", "--threads"), "one thread"),
                (("--cache", "8"), "--cache is for")):
            with self.subTest(options=options):
                done = bench("--workload", "ycsb-a", *options, status=2)
                self.assertIn(says, done.stderr)
                self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
