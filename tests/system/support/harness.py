"""Real processes for system tests: clusters that always end, and conditions that are waited for.

A test never sleeps in the hope that something has happened; wait_until asks again and again under
a bound. The process becomes the reaper of its grandchildren (PR_SET_CHILD_SUBREAPER), so the exit
status of a node that went into the background is known, and nothing outlives the test.
"""

import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from . import resp

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PROGRAM = os.path.abspath(
    os.environ.get("HORKOS_PROGRAM", os.path.join(ROOT, "build", "horkos")))

# Sanitizers and a busy machine make everything slower; bounds say "stuck", not "slow".
PATIENCE = float(os.environ.get("HORKOS_TEST_PATIENCE", "1"))

# Of clusters whose tests are not about leases: none is lost on a machine that is busy.
LEASE_MS = 3000

_PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

# For pauses between two looks at a condition, and nothing else.
_tick = threading.Event()


def pause(seconds=0.01):
    """The step of a loop that polls under a bound of its own."""
    _tick.wait(seconds)


def wait_until(condition, bound, what):
    """Calls condition until it is true and returns its value; fails after bound seconds."""
    end = time.monotonic() + bound * PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("not within %g s: %s" % (bound * PATIENCE, what))
        pause()


def say(text):
    print(text, flush=True)


class Reaper:
    """Exit statuses of processes that became ours when their parent went away."""

    def __init__(self):
        self.statuses = {}
        self.lock = threading.Lock()

    def look(self, pid):
        """The exit status of pid (negative: the signal), None while it runs."""
        with self.lock:
            if pid in self.statuses:
                return self.statuses[pid]
            try:
                done, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                if os.path.exists("/proc/%d" % pid):
                    return None
                status, done = 0, 0
                self.statuses[pid] = -1000  # gone, and nobody told us how
                return self.statuses[pid]
            if done == 0:
                return None
            self.statuses[pid] = os.waitstatus_to_exitcode(status)
            return self.statuses[pid]

    def forget(self, pid):
        with self.lock:
            self.statuses.pop(pid, None)


_reaper = Reaper()


def run(arguments, bound=30, stdin=b"", check=True, watch=(), env=None, cwd=None):
    """Runs a program to its end. Returns (exit status, standard output, standard error) as bytes.

    watch: processes to reap meanwhile, since the program may wait for them to be gone."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, \
            tempfile.TemporaryFile() as source:
        source.write(stdin)
        source.seek(0)
        process = subprocess.Popen(
            [str(argument) for argument in arguments], stdin=source, stdout=out, stderr=err,
            env=env, cwd=cwd)
        try:
            end = time.monotonic() + bound * PATIENCE
            while process.poll() is None:
                for pid in watch:
                    _reaper.look(pid)
                if time.monotonic() > end:
                    process.kill()
                    process.wait()
                    out.seek(0)
                    err.seek(0)
                    raise AssertionError("%r did not end within %g s; it said %r %r" % (
                        arguments, bound, out.read()[-2000:], err.read()[-2000:]))
                pause(0.005)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        out.seek(0)
        err.seek(0)
        result = process.returncode, out.read(), err.read()
    if check and result[0] != 0:
        raise AssertionError("%r ended with status %d: %r %r" % (
            arguments, result[0], result[1][-2000:], result[2][-2000:]))
    return result


def child(arguments, log_path):
    """A process of our own, which writes to a file. The caller ends it."""
    with open(log_path, "ab") as log:
        return subprocess.Popen([str(argument) for argument in arguments],
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log)


_given = set()


def free_port():
    """A port that nobody listens on at the moment, and that was not given before: the kernel may
    draw the same one twice."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port not in _given:
            _given.add(port)
            return port


def tail(path, lines=40):
    try:
        with open(path, "rb") as file:
            return b"\n".join(file.read().splitlines()[-lines:]).decode("utf-8", "replace")
    except OSError as error:
        return "(%s)" % error


def memory_bound_kib(mib):
    """A bound in MiB as KiB. Sanitizers keep what was freed for a while."""
    return mib * 1024 * (8 if PATIENCE > 1 else 1)


def memory_kib(pid, field="VmRSS"):
    """A figure of /proc/PID/status in KiB."""
    with open("/proc/%d/status" % pid) as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    raise AssertionError("process %d has no %s" % (pid, field))


