#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How often `pyebpf diff` is right: comparisons of invented programs (gen_runs.c), whose truth is
known, made by the program itself. Prints the tables of docs/diff.md; nothing is asserted.

    verdicts.py [--times N] [--jobs N] [PART]...      parts: gate, intervals, parts, waits
"""
import argparse
import collections
import concurrent.futures
import functools
import json
import os
import subprocess
import tempfile

import tools
import waits

GENERATOR = os.path.join(tools.REPOSITORY, "build", "tests", "gen_runs")
MODES = ("absolute", "work", "second", "share")
SECONDS = 20  # of a run
BLOCKS = 200  # times that its samples have
SEEDS = 1000000  # between two programs

# stack, ticks of a run of base and of current, noise measured between runs, share of the time in which it
# works, seconds on end
Function = collections.namedtuple("Function", "stack base current noise busy length",
                                  defaults=(1, 1))


# --- programs -------------------------------------------------------------------------------------

def calls(ticks, factors=None, count=40, noise=0.05):
    """Functions below main, a few hot, most small, as 1 / (rank + 2): the second has 9 %."""
    shares = [1 / (rank + 2) for rank in range(1, count + 1)]
    found = []
    for i, share in enumerate(shares):
        base = ticks * share / sum(shares)
        found.append(Function("main;f%d" % i, base, base * (factors or {}).get(i, 1), noise))
    return found


def hot_and_small(small, noise, busy=1, length=1):
    """Six functions that take half of the time, beside many that share the other half."""
    hot = [Function("main;hot%d" % i, 2500, 2500, noise, busy, length) for i in range(6)]
    return hot + [Function("main;small%d" % i, 5000 / small, 5000 / small, noise, busy, length)
                  for i in range(small)]


# --- comparisons ----------------------------------------------------------------------------------

def generate(folder, program, runs, seed, run_noise):
    """Recordings of both sides: ([path...], [path...])."""
    text = "".join("%s %.9g %.9g %g %g %g\n" % function for function in program)
    subprocess.run([GENERATOR, folder, str(seed), str(runs), str(runs), str(SECONDS), str(BLOCKS),
                    str(run_noise)], input=text, check=True, universal_newlines=True)
    return [[os.path.join(folder, "%s-%d.pyebpf" % (side, i + 1)) for i in range(runs)]
            for side in ("base", "current")]


def compare(base, current, *options):
    """The document of a comparison."""
    command = [tools.PYEBPF, "diff", base[0], *current, "-f", "json", "-q", *options]
    for path in base[1:]:
        command += ["--baseline", path]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True)
    if done.returncode not in (0, 5, 6):
        raise tools.Failed("%s: %s" % (" ".join(command[1:]), done.stderr))
    return json.loads(done.stdout)


def each_time(arguments, trial, program, seeds):
    """What trial(program, seed) gives for each of the seeds."""
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        return list(pool.map(functools.partial(trial, program), seeds))


def per_cent(part, whole):
    return "%.1f" % (100 * part / whole) if whole else ""


def put_table(title, head, rows):
    print("\n**%s**\n" % title)
    print("| %s |" % " | ".join(head))
    print("|---|%s" % ("---:|" * (len(head) - 1)))
    for row in rows:
        print("| %s |" % " | ".join(str(cell) for cell in row), flush=True)


# --- the gate -------------------------------------------------------------------------------------

RUNS = (1, 2, 3, 5, 8, 10)
CHANGES = (("nothing", {}), ("f1 20 % slower", {1: 1.2}), ("f1 30 % slower", {1: 1.3}),
           ("f0 twice as fast", {0: 0.5}), ("f0 twice as fast, f1 40 % slower", {0: 0.5, 1: 1.4}))


def judge(slower, sizes, program, seed):
    """{(mode, runs): letter}: of what exit status, and w where something else failed."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        base, current = generate(folder, program, max(sizes), seed, 0.03)
        for mode in MODES:
            for runs in sizes:
                gate = compare(base[:runs], current[:runs], "--gate", "--normalize", mode)["gate"]
                wrong = [name for name, _ in gate["regressions"]
                         if name not in slower and not (name == "main" and slower)]
                if gate["total_fails"] and not slower:
                    wrong.append("the total")
                found[mode, runs] = "w" if wrong else {0: "p", 5: "r", 6: "i"}[gate["exit"]]
    return found


