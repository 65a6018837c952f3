# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record -e and --mode memory, against programs whose counts and growth are known."""
import json
import os
import re
import subprocess
import sys

import pytest
from harness import PATIENCE, Recorder, Workload, cpu_seconds, export, frames, leaf_counts, run, wait_until

pytestmark = pytest.mark.usefixtures("pyebpf")


def mapped(pid, name):
    """The library of this name as the process maps it; its program where it is linked into that."""
    with open("/proc/%d/maps" % pid) as f:
        for line in f:
            path = line.split(None, 5)[-1].strip()
            if re.match(name, os.path.basename(path)):
                return path
    return os.readlink("/proc/%d/exe" % pid)


def record(python, output, workload, *arguments):
    """(truth, pid) of a workload; arguments may be functions of its pid."""
    with Workload(python, *workload) as w:
        words = [a(w.pid) if callable(a) else a for a in arguments]
        with Recorder(output, "-p", w.pid, *words) as recorder:
            recorder.wait_attached()
            w.go()
            truth = w.truth()
            recorder.finish()
            return truth, words, recorder.text()


def of_kind(output, kind, marker=None):
    """{(function, line): value}; the marker is no function."""
    samples = frames(export(output, "--kind", kind))
    return leaf_counts({path[:-1] if path and path[-1][0] == marker else path: value
                        for path, value in samples.items()})


def libc(suffix):
    return lambda pid: "uprobe:%s:getpriority%s" % (mapped(pid, r"libc[.-].*so"), suffix)


@pytest.mark.full
@pytest.mark.few_pythons
def test_events_are_counted_exactly_by_line(python, tmp_path):
    check_events(python, tmp_path)


def test_events_of_one_python_are_counted_exactly_by_line(some_python, tmp_path):
    check_events(some_python, tmp_path)


def check_events(python, tmp_path):
    output = tmp_path / "events.pyebpf"
    truth, words, text = record(
        python, output, ["events.py"], "-e", "page-faults", "-e", "context-switches",
        "-e", "syscalls:sys_enter_openat", "-e", "syscalls:sys_enter_getpriority:who",
        "-e", libc(""), "-e", libc(":arg2"))
    lines, calls = truth["lines"], truth["calls"]
    asks = [("ask", lines["ask"]), ("ask_others", lines["ask_others"])]
    assert of_kind(output, "page-faults")[("touch", lines["touch"])] == truth["pages"], text
    opens = of_kind(output, "syscalls:sys_enter_openat")
    assert opens[("open_files", lines["open_files"])] == truth["opens"], text
    naps = of_kind(output, "context-switches")[("nap", lines["nap"])]
    assert truth["switches"] - 2 <= naps <= truth["switches"], text
    for kind, values in ((words[-3], (1, 1)), (words[-1], (1, 2)),
                         ("syscalls:sys_enter_getpriority:who", (1, 2))):
        found = of_kind(output, kind)
        assert [found[place] for place in asks] == [value * calls for value in values], kind
    assert "lost:" not in text


OPENING = "import os\nwhile True: os.close(os.open('/dev/null', os.O_RDONLY))"


def test_events_of_other_processes_leave_the_budget_alone(some_python, tmp_path):
    """None is skipped, though the kernel told of hundreds of thousands of others' on this CPU before."""
    output = tmp_path / "events.pyebpf"
    with Workload(some_python, "events.py") as w:
        os.sched_setaffinity(w.pid, {0})
        with Recorder(output, "-p", w.pid, "-e", "syscalls:sys_enter_openat") as recorder:
            recorder.wait_attached()
            with subprocess.Popen(["taskset", "-c", "0", sys.executable, "-c", OPENING]) as others:
                wait_until(lambda: cpu_seconds(others.pid) > 1, PATIENCE, "others have opened files")
                others.kill()
            w.go()
            truth = w.truth()
            recorder.finish()
            text = recorder.text()
    opens = of_kind(output, "syscalls:sys_enter_openat")
    assert opens[("open_files", truth["lines"]["open_files"])] == truth["opens"], text
    assert "records)" not in text and "lost:" not in text, text  # none stands for others


