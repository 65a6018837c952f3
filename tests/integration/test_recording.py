# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How a recording ends, what it leaves, what the summary and the report say."""
import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import chunks
import pytest
from harness import (PATIENCE, PYEBPF, Recorder, Workload, export, frames, leaf_counts, run,
                     summary_samples, wait_until)

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997
PART = 0.25  # of its time that a target spins which only has to be there
DUE = PART * HZ  # samples of it a second


def spinning(python, share=PART):
    workload = Workload(python, "family.py", 600, "idle", *[share] * bool(share))
    workload.ahead()
    workload.go()
    return workload


def spins(path):
    return sum(count for (name, _), count in leaf_counts(frames(export(path))).items()
               if name == "spin_idle")


def duration(path):
    """Seconds that were recorded, as the file says: a recorder that waits for a CPU begins late."""
    return chunks.read(path).metadata[chunks.DURATION_NS] / 1e9


def test_killed_recording_is_readable(some_python, tmp_path):
    output = tmp_path / "killed.pyebpf"
    with spinning(some_python) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            wait_until(lambda: run("report", output).returncode == 0, PATIENCE, "the first second")
            wait_until(lambda: spins(output) > DUE, PATIENCE, "the next")
            recorder.stop(signal.SIGKILL)
    done = run("export", "-f", "collapsed", output)
    assert done.returncode == 0 and "killed.pyebpf" in done.stderr, done.stderr
    assert spins(output) > DUE
    assert run("report", output).returncode == 0
    assert os.listdir(tmp_path) == ["killed.pyebpf"]


LONG_COMMAND = "import time; print('begun', flush=True); time.sleep(600)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_command_that_goes_on_is_told_of(number, some_python, tmp_path):
    """After -d; and what ends it may be sent to either of the two."""
    with Recorder(tmp_path / "x.pyebpf", "-d", "300ms", "-F", HZ, "--", *some_python.command, "-c",
                  LONG_COMMAND) as recorder:
        wait_until(lambda: "to exit" in recorder.text(), 20, "the command is told of")
        text = recorder.text()
        assert text.index("samples") < text.index("recording finished; waiting for"), text  # it may have none of these
        pid = int(re.search(r"\(pid (\d+)\) to exit", text).group(1))
        assert "try: Ctrl-C or kill %d" % pid in text
        with open("/proc/%d/cmdline" % pid) as f:
            assert LONG_COMMAND in f.read()
        assert recorder.stop(number) == 128 + number, recorder.text()
        assert not os.path.exists("/proc/%d" % pid)


@pytest.mark.parametrize("options", [("-q", "-d", "300ms"), ()], ids=["quiet", "ends with it"])
def test_command_that_does_not_go_on_is_not_told_of(options, some_python, tmp_path):
    command = "import time; time.sleep(1)"
    done = run("record", "-o", tmp_path / "x.pyebpf", *options, "--", *some_python.command, "-c",
               command)
    assert done.returncode == 0 and "waiting for" not in done.stderr, done.stderr


