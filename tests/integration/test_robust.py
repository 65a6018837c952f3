# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What can go wrong around a recording, and what is left of it then."""
import contextlib
import os
import random
import shutil
import signal
import subprocess
import time

import chunks
import harness
import pytest
from harness import (PYEBPF, Recorder, Workload, export, frames, leaf_counts, run, wait_until)
from spinning import cpu_seconds, say_skipped

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997


@contextlib.contextmanager
def spinning(python):
    with Workload(python, "family.py", 600, "idle") as workload:
        workload.ahead()
        workload.go()
        yield workload


def spins(path):
    return sum(count for (name, _), count in leaf_counts(frames(export(path))).items()
               if name == "spin_idle")


def assert_accounted(path, is_finished=True):
    """Each tick has one outcome, each recorded one is in the file; nothing came twice."""
    file = chunks.read(path)
    c = file.counters
    assert file.is_finished == is_finished, path
    sent = c["recorded"] + c["task_work_recorded"]
    assert file.samples == sent, (file.samples, c)
    assert sum(export(path).values()) == c["weight"], c
    assert c["ticks"] + c["not_delivered"] == max(c["ticks"], c["expected"]), c
    assert c["task_work"] + c["task_work_joined"] >= c["task_work_recorded"], c
    return c


# --- Signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
                         ids=["INT", "TERM", "HUP"])
