# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings of waiting read alike by all commands, against golden/waits_recording.c, which says what is in it;
and which waits are idle, on the stacks that threads of each interpreter have."""
import json
import os
import pathlib
import re
import subprocess

import htmlpage
import profilejson
import pytest
from harness import PYEBPF, export, run

pytestmark = pytest.mark.usefixtures("pyebpf")
MAKER = os.path.join(os.path.dirname(PYEBPF), "tests", "waits_recording")
IDLE = pathlib.Path(__file__).parent.parent / "workloads" / "idle.py"
SECOND = 1000000000


def make(path, *arguments, **options):
    subprocess.run([MAKER, path, *map(str, arguments)], check=True, **options)
    return path


@pytest.fixture
def waits(tmp_path):
    return make(tmp_path / "waits.pyebpf")


@pytest.mark.parametrize("selection, want", [
    ([], 50), (["--kind", "wall"], 50), (["--kind", "cpu"], 7.06), (["--kind", "off-cpu"], 42.94),
    (["--kind", "gil-contention"], 7), (["--no-idle"], 27.5), (["--no-idle", "--kind", "cpu"], 7.06),
    (["--no-idle", "--process", "service"], 1), (["--label", "wait=GIL"], 7),
    (["--label", "wait=read*", "--thread", "MainThread"], 1),
    (["--time-range", "4s..6s", "--kind", "off-cpu", "--thread", "worker"], 1), (["--focus", "work"], 6.5)],
    ids=lambda value: "+".join(value) if isinstance(value, list) else str(value))
def test_the_same_everywhere(waits, tmp_path, selection, want):
    comparison = tmp_path / "x.json"
    assert run("diff", "-o", comparison, *selection, waits, waits).returncode == 0
    profile = profilejson.Profile(run("export", "-f", "json", "--kind", "wall", *selection, waits).stdout)
    found = {
        "collapsed": sum(export(waits, *selection).values()),
        "diff": json.loads(comparison.read_text())["base"]["samples"],
        "json": sum(path.self for path in profile.paths),
    }
    assert set(found.values()) == {want * SECOND}, found


def test_a_threads_kinds_add_up_to_its_life(waits):
    profile = json.loads(run("export", "-f", "json", waits).stdout)
    assert [thread["cpu"] + thread["off-cpu"] for thread in profile["threads"]] == 5 * [10 * SECOND]
    waited = sum(f["off-cpu"][0] for f in profile["functions"] if f["name"] == "<GIL>")
    assert sum(row[4] for row in profile["gil"]) == pytest.approx(waited / SECOND)
    assert sum(row[5] for row in profile["gil"]) == 6


def test_a_page_of_one_kind(waits, tmp_path):
    page = tmp_path / "x.html"
    for kind, want in ("wall", 50), ("off-cpu", 42.94):
        assert run("report", "-o", page, "--kind", kind, waits).returncode == 0
        assert sum(run_["ticks"] for run_ in htmlpage.Page(page).facts["runs"]) == want * SECOND


def test_longer_waits_are_compared(waits, tmp_path):
    longer = make(tmp_path / "longer.pyebpf", 3000)
    output = tmp_path / "x.json"
    for kind, before, after in (("wall", 50, 51), ("off-cpu", 42.94, 43.94), ("cpu", 7.06, 7.06)):
        done = run("diff", "--kind", kind, "-o", output, waits, longer)
        assert done.returncode == 0, done
        found = json.loads(output.read_text())
        assert [found[side]["ms"] for side in ("base", "current")] == [1000 * before, 1000 * after]
        assert found["base"]["mode"] == kind
    done = run("diff", waits, longer)
    assert "wall time of each second of recording" in done.stdout, done.stdout
    assert re.search(r"^base +\S+: 50 s of wall time$", done.stdout, re.M), done.stdout
    done = run("diff", "--kind", "memory", waits, longer)
    assert re.search(r"^base +\S+: 12 MiB of memory$", done.stdout, re.M), done.stdout
    done = run("diff", "--no-idle", waits, longer)
    assert "27.5 s of 50 s (55.0%): --no-idle, excluding 22.5 s" in done.stdout, done.stdout


def test_several_recordings_are_summed(waits, tmp_path):
    """Each of 50 s; ticks join as wall time only."""
    longer = make(tmp_path / "longer.pyebpf", 3000)
    for kind, want in ("wall", 101), ("off-cpu", 86.88), ("cpu", 14.12):
        done = run("export", "-f", "collapsed", "--kind", kind, waits, longer)
        assert done.returncode == 0 and "counted like those" not in done.stderr, done
        assert sum(int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()) == want * SECOND
    ticks = tmp_path / "ticks.pyebpf"
    subprocess.run([MAKER.replace("waits_", "kinds_"), ticks], check=True)
    done = run("report", ticks, waits)
    assert done.returncode == 1 and "use --kind wall, or report each one alone" in done.stderr, done
    done = run("report", "--kind", "wall", ticks, waits)
    assert re.search(r"^time +52\.3 s of 7 threads in 11 s: CPU 8\.1 s", done.stdout, re.M), done


def test_what_was_not_recorded_is_said(waits, tmp_path):
    ticks = make_ticks(tmp_path)
    done = run("report", "--gil", ticks)
    assert "waits were not recorded: record again with --mode wall" in done.stdout, done
    done = run("report", "--kind", "page-faults", waits)
    assert done.returncode == 3 and "available kinds: cpu, wall, off-cpu, gil-contention, memory" in done.stderr, done
    done = run("report", "--gil", "-o", tmp_path / "x.html", waits)
    assert done.returncode == 2 and "--gil prints to the terminal" in done.stderr, done


def make_ticks(tmp_path):
    text = tmp_path / "x.collapsed"
    text.write_text("main (a.py:1) 10\n")
    return text


@pytest.mark.few_pythons
def test_idle_waits(python, tmp_path):
    """Each thread of the standard library's pools, loops and servers by the rule that is of it, others by none."""
    done = subprocess.run([*python.command, "-c", IDLE.read_text()], capture_output=True, text=True, timeout=60, check=True)
    recording = tmp_path / "x.pyebpf"
    threads = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(threads) >= 10, done
    for name in sorted({name for name, _ in threads}):
        stacks = [stack for of, stack in threads if of == name]
        make(recording, "-", input="\n".join(stacks).encode())
        done = run("report", "--no-idle", recording)
        said = re.search(r"^left out +as idle: (.*)$", done.stdout, re.M).group(1)
        want = "0 ns" if name == "busy" else "%d s: %s %d s" % (
            len(stacks), name.replace("idle-", "", 1), len(stacks))
        assert said == want, stacks
