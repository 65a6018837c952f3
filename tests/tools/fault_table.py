#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes docs/faults.md: runs the tests of faults and of wrong input and puts down what they saw.

    fault_table.py [--tier=test|all] [-o FILE] [-- PYTEST ARGUMENT...]

A row comes from the test itself (the fixtures `fault` and `refusal`), only if it passed. Exit code 1,
and no file, if one of them failed. --tier=all: with full counts, and an old kernel, in a
virtual machine. Sections that others write stay: hostile/hostile.py --page, fuzz/coverage.py --page. PYEBPF: the program (build/pyebpf).
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import sections

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TESTS = ["tests/integration/test_robust.py", "tests/integration/test_pages.py",
         "tests/integration/test_cpus.py", "tests/integration/test_bad_input.py"]
TESTS_OF_ALL = ["tests/kernels/test_kernels.py::test_modes_that_need_more"]
VERSION = platform.release().split("-")[0]
FAULTS = ("fault", "what pyebpf does", "exit code", "what the file holds", "seen")
REFUSALS = ("what is wrong", "exit code", "what pyebpf says, and what to try")
INTRODUCTION = """\
# Faults

What can go wrong around a recording, and what comes of it. `python3 tests/tools/fault_table.py
--tier=%s` wrote this page: each row is a test that passed, and says what that test saw, on %s
(%d CPUs).

## While it records

Every tick is accounted for: the samples in the file are those the kernel says it sent, and ticks
expected are ticks seen and ticks that the kernel did not deliver. Exit code -9 is the shell's 137.

"""
INTRODUCTION_OF_REFUSALS = """
## What is not recorded, or not read

One line says what is wrong, a second one what to try. Nothing is left behind where no file is named.
[troubleshooting.md](troubleshooting.md) has every message.

"""


def properties(case, name):
    return [json.loads(p.get("value")) for p in case.iter("property") if p.get("name") == name]


class Case:
    """A test of a JUnit report."""

    def __init__(self, element):
        self.name = element.get("name")
        self.faults, self.refusals = (properties(element, name) for name in ("fault", "refusal"))
        skipped = element.find("skipped")
        self.reason_skipped = None if skipped is None else skipped.get("message", "")


def cell(text):
    return " ".join(str(text).split()).replace(platform.release(), VERSION).replace("|", "\\|")


def table(head, rows):
    lines = [head, ["---"] * len(head), *([cell(text) for text in row] for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def merged(refusals):
    """Tests that differ in a number only are one row for each of their exit codes."""
    kinds = {}
    for what, status, said in refusals:
        kinds.setdefault(what, {}).setdefault(status, []).append(said)
    for what, by_status in kinds.items():
        count = sum(map(len, by_status.values()))
        for status, texts in sorted(by_status.items()):
            share = " (%d of %d)" % (len(texts), count) if count > 2 else ""
            yield what + share, status, "<br>".join(
                "`` %s ``" % line for line in texts[0]) or "nothing"


def page(found, tier):
    text = INTRODUCTION % (tier, "Linux " + VERSION, os.cpu_count())
    text += table(FAULTS, [row for case in found for row in case.faults])
    text += INTRODUCTION_OF_REFUSALS
    text += table(REFUSALS, merged(row for case in found for row in case.refusals))
    skipped = ["%s (%s)" % (case.name, case.reason_skipped) for case in found
               if case.reason_skipped is not None]
    if skipped:
        text += "\nNot run: " + "; ".join(skipped) + ".\n"
    return text


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--tier", choices=("test", "all"), default="test")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "docs" / "faults.md")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        done = subprocess.run(
            [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rfEs",
             "-o", "junit_family=xunit1", "--tier=" + options.tier, "--junitxml=" + report, *TESTS,
             *(TESTS_OF_ALL if options.tier == "all" else []), *options.pytest], cwd=ROOT,
            check=False)
        found = [Case(element) for element in ElementTree.parse(report).iter("testcase")] \
            if os.path.exists(report) else []
    if done.returncode or not any(case.faults + case.refusals for case in found):
        print("fault_table.py: no table: the tests did not all pass", file=sys.stderr)
        return 1
    text = sections.keep_others(options.output, page(found, options.tier))
    options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