def put_verdicts(title, programs, sizes, arguments):
    rows = []
    for at, (name, slower, program) in enumerate(programs):
        trial = functools.partial(judge, slower, sizes)
        found = each_time(arguments, trial, program, range(at * SEEDS, at * SEEDS + arguments.times))
        modes = {}
        for mode in MODES:
            counts = [collections.Counter(f[mode, runs] for f in found) for runs in sizes]
            cells = tuple(" / ".join(str(count[c]) for c in "pirw") for count in counts)
            modes.setdefault(cells, []).append(mode)
        rows += [[name, ", ".join(alike), *cells] for cells, alike in modes.items()]
    put_table(title, ["changed", "by"] + ["%d run%s" % (n, "s" * (n > 1)) for n in sizes], rows)


def part_gate(arguments):
    print("\nOf %d comparisons: pass (0) / inconclusive (6) / regression (5) of what did change / "
          "regression of something that did not." % arguments.times)
    programs = [(name, {"f%d" % i for i, factor in factors.items() if factor > 1},
                 calls(20000, factors)) for name, factors in CHANGES]
    put_verdicts("40 functions, 20,000 samples a run, 5 % noise a function and 3 % a run",
                 programs, RUNS, arguments)
    put_verdicts("The same of 400 samples a run", [("nothing", set(), calls(400)),
                                                   ("f1 30 % slower", {"f1"},
                                                    calls(400, {1: 1.3}))], (1, 2, 5, 10),
                 arguments)


# --- intervals ------------------------------------------------------------------------------------

def cover(runs, run_noise, program, seed):
    """{kind of function: (intervals that hold no change, all of them, surely wrong ones)}."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        base, current = generate(folder, program, runs, seed, run_noise)
        document = compare(base, current, "--normalize", "absolute")
        things = [(f["name"].rstrip("0123456789"), f) for f in document["functions"]]
        for kind, f in things + [("total", document["total"])]:
            if kind == "main" or f["low"] is None:
                continue
            held, count, wrong = found.get(kind, (0, 0, 0))
            high = float("inf") if f["high"] is None else f["high"]
            sure = f["class"] not in ("unchanged", "undetermined", "rare") and f["q"] <= 0.001
            found[kind] = held + (f["low"] <= 1 <= high), count + 1, wrong + sure
    return found


def put_cover(title, programs, arguments):
    """programs: (name, runs, noise of a run, program)."""
    rows = []
    for at, (name, runs, run_noise, program) in enumerate(programs):
        found = each_time(arguments, functools.partial(cover, runs, run_noise), program,
                          range(at * SEEDS, at * SEEDS + arguments.times))
        row = [name]
        for kind in ("hot", "small", "total"):
            sums = [sum(column) for column in zip(*(f[kind] for f in found if kind in f))]
            row.append(per_cent(*sums[:2]))
        rows.append(row + [sum(any(wrong for _, _, wrong in f.values()) for f in found)])
    put_table(title, ["", "hot, %", "small, %", "total, %", "comparisons with a certain one"],
              rows)


def part_intervals(arguments):
    programs = [("%d runs a side, %d small functions, %g %% and %g %%" %
                 (runs, small, 100 * noise, 100 * run_noise), runs, run_noise,
                 hot_and_small(small, noise))
                for small, noise, run_noise in ((66, .05, 0), (300, .05, 0), (66, .05, .03))
                for runs in (3, 5, 10)]
    put_cover("95 % intervals that hold the truth: runs; noise of a function and of a run",
              programs, arguments)


def part_parts(arguments):
    programs = [("steady", 1, 0, hot_and_small(66, 0))]
    programs += [("%g s at work, %g s at rest" % (length, length * (1 - busy) / busy), 1, 0,
                  hot_and_small(66, 0, busy, length))
                 for busy, length in ((.3, .02), (.3, .2), (.3, .6), (.5, 2))]
    put_cover("The same of the parts of one recording of %d s a side" % SECONDS, programs,
              arguments)


def part_waits(arguments):
    waits.put(arguments, compare, each_time, put_table)


PARTS = {"gate": part_gate, "intervals": part_intervals, "parts": part_parts, "waits": part_waits}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", default=list(PARTS))
    parser.add_argument("--times", type=int, default=100, help="comparisons of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    for part in arguments.parts:
        PARTS[part](arguments)


if __name__ == "__main__":
    main()
