"""`horkos balance` in front of a real cluster: commands find their nodes, transactions work,
replies keep their order, a node that dies is gone around, several balancers agree, hostile clients
only harm themselves."""

import os
import re
import signal
import socket
import subprocess
import time
import unittest

import redis

from support import harness, resp


class Balancer:
    def __init__(self, cluster, *options):
        nodes = []
        for port in cluster.ports.values():
            nodes += ["--node", "127.0.0.1:%d" % port]
        self.process = subprocess.Popen(
            [harness.PROGRAM, "balance", *nodes, "--port", "0", "--period", "100", *options],
            stdout=subprocess.PIPE)
        with self.process.stdout as said:
            self.port = int(re.search(rb"port (\d+)", said.readline()).group(1))

    def client(self, **options):
        return redis.Redis(port=self.port, **options)

    def info(self):
        with self.client() as client:
            return client.info("balance")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


class Introductions(unittest.TestCase):
    """Nodes that ask for a password, and what a client says of itself at each of them."""

    PASSWORD = "of the nodes"

    def setUp(self):
        self.cluster = harness.Cluster(sets=["clients.requirepass=" + self.PASSWORD])
        self.addCleanup(self.cluster.stop)
        self.file = os.path.join(self.cluster.folder, "password")
        with open(self.file, "w") as file:
            file.write(self.PASSWORD + "\n")

    def _balancer(self, *options):
        balancer = Balancer(self.cluster, *options)
        self.addCleanup(balancer.process.wait)
        self.addCleanup(balancer.process.kill)
        return balancer

    def test_passwords(self):
        balancer = self._balancer("--password-file", self.file)
        harness.wait_until(
            lambda: balancer.client(password=self.PASSWORD).info("balance")["mapped"] == 1, 20,
            "the balancer has read the mapping")
        client = balancer.client(password=self.PASSWORD, db=1)
        for number in range(60):  # at all nodes
            client.set("p%d" % number, number)
        self.assertEqual(client.mget(*("p%d" % number for number in range(60))),
                         [b"%d" % number for number in range(60)])
        with resp.Client(balancer.port) as client:
            client.must("HELLO", 3, "AUTH", "default", self.PASSWORD)
            client.must("SELECT", 1)
            for number in range(60):  # in the same protocol everywhere
                self.assertIsInstance(client.must("CONFIG", "GET", "maxmemory"), resp.Map)
                self.assertEqual(client.must("GET", "p%d" % number), b"%d" % number)
        for wrong in ({}, {"password": "another"}, {"username": "nobody", "password": "x"}):
            with self.assertRaises((redis.AuthenticationError, redis.ResponseError)):
                balancer.client(db=1, **wrong).get("p1")
        with resp.Client(balancer.port) as client:
            for command in (("GET", "a"), ("INFO", "balance"), ("MULTI",), ("EXEC",),
                            ("HELLO", 3), ("SELECT", 1)):
                self.assertEqual(client.call(*command).code, "NOAUTH", command)
            self.assertEqual(client.call("AUTH", "wrong").code, "WRONGPASS")
            self.assertEqual(client.must("AUTH", self.PASSWORD), b"OK")
            # What is refused changes nothing, wherever the next command goes.
            self.assertEqual(client.call("AUTH", "wrong").code, "WRONGPASS")
            client.must("SELECT", 1)
            self.assertIsInstance(client.call("SELECT", 99), resp.Error)
            for number in range(60):
                self.assertEqual(client.must("GET", "p%d" % number), b"%d" % number)
            self.assertEqual(client.must("RESET"), b"RESET")
            for number in range(10):
                self.assertEqual(client.call("GET", "p%d" % number).code, "NOAUTH")
        with resp.Client(balancer.port) as client:
            client.send_raw(b"*2\r\n$3\r\nGET\r\n$20000\r\n")
            reply = client.read()
            self.assertIsInstance(reply, resp.Error)  # a stranger may say less
            self.assertTrue(client.at_end())

    def test_inline_and_watched(self):
        balancer = self._balancer("--password-file", self.file)
        with resp.Client(balancer.port) as client:
            client.send_raw(b'auth "of the nodes"\r\nselect "1"\r\n')
            self.assertEqual([client.read(), client.read()], [b"OK", b"OK"])
            for number in range(30):
                client.must("SET", "w%d" % number, "one")
            # After WATCH the node is fixed, and hears of the other space alone: the rest do later.
            client.must("WATCH", "w1")
            client.must("SELECT", 0)
            client.must("UNWATCH")
            for number in range(30):
                self.assertIsNone(client.must("GET", "w%d" % number))
            client.must("SELECT", 1)
            client.must("MULTI")
            client.must("INCR", "n")
            self.assertIsInstance(client.call("SELECT", 0), resp.Error)
            self.assertEqual(client.call("EXEC").code, "EXECABORT")
            for number in range(30):
                self.assertEqual(client.must("GET", "w%d" % number), b"one")
            client.must("MULTI")
            self.assertEqual(client.must("RESET"), b"RESET")
            client.must("AUTH", self.PASSWORD)
            self.assertIsInstance(client.call("EXEC"), resp.Error)

    def test_without_its_own_password(self):
        """Clients get on, without a mapping."""
        balancer = self._balancer()
        client = balancer.client(password=self.PASSWORD)
        self.assertTrue(client.set("a", 1))
        self.assertEqual(client.info("balance")["mapped"], 0)
        for options in (("--user", "u"), ("--password-file", self.file + "none"),
                        ("--password-file", os.devnull)):
            status, _, err = harness.run([harness.PROGRAM, "balance", "--node", "127.0.0.1:1",
                                          *options], check=False)
            self.assertEqual(status, 2)
            self.assertIn(b"password", err)


