#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes docs/kernels.md: boots each kernel of tests/kernels, with a real Python, and puts down what its
tests saw.

    kernel_table.py [-o FILE] [KERNEL...]

A cell comes from the test itself (the fixture `tell`), only if it passed. KERNEL: those of
tests/kernels/kernels.py of that name; the others stay as they are in the file. Exit code 1 if a test
failed, with its kernel's row as it was. PYEBPF: the program (build/pyebpf).
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OLD_BEFORE = (5, 17)
COLUMNS = ("ticks by", "right line", "command", "fork", "exec", "short-lived", "torn", "deep",
           "cold pages", "waits", "--btf FILE", "not delivered", "on")
INTRODUCTION = """\
# Kernels

What the release build records on other kernels: Debian's, and with pages of 64 KiB one that was built of
Debian's source, each booted in a virtual machine with CPython 3.11 (`tests/kernels`), those of arm64 with
their own Debian's, 3.9, 3.11, 3.13 and 3.14, and one with a free-threaded 3.13 that was cross-built. `make
kernels` and `make kernels-arm64` wrote this table: each cell is a test that passed, and says what that test
saw. Every tick is in one counter and every sample that was sent is in the file: in all recordings of all
rows, or the row would not be here. How much work the verifier has with the programs is in
[bpf/README.md](../bpf/README.md).

Not booted: 5.15 and 5.14 (Ubuntu 22.04, RHEL 9), which no mirror here has. By their types alone (`tests/kernels`,
`headers.py`): 5.15.0-25 has all that CPU time reads, and with its offsets the verifier of 6.18 takes what
`record --btf` loads, `sample_old` with 43,223 instructions. RHEL 9's 5.14, as a header of ppc64le of November 2022 has it, has
all of that but registers, which are each architecture's own, and the helpers by which `sample` takes ticks there; no
program was loaded with its offsets.

"""
LEGEND = """
- ticks by: the program that takes them. `sample_old` is for kernels before 5.17: CPU time,
  `--mode gil` and `exception`, and labels; waiting takes 5.18, events and memory 5.17.
- right line: of the samples of a process that spins on one line, those that say so: with `-p`, `-a`,
  `--cgroup`.
- command, fork, exec, short-lived: samples at the known line of the known function, of as many as it
  had CPU time for; a command twice, in a PID namespace of its own too; parent and child; before and
  after; six children of 50 ms each.
- torn: stacks that mix two chains of 50 calls, which take turns every 500 us. deep: stacks of 200
  calls that are whole; the others are on their way up or down.
- cold pages: names in pages that are not present.
- waits: stretches of each reason, told by their right length and stack.
- not delivered: ticks that did not come, by which the numbers before it are less, with `-p`, `-a`, `--cgroup`, and of
  the short-lived ones. The guests' clocks go by instructions, so that a busy host does not show, but for 5.10 and 6.1
  of x86-64 and 5.10 of arm64, which were run on an idle host; now and then an emulated CPU stands still all the same.
"""


def cells(report):
    """{kernel: {(major, minor, behind): {column: [text]}}}, and of which kernels a test failed. behind: what
    tells it from others of that version, " arm64 16k"."""
    rows, failed = {}, set()
    for case in ElementTree.parse(report).iter("testcase"):
        kernel = re.search(r"\[([^]-]+)", case.get("name")).group(1)
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(kernel)
        for told in case.iter("property"):
            if told.get("name") == "kernel":
                release, column, text = json.loads(told.get("value"))
                behind = re.search(r"(_arm64.*)?$", kernel).group().replace("_", " ")
                version = (*(int(part) for part in release.split(".")[:2]), behind)
                found = rows.setdefault(kernel, {}).setdefault(version, {})
                found.setdefault(column, []).append(text)
    return rows, failed


def row(version, found):
    found = dict(found, on=[datetime.date.today().isoformat()])
    found["ticks by"] = ["`sample_old`" if version[:2] < OLD_BEFORE else "`sample`"]
    texts = [", ".join(found.get(column, ["-"])) for column in COLUMNS]
    return "| %d.%d%s | %s |" % (*version, " | ".join(texts))


def key(line):
    """(what comes behind the version, major, minor) of a row."""
    name = re.match(r"\| (\d+)\.(\d+)(.*?) \|", line)
    return name.group(3), int(name.group(1)), int(name.group(2))


def rows_of(path):
    """Those of the file, by version."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return {key(line): line for line in text.splitlines() if line[:3].strip("| ").isdigit()}


def page(rows):
    head = ["| Linux | %s |" % " | ".join(COLUMNS), "|%s" % ("---|" * (len(COLUMNS) + 1))]
    return INTRODUCTION + "\n".join(head + [rows[version] for version in sorted(rows)]) + "\n" + LEGEND


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "docs" / "kernels.md")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    options = parser.parse_args(arguments)
    names = ["%s%s" % ("[" + name, end) for name in options.kernels for end in "]-"]
    chosen = ["-k", " or ".join(names)] if names else []
    rows, status = rows_of(options.output), 0
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        subprocess.run([sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rfEs",
                        "-o", "junit_family=xunit1", "--junitxml=" + report, "tests/kernels", *chosen],
                       cwd=ROOT, check=False)
        if not os.path.exists(report):
            return 1
        found, failed = cells(report)
    for kernel, by_version in found.items():
        if kernel not in failed:
            lines = [row(version, told) for version, told in by_version.items()]
            rows.update((key(line), line) for line in lines)
    if failed:
        print("kernel_table.py: failed: %s" % ", ".join(sorted(failed)), file=sys.stderr)
        status = 1
    options.output.write_text(page(rows), encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
