"""Which part of a memory server's work a sample of `horkos bench --samples` belongs to.

A sample is an address. Its source lines (inlined calls included, innermost first) are looked for in
PARTS: the first that is named there decides. What is outside the program, libc's copies above all, is
its caller's. What nothing names is `other`, and is shown.
"""

import collections
import subprocess

# [L] 7.7.2, figure 12, has these. Copies belong to where they go: a record's value to a buffer, and
# back, is data; a row into an answer is auxiliary ("message parsing"); a message into a frame, and a
# frame into the ring, is network.
NAMES = ("network", "lock", "index", "data", "auxiliary", "other")

# File of src/ (a prefix), function or None for all others of it, part. The first that fits counts.
PARTS = (
    ("net/", None, "network"),
    ("wire/frame", None, "network"),
    ("wire/lane", None, "network"),
    ("node/lane", None, "network"),
    ("node/input", None, "network"),     # frames are opened
    ("node/output", None, "network"),    # and filled
    ("node/ordered", None, "network"),   # frames in order, across a node's workers
    ("bench/cluster", None, "network"),  # passes frames between a node and its port
    ("bench/links", None, "network"),
    ("node/worker", "publish_stats", "auxiliary"),
    ("node/worker", None, "network"),    # polls

    ("engine/lotus/lock", None, "lock"),
    ("node/lotus_table_names", None, "lock"),
    ("node/lotus_table_row", "owned", "lock"),
    ("node/lotus_table_list", None, "lock"),
    ("node/lotus_table.", None, "lock"),        # tries' status words, and the point's own steps
    ("node/lotus_table_state.h", None, "lock"),

    ("store/tree", None, "index"),
    ("node/lotus_table_insert", None, "index"),
    ("node/lotus_table_scan", None, "index"),

    ("store/record", None, "data"),
    ("engine/op", None, "data"),                # a WHOLE is evaluated where its rows are
    ("node/lotus_table_row", None, "data"),

    ("node/lotus", None, "auxiliary"),          # tries, outcomes, the map, answers
    ("engine/lotus/", None, "auxiliary"),       # messages, two-phase commit's rules
    ("wire/msg", None, "auxiliary"),
    ("store/spin", None, None),                 # whoever calls them
    ("store/latch", None, None),
    ("store/", None, "auxiliary"),              # memory
    ("node/", None, "auxiliary"),               # views, timers, statistics
    ("base/slot", None, "auxiliary"),
    ("view/", None, "auxiliary"),
)


def part_of_frame(function, path):
    """None: whoever calls it."""
    if "/src/" not in path:
        return None
    file = path.split("/src/", 1)[1]
    name = function.split(".", 1)[0]
    for prefix, only, part in PARTS:
        if file.startswith(prefix) and only in (None, name):
            return part
    return None


def chains_of(program, addresses):
    """Of each address the (function, file) of the calls it stands in, innermost first."""
    text = "\n".join(hex(a) for a in addresses)
    done = subprocess.run(["addr2line", "-a", "-i", "-f", "-e", program], input=text, check=True,
                          stdout=subprocess.PIPE, universal_newlines=True)
    chains, chain, function = {}, None, None
    for line in done.stdout.splitlines():
        if line.startswith("0x"):
            chain = chains.setdefault(int(line, 16), [])
            function = None
        elif function is None:
            function = line
        else:
            chain.append((function, line.rsplit(":", 1)[0]))
            function = None
    return chains


def part_of(chain):
    for function, path in chain:
        part = part_of_frame(function, path)
        if part is not None:
            return part
    return "other"


def count(program, file, nodes):
    """Samples of these nodes by part, and those of `other` by their innermost call."""
    places = []
    with open(file, encoding="ascii") as f:
        for line in f:
            node, at, caller = line.split()
            if int(node) in nodes:
                # A caller's address is where it returns to: the call stands before it.
                places.append(int(at, 16) or max(int(caller, 16) - 1, 0))
    chains = chains_of(program, sorted(set(places)))
    parts, others = collections.Counter(), collections.Counter()
    for place in places:
        part = part_of(chains[place])
        parts[part] += 1
        if part == "other":
            others[chains[place][0] if chains[place] else ("?", "?")] += 1
    return parts, others