@pytest.mark.threads
@pytest.mark.quick
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_finishes(number, some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            time.sleep(0.5)
            start = time.monotonic()
            assert recorder.stop(number) == 0, recorder.text()
            assert time.monotonic() - start < 10
    assert spins(output) > 0.4 * DUE
    assert os.listdir(tmp_path) == ["x.pyebpf"]


def test_sigusr1_writes_and_goes_on(some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            time.sleep(0.5)
            recorder.process.send_signal(signal.SIGUSR1)
            wait_until(lambda: run("export", "-f", "collapsed", output).stdout, 5,
                       "a readable file after SIGUSR1")
            early = spins(output)
            time.sleep(0.5)
            recorder.finish()
    assert early > 0.3 * DUE
    assert spins(output) > early + 0.3 * DUE


@pytest.mark.parametrize("text,seconds", [("1", 1), ("1500ms", 1.5)])
def test_duration(text, seconds, some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        done = run("record", "-p", workload.pid, "-d", text, "-F", HZ, "-o", output)
    assert done.returncode == 0, done.stderr
    spent = duration(output)
    assert seconds <= spent < seconds + 1
    assert 0 < spins(output) < 1.15 * spent * DUE + 50  # how much of a CPU it has, others decide


@pytest.mark.parametrize("text,hz", [("99", 99), ("2khz", 2000)])
def test_rate(text, hz, some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with spinning(some_python, share=None) as workload:
        done = run("record", "-p", workload.pid, "-d", "1s", "-F", text, "-o", output)
    assert done.returncode == 0, done.stderr
    due = hz * duration(output)
    assert abs(spins(output) - due) < 0.15 * due + 4 * due ** 0.5


def test_default_rate_and_file(some_python, tmp_path):
    with spinning(some_python, share=None) as workload:
        done = run("record", "-p", workload.pid, "-d", "1s", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == ["profile.pyebpf"]
    assert abs(spins(tmp_path / "profile.pyebpf") - 99 * duration(tmp_path / "profile.pyebpf")) < 30
    report = run("report", cwd=tmp_path)
    assert report.returncode == 0 and "spin_idle" in report.stdout, report


@pytest.mark.quick
def test_summary(some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        done = run("record", "-p", workload.pid, "-d", "1s", "-F", HZ, "-o", output)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    assert "spin_idle" in text and "pyebpf report" in text and "x.pyebpf" in text, text
    assert len(text.splitlines()) <= 14, text
    assert summary_samples(text) == sum(export(output).values()), text


def test_quiet(some_python, tmp_path):
    with spinning(some_python) as workload:
        done = run("record", "-q", "-p", workload.pid, "-d", "0.5s", "-o", tmp_path / "x.pyebpf")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.quick
def test_report(some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with Workload(some_python, "chains.py", 600, 200) as workload:
        workload.go()
        done = run("record", "-p", workload.pid, "-d", "1s", "-F", HZ, "-o", output)
    assert done.returncode == 0, done.stderr
    by_self = run("report", "--sort", "self", "--limit", "2", output)
    assert by_self.returncode == 0
    assert {"a49", "b49"} <= set(re.findall(r"\b[ab]\d+\b", by_self.stdout)), by_self.stdout
    by_total = run("report", "--sort", "total", "--limit", "200", output).stdout
    assert by_total.index("main") < by_total.index("a49"), by_total
    tree = run("report", "--tree", output).stdout
    names = re.findall(r"(<module>|main|[ab]\d+)  ", tree)
    assert names[:4] in (["<module>", "main", "a0", "a1"], ["<module>", "main", "b0", "b1"]), tree
    assert "\x1b" not in by_self.stdout + by_total + tree


def on_a_terminal(columns, *arguments):
    """The lines that the program prints on a terminal so wide."""
    pid, fd = pty.fork()
    if not pid:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        os.execve(PYEBPF, [PYEBPF, *map(str, arguments)],
                  {"TERM": "xterm", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"})
    text = b""
    with contextlib.suppress(OSError):  # Linux: the last writer has left
        while True:
            text += os.read(fd, 65536)
    os.close(fd)
    assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 0, text
    return text.decode().splitlines()


PLACE = "/usr/lib/python3/dist-packages/django/db/models/fields/related_descriptors.py"


@pytest.mark.parametrize("columns", [100, 80, 60])
@pytest.mark.parametrize("options", [("--lines",), ("--tree", "--lines")],
                         ids=["table", "tree"])
def test_narrow_terminal_cuts_folders_before_names_and_lines(columns, options, tmp_path):
    stacks = tmp_path / "stacks.collapsed"
    stacks.write_text("main (app.py:3);ReverseManyToOne.get_queryset (%s:1234) 10\n"
                      "main (app.py:3) 2\n" % PLACE)
    lines = on_a_terminal(columns, "report", "--no-summary", *options, stacks)
    assert all(len(line) <= columns for line in lines), lines
    (row,) = [line for line in lines if "get_queryset" in line]
    assert row.endswith(".py:1234") if columns > 60 else row.endswith(":1234"), row
    if columns > 60:
        assert "ReverseManyToOne.get_queryset  " in row, row
    assert any(line.endswith("app.py:3") for line in lines), lines
    if columns == 100:
        assert "../related_descriptors.py:1234" in row or "fields/related" in row, row


@pytest.mark.quick
def test_collapsed_output(some_python, tmp_path):
    """-o x.collapsed is what export gives; report and export read it again."""
    output = tmp_path / "x.collapsed"
    with spinning(some_python) as workload:
        done = run("record", "-p", workload.pid, "-d", "0.5s", "-F", HZ, "-o", output)
    assert done.returncode == 0, done.stderr
    assert re.match(r"(# pyebpf-collapsed.*\n)?<module> \(.*family\.py:\d+\);", output.read_text())
    assert spins(output) > 0.4 * 0.5 * DUE
    assert run("report", output).returncode == 0


def test_no_lines(some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        run("record", "-p", workload.pid, "-d", "0.5s", "-F", HZ, "-o", output)
    stacks = frames(export(output, "--no-lines"))
    assert all(line == 0 for stack in stacks for _, _, line in stack)
    assert sum(stacks.values()) == sum(export(output).values())


def test_export_to_a_file(some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        run("record", "-p", workload.pid, "-d", "0.5s", "-F", HZ, "-o", output)
    done = run("export", "-f", "collapsed", output, "-o", tmp_path / "y")
    assert done.returncode == 0 and done.stdout == ""
    assert (tmp_path / "y").read_text() == run("export", "-f", "collapsed", output).stdout
    assert sorted(os.listdir(tmp_path)) == ["x.pyebpf", "y"]


def test_closed_pipe_is_no_error(some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with Workload(some_python, "lines.py", 600) as workload:
        workload.go()
        run("record", "-p", workload.pid, "-d", "1s", "-F", HZ, "-o", output)
    with subprocess.Popen([PYEBPF, "export", "-f", "collapsed", output], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:
        child.stdout.read(1)
        child.stdout.close()
        assert child.wait(20) == 0 and child.stderr.read() == b""


def test_two_recorders_at_once(some_python, tmp_path):
    with spinning(some_python) as workload:
        with Recorder(tmp_path / "1.pyebpf", "-p", workload.pid, "-F", HZ) as first, \
                Recorder(tmp_path / "2.pyebpf", "-a", "-F", HZ) as second:
            first.wait_attached()
            second.wait_attached()
            time.sleep(1)
            first.finish()
            second.finish()
    for name in ("1.pyebpf", "2.pyebpf"):
        assert spins(tmp_path / name) > 0.8 * DUE


def test_own_memory_stays_small(some_python, tmp_path):
    """64 MiB, measured while it records thousands of different functions; a large parent's is not its own."""
    ballast = bytearray(os.urandom(1 << 20) * 200)
    with Workload(some_python, "churn.py", 2, "lines", 2000) as workload:
        with Recorder(tmp_path / "x.pyebpf", "-p", workload.pid, "-F", "10k") as recorder:
            recorder.wait_attached()
            workload.go()
            workload.truth()
            with open("/proc/%d/status" % recorder.process.pid) as f:
                peak = int(re.search(r"VmHWM:\s+(\d+) kB", f.read()).group(1))
            recorder.finish()
    told = float(re.search(r"([\d.]+) MiB of memory", recorder.text()).group(1))
    assert peak < 64 << 10, "%d KiB" % peak
    assert peak / 1024 - 1 < told < 64 < len(ballast) >> 20, recorder.text()
