# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All that count the processes and threads of one program count alike: workloads/renamed.py."""
import json
import re

import pytest
from harness import PYEBPF, Recorder, Workload, export, run
from tmux import Terminal

pytestmark = pytest.mark.usefixtures("pyebpf")
SECONDS = 3
HZ = 499


def number(pattern, text):
    found = re.search(pattern, text, re.M)
    assert found, (pattern, text)
    return int(found.group(1))


def tagged(recording):
    """{kind: numbers} of the tags of a recording's stacks."""
    found = {}
    for stack in export(recording, "--processes", "--threads", "--kind", "wall"):
        for kind, _, ident in stack.tags:
            found.setdefault(kind, set()).add(ident)
    return found


def of_recording(recording):
    """What is told of a file: {who: (processes, threads)}."""
    report = run("report", recording).stdout
    profile = json.loads(run("export", "-f", "json", recording).stdout)
    by_process = run("report", "--no-summary", "--by", "process", recording).stdout
    by_thread = run("report", "--no-summary", "--by", "thread", recording).stdout
    tags = tagged(recording)
    threads = {(thread["pid"], thread["tid"]) for thread in profile["threads"]}
    found = {
        "report": (number(r"^python .* (\d+) process", report), number(r"^python .*, (\d+) thread", report)),
        "json": (len({pid for pid, _ in threads}), len(threads)),
        "collapsed": (len(tags["process"]), len(tags["thread"])),
        "by": (len(re.findall(r"^ *[\d.]+% .*\((\d+)\)$", by_process, re.M)),
               len(set(re.findall(r"^ *[\d.]+% .*\((\d+)\) of .*\(\d+\)$", by_thread, re.M)))),
    }
    if re.search("^time .* of .* thread", report, re.M):
        found["time"] = (found["report"][0], number(r"^time .* of (\d+) thread", report))
    return found


@pytest.mark.few_pythons
@pytest.mark.parametrize("mode", ["cpu", "wall"])
def test_of_one_recording(python, mode, tmp_path):
    recording = tmp_path / "x.pyebpf"
    with Workload(python, "renamed.py", SECONDS) as workload:
        with Recorder(recording, "-p", workload.pid, "-F", HZ, "--mode", mode) as recorder:
            recorder.wait_attached()
            workload.go()
            truth = workload.truth()
            recorder.finish()
            summary = recorder.text()
    processes, threads = truth["processes"], truth["threads"]
    assert number(r"samples of (\d+) process", summary) == processes
    if mode == "wall":
        assert number(r" of (\d+) threads in ", summary) == threads
    found = of_recording(recording)
    assert len(set(found.values())) == 1, found
    if mode == "wall":
        assert found["report"] == (processes, threads), found
    else:  # of the CPUs some that wait are in no sample
        assert found["report"][0] == processes and found["report"][1] <= threads, found


def test_of_a_program_that_executes_another(some_python, tmp_path):
    """That is one more process wherever they are counted by what they run; by number it is the same."""
    recording = tmp_path / "x.pyebpf"
    with Workload(some_python, "renamed.py", SECONDS, "executes") as workload:
        with Recorder(recording, "-p", workload.pid, "-F", HZ, "--mode", "wall") as recorder:
            recorder.wait_attached()
            workload.go()
            truth = workload.truth()
            recorder.finish()
            summary = recorder.text()
    told = number(r"samples of (\d+) process", summary)
    assert told in (truth["processes"], truth["processes"] + 1), summary  # it may execute at once
    found = of_recording(recording)
    assert found["report"][0] == found["by"][0] == told, (found, summary)
    assert found["json"] == found["collapsed"] == (truth["processes"], truth["threads"]), found


def test_of_those_that_watch(some_python, tmp_path):
    """top, what it saves, and dump of the same moment."""
    saved = tmp_path / "saved.pyebpf"
    with Workload(some_python, "renamed.py", 4 * SECONDS) as workload, Terminal(width=120) as terminal:
        terminal.command("%s top -F %d --window 60s -p %d" % (PYEBPF, HZ, workload.pid))
        terminal.wait_for("no samples|FUNCTION")
        workload.go()
        terminal.wait_for("; 3 processes, 12 threads")
        dump = json.loads(run("dump", "--json", "--children", "-p", workload.pid).stdout)
        truth = workload.truth()
        terminal.keys("s")
        terminal.wait_for("save")
        terminal.keys("C-u")
        terminal.type(str(saved))
        terminal.keys("Enter")
        terminal.wait_for("saved: ")
        screen = "\n".join(terminal.screen())
    told = (truth["processes"], truth["threads"])
    assert (number(r"; (\d+) processes", screen), number(r", (\d+) threads", screen)) == told, screen
    assert (len(dump["processes"]), sum(len(p["threads"]) for p in dump["processes"])) == told, dump
    found = of_recording(saved)
    assert set(found.values()) == {told}, found
