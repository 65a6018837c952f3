# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Targets that a signal has stopped: each command says so, and how to have them run again."""
import os
import re
import signal
import time

import pytest
from harness import PYEBPF, Recorder, run, wait_until
from spinning import SCRIPT, Spinning, cpu_seconds, record
from test_places import cgroup_v2, move  # noqa: F401
from tmux import Terminal

pytestmark = pytest.mark.usefixtures("pyebpf")
SAID = "pid %d is stopped by a signal (SIGSTOP, Ctrl-Z): "


def is_stopped(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rpartition(") ")[2][0] == "T"


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: is_stopped(pid), 10, "it is stopped")


def spins(pid):
    """Until it has used CPU time of which there are samples."""
    enough = cpu_seconds(pid) + 0.2
    wait_until(lambda: cpu_seconds(pid) > enough, 20, "it spins")


@pytest.fixture
def target(some_python):
    with Spinning(*some_python.command, SCRIPT) as target:
        yield target


def test_record_of_a_stopped_process(target, tmp_path):
    stop(target.pid)
    _, text = record(tmp_path, "-p", target.pid, status=3)
    said = "warning: " + SAID % target.pid + "it takes no samples until kill -CONT %d\n" % target.pid
    assert text.count(said) == 1, text
    assert re.search(r"no samples of pid %d in .*: pid %d is stopped by a signal" % (2 * (target.pid,)),
                     text), text
    assert "try: kill -CONT %d" % target.pid in text, text


def test_record_of_a_stopped_child(some_python, tmp_path):
    """It is no target by name: said where there are no samples."""
    with Spinning("sh", "-c", '"$@"; true', "sh", *some_python.command, SCRIPT) as target:
        stop(target.pid)
        _, text = record(tmp_path, "-p", target.process.pid, status=3)
        assert "pid %d is stopped by a signal" % target.pid in text, text
        assert "try: kill -CONT %d" % target.pid in text, text


def check_child_stopped(target, tmp_path, *chosen):
    """There are samples before: it is said nevertheless, once."""
    with Recorder(tmp_path / "x.pyebpf", *chosen) as recorder:
        recorder.wait_attached()
        spins(target.pid)
        stop(target.pid)
        wait_until(lambda: SAID % target.pid in recorder.text(), 10, "it says so")
        time.sleep(1.2)  # two more looks
        recorder.finish()
        text = recorder.text()
    assert text.count("is stopped") == 1, text
    assert "it takes no samples until kill -CONT %d\n" % target.pid in text, text


def test_child_stopped_in_the_midst(some_python, tmp_path):
    with Spinning("sh", "-c", '"$@"; true', "sh", *some_python.command, SCRIPT) as target:
        check_child_stopped(target, tmp_path, "-p", target.process.pid)


def test_member_of_a_cgroup_stopped_in_the_midst(some_python, cgroup_v2, tmp_path):  # noqa: F811
    with Spinning(*some_python.command, SCRIPT) as target:
        move(target.pid, cgroup_v2)
        check_child_stopped(target, tmp_path, "--cgroup", cgroup_v2)


@pytest.mark.parametrize("mode", ["cpu", "wall"])
def test_stopped_in_the_midst(target, mode, tmp_path):
    with Recorder(tmp_path / "x.pyebpf", "-p", target.pid, "--mode", mode) as recorder:
        recorder.wait_attached()
        spins(target.pid)
        begin = time.monotonic()
        stop(target.pid)
        wait_until(lambda: SAID % target.pid in recorder.text(), 10, "it says so")
        os.kill(target.pid, signal.SIGCONT)
        length = time.monotonic() - begin
        spins(target.pid)
        recorder.finish()
        text = recorder.text()
    assert text.count("is stopped") == 1, text
    if mode == "cpu":
        assert "it takes no samples until kill -CONT %d\n" % target.pid in text, text
        return
    assert "it only waits until kill -CONT %d\n" % target.pid in text, text
    value, unit = re.search(r", stopped ([\d.]+) (s|ms) \(", text).groups()
    assert float(value) / {"s": 1, "ms": 1000}[unit] == pytest.approx(length, abs=0.3), (text, length)


def test_wall_time_of_a_stopped_process(target, tmp_path):
    stop(target.pid)
    _, text = record(tmp_path, "-p", target.pid, "--mode", "wall")
    assert re.search(r"CPU 0 ns \(0.0%\), stopped .* \(100.0%\)\n", text), text


def test_top_of_a_stopped_process(target):
    stop(target.pid)
    with Terminal() as terminal:
        terminal.command("%s top -p %d" % (PYEBPF, target.pid))
        terminal.wait_for("pid %d is stopped by a signal" % target.pid)


def test_dump_of_a_stopped_process(target):
    stop(target.pid)
    done = run("dump", "-p", target.pid)
    assert "stopped by a signal (SIGSTOP, Ctrl-Z): it runs nothing until kill -CONT %d\n" % target.pid \
        in done.stdout, done
    os.kill(target.pid, signal.SIGCONT)
    done = run("dump", "-p", target.pid)
    assert "stopped by a signal" not in done.stdout, done
