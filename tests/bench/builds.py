#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds of pyebpf beside each other, in turn, so that a drift of the machine hits all: CPU time of a start, time
to the first sample, CPU time of each process and thread that begins, BPF time a tick and a frame, own CPU time a
sample, memory, large recordings. Each figure is the median of the rounds, and the least in parentheses. Nothing is
asserted: it prints.

    builds.py [--rounds N] [--only PART] BUILD...

BUILD: build folders, each with pyebpf; for large recordings with tests/gen_recording, too (cmake --build BUILD
--target gen_recording).
"""
import argparse
import collections
import itertools
import os
import statistics
import sys
import tempfile
import time

import kernel
import large
import measure
import table
import tools
from target import Target

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
import pythons  # noqa: E402

RECORD_SECONDS = 0.05
DEPTHS = (10, 200)
MINORS = (8, 11, 13)
RATES = (99, 999, 9999)
PERIOD_US = 200
LARGE_SAMPLES = 10000000
BEGINS = {"processes": 150, "threads": 500}
IDLE_SECONDS = 1.5
SETTLE_SECONDS = 1.2  # a process is looked at for a second


def start(build, mode, output):
    """CPU seconds of a short recording, whose COMMAND does nothing."""
    command = [build.program, "record", "-q", "--mode", mode, "-d", "%gs" % RECORD_SECONDS, "-o", output, "--",
               "sleep", "%g" % (RECORD_SECONDS + 0.01)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
    usage = os.wait4(pid, 0)[2]
    return usage.ru_utime + usage.ru_stime


def part_start(build, found, output, put):
    for mode in ("cpu", "wall"):
        put("CPU time of a start, %s mode, ms" % mode, 1000 * start(build, mode, output))
    put("start to first sample, ms", measure.start_ms(found[13], build, output))


def cpu_of_begins(build, python, mode, what, count, output):
    """CPU seconds of a recorder for each that begins in its target, without what it takes while nothing happens."""
    with Target(python, "begins.py", what, count, *python.command) as target:
        with tools.Run(build, build.command(target.pid, 99, output, False) + ["--mode", mode], output) as run:
            time.sleep(measure.START_SECONDS)
            marks = [(time.monotonic(), kernel.family_cpu_seconds(run.pid))]
            time.sleep(IDLE_SECONDS)
            marks.append((time.monotonic(), kernel.family_cpu_seconds(run.pid)))
            target.go()
            target.truth()
            time.sleep(SETTLE_SECONDS)
            marks.append((time.monotonic(), kernel.family_cpu_seconds(run.pid)))
            run.check()
    (begin, cpu_begin), (idle, cpu_idle), (end, cpu_end) = marks
    return (cpu_end - cpu_idle - (cpu_idle - cpu_begin) * (end - idle) / (idle - begin)) / count


def part_begins(build, found, output, put):
    for mode, (what, count) in itertools.product(("cpu", "wall"), BEGINS.items()):
        put("own CPU time for one of %s that begin, %s mode, us" % (what, mode),
            1e6 * cpu_of_begins(build, found[13], mode, what, count, output))


def part_sampler(build, found, output, put):
    for minor in MINORS:
        ns = [measure.sampler_ns(found[minor], build, depth, 500, 0.5, output) for depth in DEPTHS]
        for depth, of_depth in zip(DEPTHS, ns):
            put("BPF time a tick, 3.%d, %d deep, ns" % (minor, depth), of_depth)
        put("BPF time a frame, 3.%d, ns" % minor, (ns[1] - ns[0]) / (DEPTHS[1] - DEPTHS[0]))


def part_cpu(build, found, output, put):
    for hz in RATES:
        stacks = measure.Stacks()
        measure.alternate(found[13], build, hz, PERIOD_US, 3 if hz > 99 else 6, output, stacks)
        if stacks.samples:
            put("own CPU time a sample at %d Hz, us" % hz, stacks.own_cpu / stacks.samples * 1e6)
        put("memory at %d Hz, MiB" % hz, (stacks.peak_bytes + stacks.kernel_bytes) / (1 << 20))


def part_large(build, found, output, put):
    folder = os.path.dirname(build.program)
    with tempfile.TemporaryDirectory(prefix="pyebpf-bench-") as work:
        (base, current), _ = large.generate("cyclic", LARGE_SAMPLES, work, folder)
        for what, command in large.jobs(folder, base, current, work).items():
            _, cpu, memory = large.run(command)
            put("%s of 10 M samples, CPU s" % what, cpu)
            put("%s of 10 M samples, MiB" % what, memory / (1 << 20))


PARTS = {"start": part_start, "begins": part_begins, "sampler": part_sampler, "cpu": part_cpu, "large": part_large}


def measure_rounds(builds, arguments, output):
    """{row: {build: values}}, from the rows' names."""
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    found = {p.minor: p for p in pythons.find_all() if p.via == "direct" and p.linkage != "static"
             and not p.free_threaded}
    parts = [PARTS[name] for name in PARTS if arguments.only in (None, name)]
    for i in range(arguments.rounds):
        for part in parts:
            for build in builds:
                print("bench: round %d, %s, %s" % (i + 1, part.__name__, build.program), file=sys.stderr)
                part(build, found, output, lambda row, value: rows[row][build.program].append(value))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("builds", nargs="+", metavar="BUILD")
    arguments = parser.parse_args()
    if os.geteuid():
        sys.exit("builds: needs root: it records, and counts the time of programs in the kernel")
    builds = [tools.Pyebpf(os.path.abspath(os.path.join(folder, "pyebpf"))) for folder in arguments.builds]
    neighbours = kernel.Neighbours()
    out = table.Table("Builds beside each other: median (least)", "")
    with tempfile.TemporaryDirectory(prefix="pyebpf-bench-") as folder:
        rows = measure_rounds(builds, arguments, os.path.join(folder, "output"))
    for row, values in rows.items():
        for name, build in zip(arguments.builds, builds):
            got = values[build.program]
            out.put(row, name, "%.4g (%.4g)" % (statistics.median(got), min(got)) if got else "-")
    print(out.markdown() if arguments.markdown else out.plain())
    print("Meanwhile " + neighbours.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