class Node:
    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.conf = os.path.join(cluster.folder, "node-%d.conf" % number)
        self.log = os.path.join(cluster.folder, "node-%d.log" % number)
        self.pid_file = os.path.join(cluster.folder, "node-%d.pid" % number)
        self.child = None  # when this process started it itself
        self.last_pid = None  # `dev --stop` removes the file

    def options(self):
        """The configuration as {section: [(name, value), ...]}."""
        sections, name = {}, None
        with open(self.conf) as file:
            for line in file:
                line = line.split(";", 1)[0].strip()
                if line.startswith("#") or not line:
                    continue
                if line.startswith("["):
                    name = line.strip("[]")
                    sections.setdefault(name, [])
                elif "=" in line:
                    option, value = line.split("=", 1)
                    sections[name].append((option.strip(), value.strip()))
        return sections

    @property
    def port(self):
        for option, value in self.options()["clients"]:
            if option == "listen":
                return int(value.rsplit(":", 1)[1])
        raise AssertionError("%s names no client port" % self.conf)

    @property
    def peer_port(self):
        for option, value in self.options()["peers"]:
            if option == str(self.number):
                return int(value.rsplit(":", 1)[1])
        raise AssertionError("%s names no peer port" % self.conf)

    @property
    def pid(self):
        if self.child is not None:
            return self.child.pid
        try:
            with open(self.pid_file) as file:
                self.last_pid = int(file.readline())
        except FileNotFoundError:
            if self.last_pid is None:
                raise
        return self.last_pid

    def client(self, **options):
        return resp.Client(self.port, **options)

    def exit_status(self):
        """None while it runs."""
        if self.child is not None:
            return self.child.poll()
        return _reaper.look(self.pid)

    def signal(self, number):
        os.kill(self.pid, number)

    def ended(self, bound=10):
        """Waits for its end; returns the exit status, negative for a signal."""
        wait_until(lambda: self.exit_status() is not None, bound,
                   "the end of node %d" % self.number)
        return self.exit_status()

    def kill(self):
        """kill -9, and the process is gone on return."""
        self.signal(signal.SIGKILL)
        self.ended()

    def start(self, bound=30, check=True):
        """horkos dev --start. Returns what run() returns."""
        self.child = None
        try:
            _reaper.forget(self.pid)
        except OSError:
            pass
        return run([PROGRAM, "dev", "--start", self.number, "--dir", self.cluster.folder],
                   bound=bound, check=check)

    def serve(self, *more):
        """Starts it as a child of this process, without `dev`."""
        self.child = child([PROGRAM, "server", "--config", self.conf, *more], self.log)
        return self.child

    def status(self):
        """What `horkos status --json` says, and its exit status; None if nobody answers."""
        code, out, _ = run([PROGRAM, "status", "--port", self.port, "--json"], check=False)
        try:
            return code, json.loads(out)
        except ValueError:
            return code, None

    def told(self):
        """HORKOS STATUS over RESP, or None when it cannot be asked."""
        try:
            with self.client(timeout=2 * PATIENCE) as client:
                reply = client.call("HORKOS", "STATUS")
        except resp.Broken:
            return None
        return None if isinstance(reply, resp.Error) else json.loads(reply)

    def must_tell(self, bound=20):
        """What told() says, of a node that runs: it is asked until it has time for an answer."""
        return wait_until(self.told, bound, "node %d tells its status" % self.number)

    def serves(self):
        told = self.told()
        return bool(told and told["can_serve"])

    def info(self, section="all"):
        with self.client() as client:
            text = client.must("INFO", section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def add_option(self, section, line):
        """For its next start, to a section that there is."""
        with open(self.conf) as file:
            text = file.read()
        head = "[%s]\n" % section
        assert text.count(head) == 1, text
        with open(self.conf, "w") as file:
            file.write(text.replace(head, head + line + "\n"))

    def log_text(self):
        with open(self.log, errors="replace") as file:
            return file.read()


class Cluster:
    """`horkos dev` in a folder of its own. As a context manager it is stopped whatever happens, and
    the ends of the logs are printed if something went wrong."""

    def __init__(self, nodes=3, lease_ms=LEASE_MS, sets=()):
        """sets: options for all nodes, as "space 0.memory_max=64mb"."""
        self.folder = tempfile.mkdtemp(prefix="horkos-test-")
        self.nodes = {number: Node(self, number) for number in range(1, nodes + 1)}
        self.seen = set()
        more = ["--lease", int(lease_ms * PATIENCE)]
        for option in sets:
            more += ["--set", option]
        began = time.monotonic()
        try:
            self.printed = run([PROGRAM, "dev", "--nodes", nodes, "--base-port", "0", "--dir",
                                self.folder, "--detach", *more])[1].decode()
        except BaseException:
            self.print_logs()
            self.stop()
            raise
        self.start_seconds = time.monotonic() - began
        self.ports = {number: node.port for number, node in self.nodes.items()}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.print_logs()
        self.stop()

    def __getitem__(self, number):
        return self.nodes[number]

    def others(self, number):
        return [node for node in self.nodes.values() if node.number != number]

    def print_logs(self):
        for node in self.nodes.values():
            say("---- %s, its last lines:" % node.log)
            say(tail(node.log))

    def _pids(self):
        for node in self.nodes.values():
            try:
                yield node, node.pid
            except (OSError, ValueError):
                continue

    def stop(self):
        """Ends every process of this cluster; a node that does not leave in time is killed."""
        for node, pid in self._pids():
            if node.exit_status() is None:
                # A process that is stopped would not notice anything else.
                self._signal(pid, signal.SIGCONT)
        for node, pid in self._pids():
            if node.exit_status() is None:
                self._signal(pid, signal.SIGTERM)
        end = time.monotonic() + 3
        for node, pid in self._pids():
            while node.exit_status() is None:
                if time.monotonic() > end:
                    self._signal(pid, signal.SIGKILL)
                    end = time.monotonic() + 3
                pause()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, pid, number):
        # The number may have been given to somebody else after a crash.
        try:
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                if b"horkos" not in file.read():
                    return
            os.kill(pid, number)
        except OSError:
            pass

    def stop_by_command(self, bound=20):
        """horkos dev --stop."""
        # It waits until they are gone, and gone they are when we have reaped them.
        pids = [pid for _, pid in self._pids()]
        return run([PROGRAM, "dev", "--stop", "--dir", self.folder], bound=bound, watch=pids)

    def wait_whole(self, bound=20):
        """Until every node serves and sees every other as an operational member."""
        def whole():
            for node in self.nodes.values():
                told = node.told()
                if not told or not told["can_serve"]:
                    return False
                live = [member for member in told["members"]
                        if member["live"] and member["role"] == "operational"]
                if len(live) != len(self.nodes):
                    return False
            return True

        wait_until(whole, bound, "every node serves and sees all %d" % len(self.nodes))


