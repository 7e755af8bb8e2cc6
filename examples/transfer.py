#!/usr/bin/python3
"""Payments between accounts with redis-py, as with one Redis: WATCH, then MULTI and EXEC, and again
if somebody else has changed a watched key meanwhile. Here the clients are at three nodes, and the
accounts in a space that has transactions: database 1 of a cluster that `horkos dev` has started.

Usage: transfer.py HOST:PORT...          (for instance 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003)
"""

import random
import sys
import threading

import redis

ACCOUNTS = 12  # a node
MONEY = 1000
PAYMENTS = 100
REMOTE = 0.05  # payments to another node's account


def name(node, account):
    return "account:%d:%d" % (node, account)


def pay(client, source, target, amount):
    """Whether there was enough. redis.WatchError never comes out: the helper tries again."""
    enough = False

    def body(pipe):
        nonlocal enough
        there = int(pipe.get(source))  # read at once: WATCH has been said
        enough = there >= amount
        pipe.multi()
        if enough:
            pipe.decrby(source, amount)
            pipe.incrby(target, amount)

    client.transaction(body, source)
    return enough


def work(clients, node, done):
    for _ in range(PAYMENTS):
        other = node
        if random.random() < REMOTE:
            other = random.randrange(len(clients))
        source = name(node, random.randrange(ACCOUNTS))
        target = name(other, random.randrange(ACCOUNTS))
        if source != target:
            try:
                done[node] += pay(clients[node], source, target, random.randrange(300))
            except redis.ConnectionError:
                pass  # the payment happened, or it did not: as with Redis, nobody knows


def main():
    clients = []
    for address in sys.argv[1:]:
        host, port = address.rsplit(":", 1)
        clients.append(redis.Redis(host=host, port=int(port), db=1))
    for node, client in enumerate(clients):
        client.mset({name(node, account): MONEY for account in range(ACCOUNTS)})
    done = [0] * len(clients)
    threads = [threading.Thread(target=work, args=(clients, node, done))
               for node in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = [name(node, account) for node in range(len(clients)) for account in range(ACCOUNTS)]
    total = sum(map(int, clients[0].mget(keys)))  # one transaction: the accounts of one moment
    print("%d payments, %d in all accounts" % (sum(done), total))
    sys.exit(total != len(keys) * MONEY or sum(done) == 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