def test_events_have_a_period(some_python, tmp_path):
    output = tmp_path / "period.pyebpf"
    truth, words, _ = record(some_python, output, ["events.py"], "-c", 100, "-e", libc(""),
                             "-e", "page-faults")
    asks = sum(n for (name, _), n in of_kind(output, words[3]).items() if name.startswith("ask"))
    assert abs(asks - 2 * truth["calls"] / 100) <= 1
    faults = of_kind(output, "page-faults")[("touch", truth["lines"]["touch"])]
    assert abs(faults - truth["pages"] / 100) <= os.cpu_count()


def test_events_of_other_processes_complete_no_period(some_python, tmp_path):
    output = tmp_path / "period.pyebpf"
    with Workload(some_python, "events.py") as w, \
            Recorder(output, "-p", w.pid, "-c", 100, "-e", "syscalls:sys_enter_openat") as recorder:
        recorder.wait_attached()
        with subprocess.Popen([sys.executable, "-c", OPENING]) as others:
            wait_until(lambda: cpu_seconds(others.pid) > 0.1, PATIENCE, "others open files")
            w.go()
            truth = w.truth()
            others.kill()
        recorder.finish()
    opens = of_kind(output, "syscalls:sys_enter_openat")
    count = opens[("open_files", truth["lines"]["open_files"])]
    assert abs(count - truth["opens"] / 100) <= os.cpu_count()  # a period is counted on each CPU


def test_probes_of_a_python_are_counted_exactly(request, tmp_path):
    def has_probes(python):
        with open(python.command[-1], "rb") as f:
            return b"gc__start" in f.read()

    pythons = [p for p in request.config.pythons if not p.root and has_probes(p)]
    if not pythons:
        pytest.skip("no Python with USDT probes in its program")
    output = tmp_path / "probes.pyebpf"
    probe = lambda suffix: lambda pid: "usdt:%s:python:gc__start%s" % (  # noqa: E731
        os.readlink("/proc/%d/exe" % pid), suffix)
    truth, words, text = record(pythons[0], output, ["events.py"], "-e", probe(""),
                                "-e", probe(":arg1"))
    place = ("collect", truth["lines"]["collect"])
    for kind in (words[1], words[3]):  # generations 0, 1, 2, of each as many: the same sum
        assert of_kind(output, kind, "<GC>")[place] == truth["collections"], text


@pytest.mark.parametrize("mode, default", [("cpu", "cpu"), ("wall,memory", "wall"),
                                           ("memory", "memory")])
def test_events_and_modes_in_one_recording(some_python, tmp_path, mode, default):
    output = tmp_path / "both.pyebpf"
    truth, _, _ = record(some_python, output, ["events.py"], "-F", 4999, "--mode", mode,
                         "-e", "page-faults")
    assert export(output) == export(output, "--kind", default) != {}
    faults = of_kind(output, "page-faults")[("touch", truth["lines"]["touch"])]
    assert abs(faults - truth["pages"]) <= 0.01 * truth["pages"]  # they share a time budget


@pytest.mark.parametrize("event, status, words", [
    ("page-fault", 2, "did you mean page-faults?"),
    ("nonsense", 2, "pyebpf doctor --events lists them"),
    ("page-faults:u", 2, "no tracepoints of a group page-faults"),
    ("sched:nonsense", 2, "this kernel has no tracepoint sched:nonsense"),
    ("sched:sched_switch:nonsense", 2, "no field nonsense; its numbers: prev_pid,"),
    ("sched:sched_switch:prev_comm", 2, "no number: prev_comm; its numbers: prev_pid,"),
    ("uprobe:/nonsense:f", 2, "/nonsense: no such file"),
    ("uprobe:nonsense.so:f", 2, "no function f in nonsense.so, or no such file"),
    ("uprobe:%(libc)s:nonsense", 2, "no function nonsense in it"),
    ("uprobe:%(libc)s:getpid:arg9", 2, "arguments are arg1 to arg5"),
    ("uprobe:getpid", 2, "is not uprobe:FILE:FUNCTION"),
    ("usdt:%(libc)s:nonsense:probe", 2, "no probe nonsense:probe in"),
    ("usdt:nonsense", 2, "is not usdt:FILE:PROVIDER:NAME"),
])
def test_an_event_that_is_none_is_refused(tmp_path, event, status, words):
    event %= {"libc": mapped(os.getpid(), r"libc[.-].*so")}
    done = run("record", "-e", event, "-o", tmp_path / "none.pyebpf", "-p", os.getpid(), "-d", "1s")
    assert done.returncode == status, done.stderr
    assert words in done.stderr
    assert not os.path.exists(tmp_path / "none.pyebpf")


