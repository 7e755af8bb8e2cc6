"""`horkos torture`, short: with network namespaces where they are possible and without, a report that
adds up, plans that follow from the seed, planted lies that are found, and nothing left behind."""

import json
import os
import re
import signal
import subprocess
import tempfile
import unittest

from support import harness

KINDS = {"kill", "pause", "leave", "isolate", "one-way", "split", "bridge", "shatter",
         "reset-peers", "reset-clients"}
WITHOUT_NETWORK = {"kill", "pause", "leave"}


def torture(*options, status, bound=300):
    """Runs it to its end; what it printed. status: None if any will do."""
    done = subprocess.run([harness.PROGRAM, "torture", *options], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=bound * harness.PATIENCE)
    if done.returncode != status and status is not None:
        raise AssertionError("status %d, not %d: %s\n%s%s" % (
            done.returncode, status, " ".join(options), done.stdout, done.stderr))
    return done


class Started:
    """A torture that goes on until somebody ends it."""

    def __init__(self, folder):
        self.folder = folder
        self.process = subprocess.Popen(
            [harness.PROGRAM, "torture", "--dir", folder, "--seconds", "600", "--faults", "none"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.said = []
        while "it begins" not in "".join(self.said[-1:]):
            self.said.append(self.process.stdout.readline())
            if not self.said[-1]:
                raise AssertionError("it does not begin: %s" % "".join(self.said))

    def nodes(self):
        """Their process ids, in the order in which they were started."""
        pid = self.process.pid
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as children:
            return [int(child) for child in children.read().split()]

    def report(self):
        out, _ = self.process.communicate(timeout=60 * harness.PATIENCE)
        return out

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def busy(report):
    return report["operations"]["ok"] > 1000


def faulty(report):
    return sum(counted["begun"] for counted in report["faults"].values()) > 0


def rich(report, names):
    """The bank has more than a few of all of these."""
    return all(report["bank"][name] > 20 for name in names)


def gone(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


class Torture(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def _run(self, *options, status=0):
        heal = "%d" % (60 * harness.PATIENCE)
        return json.loads(torture("--json", "--dir", self.dir, "--heal", heal, *options,
                                  status=status).stdout)

    def _run_until(self, enough, seconds, *options, status=0):
        """The first of some longer and longer runs that has done enough; the last, if none has. How
        much one does depends on the machine, and a fault is left out where the last one is not over."""
        base = self.dir
        for factor in (1, 3, 9):
            self.dir = tempfile.mkdtemp(dir=base)
            report = self._run("--seconds", "%d" % (seconds * factor), *options, status=status)
            if enough(report):
                break
        return report

    def _adds_up(self, report):
        operations = report["operations"]
        self.assertEqual(operations["ok"], sum(operations["ok_by_kind"].values()))
        self.assertGreater(operations["ok"], 1000)
        self.assertGreater(report["judged"]["keys"], 12)
        self.assertEqual(report["judged"]["undecided"], 0)
        self.assertLess(operations["longest_gap_ms"], 1000 * report["ran_seconds"])
        end = report["end"]
        self.assertTrue(end["healed"] and end["equal"])
        self.assertGreaterEqual(end["keys"], report["judged"]["keys"])
        self.assertGreaterEqual(end["reads"], report["nodes"] * end["keys"])
        for kind, counted in report["faults"].items():
            states = [fault["state"] for fault in report["plan"] if fault["kind"] == kind]
            self.assertEqual(counted["skipped"], states.count("skipped"), kind)
            self.assertEqual(counted["begun"], states.count("ended"), kind)

    def test_with_what_there_is(self):
        report = self._run_until(busy, 6, "--seed", "5")
        self._adds_up(report)
        self.assertEqual(report["result"], "sound")
        kinds = {fault["kind"] for fault in report["plan"]}
        self.assertLessEqual(kinds, KINDS if report["partitions"] else WITHOUT_NETWORK)
        harness.say("%d operations, %s, faults %s" % (
            report["operations"]["ok"],
            "with partitions" if report["partitions"] else report["no_partitions_because"],
            {kind: n["begun"] for kind, n in report["faults"].items() if n["begun"]}))
        self.assertEqual(os.listdir(self.dir), [], "files are left")

    def test_on_loopback(self):
        report = self._run_until(lambda report: busy(report) and faulty(report), 4, "--seed", "6",
                                 "--loopback", "--faults", "kill,pause,leave", "--keep")
        self._adds_up(report)
        self.assertEqual(report["result"], "sound")
        self.assertFalse(report["partitions"])
        self.assertIn("--loopback", report["no_partitions_because"])
        self.assertTrue(faulty(report))
        self.assertIn("node-1.log", os.listdir(self.dir))

    def test_keys_that_have_homes(self):
        report = self._run_until(busy, 10, "--seed", "3", "--engine", "galene")
        self._adds_up(report)
        self.assertEqual(report["result"], "sound")
        self.assertEqual(report["engine"], "galene")
        if report["faults"]["kill"]["begun"] > 0:
            self.assertGreater(report["orders"], 0)

    def test_objects_that_have_owners(self):
        counted = ("acknowledged", "conflicts", "audits")
        report = self._run_until(lambda report: busy(report) and rich(report, counted), 10, "--seed",
                                 "3", "--engine", "zeus")
        self._adds_up(report)
        self.assertEqual((report["result"], report["engine"]), ("sound", "zeus"))
        bank = report["bank"]
        harness.say("%d transfers, %d of them acknowledged, %d found a change; %d audits" % (
            bank["transfers"], bank["acknowledged"], bank["conflicts"], bank["audits"]))
        self.assertTrue(bank["agrees"])
        self.assertTrue(rich(report, counted), bank)
        self.assertLessEqual(bank["acknowledged"] + bank["conflicts"], bank["transfers"])

    def test_rows_that_have_one_copy(self):
        """Whoever is killed takes rows along, accounts of the bank too."""
        counted = ("acknowledged", "conflicts", "audits", "audits_by_range")
        report = self._run_until(lambda report: rich(report, counted), 10, "--seed", "3", "--engine",
                                 "lotus", "--faults", "kill,leave,reset-clients")
        self.assertEqual((report["result"], report["engine"]), ("sound", "lotus"))
        self.assertTrue(report["bank"]["agrees"])
        self.assertTrue(rich(report, counted), report["bank"])
        if report["faults"]["kill"]["begun"] > 0 and report["compute"] == 0:
            self.assertGreater(report["orders"], 0)

    def test_a_transfer_that_is_lost_is_found(self):
        for engine in ("zeus", "lotus"):
            report = self._run("--seconds", "2", "--faults", "none", "--engine", engine,
                               "--tamper", "transfer", status=1)
            self.assertEqual((report["result"], report["violation"]), ("violation", "bank"))
            self.assertRegex(report["why"], "acknowledged, and node 1 does not have it")

    def test_a_loss_that_nobody_was_told_of_is_found(self):
        report = self._run_until(lambda report: report["faults"]["kill"]["begun"] > 0, 10, "--seed",
                                 "1", "--engine", "lotus", "--faults", "kill", "--tamper", "order",
                                 status=None)
        self.assertEqual(report["result"], "violation")
        self.assertGreater(report["faults"]["kill"]["begun"], 0)

    def test_a_stale_read_is_found(self):
        report = self._run("--seconds", "8", "--faults", "none", "--tamper", "read", status=1)
        self.assertEqual((report["result"], report["violation"]), ("violation", "history"))
        with open(report["history"], encoding="ascii") as history:
            self.assertIn("WRITE", history.read())
        self.assertRegex(report["why"], "READ")

    def test_a_replica_that_differs_is_found(self):
        report = self._run("--seconds", "2", "--faults", "none", "--tamper", "replica", status=1)
        self.assertEqual((report["result"], report["violation"]), ("violation", "replicas"))
        self.assertRegex(report["why"], "node 1: -1")

    def test_a_cluster_that_does_not_start(self):
        report = self._run("--program", "/bin/false", status=3)
        self.assertEqual(report["result"], "not run to the end")
        self.assertRegex(report["why"], "exit status 1")

    def _start(self):
        started = Started(self.dir)
        self.addCleanup(started.end)
        return started

    def test_a_node_that_ends_by_itself(self):
        """Somebody else kills a node, which torture must not take for a fault of its own."""
        started = self._start()
        os.kill(started.nodes()[0], signal.SIGKILL)
        self.assertRegex(started.report(), "violation\nnode 1 has ended: Killed")
        self.assertEqual(started.process.returncode, 1)

    def test_killed_itself_it_leaves_no_process(self):
        started = self._start()
        nodes = started.nodes()
        self.assertEqual(len(nodes), 3)
        os.kill(nodes[0], signal.SIGSTOP)
        started.end()
        harness.wait_until(lambda: all(gone(pid) for pid in nodes), 30, "the nodes are gone")

    def test_interrupted(self):
        started = self._start()
        nodes = started.nodes()
        started.process.send_signal(signal.SIGINT)
        self.assertRegex(started.report(), "not run to the end\ninterrupted")
        self.assertEqual(started.process.returncode, 3)
        self.assertEqual(os.listdir(self.dir), [])
        self.assertTrue(all(gone(pid) for pid in nodes))


class Plans(unittest.TestCase):
    def _plan(self, *options):
        return json.loads(torture("--plan", "--json", *options, status=0).stdout)

    def test_they_follow_from_seed_and_options(self):
        self.assertEqual(self._plan("--seed", "9"), self._plan("--seed", "9"))
        self.assertNotEqual(self._plan("--seed", "9"), self._plan("--seed", "10"))
        self.assertNotEqual(self._plan("--seed", "9"), self._plan("--seed", "9", "--nodes", "5"))

    def test_kinds(self):
        seen = set()
        for seed in range(20):
            plan = self._plan("--seed", "%d" % seed, "--nodes", "5", "--seconds", "60")
            self.assertGreater(len(plan), 10)
            seen.update(fault["kind"] for fault in plan)
        self.assertEqual(seen, KINDS)
        only = self._plan("--faults", "bridge", "--seconds", "60")
        self.assertEqual({fault["kind"] for fault in only}, {"bridge"})
        for fault in only:
            self.assertEqual(sorted([fault["node"]] + fault["from"] + fault["to"]), [1, 2, 3])
        all_but = self._plan("--faults=-kill,-leave", "--seconds", "600", "--seed", "4")
        self.assertTrue({fault["kind"] for fault in all_but}.isdisjoint({"kill", "leave"}))
        self.assertEqual(self._plan("--faults", "none"), [])
        self.assertEqual({fault["kind"] for fault in self._plan("--loopback", "--seed", "2")}
                         - WITHOUT_NETWORK, set())

    def test_times(self):
        plan = self._plan("--seconds", "40", "--seed", "3")
        times = [fault["at_ms"] for fault in plan]
        self.assertEqual(times, sorted(times))
        self.assertLess(times[-1], 40000)
        self.assertTrue(all(fault["for_ms"] > 0 for fault in plan))

    def test_text(self):
        text = torture("--plan", "--seed", "5", "--nodes", "5", status=0).stdout
        self.assertRegex(text, re.compile(r"^\d+ ms: [a-z-]+.* for \d+ ms$", re.MULTILINE))


class Usage(unittest.TestCase):
    def test_wrong_options(self):
        for options in (["--nodes", "0"], ["--nodes", "10"], ["--seconds", "x"],
                        ["--faults", "fire"], ["--faults", ""], ["--tamper", "truth"],
                        ["--seeds", "3"], ["--lease", "1"], ["nonsense"], ["--dir", ""]):
            done = torture(*options, status=2)
            self.assertTrue(done.stderr)
            self.assertEqual(done.stdout, "", options)

    def test_help(self):
        text = torture("--help", status=0).stdout
        for kind in KINDS:
            self.assertIn(kind, text)


if __name__ == "__main__":
    harness.main()
