# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--limit and --min-percent of what programs read: what is there and what is said not to be are the whole."""
import json
import subprocess

import diffjson
import profilejson
import pytest
from harness import run, wait_until

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.quick]



def write(path, changed):
    """A function of each size; some of them took twice as long, and some were not there before."""
    lines = ["# pyebpf-collapsed interval_us=1000"]
    for i in range(1, 40):
        for thread in 1, 2, 3:
            count = i * thread * (2 if changed and i % 3 == 0 else 1)
            if changed or i % 10:
                lines.append("thread T%d (%d);main (a.py:1);part%d (a.py:%d);f%d (b.py:%d) %d"
                             % (thread, thread, i % 5, i % 5 + 2, i, i, count))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def base(request, tmp_path_factory):
    request.getfixturevalue("pyebpf")
    return write(tmp_path_factory.mktemp("limits") / "base.collapsed", False)


@pytest.fixture(scope="module")
def recording(base):
    return write(base.parent / "current.collapsed", True)


def profile(command, *arguments):
    done = run(*command, *arguments)
    assert done.returncode == 0, done
    return profilejson.Profile(done.stdout)


def test_report_is_export_without_the_smallest(recording):
    report = profile(["report", "--json"], recording)
    export = profile(["export", "-f", "json", "--fold-imports", "--min-percent", "0.5"], recording)
    assert report.data == export.data
    everything = profile(["report", "--json", "--min-percent", "0"], recording)
    assert everything.data == profile(["export", "-f", "json", "--fold-imports"], recording).data
    few = profile(["report", "--json", "-n", "2", "--min-percent", "0"], recording)
    assert [len(few.data[key]) for key in ("paths", "functions", "threads")] == [2, 2, 2]
    assert few.data["left_out"]["paths"]["count"] == len(everything.paths) - len(few.paths)


@pytest.mark.parametrize("options", [["--tree"], ["--gil"], ["--by", "thread"], ["--threads"], ["--open"]])
def test_report_has_one_form(options, recording):
    done = run("report", "--json", *options, recording)
    assert done.returncode == 2 and "--json already includes" in done.stderr and not done.stdout, done


def test_report_of_nothing_selected(recording):
    done = run("report", "--json", "--focus", "nosuch", recording)
    assert done.returncode == 3 and "none of" in done.stderr, done


@pytest.mark.parametrize("options", [["--limit", "3"], ["--min-percent", "5"], ["--limit", "8", "--min-percent", "5"],
                                     ["--limit", "0"], []], ids=" ".join)
def test_comparison(options, base, recording, tmp_path):
    whole, part = tmp_path / "whole.json", tmp_path / "part.json"
    for path, limits in (whole, []), (part, options):
        assert run("diff", "-q", "--force", *limits, "-o", path, base, recording).returncode == 0
    whole, part = diffjson.load(whole), diffjson.load(part)
    if options in ([], ["--limit", "0"]):
        assert part == whole
        return
    assert part["total"] == whole["total"] and part["counts"] == whole["counts"]
    kept = [f for f in whole["functions"] if f in part["functions"]]
    assert kept == part["functions"] and len(kept) + part["left_out"]["functions"]["count"] == len(whole["functions"])
    assert len(part["paths"]) + part["left_out"]["paths"]["count"] == len(whole["paths"])
    if "--limit" in options:
        assert len(part["functions"]) <= int(options[1]) and len(part["paths"]) <= int(options[1])
    if "--min-percent" in options:
        least = 0.05 * max(whole["total"]["value"], whole["total"]["baseline"])
        assert all(max(p.value, p.baseline_total) >= least for p in part["paths"])


PROGRAM = """
import threading, time
lock = threading.Lock()
lock.acquire()
def waits(): lock.acquire()
def sleeps(): time.sleep(600)
for i in range(9): threading.Thread(target=waits if i < 6 else sleeps, daemon=True).start()
sleeps()
"""


def test_dump_keeps_what_differs(some_python):
    with subprocess.Popen([*some_python.command, "-c", PROGRAM]) as process:
        def dump(*options):
            done = run("dump", "-p", process.pid, "--json", *options)
            return json.loads(done.stdout)["processes"][0] if done.returncode == 0 else None

        def stands(thread):
            return thread["frames"][-1]["name"] if thread["frames"] else None

        def is_settled():
            found = dump()
            return found and sorted(map(stands, found["threads"]), key=str) == ["sleeps"] * 4 + ["waits"] * 6

        try:
            wait_until(is_settled, 60, "all threads wait")
            threads = dump()["threads"]
            assert {(stands(t), t["alike"]) for t in threads} >= {("waits", 6), ("sleeps", 3)}
            few = dump("--limit", "2")
            assert sorted(map(stands, few["threads"])) == ["sleeps", "waits"]
            assert few["left_out"] == {"threads": {"count": 8, "share": 0.8}, "tasks": {"count": 0, "share": 0}}
            most = dump("--min-percent", "50")
            assert {stands(t) for t in most["threads"]} == {"waits"} and most["left_out"]["threads"]["count"] == 4
            assert len(dump("--limit", "0")["threads"]) == 10
        finally:
            process.kill()


def test_dump_without_json():
    done = run("dump", "-a", "--limit", "3")
    assert done.returncode == 2 and "--json" in done.stderr, done