def test_a_counter_that_the_machine_lacks_is_said(tmp_path):
    done = run("record", "-e", "LLC-store-misses", "-o", tmp_path / "none.pyebpf", "-p",
               os.getpid(), "-d", "100ms")
    assert done.returncode in (0, 3) or (
        done.returncode == 4 and "this machine has no such counter" in done.stderr), done.stderr


def resident(pid):
    with open("/proc/%d/status" % pid) as f:
        fields = dict(line.split(":", 1) for line in f)
    return sum(int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssShmem"))


def record_growth(python, output, *arguments):
    """({function: bytes by which it made the process larger}, what record said)"""
    truth = {}
    with Workload(python, "grows.py", *arguments) as w:
        with Recorder(output, "-p", w.pid, "--mode", "memory") as recorder:
            recorder.wait_attached()
            for _ in range(6):
                before = resident(w.pid)
                w.go()
                name = w.truth()
                truth[name] = resident(w.pid) - before
            recorder.finish()
            return truth, recorder.text()


def near(seen, true):
    return abs(seen - true) <= 0.02 * true + 65536


@pytest.mark.full
@pytest.mark.few_pythons
def test_memory_is_told_by_line(python, tmp_path):
    check_memory(python, tmp_path)


def test_memory_of_one_python_is_told_by_line(some_python, tmp_path):
    check_memory(some_python, tmp_path)


def check_memory(python, tmp_path):
    output = tmp_path / "memory.pyebpf"
    truth, text = record_growth(python, output)
    seen = dict.fromkeys(truth, 0)
    for path, value in frames(export(output, "--kind", "memory")).items():
        for name in {frame[0] for frame in path} & set(truth):
            seen[name] += value
    wrong = {name: (seen[name], true) for name, true in truth.items() if not near(seen[name], true)}
    assert not wrong, (wrong, text)


GROWN = """
import sys
def load(mib):
    return [b"x" * 1048576 for _ in range(mib)]
def index():
    return {"key-%d" % i: [i] for i in range(50000)}
kept = load(int(sys.argv[1])), index()
"""


def test_a_comparison_says_what_grew(some_python, tmp_path):
    """Once a side: 64 MiB more in one function, with its bytes; of the same program nothing."""
    script = tmp_path / "grown.py"
    script.write_text(GROWN)
    paths = []
    for name, mib in ("a", 32), ("b", 32), ("c", 96):
        paths.append(tmp_path / (name + ".pyebpf"))
        done = run("record", "--mode", "memory", "-o", paths[-1], "--", *some_python.command, script, str(mib))
        assert done.returncode == 0, done
    same, grown = ([json.loads(run("diff", "--gate", "-f", "json", paths[0], path).stdout)]
                   for path in paths[1:])
    assert same[0]["dispersion"] == "presumed" and same[0]["coloured"] < 0.01, same
    assert same[0]["gate"]["exit"] != 5, same[0]["gate"]
    assert grown[0]["gate"]["exit"] == 5, grown[0]["gate"]
    found = {f["name"]: f for f in grown[0]["functions"] if f["class"].startswith("slower")}
    (load,) = [f for name, f in found.items() if name.startswith("load") and f["self"] > 1 << 20]
    assert load["q"] < 0.001 and load["diff"] == pytest.approx(64 << 20, rel=0.02), load
    assert "index" not in found
    text = run("diff", paths[0], paths[2]).stdout
    assert "run-to-run noise assumed: 3%" in text and "grown, self" in text, text