def test_signal_writes_all(number, some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            time.sleep(0.4)
            assert recorder.stop(number) == 0, recorder.text()
    assert assert_accounted(output)["recorded"] > 0.3 * HZ


def test_sigusr1_writes_what_there_is(some_python, tmp_path):
    """At once, and not at the next flush, which comes each second."""
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            time.sleep(0.3)
            for least in (0.2, 0.4):
                size = os.path.getsize(output)
                recorder.process.send_signal(signal.SIGUSR1)
                wait_until(lambda: os.path.getsize(output) > size, 0.3, "a snapshot")
                assert spins(output) > least * HZ
                assert chunks.read(output).counters["recorded"] > least * HZ
                time.sleep(0.3)
            recorder.finish()
    assert_accounted(output)


def test_closed_stderr(some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    reading, writing = os.pipe()
    with spinning(some_python) as workload:
        process = subprocess.Popen([PYEBPF, "record", "-p", str(workload.pid), "-d", "300ms", "-F",
                                    str(HZ), "-o", str(output)], stderr=writing)
        os.close(writing)
        os.close(reading)
        assert process.wait(20) == 0
    assert_accounted(output)


def test_closed_stdout(some_python):
    """-o -: whoever reads the recording has gone."""
    with spinning(some_python) as workload:
        with subprocess.Popen([PYEBPF, "record", "-p", str(workload.pid), "-d", "30s", "-F", str(HZ),
                               "-o", "-"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdout.read(8)
            process.stdout.close()
            assert process.wait(10) == 0, process.stderr.read()


def test_killed_at_any_moment(some_python, tmp_path, is_full):
    """Readable up to the last second each time."""
    chance = random.Random(1)
    moments = sorted(chance.uniform(0.05, 3.5) for _ in range(20 if is_full else 8))
    with spinning(some_python) as workload, contextlib.ExitStack() as stack:
        recorders = [stack.enter_context(Recorder(tmp_path / ("%d.pyebpf" % i), "-p", workload.pid,
                                                  "-F", 199)) for i in range(len(moments))]
        for recorder in recorders:
            recorder.wait_attached()
        start = time.monotonic()
        for moment, recorder in zip(moments, recorders):
            time.sleep(max(0, start + moment - time.monotonic()))
            recorder.stop(signal.SIGKILL)
    for moment, recorder in zip(moments, recorders):
        done = run("export", "-f", "collapsed", recorder.output)
        assert done.returncode == 0, (moment, done.stderr)
        assert spins(recorder.output) >= 0.5 * 199 * (moment - 1.3), moment
    assert len(os.listdir(tmp_path)) == len(moments)


# --- The recorder cannot keep up -----------------------------------------------------------------


@contextlib.contextmanager
def stopped(recorder, seconds):
    recorder.process.send_signal(signal.SIGSTOP)
    yield
    time.sleep(seconds)
    recorder.process.send_signal(signal.SIGCONT)


def test_full_ring(some_python, tmp_path):
    """What no longer fits is counted: produced = consumed + lost."""
    output = tmp_path / "x.pyebpf"
    with Workload(some_python, "chains.py", 600, 200) as workload:
        workload.ahead()
        workload.go()
        with Recorder(output, "-p", workload.pid, "-F", 4999, "--ring", "64KiB") as recorder:
            recorder.wait_attached()
            before = cpu_seconds(workload.pid)
            with stopped(recorder, 2):
                pass
            time.sleep(0.3)
            used = cpu_seconds(workload.pid) - before
            recorder.finish()
    c = assert_accounted(output)
    assert c["ring_full"] > 5000, c
    assert c["recorded"] + c["ring_full"] + c["skipped"] + c["task_work_recorded"] \
        + c["task_work_ring_full"] > 0.95 * 4999 * used - c["not_delivered"], (used, c)


def test_stopped_for_3_seconds(some_python, tmp_path):
    """At an ordinary rate the ring holds what comes meanwhile."""
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            before = cpu_seconds(workload.pid)
            with stopped(recorder, 3):
                pass
            time.sleep(0.2)
            used = cpu_seconds(workload.pid) - before
            recorder.finish()
    c = assert_accounted(output)
    assert not c["ring_full"] and not c["skipped"], c
    assert spins(output) > 0.97 * HZ * used - c["not_delivered"], (used, c)


def test_no_space_left(some_python, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "none", str(disk)],
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        say_skipped("no tmpfs may be mounted: " + done.stderr.strip())
    try:
        with Workload(some_python, "churn.py", 600, "lines", 100000) as workload:
            workload.go()
            with Recorder(disk / "x.pyebpf", "-p", workload.pid, "-F", "10k") as recorder:
                assert recorder.wait() == 1, recorder.text()
                text = recorder.text()
        assert "No space left" in text and "x.pyebpf" in text and len(text.splitlines()) == 1, text
        shutil.copy(disk / "x.pyebpf", tmp_path)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    counts = leaf_counts(frames(export(tmp_path / "x.pyebpf")))
    assert sum(count for (name, _), count in counts.items() if name.startswith("f_")) > 100


# --- Crowds --------------------------------------------------------------------------------------


CROWDS = [("threads", 1000, 5000), ("processes", 300, 2000), ("forks", 500, 5000),
          ("execs", 200, 2000)]


@pytest.mark.parametrize("case,count,full_count", CROWDS, ids=[case for case, _, _ in CROWDS])
def test_crowd(case, count, full_count, some_python, tmp_path, is_full):
    output = tmp_path / "x.pyebpf"
    target = ("-a",) if case == "execs" else None
    with Workload(some_python, "crowd.py", 2, case, full_count if is_full else count) as workload:
        with Recorder(output, *(target or ("-p", workload.pid)), "-F", HZ) as recorder:
            recorder.wait_attached()
            workload.go()
            truth = workload.truth()
            with open("/proc/%d/status" % recorder.process.pid) as f:
                peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
            recorder.finish()
    c = assert_accounted(output)
    counts = leaf_counts(frames(export(output)))
    (name, spent), = truth["cpu"].items()
    got, expected = counts.get((name, truth["lines"][name]), 0), HZ * spent
    # Spins of 2 ms: a tick that falls on their first instruction has the def line.
    slack = 4 * expected ** 0.5 + c["not_delivered"]
    assert 0.93 * expected - slack <= got <= 1.05 * expected + slack, (got, expected, c)
    assert not c["ring_full"] and not c["unnamed"], c
    assert peak < 64 << 10, "%d KiB" % peak


# --- Others beside it ----------------------------------------------------------------------------


def test_beside_perf(some_python, tmp_path):
    """Another profiler of the same event takes nothing away."""
    if not shutil.which("perf"):
        say_skipped("no perf here")
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        with subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HZ), "-a", "-g",
                               "-o", str(tmp_path / "perf.data")], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
            with Recorder(output, "-a", "-F", HZ) as recorder:
                recorder.wait_attached()
                before = cpu_seconds(workload.pid)
                time.sleep(1.5)
                used = cpu_seconds(workload.pid) - before
                recorder.finish()
            other.send_signal(signal.SIGINT)
            other.wait(20)
    c = assert_accounted(output)
    assert spins(output) > 0.97 * HZ * used - c["not_delivered"], (used, c)


def test_beside_bpftrace(some_python, tmp_path):
    if not shutil.which("bpftrace"):
        say_skipped("no bpftrace here")
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        with subprocess.Popen(["bpftrace", "-e", "profile:hz:%d { @[kstack] = count(); }" % HZ],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
            with Recorder(output, "-a", "-F", HZ) as recorder:
                recorder.wait_attached()
                before = cpu_seconds(workload.pid)
                time.sleep(1.5)
                used = cpu_seconds(workload.pid) - before
                recorder.finish()
            other.send_signal(signal.SIGINT)
            other.wait(20)
    c = assert_accounted(output)
    assert spins(output) > 0.97 * HZ * used - c["not_delivered"], (used, c)


# --- --rotate ------------------------------------------------------------------------------------


def test_rotate(some_python, tmp_path):
    """Each file is complete; none of the samples is lost or twice at the seams."""
    with Workload(some_python, "chains.py", 600, 50) as workload:
        workload.ahead()
        workload.go()
        with Recorder(tmp_path / "x.pyebpf", "-p", workload.pid, "-F", 1999, "--rotate",
                      "1s") as recorder:
            recorder.wait_attached()
            time.sleep(3.4)
            recorder.finish()
            text = recorder.text()
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 4, paths
    files = [chunks.read(path) for path in paths]
    for path, file in zip(paths, files):
        assert file.is_finished and file.metadata[chunks.HAS_ENDED] == 1, path
        stacks = frames(export(path))
        assert {stack[0][0] for stack in stacks} == {"<module>"}, path
        assert not any(name == "<unknown>" for stack in stacks for name, _, _ in stack), path
        report = run("report", path)
        assert report.returncode == 0 and str(workload.pid) in report.stdout, report
    for file, following in zip(files, files[1:]):
        assert file.metadata[chunks.START_NS] + file.metadata[chunks.DURATION_NS] \
            == following.metadata[chunks.START_NS]
    total = {name: sum(file.counters[name] for file in files) for name in files[0].counters}
    samples = sum(file.samples for file in files)
    assert samples == total["recorded"] + total["task_work_recorded"], (samples, total)
    assert sum(sum(export(path).values()) for path in paths) == total["weight"]
    assert harness.summary_samples(text) == total["weight"], text
    assert str(paths[-1]) in text


def test_rotate_keep(some_python, tmp_path):
    with spinning(some_python) as workload:
        with Recorder(tmp_path / "x", "-p", workload.pid, "-F", HZ, "--rotate", "1s",
                      "--rotate-keep", 2) as recorder:
            recorder.wait_attached()
            time.sleep(3.4)
            recorder.finish()
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 2, paths
    for path in paths:
        assert spins(path) > 0.2 * HZ, path


@pytest.mark.parametrize("arguments,word", [
    (("--rotate-keep", "2"), "--rotate"),
    (("--rotate", "10s", "-o", "-"), "--output"),
    (("--rotate", "10s", "-o", "x.collapsed"), "--output"),
    (("--rotate", "10ms"), "--rotate"),
], ids=lambda value: "-".join(value) if isinstance(value, tuple) else None)
def test_rotate_usage(arguments, word, tmp_path):
    done = run("record", "-a", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and word in done.stderr, done
    assert not os.listdir(tmp_path)
