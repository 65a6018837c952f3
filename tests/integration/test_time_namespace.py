# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Time namespaces, of the recorder, of the target, of both: what the kernel tells is by clocks that are others
there."""
import collections
import json
import os
import subprocess
import time

import harness
import pytest
from harness import run
from htmlpage import Page
from spinning import Spinning, say_skipped
from test_sources import places  # noqa: F401

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.few_pythons]

OFFSETS = ("unshare", "--time", "--boottime", "100000", "--monotonic", "50000", "--fork", "--kill-child")
SECONDS = 1
# Two threads beside the first one: one computes, one sleeps.
PROGRAM = """import os, sys, threading, time
def computes():
    while True:
        sum(range(1000))
def sleeps():
    while True:
        time.sleep(0.02)
for work in (computes, sleeps):
    threading.Thread(target=work, name=work.__name__, daemon=True).start()
sys.stdout.write("READY %d\\n" % os.getpid())
sys.stdout.flush()
threading.Event().wait()
"""


def inside(command, is_inside):
    """The command, in a time namespace whose clocks are ahead."""
    if is_inside and subprocess.run([*OFFSETS, "true"], stderr=subprocess.DEVNULL).returncode:
        say_skipped("no time namespace here")
    return [*(OFFSETS if is_inside else ()), *map(str, command)]


def pyebpf_in(is_inside, *words):
    return subprocess.run(inside([harness.PYEBPF, *words], is_inside), stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=harness.PATIENCE)


def record_in(is_inside, output, *words):
    before = time.time()
    done = pyebpf_in(is_inside, "record", *words, "-d", f"{SECONDS}s", "-F", 199, "-o", output)
    assert done.returncode == 0, done.stderr
    return time.time() - before


def read(recording):
    done = run("export", "-f", "jsonl", recording)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def thread_times(samples):
    """{(tid, name): seconds on and off the CPU}."""
    times = collections.Counter()
    for s in samples:
        if s["kind"] in ("cpu", "off-cpu"):
            times[s["tid"], s["thread"]] += s["value"] / 1e9
    return times


def check_times(recording, took):
    """took: seconds from before record to after it. A thread has each moment of the recording once."""
    samples = read(recording)
    times = thread_times(samples)
    assert len(times) == 3 and {"computes", "sleeps"} < {name for _, name in times}, times
    for thread, seconds in times.items():
        assert 0.9 * SECONDS < seconds < took, (thread, times)
    for s in samples:
        assert 0 <= s["time"] <= s["time"] + (s.get("duration") or 0) < took, s
    sleep = sum(s["value"] for s in samples if s["thread"] == "sleeps" and s["labels"].get("wait") == "sleep")
    assert sleep > 0, times
    return set(times)


@pytest.mark.parametrize("recorder", [False, True], ids=["recorder outside", "recorder inside"])
@pytest.mark.parametrize("target", [False, True], ids=["target outside", "target inside"])
def test_times_and_threads(recorder, target, python, tmp_path):
    with Spinning(*inside([*python.command, "-c", PROGRAM], target)) as process:
        took = record_in(recorder, tmp_path / "x.pyebpf", "--mode", "wall", "-p", process.pid)
        start = time.time()
        threads = check_times(tmp_path / "x.pyebpf", took)
        tids = {int(tid) for tid in os.listdir("/proc/%d/task" % process.pid)}
    assert {tid for tid, _ in threads} == tids
    done = run("export", "-f", "json", tmp_path / "x.pyebpf")
    told = json.loads(done.stdout)["recordings"][0]
    told_s = time.mktime(time.strptime(told["start"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert start - took - 5 < told_s < start + 5 and told["seconds"] < took, told


def test_threads_are_the_same_from_inside_and_outside(some_python, tmp_path):
    """A thread is its TID and its start, which the kernel's clock tells: put together, three are three."""
    files = [tmp_path / name for name in ("inside.pyebpf", "outside.pyebpf")]
    with Spinning(*some_python.command, "-c", PROGRAM) as process:
        for is_inside, file in zip((True, False), files):
            record_in(is_inside, file, "--mode", "wall", "-p", process.pid)
    done = run("report", "--json", "--min-percent", 0, *files)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len({thread["tid"] for thread in told["threads"]}) == len(told["threads"]) == 3, told["threads"]


def test_a_command_inside(some_python, tmp_path):
    """Found by its start, from its first tick on; the time that it took is its own."""
    code = "import time\ndef work():\n    end = time.time() + 0.5\n    while time.time() < end: sum(range(1000))\nwork()"
    done = pyebpf_in(True, "record", "--mode", "wall", "-F", 199, "-o", tmp_path / "x.pyebpf", "--", *some_python.command,
                     "-c", code)
    assert done.returncode == 0, done.stderr
    seconds = sum(thread_times(read(tmp_path / "x.pyebpf")).values())
    assert 0.4 < seconds < 30, (seconds, done.stderr)


def test_sources_by_a_supplementary_group(some_python, places, tmp_path):  # noqa: F811
    """Groups count while the process is the one that it was: by its start, as /proc tells it there."""
    place = places(some_python)
    os.chown(place.here / "public/mine.py", 0, 4242)
    (place.here / "public/mine.py").chmod(0o640)
    with place.thief(some_python, "public/mine.py", 4242) as target:
        record_in(True, tmp_path / "x.html", "-p", target.pid)
        dumped = pyebpf_in(True, "dump", "-p", target.pid)
    assert "mine = 1" in str(Page(tmp_path / "x.html").source)
    assert "mine = 1" in dumped.stdout, dumped.stderr
