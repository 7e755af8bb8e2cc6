"""A space of engine lotus, number 3, in the clusters of system tests."""

from . import galene, harness

SPACE = 3
SETS = ["space 0.engine=hermes", "space 3.engine=lotus"]


def select(node, **options):
    client = node.client(**options)
    client.must("SELECT", SPACE)
    return client


def slots_of(node):
    return galene.slots_of(node, SPACE)


def wait_even(nodes, bound=30):
    galene.wait_even(nodes, bound, SPACE)


def settle(client, *command, bound=20):
    """The answer to a command that others may be in the way of."""
    replies = []

    def answered():
        replies.append(client.call(*command))
        return getattr(replies[-1], "code", None) != "TRYAGAIN"

    harness.wait_until(answered, bound, "%r is answered" % (command,))
    return replies[-1]
