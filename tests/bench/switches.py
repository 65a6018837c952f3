#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What recording waiting costs a program that does nothing but switch: two processes, or two threads, hand
each other a byte through pipes on one CPU, beside nothing, beside an empty BPF program on the hook that
pyebpf has since Linux 6.18 (which is what any program there costs), and beside pyebpf; alternating. The CPU time of a
switch is the 5th percentile of windows of 30 ms, as what else runs adds to some. Nothing is asserted: it
prints.

    switches.py [--seconds N] [--rounds N] [--markdown] [PYEBPF...]

PYEBPF: builds to be compared, build/pyebpf if there is none.
"""
import argparse
import contextlib
import os
import sys
import tempfile
import time

import kernel
import tools
from target import Target

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
import pythons  # noqa: E402

HOOK = "sched_switch"
KINDS = ("processes", "threads")
WINDOW_SECONDS = 0.03
LEAST_SWITCHES = 500  # in a window that counts
GOAL_SLOWER, GOAL_CPU, GOAL_RATE = 1.10, 0.08, 300000


def run_of(tids):
    """(CPU time, ns, times that they came on a CPU) of all together."""
    sums = [0, 0]
    for tid in tids:
        with open("/proc/%d/schedstat" % tid) as f:
            run, _, count = map(int, f.read().split())
        sums = [sums[0] + run, sums[1] + count]
    return sums


def windows(tids, seconds):
    """CPU time of a switch, ns, in each window."""
    found, end, before = [], time.monotonic() + seconds, run_of(tids)
    while time.monotonic() < end:
        time.sleep(WINDOW_SECONDS)
        after = run_of(tids)
        if after[1] - before[1] > LEAST_SWITCHES:
            found.append((after[0] - before[0]) / (after[1] - before[1]))
        before = after
    return found


@contextlib.contextmanager
def nothing(_):
    yield None


@contextlib.contextmanager
def empty(_):
    with kernel.EmptyPrograms([HOOK]):
        yield None


def recorder(program, folder):
    @contextlib.contextmanager
    def record(target):
        tool = tools.Pyebpf()
        output = os.path.join(folder, "switches.pyebpf")
        command = [program, "record", "-q", "--mode", "wall", "-p", str(target.pid), "-o", output]
        with tools.Run(tool, command, output) as run:
            while not kernel.descriptors(run.pid, "[perf_event]"):
                run.check()
                time.sleep(0.05)
            time.sleep(0.3)
            yield run
            run.check()
            run.stop()
    return record


def program_runs(pid):
    """(runs, ns) so far, as the kernel counts them with bpf_stats, of the program that runs most often."""
    return max((int(row["run_cnt"]), int(row["run_time_ns"])) for _, row in kernel.descriptors(pid, "bpf-prog"))


def measure(kind, beside, rounds, seconds):
    """{name: (ns a switch, CPU time of the recorder itself a second)}, and how many switches a second there
    are of CPU time."""
    python = max(pythons.find_all(False), key=lambda p: (p.via == "direct" and p.minor == 11, p.minor))
    found, own = {name: [] for name in beside}, dict.fromkeys(beside, 0.0)
    for _ in range(rounds):
        with Target(python, "ping_pong.py", kind, os.cpu_count() - 1) as target:
            tids = {target.pid, int(target.ready[0])}
            tids.update(int(tid) for tid in os.listdir("/proc/%d/task" % target.pid))
            for name, start in beside.items():
                with start(target) as run:
                    cpu = kernel.cpu_seconds(run.pid) if run else 0
                    found[name] += windows(tids, seconds)
                    own[name] += (kernel.cpu_seconds(run.pid) - cpu if run else 0) / seconds / rounds
    return {name: (sorted(values)[len(values) // 20], own[name]) for name, values in found.items() if values}


def program_ns(kind, program, folder, seconds):
    """ns a run of the program of a switch, by bpf_stats, whose own time is in it."""
    python = max(pythons.find_all(False), key=lambda p: (p.via == "direct" and p.minor == 11, p.minor))
    least = []
    with Target(python, "ping_pong.py", kind, os.cpu_count() - 1) as target, kernel.bpf_stats(), \
            recorder(program, folder)(target) as run:
        before = program_runs(run.pid)
        for _ in range(round(seconds / WINDOW_SECONDS)):
            time.sleep(WINDOW_SECONDS)
            after = program_runs(run.pid)
            least.append((after[1] - before[1]) / max(1, after[0] - before[0]))
            before = after
    return sorted(least)[len(least) // 20]


def put(kind, found, markdown):
    base = found["nothing"][0]
    head = ("beside", "ns a switch", "more, ns", "slower", "of a CPU at %d switches/s" % GOAL_RATE,
            "recorder's own CPU")
    rows = [(name, "%.0f" % ns, "%.0f" % (ns - base), "%.3f" % (ns / base),
             "%.1f %%" % (100e-9 * (ns - base) * GOAL_RATE), "%.1f %%" % (100 * own))
            for name, (ns, own) in found.items()]
    print("\n**Two %s, %.0f switches a second of CPU time**\n" % (kind, 1e9 / base))
    if markdown:
        print("\n".join("| %s |" % " | ".join(row) for row in [head, ["---"] * len(head)] + rows))
    else:
        for row in [head] + rows:
            print("%-24s" % row[0] + "".join("%30s" % cell for cell in row[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.8)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("programs", nargs="*", default=[tools.PYEBPF], metavar="PYEBPF")
    arguments = parser.parse_args()
    if os.geteuid():
        sys.exit("switches: needs root: it records another process, and loads BPF programs")
    print("Machine: " + kernel.machine())
    with tempfile.TemporaryDirectory(prefix="pyebpf-bench-") as folder:
        beside = {"nothing": nothing, "an empty program": empty}
        for program in arguments.programs:
            beside[os.path.basename(program)] = recorder(program, folder)
        for kind in KINDS:
            put(kind, measure(kind, beside, arguments.rounds, arguments.seconds), arguments.markdown)
        for program in arguments.programs:
            print("\n%s, ns a run of the program of a switch, by bpf_stats (whose own are in it): %s" % (
                os.path.basename(program), ", ".join("%.0f of two %s" % (
                    program_ns(kind, program, folder, 2 * arguments.seconds), kind) for kind in KINDS)))


if __name__ == "__main__":
    main()