class Balance(unittest.TestCase):
    def setUp(self):
        self.cluster = harness.Cluster()
        self.addCleanup(self.cluster.stop)
        self.balancer = Balancer(self.cluster)
        self.addCleanup(self.balancer.process.wait)
        self.addCleanup(self.balancer.process.kill)
        self._until(lambda: self.balancer.info()["mapped"] == 1)

    def _until(self, condition):
        until = time.monotonic() + 20 * harness.PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def test_commands_and_transactions(self):
        client = self.balancer.client(db=1)
        for i in range(50):
            self.assertTrue(client.set("k:%d" % i, "v%d" % i))
        pipe = client.pipeline(transaction=False)
        for i in range(50):
            pipe.get("k:%d" % i)
            if i % 7 == 0:
                pipe.ping()
        answers = [answer for answer in pipe.execute() if answer is not True]
        self.assertEqual(answers, [b"v%d" % i for i in range(50)])
        pipe = client.pipeline(transaction=True)
        pipe.incrby("a{1}", 5).decrby("b{1}", 5).mget("a{1}", "b{1}", "k:3")
        self.assertEqual(pipe.execute(), [5, -5, [b"5", b"-5", b"v3"]])
        self.assertEqual(client.transaction(
            lambda pipe: (pipe.get("a{1}"), pipe.multi(), pipe.incr("a{1}")), "a{1}"), [6])
        with client.pipeline() as pipe:
            pipe.watch("a{1}")
            self.balancer.client(db=1).incr("a{1}")
            pipe.multi()
            pipe.incr("a{1}")
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        self.assertEqual(client.get("a{1}"), b"7")
        large = os.urandom(3000000)
        client.set("large", large)
        self.assertEqual(client.get("large"), large)
        self.assertEqual(client.execute_command("MULTI"), b"OK")
        with self.assertRaises(redis.ResponseError):
            client.execute_command("CLIENT", "REPLY", "OFF")

    def test_two_balancers_agree(self):
        other = Balancer(self.cluster)
        self.addCleanup(other.process.wait)
        self.addCleanup(other.process.kill)
        self._until(lambda: other.info()["mapped"] == 1)
        ours, theirs = self.balancer.info(), other.info()
        for node in range(3):
            self.assertEqual(ours["node%d" % node]["groups"], theirs["node%d" % node]["groups"])
        self.assertEqual(other.stop(), 0)

    def test_load_moves(self):
        clients = [self.balancer.client(db=1) for _ in range(2)]
        keys = []
        for number in range(10000):
            before = self.balancer.info()["node0"]["commands"]
            clients[0].set("hot:%d" % number, "1")
            if self.balancer.info()["node0"]["commands"] > before:
                keys.append("hot:%d" % number)
            if len(keys) == 12:
                break
        moved = self.balancer.info()["groups_moved"]

        def work():
            for client in clients:
                pipe = client.pipeline(transaction=False)
                for key in keys * 20:
                    pipe.incr(key)
                pipe.execute()
            return self.balancer.info()["groups_moved"] > moved
        self._until(work)

    def test_a_node_dies(self):
        client = self.balancer.client(db=1)
        for i in range(20):
            client.set("d:%d" % i, i)
        self.cluster[1].kill()
        self._until(lambda: sum(self.balancer.info()["node%d" % n]["up"] for n in range(3)) == 2)

        def all_there():
            try:
                return all(self.balancer.client(db=1).get("d:%d" % i) == b"%d" % i
                           for i in range(20))
            except (redis.ResponseError, redis.ConnectionError):
                return False
        self._until(all_there)

    def test_hostile(self):
        for rubbish in (b"*1000000000\r\n", b"*1\r\n$999999999999\r\n",
                        b"*2\r\n$3\r\nGET\r\n$70000000\r\n", b"\0" * 70000):
            with socket.create_connection(("127.0.0.1", self.balancer.port)) as hostile:
                hostile.sendall(rubbish)
                hostile.settimeout(20 * harness.PATIENCE)
                try:
                    said = hostile.recv(1000)
                except ConnectionResetError:
                    said = b""
                self.assertTrue(said.startswith(b"-") or said == b"", said)
        for piece in (b"\0" * 1000, b"*-5\r\n", b"*3\r\n$3\r\nSET\r\n$1\r\n"):
            with socket.create_connection(("127.0.0.1", self.balancer.port)) as silent:
                silent.sendall(piece)
        with socket.create_connection(("127.0.0.1", self.balancer.port)) as inline:
            inline.sendall(b"PING\r\nSET 'a b' \"c d\"\r\nGET 'a b'\r\n")
            said = b""
            while len(said) < len(b"+PONG\r\n+OK\r\n$3\r\nc d\r\n"):
                said += inline.recv(100)
            self.assertEqual(said, b"+PONG\r\n+OK\r\n$3\r\nc d\r\n")
        self.assertTrue(self.balancer.client().ping())

    def test_bounds_and_the_end(self):
        small = Balancer(self.cluster, "--clients", "2")
        self.addCleanup(small.process.kill)
        first = small.client()
        second = small.client()
        self.assertTrue(first.ping() and second.ping())
        with self.assertRaises((redis.ResponseError, redis.ConnectionError)):
            small.client().ping()
        self.assertEqual(small.stop(), 0)
        status, _, err = harness.run([harness.PROGRAM, "balance"], check=False)
        self.assertEqual(status, 2)
        self.assertIn(b"--node", err)


if __name__ == "__main__":
    unittest.main()
