#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Wall time and the GIL as pyebpf, py-spy and CPython 3.15's profiling.sampling show them, one after the
other on the same real programs: an aiohttp service under load, a pool of threads with a database, a
pipeline of queues. Shares of the process's threads' time by the innermost Python function. Nothing is
asserted: it prints.

    waiting.py [--seconds N] [--rounds N] [--markdown]
"""
import argparse
import collections
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
import packages  # noqa: E402
import pythons  # noqa: E402
import tools  # noqa: E402

PROGRAMS = ("aiohttp_service.py", "pool_database.py", "pipeline.py")
PYEBPF = os.path.join(HERE, "..", "..", "build", "pyebpf")
SETTLE_SECONDS = 1.5
HZ = 200
ROWS = 8


def function_of(frame):
    """Of "Class.name (file:line)" or "file:name:line"; None: a marker, as for why it waits."""
    name = frame.split(" (")[0] if " (" in frame else (frame.rsplit(":", 2) + [None, None])[1]
    return name and name.split(".")[-1]


def innermost(frames):
    return next(filter(None, map(function_of, reversed(frames))), "(no Python)")


def shares(path):
    counts = collections.Counter()
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            if stack and count.isdigit():
                frames = [frame for frame in stack.split(";")
                          if not frame.startswith(("thread ", "process ", "tid:", "MainThread"))]
                counts[innermost(frames)] += int(count)
    total = sum(counts.values()) or 1
    return {name: count / total for name, count in counts.items()}


def run(command, text):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print("%s failed: %s" % (text, done.stdout.strip()[-300:]), file=sys.stderr)
    return not done.returncode


def with_pyebpf(mode, kind):
    def record(pid, seconds, output):
        recording = output + ".pyebpf"
        return run([PYEBPF, "record", "-q", "--mode", mode, "--no-children", "-F", str(HZ), "-d",
                    "%gs" % seconds, "-p", str(pid), "-o", recording], "pyebpf") and \
            run([PYEBPF, "export", "-q", "-f", "collapsed", *kind, "-o", output, recording], "export")
    return record


def with_py_spy(*options):
    program = tools.PySpy().program

    def record(pid, seconds, output):
        return run([program, "record", *options, "-r", str(HZ), "-d", "%d" % seconds, "-f", "raw",
                    "-o", output, "-p", str(pid)], "py-spy")
    return record


def with_sampling(python, mode):
    def record(pid, seconds, output):
        return run([*python.command, "-m", "profiling.sampling", "attach", "-a", "--mode", mode, "-r",
                    str(HZ), "-d", "%d" % seconds, "--collapsed", "-o", output, str(pid)],
                   "profiling.sampling")
    return record


def columns(python):
    return {
        "wall": (("pyebpf", with_pyebpf("wall", ("--kind", "wall"))),
                 ("py-spy --idle", with_py_spy("--idle")),
                 ("profiling.sampling", with_sampling(python, "wall"))),
        "gil": (("pyebpf", with_pyebpf("gil", ())),
                ("py-spy --gil", with_py_spy("--gil")),
                ("profiling.sampling", with_sampling(python, "gil"))),
    }


def compare(pid, recorders, seconds, rounds, folder):
    """{tool: {function: share}}, alternating."""
    sums = {name: collections.Counter() for name, _ in recorders}
    runs = collections.Counter()
    for _ in range(rounds):
        for name, record in recorders:
            output = os.path.join(folder, "shares.txt")
            if not record(pid, seconds, output):
                continue
            runs[name] += 1
            sums[name].update(shares(output))
    return {name: {f: share / runs[name] for f, share in s.items()} for name, s in sums.items()
            if runs[name]}


def show(title, found):
    names = list(found)
    top = collections.Counter()
    for one in found.values():
        for function, share in one.items():
            top[function] = max(top[function], share)
    print("\n**%s**\n\n| innermost function | %s |\n|---|%s" % (title, " | ".join(names),
                                                            "---:|" * len(names)))
    for function, _ in top.most_common(ROWS):
        print("| `%s` | %s |" % (function, " | ".join(
            "%.1f" % (100 * found[name].get(function, 0)) for name in names)))


def has_pip(python):
    return python.minor >= 11 and not subprocess.run(
        [*python.command, "-m", "pip", "--version"], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    found = pythons.find_all()
    python = tools.find_sampling(found)
    if not python:
        sys.exit("no CPython 3.15 with profiling.sampling")
    # Pure Python: whoever has pip installs it for all.
    with_pip = next(other for other in found if has_pip(other))
    environment = packages.environment(packages.folder_of(with_pip, "aiohttp"))
    with tempfile.TemporaryDirectory() as folder:
        for program in PROGRAMS:
            target = subprocess.Popen([*python.command, os.path.join(HERE, "targets", program)],
                                      env=environment, start_new_session=True)
            try:
                time.sleep(SETTLE_SECONDS)
                for mode, recorders in columns(python).items():
                    show("%s, %s, %% of the samples" % (program, mode),
                         compare(target.pid, recorders, arguments.seconds, arguments.rounds, folder))
            finally:
                os.killpg(target.pid, signal.SIGKILL)
                target.wait()


if __name__ == "__main__":
    main()
