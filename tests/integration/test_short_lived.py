# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that live for 50 ms, under -a: of the CPU time each measures inside its own function,
99 % is in samples with that name and line. Start-up, exit and the first process of a new binary
count by themselves."""
import collections
import json
import os
import statistics
import subprocess

import harness
import pytest
from harness import PATIENCE, Recorder, export

pytestmark = pytest.mark.usefixtures("pyebpf")
LINES = {"in_python": 19, "in_clock": 23}  # of workloads/brief.py
SHARE = 0.99
BLOCKS = 10
STOLEN_MAX = 0.05
# What the time is spent in, rate, children at once.
CASES = [("python", 999, 1), ("python", 999, 8), ("clock", 99, 1)]
ALL_CASES = [(kind, hz, at_once) for kind in ("python", "clock") for hz in (999, 99)
             for at_once in (1, 8)]

Child = collections.namedtuple("Child", "pid expected samples slices")


def selected(config):
    """Interpreters: with --tier=all and --pythons all, else the oldest, a middle one, the newest."""
    found = config.pythons
    if config.getoption("--tier") == "all" or config.getoption("--pythons") or len(found) < 4:
        return found
    middle = [p for p in found if p.minor == 12] or [found[len(found) // 2]]
    return [found[0], middle[0], found[-1]]


def pytest_generate_tests(metafunc):
    if "brief_python" in metafunc.fixturenames:
        found = selected(metafunc.config)
        cases = ALL_CASES if metafunc.config.getoption("--tier") == "all" else CASES
        metafunc.parametrize("brief_python", found, ids=[p.name for p in found])
        if "kind" in metafunc.fixturenames:
            metafunc.parametrize("kind,hz,at_once", cases)


def tell(process):
    out, _ = process.communicate(timeout=PATIENCE)
    return json.loads(out)


def run_children(command, count, at_once):
    """What `count` children say of themselves, in the order of their start."""
    running, told = collections.deque(), []
    while len(told) < count:
        while len(running) < at_once and len(running) + len(told) < count:
            running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE))
        told.append(tell(running.popleft()))
    return told


def record_children(python, script, output, kind, hz, count, at_once):
    """The first child, by itself, and the others."""
    command = python.command + [script, kind]
    with Recorder(output, "-a", "-F", hz) as recorder:
        recorder.wait_attached()
        told = run_children(command, 1, 1) + run_children(command, count, at_once)
        recorder.finish()
        text = recorder.text()
    name = "in_" + kind
    samples = collections.Counter()
    for stack, weight in export(output, "--processes").items():
        leaf = stack.frames[-1] if stack.frames else None
        if leaf and leaf[0] == name and leaf[2] == LINES[name]:
            samples[stack.tags[0][2]] += weight
    interval_ns = 1000000000 // hz
    children = [Child(t["pid"], t["ns"] / interval_ns, samples[t["pid"]], t["slices"])
                for t in told]
    return children[0], children[1:], text


def stolen_ticks():
    """(Of all CPUs, those that the host gave to others.)"""
    with open("/proc/stat") as f:
        ticks = [int(word) for word in f.readline().split()[1:9]]
    return sum(ticks), ticks[7]


def record_undisturbed(*arguments):
    """As record_children(), anew where the host took CPUs away: processes are not charged for that
    time, while the timer went on, so that they get more samples than their own clocks allow."""
    for _ in range(6):
        before = stolen_ticks()
        found = record_children(*arguments)
        whole, stolen = (b - a for a, b in zip(before, stolen_ticks()))
        if stolen <= STOLEN_MAX * whole:
            return found
    pytest.skip("the host takes the CPUs away, %.0f %% of the time" % (100 * stolen / whole))


def share(children):
    return sum(c.samples for c in children) / sum(c.expected for c in children)


def uncertainty(children):
    """Of share(), one sigma. Ticks of a CPU meet the slices of several children with a phase that
    moves slowly, so the children are no independent draws: blocks of them are."""
    size = max(1, len(children) // BLOCKS)
    blocks = [share(children[i:i + size]) for i in range(0, len(children) - size + 1, size)]
    # A tick more or less at either end of each slice.
    quantum = 0.5 * sum(c.slices for c in children) ** 0.5 / sum(c.expected for c in children)
    return max(quantum, statistics.stdev(blocks) / len(blocks) ** 0.5)


@pytest.mark.spread("brief_python", "kind,hz,at_once")
def test_named_for_99_percent_of_their_time(brief_python, kind, hz, at_once, tmp_path, staged,
                                            is_full, record_property):
    count = 200 if is_full else 18
    script = staged(brief_python, "brief.py")
    first, children, text = record_undisturbed(brief_python, script, tmp_path / "brief.pyebpf",
                                               kind, hz, count, at_once)
    got, sigma = share(children), uncertainty(children)
    lost = next((line for line in text.splitlines() if line.startswith("lost")), "nothing lost")
    says = "%.2f %% +- %.2f of %d children's time; the first one's %.0f %%; %s" % (
        100 * got, 100 * sigma, count, 100 * first.samples / first.expected, lost)
    record_property("share", "%.2f" % (100 * got))
    record_property("sigma", "%.2f" % (100 * sigma))
    print(says)
    assert got >= SHARE - 4 * sigma, says
    assert got <= 1.01 + 4 * sigma, says


def test_deep_stack_met_once_is_named(brief_python, tmp_path, staged):
    """All of its code objects are new to the one or two samples that there are of it."""
    script = staged(brief_python, "once.py")
    deep = ("<module>", *("deep_%d" % i for i in range(50)))
    for attempt in range(5):  # beside others no tick of the CPU may meet it there
        output = tmp_path / ("once%d.pyebpf" % attempt)
        with Recorder(output, "-F", 99, "--", *brief_python.command, script) as recorder:
            assert recorder.wait() == 0, recorder.text()
        names = [tuple(frame[0] for frame in stack.frames) for stack in export(output)]
        assert not any("<unknown>" in stack for stack in names), names
        if deep in names:
            break
    assert deep in names, names
