#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes docs/faults.md: runs tests/integration/test_robust.py and test_pages.py and puts down what
each of their tests saw.

    fault_table.py [--tier=test|all] [-o FILE] [-- PYTEST ARGUMENT...]

A row comes from the test itself (the fixture `fault`), only if it passed. Exit code 1, and no file,
if one of them failed. PYEBPF: the program (build/pyebpf).
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

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TESTS = ["tests/integration/test_robust.py", "tests/integration/test_pages.py"]
HEAD = ("fault", "what pyebpf does", "exit code", "what the file holds", "seen")
INTRODUCTION = """\
# Faults

What can go wrong around a recording, what `pyebpf record` does then, and what is left. Written by
`python3 tests/tools/fault_table.py --tier=all`: each row is a test of `tests/integration/` that
passed, and says what that test saw, on %s (%d CPUs). Every tick is accounted for: the samples in
the file are those the kernel says it sent, and ticks expected are ticks seen and ticks that the
kernel did not deliver.
"""


def cases(report):
    """(name, outcome, reason, rows) of each test of a JUnit report."""
    for case in ElementTree.parse(report).iter("testcase"):
        rows = [json.loads(p.get("value")) for p in case.iter("property")
                if p.get("name") == "fault"]
        failed = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped")
        if failed is not None:
            yield case.get("name"), "failed", failed.get("message", ""), rows
        elif skipped is not None:
            yield case.get("name"), "skipped", skipped.get("message", ""), rows
        else:
            yield case.get("name"), "passed", "", rows


def cell(text):
    return " ".join(text.split()).replace("|", "\\|")


def page(found):
    rows = [row for _, _, _, rows in found for row in rows]
    text = INTRODUCTION % ("Linux " + platform.release(), os.cpu_count())
    text += "\n| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|\n"
    for row in rows:
        text += "| " + " | ".join(map(cell, row)) + " |\n"
    skipped = [(name, reason) for name, outcome, reason, _ in found if outcome == "skipped"]
    if skipped:
        text += "\nNot run: " + "; ".join("%s (%s)" % pair for pair in skipped) + ".\n"
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
             *options.pytest], cwd=ROOT, check=False)
        found = list(cases(report)) if os.path.exists(report) else []
    if done.returncode or not any(rows for _, _, _, rows in found):
        print("fault_table.py: no table: the tests did not all pass", file=sys.stderr)
        return 1
    options.output.write_text(page(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
