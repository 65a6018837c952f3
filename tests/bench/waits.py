# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Invented programs that wait (gen_waits.c), and how often `pyebpf diff` is right about them."""
import collections
import functools
import os
import subprocess
import tempfile

import tools

GENERATOR = os.path.join(os.path.dirname(tools.PYEBPF), "tests", "gen_waits")
SECONDS = 20   # of a run of the same for ever
LONGEST = 600  # seconds of one that does its work and ends
KEPT_MS = 10   # spans of at least that are all kept
GREY = ("unchanged", "undetermined", "rare")

# How many, together if that is negative; seconds at work and at rest on average; steps: stack,
# law, milliseconds (of `bytes;`: bytes).
Threads = collections.namedtuple("Threads", "count steps busy rest", defaults=(1e9, 0))

PROGRAMS = {
    "naps of 30, 3 and 0.3 ms": [Threads(4, (
        ("cpu", "exp", 5), ("main;a", "fixed", 30), ("main;b", "fixed", 3), ("main;c", "fixed", .3)))],
    "sleeps of 5, 1 and 0.1 s": [
        Threads(1, (("main;five", "fixed", 5000), ("cpu", "exp", 20))),
        Threads(1, (("main;one", "fixed", 1000), ("cpu", "exp", 20))),
        Threads(1, (("main;tenth", "fixed", 100), ("cpu", "exp", 5)))],
    "pool of 20, idle at random": [Threads(20, (
        ("main;idle", "exp", 1500), ("cpu", "exp", 5), ("main;handle;read", "exp", 20),
        ("main;handle;lock", "exp", 3), ("main;handle;db", "exp", 60)))],
    "convoys of 20 at a lock": [
        Threads(-20, (("main;work;lock", "exp", 50), ("main;work;poll", "exp", 1000))),
        Threads(4, (("cpu", "exp", 5), ("main;work;read", "exp", 10)))],
    "6 threads, 1 s busy, 2 s idle": [Threads(6, (
        ("cpu", "exp", 2), ("main;x;lock", "exp", 20), ("main;x;read", "exp", 5),
        ("main;x;send", "fixed", 1)), 1, 2)],
    "the same, all at once": [Threads(-6, (
        ("cpu", "exp", 2), ("main;x;lock", "exp", 20), ("main;x;read", "exp", 5),
        ("main;x;send", "fixed", 1)), 1, 2)],
    "waits of infinite variance": [Threads(8, (
        ("cpu", "exp", 2), ("main;x;hang", "pareto", 100), ("main;x;read", "exp", 10)))],
    "50 that wait all the time": [
        Threads(50, (("main;sleep", "fixed", 1e6),)),
        Threads(2, (("cpu", "exp", 5), ("main;read", "exp", 10)))],
    "waits of 1, 2 and 4 s at random": [Threads(3, (
        ("main;a", "exp", 4000), ("main;b", "exp", 2000), ("main;c", "exp", 1000)))],
    "memory, steadily": [Threads(2, (
        ("main;w", "exp", 100), ("bytes;main;load", "exp", 400000), ("bytes;main;page", "fixed", 8192)))],
    "memory, 1 s in 4": [Threads(2, (
        ("main;w", "exp", 20), ("bytes;main;load", "exp", 400000),
        ("bytes;main;page", "fixed", 8192)), 1, 3)],
    # off by 2.5 % from run to run, and one thing not at all
    "memory at a start": [Threads(1, (
        (("bytes;main;load", "fixed", 32 << 20), ("main;w", "exp", 500)) +
        (("bytes;main;parse", "exp", 10000),) * 1600 +
        (("main;w", "exp", 500), ("bytes;main;index", "fixed", 4 << 20))))],
}

ONCE = ("memory at a start",)  # of which parts of time say nothing