class StandIn:
    """A redis-server of the version that answers are compared with."""

    def __init__(self):
        # Debian's redis-tools ships the server's binary under another name; it looks at argv[0].
        binary = shutil.which("redis-server") or shutil.which("redis-check-rdb")
        if binary is None:
            raise AssertionError("redis-tools is missing: run scripts/setup")
        self.folder = tempfile.mkdtemp(prefix="horkos-redis-")
        self.port = free_port()
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--dir", self.folder], executable=binary, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL)
        try:
            wait_until(self._answers, 10, "redis-server answers")
        except BaseException:
            self.stop()
            raise

    def _answers(self):
        try:
            with resp.Client(self.port, timeout=1) as client:
                return client.call("PING") == b"PONG"
        except resp.Broken:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def page(name):
    """The text of a page under docs/."""
    with open(os.path.join(ROOT, "docs", name)) as file:
        return file.read()


def number_from_environment(name, default):
    value = os.environ.get(name, "")
    return int(value) if value else default


def main(module="__main__"):
    """Runs the tests of a module; every test says how long it took."""
    import unittest

    class Result(unittest.TextTestResult):
        def startTest(self, test):
            self.began = time.monotonic()
            super().startTest(test)

        def stopTest(self, test):
            super().stopTest(test)
            say("%6.2f s  %s" % (time.monotonic() - self.began, test.id()))

    runner = unittest.TextTestRunner(stream=sys.stdout, verbosity=1, resultclass=Result)
    unittest.main(module=module, testRunner=runner)
