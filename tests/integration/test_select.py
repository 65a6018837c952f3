# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The same selection has the same samples in reports, comparisons, exports and pages, and those that the
program spent there."""
import json
import os
import re
import subprocess

import htmlpage
import profilejson
import pytest
from harness import PYEBPF, export, run

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
    told = re.search(r"^selected +([\d,]+) of", report, re.M)
    found = {
        "report": int(told.group(1).replace(",", "")) if told and "--kind" not in selection else None,
        "collapsed": sum(export(recording, *selection).values()),
        "json": round(sum(path.self for path in profile.paths) / profile.period),
        "threads": round(sum(thread[profile.name] for thread in profile.data["threads"]) / profile.period),
        "page": sum(run_["ticks"] for run_ in htmlpage.Page(page).facts["runs"]),
        "base": compared["base"]["samples"],
        "current": compared["current"]["samples"],
    }
    return {name: value for name, value in found.items() if value is not None}


@pytest.mark.parametrize("seconds, selection", [
    (0.4, ["--focus", "encode"]),
    (0.4, ["--focus", "shop.py:enc*"]),
    (0.8, ["--focus", "count"]),
    (1.2, ["--focus", "encode", "--focus", "count"]),
    (0.8, ["--ignore", "encode", "--file", "shop.py", "--module", "shop"]),
    (0.2, ["--focus", "count", "--thread", "thread-first"]),
    (0.6, ["--thread", "thread-second", "--focus", "second"]),
    (1.2, ["--hide", "count", "--focus", "first", "--focus", "second"]),
    (1.2, ["--merge", "module", "--collapse-stdlib", "--focus", "first", "--focus", "second"]),
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
    assert done.returncode == 2 and "'3s' is not a time range" in done.stderr, done


def test_sums_have_no_times(recording, tmp_path):
    text = tmp_path / "x.collapsed"
    text.write_text(run("export", "-f", "collapsed", "--header", recording).stdout)
    done = run("report", "--time-range", "..1s", text)
    assert done.returncode == 1 and "no times" in done.stderr, done


def rows(*arguments):
    """{name: ticks' share of all} of a table of parts."""
    done = run("report", "--no-summary", *arguments)
    assert done.returncode == 0, done
    return {line.split(None, 3)[3].split(" (")[0].split("  ")[0]: float(line.split("%")[0])
            for line in done.stdout.splitlines()[1:] if line.strip()}


@pytest.mark.parametrize("by, want", [
    ("thread", {"thread-first": 50, "thread-second": 50}), ("*d", {"second": 100}),
    ("[ec]*t", {"count": 100}), ("encode", {"encode": 100})])
def test_by(recording, by, want):
    """first() and second() take 0.6 s each."""
    found = rows("--by", by, "--focus", "first", "--focus", "second", recording)
    assert set(found) == set(want), found
    assert all(abs(found[name] - share) < 4 for name, share in want.items()), found


def test_by_module_and_file(recording):
    done = run("report", "--no-summary", "--by", "module", "--focus", "encode", recording)
    table = [line.split() for line in done.stdout.splitlines()]
    assert table[0][:5] == ["self", "total", "self", "time", "module"], done.stdout
    names = [row[4] for row in table[1:]]
    assert len(names) == len(set(names)) and {"shop", "json", "json.encoder"} <= set(names), names
    shares = {row[4]: float(row[1].rstrip("%")) for row in table[1:] if len(row) == 6}
    assert shares["shop"] == 100.0 and 100 > shares["json"] >= shares["json.encoder"] > 10, shares
    files = run("report", "--no-summary", "--by", "file", "--focus", "encode", recording).stdout
    assert re.search(r" shop\.py  +\S*shop\.py$", files, re.M), files


def test_merged_frames_call_no_frame_of_their_own(recording):
    stacks = export(recording, "--merge", "module")
    for stack in stacks:
        names = [frame.name for frame in stack.frames]
        assert all(a != b for a, b in zip(names, names[1:])), names
    assert sum(stacks.values()) == sum(export(recording).values())


def test_collapsed_standard_library(recording):
    stacks = export(recording, "--no-lines", "--collapse-stdlib", "--focus", "encode")
    found = {tuple(frame.name for frame in stack.frames)[-2:] for stack in stacks}
    assert found <= {("first", "encode"), ("encode", "dumps")}, found


# --- tests ---------------------------------------------------------------------------------------

TESTS = """
import time, pytest

def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass

@pytest.fixture
def cart():
    burn(0.3)
    yield
    burn(0.1)

@pytest.mark.parametrize("seconds", [0.1, 0.3])
def test_price(seconds): burn(seconds)

def test_order(cart): burn(0.2)

class TestCart:
    def setup_method(self): burn(0.2)
    def test_order(self): burn(0.4)
"""


def test_by_test_tells_fixtures(tmp_path):
    """Tests of one name in two classes are two; cases of a parameter are of one function, and no stack tells more."""
    (tmp_path / "test_shop.py").write_text(TESTS)
    recording = tmp_path / "x.pyebpf"
    done = run("record", "-F", HZ, "-o", recording, "--", "/usr/bin/python3", "-m", "pytest", "-q", "-p",
               "no:cacheprovider", tmp_path / "test_shop.py")
    assert done.returncode == 0, done
    want = {"test_price": 0.4, "test_order": 0.2, "TestCart.test_order": 0.4, "fixture cart": 0.4,
            "fixture TestCart.setup_method": 0.2}
    found = rows("--by", "test_*", recording)
    assert set(found) == set(want), found
    assert all(abs(found[name] - 100 * seconds / 1.6) < 5 for name, seconds in want.items()), found
    done = run("diff", "--group-by", "test_*", "--limit", "0", recording, recording)
    assert done.returncode == 0 and all("  %s  " % name in done.stdout for name in want), done
    assert set(rows("--by", "test_order", recording)) == {"test_order", "TestCart.test_order"}


# --- kinds and labels ----------------------------------------------------------------------------


def make_kinds(path, *waits):
    """As golden/kinds_recording.c tells it."""
    subprocess.run([os.path.join(os.path.dirname(PYEBPF), "tests", "kinds_recording"), path, *map(str, waits)],
                   check=True)
    return path


@pytest.fixture
def kinds(tmp_path):
    return make_kinds(tmp_path / "kinds.pyebpf")


def test_kinds_are_not_added_up(kinds, tmp_path):
    """1,000 ticks of 1 ms; 125 spans of 10 ms."""
    done = run("report", kinds)
    assert "samples    1,000 of 1 ms each: 1 s" in done.stdout, done
    assert "besides    125 samples of other kinds; select one with --kind: off-cpu" in done.stdout, done
    found = totals(kinds, tmp_path, "--kind", "cpu")
    assert set(found.values()) == {1000}, found
    found = totals(kinds, tmp_path, "--kind", "off-cpu")
    assert set(found.values()) == {1250000000}, found
    done = run("report", "--kind", "off-cpu", kinds)
    assert re.search(r"^mode +off-cpu, sched_switch", done.stdout, re.M), done.stdout
    assert re.search(r"^ *80\.0% +80\.0% +1 s +wait ", done.stdout, re.M), done.stdout
    assert re.search(r"^ *20\.0% +100\.0% +250 ms +main ", done.stdout, re.M), done.stdout
    profile = profilejson.Profile(run("export", "-f", "json", "--kind", "off-cpu", kinds).stdout)
    assert (profile.name, profile.period, profile.total) == ("off-cpu", 1, 1250000000)
    done = run("report", "--kind", "nosuch", kinds)
    assert done.returncode == 3 and "--kind 'nosuch'" in done.stderr, done


def test_kinds_are_compared(kinds, tmp_path):
    """200 waits in place of 100 and the same ticks."""
    slower = make_kinds(tmp_path / "slower.pyebpf", 200)
    output = tmp_path / "x.json"
    for kind, before, after in (("cpu", 1000, 1000), ("off-cpu", 1250, 2250)):
        done = run("diff", "--kind", kind, "-o", output, kinds, slower)
        assert done.returncode == 0, done
        found = json.loads(output.read_text())
        assert (found["base"]["ms"], found["current"]["ms"]) == (before, after), found["base"]
        assert found["base"]["mode"] == kind


def test_single_samples_are_of_their_kinds(kinds):
    found = {}
    for sample in profilejson.samples(run("export", "-f", "jsonl", kinds).stdout):
        key = sample["kind"], sample["unit"], sample["duration"], tuple(sample["labels"].items())
        found[key] = found.get(key, 0) + sample["value"]
    assert found == {
        ("cpu", "ns", None, (("route", "/pay"),)): 500000000,
        ("cpu", "ns", None, (("user", "u1"), ("route", "/list"))): 500000000,
        ("off-cpu", "ns", 0.01, ()): 1250000000,
    }
    for kind, count in ("cpu", 1000), ("off-cpu", 125):
        made = profilejson.samples(run("export", "-f", "jsonl", "--kind", kind, kinds).stdout)
        assert {sample["kind"] for sample in made} == {kind} and len(made) == count


def test_other_formats_of_kinds(kinds):
    for arguments in (["-f", "pprof"], ["-f", "otlp"], ["-f", "html"], ["-f", "collapsed", "--threads"]):
        for kind in ("cpu", "off-cpu"):
            done = subprocess.run([PYEBPF, "export", *arguments, "--kind", kind, str(kinds)], check=False,
                                  capture_output=True)
            assert done.returncode == 0 and len(done.stdout) > 100, (arguments, kind, done.stderr)


def test_files_are_imported_with_their_kinds_and_labels(kinds, tmp_path):
    copy = tmp_path / "copy.pyebpf"
    assert run("import", kinds, kinds, "-o", copy).returncode == 0
    for arguments in (["--kind", "off-cpu"], ["--label", "user=u*"], []):
        once, twice = (export(path, "--no-lines", *arguments) for path in (kinds, copy))
        assert {stack: 2 * count for stack, count in once.items()} == dict(twice), arguments


def test_labels(kinds, tmp_path):
    assert set(totals(kinds, tmp_path, "--label", "route=/pay").values()) == {500}
    assert set(totals(kinds, tmp_path, "--label", "user").values()) == {500}
    done = run("report", "--no-summary", "--by", "label", kinds)
    table = sorted(line.split() for line in done.stdout.splitlines()[1:] if line)
    assert table == [["50.0%", "500", "ms", name] for name in ("route=/list", "route=/pay", "user=u1")]