# What changes of which program by which factor; how often each thread does its steps.
Change = collections.namedtuple("Change", "name program step factor cycles")
CHANGES = [
    Change("a sleep of 30 ms, 20 % longer", "naps of 30, 3 and 0.3 ms", "main;a", 1.2, 300),
    Change("a sleep of 5 s, 20 % longer", "sleeps of 5, 1 and 0.1 s", "main;five", 1.2, 4),
    Change("a lock held 50 % longer", "pool of 20, idle at random", "main;handle;lock", 1.5, 12),
    Change("a database 20 % slower", "pool of 20, idle at random", "main;handle;db", 1.2, 12),
    Change("a database 50 % slower", "pool of 20, idle at random", "main;handle;db", 1.5, 12),
    Change("a convoy's lock held twice as long", "convoys of 20 at a lock", "main;work;lock", 2, 20),
    Change("a lock in bursts, held 50 % longer", "6 threads, 1 s busy, 2 s idle", "main;x;lock", 1.5,
           200),
    Change("hangs twice as long", "waits of infinite variance", "main;x;hang", 2, 150),
    Change("30 % more memory", "memory, steadily", "bytes;main;load", 1.3, 200),
    Change("as much memory", "memory at a start", "bytes;main;parse", 1, 1),
    Change("64 MiB more, at once", "memory at a start", "bytes;main;load", 3, 1),
    Change("20 % more memory, at once", "memory at a start", "bytes;main;parse", 1.2, 1),
    Change("10 % more memory, at once", "memory at a start", "bytes;main;load", 1.1, 1),
]


def text_of(program, change):
    lines = []
    for threads in program:
        lines.append("threads %d %g %g" % (threads.count, threads.busy, threads.rest))
        for stack, law, size in threads.steps:
            factor = change.factor if change and stack == change.step else 1
            lines.append("%s %s %.9g %.9g" % (stack, law, size, size * factor))
    return "\n".join(lines) + "\n"


def judge(compare, name, change, by, sizes, seed):
    """{runs: (a finding, coloured, exit status, functions that changed, regressions)}."""
    kind = "memory" if "emory" in name else "off-cpu"
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        runs = str(max(sizes))
        subprocess.run([GENERATOR, folder, str(seed), runs, runs,
                        str(LONGEST if change else SECONDS), str(KEPT_MS),
                        str(change.cycles if change else 0)],
                       input=text_of(PROGRAMS[name], change), check=True, universal_newlines=True)
        paths = [[os.path.join(folder, "%s-%d.pyebpf" % (side, i + 1)) for i in range(max(sizes))]
                 for side in ("base", "current")]
        for size in sizes:
            document = compare(paths[0][:size], paths[1][:size], "--gate", "--kind", kind,
                               "--normalize", by)
            functions = document["functions"]
            found[size] = (
                any(f["q"] is not None and f["q"] <= 0.05 for f in functions),
                document["coloured"] > 0.01, document["gate"]["exit"],
                {f["name"] for f in functions if f["class"] not in GREY},
                {regression for regression, _ in document["gate"]["regressions"]})
    return found


def cells(found, size):
    """Of comparisons of the same: findings, coloured / failed / inconclusive."""
    verdicts = [f[size] for f in found]
    return "%d, %d / %d / %d" % (
        sum(v[0] for v in verdicts), sum(v[1] for v in verdicts),
        sum(v[2] == 5 for v in verdicts), sum(v[2] == 6 for v in verdicts))


def put(arguments, compare, each_time, put_table, sizes=(1, 2, 3, 5)):
    head = ["%d run%s" % (n, "s" * (n > 1)) for n in sizes]
    rows = []
    for name in PROGRAMS:
        if name in ONCE:
            continue
        trial = functools.partial(judge, compare, name, None, "second")
        found = each_time(arguments, lambda program, seed, trial=trial: trial(sizes, seed), None,
                          range(arguments.times))
        rows.append([name] + [cells(found, size) for size in sizes])
    put_table("Waits of %d s compared with themselves, %d times: a finding at q <= 0.05, more than 1 %% "
              "coloured / exit 5 / exit 6" % (SECONDS, arguments.times), [""] + head, rows)
    rows = []
    for change in CHANGES:
        trial = functools.partial(judge, compare, change.program, change, "work")
        found = each_time(arguments, lambda program, seed, trial=trial: trial(sizes, seed), None,
                          range(arguments.times))
        leaf = change.step.split(";")[-1]
        rows.append([change.name] + ["%d, %d" % (sum(leaf in f[size][3] for f in found),
                                                 sum(leaf in f[size][4] for f in found))
                                     for size in sizes])
    put_table("Changes found, %d times, by a run's work: coloured, failed by the gate"
              % arguments.times, [""] + head, rows)
