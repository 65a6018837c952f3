# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The same selection has the same samples in reports, comparisons, exports and pages, and those that the
program spent there."""
import json
import re

import htmlpage
import profilejson
import pytest
from harness import export, run

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997

# Two threads, each in a function of its own that calls json; what each spends is told.
PROGRAM = """
import json, sys, threading, time

def encode(end):
    while time.thread_time() < end: json.dumps([1, 2, 3, "x"] * 20)

def count(end):
    while time.thread_time() < end: pass

def first(): encode(0.4); count(time.thread_time() + 0.2)
def second(): count(0.6)

threads = [threading.Thread(target=f, name="thread-" + f.__name__) for f in (first, second)]
for t in threads: t.start()
for t in threads: t.join()
"""


@pytest.fixture(scope="module")
def recording(request, tmp_path_factory):
    request.getfixturevalue("pyebpf")
    folder = tmp_path_factory.mktemp("select")
    script = folder / "shop.py"
    script.write_text(PROGRAM)
    output = folder / "x.pyebpf"
    python = max(request.config.pythons, key=lambda python: (python.via == "direct", python.version))
    done = run("record", "-F", HZ, "-o", output, "--", *python.command, script)
    assert done.returncode == 0, done
    return output


def totals(recording, folder, *selection):
    """What each command says is left."""
    page, comparison = folder / "x.html", folder / "x.json"
    for done in (run("report", "-o", page, *selection, recording),
                 run("diff", "-o", comparison, *selection, recording, recording)):
        assert done.returncode == 0, done
    report = run("report", *selection, recording).stdout
    profile = profilejson.Profile(run("export", "-f", "json", *selection, recording).stdout)
    compared = json.loads(comparison.read_text())
    return {
        "report": int(re.search(r"^selected +([\d,]+) of", report, re.M).group(1).replace(",", "")),
        "collapsed": sum(export(recording, *selection).values()),
        "json": round(sum(path.self for path in profile.paths) / profile.period),
        "threads": round(sum(thread["cpu"] for thread in profile.data["threads"]) / profile.period),
        "page": sum(run_["ticks"] for run_ in htmlpage.Page(page).facts["runs"]),
        "base": compared["base"]["samples"],
        "current": compared["current"]["samples"],
    }


@pytest.mark.parametrize("seconds, selection", [
    (0.4, ["--focus", "encode"]),
    (0.4, ["--focus", "shop.py:enc*"]),
    (0.8, ["--focus", "count"]),
    (1.2, ["--focus", "encode", "--focus", "count"]),
    (0.8, ["--ignore", "encode", "--file", "shop.py", "--module", "shop"]),
    (0.2, ["--focus", "count", "--thread", "thread-first"]),
    (0.6, ["--thread", "thread-second", "--focus", "second"]),
    (1.2, ["--hide", "count", "--focus", "first", "--focus", "second"]),
], ids=lambda value: "+".join(value) if isinstance(value, list) else str(value))
def test_the_same_everywhere(recording, tmp_path, seconds, selection):
    found = totals(recording, tmp_path, *selection)
    assert len(set(found.values())) == 1, found
    # The program measures its time itself: 4 sigma of ticks, and 2 %.
    due = seconds * HZ
    assert abs(found["report"] - due) <= 4 * due ** 0.5 + 0.02 * due, (found, due)


def test_parts_of_the_time_add_up(recording, tmp_path):
    whole = sum(export(recording).values())
    parts = [totals(recording, tmp_path, "--time-range", part) for part in ("..300ms", "300ms..")]
    assert all(len(set(part.values())) == 1 for part in parts), parts
    assert sum(part["report"] for part in parts) == whole
    part = json.loads(run("export", "-f", "json", "--time-range", "100ms..300ms", recording).stdout)
    assert part["recordings"][0]["seconds"] == pytest.approx(0.2)
    assert all(0 <= thread["start"] <= thread["end"] <= 0.2 for thread in part["threads"])


def test_hidden_functions_are_their_callers(recording):
    shown = export(recording, "--no-lines", "--hide", "count", "--focus", "second")
    assert {stack.frames[-1].name for stack in shown} <= {"second", "<module>"}, shown


def test_nothing_left_is_said(recording):
    for command in (["report"], ["export", "-f", "collapsed"]):
        done = run(*command, "--focus", "nosuch", recording)
        assert done.returncode == 3, done
        assert "none of " in done.stderr and "--focus 'nosuch'" in done.stderr, done
    done = run("report", "--time-range", "3s", recording)
    assert done.returncode == 2 and "'3s' is no range" in done.stderr, done


def test_sums_have_no_times(recording, tmp_path):
    text = tmp_path / "x.collapsed"
    text.write_text(run("export", "-f", "collapsed", "--header", recording).stdout)
    done = run("report", "--time-range", "..1s", text)
    assert done.returncode == 1 and "no times" in done.stderr, done
