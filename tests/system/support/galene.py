"""A space of engine galene, number 2, in the clusters of system tests."""

import json

from . import harness

SPACE = 2
# Small and quick, so that keys enter and leave the hot set all the time.
CACHE_KEYS = 8
SETS = ["space 0.engine=hermes", "space 2.engine=galene", "space 2.cache_keys=%d" % CACHE_KEYS,
        "space 2.hot_epoch_ms=100", "space 2.hot_sample=1"]


def select(node, **options):
    client = node.client(**options)
    client.must("SELECT", SPACE)
    return client


def slots_of(node, space=SPACE):
    """[(state, home), ...] of all slots, as the node knows them."""
    with node.client() as client:
        told = json.loads(client.must("HORKOS", "SLOTS", space))
    space = told["spaces"][0]
    slots = []
    for run in space["runs"]:
        slots += [(run["state"], run.get("home"))] * (run["to"] - run["from"] + 1)
    assert len(slots) == 16384
    return slots


def homed(node, space=SPACE):
    """{node: how many slots it is the home of}, and how many have none or are moving."""
    shares, unsettled = {}, 0
    for state, home in slots_of(node, space):
        if state == "stable":
            shares[home] = shares.get(home, 0) + 1
        else:
            unsettled += 1
    return shares, unsettled


def wait_even(nodes, bound=30, space=SPACE):
    """Until all of these nodes say that they, and nobody else, have even shares."""
    numbers = [node.number for node in nodes]

    def even():
        for node in nodes:
            shares, unsettled = homed(node, space)
            if unsettled or sorted(shares) != numbers:
                return False
            if max(shares.values()) - min(shares.values()) > 1:
                return False
        return True

    harness.wait_until(even, bound, "nodes %r have even shares" % (numbers,))


def slots_command(node, *options):
    return harness.run([harness.PROGRAM, "slots", "--port", node.port, *options], check=False,
                       bound=60)
