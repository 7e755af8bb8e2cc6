"""`horkos bench`, and measurements that hold on any machine."""

import json
import subprocess

from . import harness

LONGER = (1, 4, 16)


def bench(*options, status=0):
    done = subprocess.run([harness.PROGRAM, "bench", *options], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120 * harness.PATIENCE)
    if done.returncode != status:
        raise AssertionError("status %d, not %d: %s\n%s%s" % (
            done.returncode, status, " ".join(options), done.stdout, done.stderr))
    return done


def measured(*options, ops, seconds, until=lambda got: True, scaled=()):
    """What each of some longer and longer measurements says, up to the first in which every run has so
    many operations and of which until(got) holds. A wrong figure stays wrong in a long run, while
    what was in flight when it began, and a moment in which the machine did something else, lose
    their weight. scaled: names and values of options that grow along. The last is returned whatever
    it is: the caller asserts what must hold."""
    for factor in LONGER:
        grown = [word for name, value in (("--seconds", seconds), *scaled)
                 for word in (name, "%g" % (value * factor))]
        got = json.loads(bench(*options, *grown, "--json").stdout)
        fewest = min(series["spread"]["ops_per_s"]["min"]
                     for series in got.get("engines", {"": got}).values()) * seconds * factor
        if fewest >= ops and until(got):
            break
    return got
