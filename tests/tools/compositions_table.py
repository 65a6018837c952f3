#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes docs/compositions.md of what runs of integration/test_compositions.py found.

    compositions_table.py [-o FILE] REPORT...

REPORT: a JUnit report of such a run (make compositions). Each test tells its facts by record_property. The exit code is
1 if the judge refused one.
"""
import argparse
import collections
import json
import os
import pathlib
import platform
import re
import sys
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
AXES = {"mode": "Modes", "target": "Targets", "life": "Lives", "begins": "The process begins before the recorder, or later",
        "python": "Interpreters"}
INTRODUCTION = """\
# Compositions

A test of each part does not show that the parts fit. A composition is a mode, a kind of target, a life of the recorded process, whether the
recorder or the process begins first, and an interpreter. The process says of each of its functions how long it was in
it, how much it allocated there and how often it called; a judge compares the recording with that, function by function and process by
process. Less than was said is right only where the recording says what was lost, more is never right. `make compositions` drew these
%d compositions and wrote this page, on Linux %s with %d CPUs. `tests/truth/` has the program, the draw and the judge; `make test` draws
20 others for each commit.

The columns have the share of what the processes said that is in the recording, all functions of a composition together: the least of all
compositions of that row, the median and the most. Short functions scatter: a tick has a millisecond.

"""


def facts_of(report):
    for case in ElementTree.parse(report).iter("testcase"):
        facts = [json.loads(p.get("value")) for p in case.iter("property") if p.get("name") == "composition"]
        if not facts and any(case.find(what) is not None for what in ("failure", "error")):
            raise SystemExit("%s: %s was not judged" % (report, case.get("name")))
        yield from facts


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def by_value(found, axis):
    """A row for each value of an axis."""
    groups = collections.defaultdict(list)
    for facts in found:
        groups[facts[axis]].append(facts)
    for value, group in groups.items():
        shares = sorted(100 * facts["got"] / facts["due"] for facts in group if facts["due"])
        spread = ["%.1f %%" % shares[at] for at in (0, len(shares) // 2, -1)] if shares else ["–"] * 3
        yield [value, len(group), *spread, sum(not any(facts["lost"].values()) for facts in group),
               sum(bool(facts["errors"]) for facts in group)]


def by_version(row):
    """3.9 before 3.10."""
    return [int(part) if part.isdigit() else -1 for part in re.split(r"[.-]", row[0])], row[0]


def page(found):
    text = INTRODUCTION % (len(found), platform.release().split("-")[0], os.cpu_count())
    for axis, title in AXES.items():
        text += "## %s\n\n" % title
        text += table([axis, "compositions", "least", "median", "most", "lost nothing", "refused"], sorted(by_value(found, axis), key=by_version)) + "\n"
    refused = [["-".join(facts[axis] for axis in AXES), facts["errors"][0]] for facts in found if facts["errors"]]
    return text + ("## Refused\n\n" + table(["composition", "why"], refused) if refused else "No composition was refused.\n")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("-o", "--output", type=pathlib.Path, default=ROOT / "docs" / "compositions.md")
    parser.add_argument("report", nargs="+", type=pathlib.Path)
    options = parser.parse_args(arguments)
    found = [facts for report in options.report for facts in facts_of(report)]
    options.output.write_text(page(found), encoding="utf-8")
    refused = sum(bool(facts["errors"]) for facts in found)
    print("compositions_table.py: %d compositions, %d refused" % (len(found), refused))
    return 1 if refused or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
