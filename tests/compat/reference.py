# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Run by CPython 3.15: what its own profiling.sampling computes of pairs of recordings.

usage: reference.py make FOLDER COUNT SEED     random pairs N.base.bin, N.current.bin, N.json
       reference.py tell BASE CURRENT JSON     of a pair that is there

The JSON: {"scale", "elided_count", "main": [row], "elided": [row]}, a row being the path, root
first, of [file, line, name], then the fields of FIELDS.
"""
import json
import random
import sys
import time

import _remote_debugging as remote
from profiling.sampling.binary_collector import BinaryCollector
from profiling.sampling.binary_reader import BinaryReader
from profiling.sampling.stack_collector import DiffFlamegraphCollector

FIELDS = ("self", "value", "self_time", "baseline", "baseline_total", "diff", "diff_pct")
STATUS = 0x25  # has the GIL, on-CPU state unknown, main thread: as wall mode records


def frame(file, line, name):
    location = None if line == 0 else remote.LocationInfo((line, line, 0, 10))
    return remote.FrameInfo((file, location, name, None))


def random_frame(dice, depth):
    if dice.random() < 0.05:
        return frame("~", 0, dice.choice(("<GC>", "<native>")))
    return frame("/app/m%d.py" % dice.randrange(2), 10 * depth + dice.randrange(3),
                 "f%d" % dice.randrange(3))


def random_stacks(dice):
    """Leaf first. Some are prefixes of others, so that inner frames have self samples."""
    stacks = []
    for _ in range(dice.randrange(1, 25)):
        if stacks and dice.random() < 0.6:
            kept = list(reversed(dice.choice(stacks)))
            kept = kept[:dice.randrange(1, len(kept) + 1)]
        else:
            kept = []
        while len(kept) < 8 and (not kept or dice.random() < 0.6):
            kept.append(random_frame(dice, len(kept)))
        stacks.append(list(reversed(kept)))
    return stacks


def write(path, dice, pool, interval_us):
    """Weights from 1 to thousands, so that some paths are below 0.1 % of all, or of a thread."""
    collector = BinaryCollector(path, interval_us)
    threads = [100 + i for i in range(dice.randrange(1, 4))]
    stacks = dice.sample(pool, dice.randrange(0, len(pool) + 1))
    time_us = int(time.monotonic() * 1e6)
    for stack in stacks:
        for _ in range(int(10 ** dice.uniform(0, 3.2))):
            time_us += interval_us
            thread = remote.ThreadInfo((threads[min(int(dice.expovariate(4)), len(threads) - 1)],
                                        STATUS, stack))
            collector.collect([remote.InterpreterInfo((0, [thread]))], time_us)
    collector.export()


def rows(node, strings, path=()):
    """Of a node, and all below it; the synthetic root has no row."""
    if "filename" in node:
        path += ((strings[node["filename"]], node["lineno"], strings[node["funcname"]]),)
        yield [path] + [node[field] for field in FIELDS]
    for child in node["children"]:
        yield from rows(child, strings, path)


def tell(base, current):
    with BinaryReader(current) as reader:
        collector = DiffFlamegraphCollector(reader.get_info()["sample_interval_us"],
                                            baseline_binary_path=base)
        reader.replay_samples(collector)
    tree = collector._convert_to_flamegraph_format()
    stats = tree["stats"]
    elided = stats.get("elided_flamegraph")
    strings = elided and collector._baseline_collector._string_table.get_strings()
    return {
        "scale": stats["baseline_scale"],
        "elided_count": stats["elided_count"],
        "main": list(rows(tree, tree["strings"])),
        "elided": list(rows(elided, strings)) if elided else [],
    }


def make(folder, count, seed):
    for number in range(count):
        dice = random.Random(seed + number)
        pool = random_stacks(dice)
        names = ["%s/%d.%s.bin" % (folder, number, side) for side in ("base", "current")]
        for name in names:
            write(name, dice, pool, dice.choice((500, 1000, 1000, 10000)))
        with open("%s/%d.json" % (folder, number), "w") as file:
            json.dump(tell(*names), file)


if sys.argv[1] == "make":
    make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    with open(sys.argv[4], "w") as out:
        json.dump(tell(sys.argv[2], sys.argv[3]), out)
