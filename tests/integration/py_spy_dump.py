#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`pyebpf dump --locals` beside `py-spy dump --locals`, of the same programs at the same moment: threads
that stand still, each judged by what the program says of its own frames. Prints the table of docs/dump.md.

    py_spy_dump.py [-v] [--pythons=NAME,...] [PROGRAM...]

-v: each value that differs. PROGRAM: of tests/workloads/served.py. PYEBPF: the program (build/pyebpf).
"""
import argparse
import collections
import contextlib
import difflib
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
sys.path.insert(0, HERE)

import harness  # noqa: E402
import packages  # noqa: E402
import pythons  # noqa: E402

PROGRAMS = ("flask", "django", "aiohttp", "pandas", "pool")
PYTHONS = ("3.8.18", "3.13.0")
COLUMNS = ("program", "calls: of the program", "here", "py-spy", "that are none: here", "py-spy",
           "variables: of the program", "here", "py-spy", "as `repr()`: here", "py-spy")
CUT = re.compile(r"\.\.\.")

Frame = collections.namedtuple("Frame", "name file line variables")  # {name: text or None}
Difference = collections.namedtuple("Difference", "function variable truth ours theirs")


def find_py_spy():
    """Raises pythons.Unavailable."""
    found = shutil.which("py-spy") or os.path.expanduser("~/.cache/pyebpf/bench-venv/bin/py-spy")
    if not os.path.exists(found):
        raise pythons.Unavailable("py-spy is not installed")
    return found


@contextlib.contextmanager
def running(python, program):
    """Its process, in the midst of its work. Raises pythons.Unavailable."""
    environment = packages.environment(packages.folder_of(python, "programs"))
    command = [*python.command, os.path.join(harness.WORKLOADS, "served.py"), program]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        try:
            ready = process.stdout.readline().split()
            assert ready == ["READY", str(process.pid)], ready
            yield process
        finally:
            process.kill()


def truth_of(process):
    process.stdin.write("GO\n")
    process.stdin.flush()
    return {int(tid): [Frame(*frame) for frame in frames]
            for tid, frames in json.loads(process.stdout.readline()).items()}


def ours_of(pid):
    done = harness.run("dump", "--json", "--locals=full", "--self", "--show-secrets", "-p", pid)
    assert done.returncode == 0, done.stderr
    process, = json.loads(done.stdout)["processes"]
    return {t["tid"]: [Frame(f["name"], f["file"], f["line"],
                             {v["name"]: v["value"] for v in f["locals"] if v["value"] is not None})
                       for f in t["frames"]] for t in process["threads"]}


def theirs_of(program, pid):
    done = subprocess.run([program, "dump", "--json", "--locals", "--locals", "-p", str(pid)],
                          stdout=subprocess.PIPE, check=True)
    return {t["os_thread_id"]: [Frame(f["name"], f["filename"], f["line"],
                                      {v["name"]: v["repr"] for v in f["locals"] or []})
                                for f in t["frames"][::-1]] for t in json.loads(done.stdout)}


def plain(text):
    """Which quotes there are does not count."""
    return None if text is None else text.replace('"', "'")


def is_repr(text, truth):
    """Is it what repr() says, whole or as far as it goes?"""
    if text is None or truth is None:
        return False
    begin = CUT.split(text)[0]
    return text == truth or (begin != text and len(begin) > 8 and truth.startswith(begin))


def goes_as_far(mine, other):
    """Is all of the other text in ours?"""
    return mine.startswith(CUT.split(other)[0])


def where(frame):
    """py-spy has names without their classes."""
    return frame.name.rpartition(".")[2], frame.file, frame.line


def pairs(truth, found):
    """Calls of the program, root first, each with the one that was found of it, or None; and how many
    were found that are none of its."""
    aligned, extra = [], 0
    for tid, frames in truth.items():
        others = found.get(tid, [])
        same = difflib.SequenceMatcher(None, [where(f) for f in frames], [where(f) for f in others],
                                       autojunk=False).get_matching_blocks()
        of_frame = {a + i: others[b + i] for a, b, size in same for i in range(size)}
        aligned += [(frame, of_frame.get(i)) for i, frame in enumerate(frames)]
        extra += len(others) - len(of_frame)
    return aligned, extra


class Comparison:
    """Counts of what the program has, and what each shows of it. Modules' own variables are no locals."""

    def __init__(self, truth, ours, theirs):
        self.calls, self.variables, self.values = ([0, 0, 0] for _ in range(3))
        self.missing = []  # what py-spy shows and we do not
        self.differences = []
        mine, self.our_extra = pairs(truth, ours)
        others, self.their_extra = pairs(truth, theirs)
        for (frame, a), (_, b) in zip(mine, others):
            self.add(self.calls, a, b)
            if b and not a:
                self.missing.append((where(frame),))
            if frame.name != "<module>":
                self.judge(frame, a.variables if a else {}, b.variables if b else {})

    @staticmethod
    def add(counts, ours, theirs):
        counts[0] += 1
        counts[1] += bool(ours)
        counts[2] += bool(theirs)

    def judge(self, frame, ours, theirs):
        for name, text in frame.variables.items():
            truth, mine, other = plain(text), plain(ours.get(name)), plain(theirs.get(name))
            right, others_right = is_repr(mine, truth), is_repr(other, truth)
            self.add(self.variables, mine is not None, other is not None)
            self.add(self.values, right, others_right)
            if other is not None and (mine is None or "<unreadable>" in mine
                                      or (others_right and not right
                                          and not goes_as_far(mine, other))):
                self.missing.append((where(frame), name, truth, mine, other))
            if not right or not others_right:
                self.differences.append(Difference(frame.name, name, truth, mine, other))

    def cells(self):
        return [*self.calls, self.our_extra, self.their_extra, *self.variables, *self.values[1:]]


def compare(python, program, py_spy):
    with running(python, program) as process:
        theirs = theirs_of(py_spy, process.pid)
        ours = ours_of(process.pid)
        return Comparison(truth_of(process), ours, theirs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", action="store_true")
    parser.add_argument("--pythons", default=",".join(PYTHONS))
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    options = parser.parse_args()
    wanted = tuple(options.pythons.split(","))
    found = {p.version: p for p in pythons.find_all() if p.name.startswith(wanted)}
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    status = 0
    for program in options.programs:
        for version in sorted(found):
            comparison = compare(found[version], program, find_py_spy())
            row = ["%s, %d.%d" % (program, *version[:2]), *comparison.cells()]
            print("| %s |" % " | ".join(map(str, row)), flush=True)
            for each in comparison.missing:
                status = 1
                print("missing:", *(str(word)[:300] for word in each), file=sys.stderr)
            for each in comparison.differences if options.v else []:
                print(each, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
