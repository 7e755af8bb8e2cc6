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

from support import harness


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
