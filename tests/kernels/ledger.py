#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The verifier's ledger: how many instructions of the programs each kernel's verifier took.

    ledger.py [--write] [PYEBPF [KERNEL...]]      of build/pyebpf, on every kernel of kernels.py

Prints the table of bpf/README.md; --write: puts it there, if it is of all kernels, which take two
minutes. PYEBPF says it itself (record -vv).
"""
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
README = os.path.join(os.path.dirname(TESTS), "bpf", "README.md")
sys.path.insert(0, HERE)

import kernels  # noqa: E402
import vm  # noqa: E402

BOOT_SECONDS = 1800  # of a host that may be busy
TICKS = ("sample", "sample_old")
EVENTS = ("on_perf_event", "on_tracepoint", "on_function", "on_usdt", "on_rss")
# What is said, what guest/ledger loads, and of which programs in that the largest.
ROWS = [("`sample`, before 5.17 `sample_old`", "cpu", TICKS),
        ("in a PID namespace of its own", "namespace", TICKS),
        ("where waiting is recorded", "wall", TICKS),
        ("`on_switched` or `on_switch`, which takes more", "wall", ("on_switched", "on_switch")),
        ("`visit_thread`", "wall", ("visit_thread",)),
        ("largest of the programs of events", "events", EVENTS),
        ("with labels: `sample`, `sample_old`", "labels", TICKS),
        ("with labels: `visit_thread`", "wall-labels", ("visit_thread",))]


def instructions(lines):
    """{program: instructions verified} of what -vv says."""
    found, program = {}, None
    for line in lines:
        begin = re.search(r"prog '(\w+)': -- BEGIN PROG LOAD LOG", line)
        done = re.search(r"processed (\d+) insns", line)
        if begin:
            program = begin.group(1)
        elif done and program:
            found[program] = int(done.group(1))
    return found


def measure(kernel, pyebpf, folder):
    """(release, [the number of each of ROWS, None: not loaded], what went wrong)."""
    initramfs = vm.find_initramfs(kernel, pyebpf, folder)
    steps, _ = vm.boot(kernels.find_kernel(kernel), kernel, initramfs, BOOT_SECONDS, "steps=/ledger")
    release = re.match(r"\d+\.\d+", steps["uname"].out[0]).group()
    loaded = {name: instructions(step.err) for name, step in steps.items()}
    numbers = [max((loaded.get(name, {}).get(program, 0) for program in programs), default=0) or None
               for _, name, programs in ROWS]
    problems = ["%s: %s\n%s" % (release, name, "\n".join(step.err[-5:]))
                for name, step in steps.items() if step.status not in (0, 3)]  # 3: no Python runs there
    return release, numbers, problems


def table(columns):
    """As bpf/README.md has it: a column a kernel, of each release the first."""
    columns = dict(reversed(columns))
    releases = sorted(columns, key=lambda release: [int(part) for part in release.split(".")])
    lines = ["| Linux | %s |" % " | ".join(releases), "|---|%s" % ("---:|" * len(releases))]
    for i, (what, _, _) in enumerate(ROWS):
        cells = ["{:,}".format(columns[release][i]) if columns[release][i] else "-"
                 for release in releases]
        lines.append("| %s | %s |" % (what, " | ".join(cells)))
    return "\n".join(lines) + "\n"


def write(text):
    with open(README, encoding="utf-8") as f:
        page = f.read()
    new, count = re.subn(r"(?m)^\| Linux \|.*\n(?:^\|.*\n)*", lambda _: text, page)
    assert count == 1, "bpf/README.md has no table that begins with Linux"
    with open(README, "w", encoding="utf-8") as f:
        f.write(new)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    pyebpf = arguments[0] if arguments else os.path.join(TESTS, "..", "build", "pyebpf")
    names = arguments[1:] or [kernel.name for kernel in kernels.KERNELS]
    columns, status = [], 0
    with tempfile.TemporaryDirectory(prefix="pyebpf-ledger-") as folder:
        for kernel in (kernel for kernel in kernels.KERNELS if kernel.name in names):
            release, numbers, problems = measure(kernel, pyebpf, folder)
            print("%-10s %s" % (release, " ".join(map(str, numbers))), file=sys.stderr, flush=True)
            columns.append((release, numbers))
            if problems:
                print("\n".join(problems), file=sys.stderr)
                status = 1
    print(table(columns), end="")
    if "--write" in sys.argv and not status and not arguments[1:]:
        write(table(columns))
    return status


if __name__ == "__main__":
    sys.exit(main())
