# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What can go wrong around a recording, and what is left of it then.

Each test also says what it saw, as a row of docs/faults.md (tools/fault_table.py)."""
import contextlib
import fcntl
import os
import random
import re
import shutil
import signal
import subprocess
import time

import chunks
import harness
import pytest
import truth as judge
from harness import (PYEBPF, Recorder, Workload, export, frames, leaf_counts, run, wait_until)
from spinning import cpu_seconds, say_skipped

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997
PART = 0.2  # of its time that a target spins which only has to be there


@contextlib.contextmanager
def spinning(python, share=PART):
    with Workload(python, "family.py", 600, "idle", *[share] * bool(share)) as workload:
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
    assert c["ticks"] <= c["expected"] + os.cpu_count(), c
    assert c["task_work"] + c["task_work_joined"] >= c["task_work_recorded"], c
    return c


def figures(c):
    """Where the ticks went, as far as they were the target's or were lost."""
    names = [("recorded", "recorded"), ("task_work_recorded", "recorded in task work"),
             ("ring_full", "lost: ring full"), ("task_work_ring_full", "lost: ring full (task work)"),
             ("skipped", "carried over by the time budget"),
             ("unknown_process", "lost: process not yet identified as Python"),
             ("thread_state_fault", "lost: Python thread state could not be read"),
             ("cpu_unwatched", "lost: on a CPU that had just come online"),
             ("not_delivered", "timer interrupt not delivered by the kernel")]
    return "%d ticks expected: " % max(c["ticks"], c["expected"]) + ", ".join(
        "%d %s" % (c[key], words) for key, words in names if c[key])


def complete(path):
    file = chunks.read(path)
    assert file.is_finished, path
    return "complete: %d samples" % file.samples


# --- Signals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
                         ids=["INT", "TERM", "HUP"])
def test_signal_writes_all(number, some_python, tmp_path, fault):
    output = tmp_path / "x.pyebpf"
    with spinning(some_python) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            before = cpu_seconds(workload.pid)
            time.sleep(0.4)
            used = cpu_seconds(workload.pid) - before
            status = recorder.stop(number)
    assert status == 0, recorder.text()
    c = assert_accounted(output)
    assert spins(output) > judge.least(HZ * used, c), (used, c)
    fault(number.name, "stops, writes the rest, prints the summary", status, complete(output),
          figures(c))


def test_sigusr1_writes_what_there_is(some_python, tmp_path, fault):
    """At once, and not at the next flush, which comes each second."""
    output = tmp_path / "x.pyebpf"
    with spinning(some_python, share=None) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            recorder.ahead()
            before = cpu_seconds(workload.pid)
            for least in (0.2, 0.4):
                wait_until(lambda: cpu_seconds(workload.pid) - before > least + 0.1, 30, "CPU time")
                recorder.process.send_signal(signal.SIGUSR1)
                # A flush alone does not write the counters for 10 s.
                wait_until(lambda: chunks.read(output).counters.get("recorded", 0) > least * HZ, 0.6,
                           "a snapshot")
                snapshot = spins(output)
                assert snapshot > least * HZ, chunks.read(output).counters
            recorder.finish()
    fault("SIGUSR1, twice", "writes what there is at once, goes on", 0, complete(output),
          "%d samples readable after the second; %s" % (snapshot, figures(assert_accounted(output))))


def test_closed_stderr(some_python, tmp_path, fault):
    output = tmp_path / "x.pyebpf"
    reading, writing = os.pipe()
    with spinning(some_python) as workload:
        process = subprocess.Popen([PYEBPF, "record", "-p", str(workload.pid), "-d", "300ms", "-F",
                                    str(HZ), "-o", str(output)], stderr=writing)
        os.close(writing)
        os.close(reading)
        status = process.wait(20)
    assert status == 0
    fault("SIGPIPE: nobody reads its stderr", "records on, to its end", status, complete(output),
          figures(assert_accounted(output)))


def test_closed_stdout(some_python, fault):
    """-o -: whoever reads the recording has gone."""
    with spinning(some_python) as workload:
        with subprocess.Popen([PYEBPF, "record", "-p", str(workload.pid), "-d", "30s", "-F", str(HZ),
                               "-o", "-"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            process.stdout.read(8)
            process.stdout.close()
            start = time.monotonic()
            status = process.wait(10)
            assert status == 0, process.stderr.read()
    fault("SIGPIPE: `-o -`, and its reader goes", "ends: a closed pipe is no error", status,
          "none: what the reader took", "ended after %.1f s of 30 s" % (time.monotonic() - start))


@contextlib.contextmanager
def piped(*arguments):
    """A recorder and the end of a pipe that its output goes to, with room for one page."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with open(reading, "rb", buffering=0) as pipe:
        process = subprocess.Popen([PYEBPF, "record", *map(str, arguments), "-o", "-"], stdout=writing,
                                   stderr=subprocess.PIPE)
        os.close(writing)
        try:
            yield process, pipe
        finally:
            process.kill()
            process.communicate()


def wait_until_full(process):
    """The first flush comes after a second, and is larger than the pipe."""
    wait_until(lambda: harness.has_events(process.pid), 30, "events")
    time.sleep(2)


@pytest.mark.parametrize("more", [(), ("-d", "1s")], ids=["while it records", "at its end"])
def test_reader_that_takes_nothing(more, some_python, fault):
    with spinning(some_python, share=None) as workload, piped("-p", workload.pid, "-F", 4999, *more) as (process, _):
        wait_until_full(process)
        start = time.monotonic()
        process.terminate()
        said, status = process.communicate(timeout=20)[1].decode(), process.returncode
        seconds = time.monotonic() - start
    assert status == 1 and said == "pyebpf record: write -: Connection timed out\n", said
    if not more:
        fault("SIGTERM while a pipe, `-o -`, is full and nobody reads it", "waits a second, ends, and says so",
              status, "none: what the reader took", "ended after %.1f s" % seconds)


def test_reader_that_is_slow_has_all(some_python, tmp_path):
    """Slower than a second for all of it, though it takes something all the time."""
    with spinning(some_python, share=None) as workload, piped("-p", workload.pid, "-F", 4999) as (process, pipe):
        wait_until_full(process)
        process.terminate()
        taken = b""
        for _ in range(5):
            taken += pipe.read(4096)
            time.sleep(0.4)
        taken += b"".join(iter(lambda: pipe.read(65536), b""))
        said, status = process.communicate(timeout=20)[1].decode(), process.returncode
    (tmp_path / "x.pyebpf").write_bytes(taken)
    assert status == 0, said
    assert_accounted(tmp_path / "x.pyebpf")


def is_short(done):
    """The recorder was killed before its first flush."""
    return done.returncode == 3 or (
        done.returncode == 1 and "cut off before its first sample" in done.stderr)


def kill_recorders(workload, folder, moments):
    """Kills recorders so many seconds after all of them had begun: (CPU seconds of the workload until each
    was killed, recorders)."""
    with contextlib.ExitStack() as stack:
        recorders = [stack.enter_context(Recorder(folder / ("%d.pyebpf" % i), "-p", workload.pid,
                                                  "-F", 199)) for i in range(len(moments))]
        for recorder in recorders:
            recorder.wait_attached()
        start, before, used = time.monotonic(), cpu_seconds(workload.pid), []
        for moment, recorder in zip(moments, recorders):
            time.sleep(max(0, start + moment - time.monotonic()))
            used.append(cpu_seconds(workload.pid) - before)
            assert recorder.stop(signal.SIGKILL) == -signal.SIGKILL
    assert len(os.listdir(folder)) == len(moments)
    return used, recorders


def missing(used, recorders):
    """How many seconds of samples each file is short of."""
    for seconds, recorder in zip(used, recorders):
        done = run("report", recorder.output)
        assert done.returncode == 0 or is_short(done), done
        yield seconds - spins(recorder.output) / 199 if done.returncode == 0 else seconds


def test_killed_at_any_moment(some_python, tmp_path, is_full, fault):
    """Readable up to the last second each time."""
    chance = random.Random(1)
    killed = []
    with spinning(some_python, share=None) as workload:
        for batch in range(20 if is_full else 1):
            folder = tmp_path / str(batch)
            folder.mkdir()
            moments = sorted(chance.uniform(0.05, 2.5) for _ in range(10))
            killed.append(kill_recorders(workload, folder, moments))
    short = [seconds for recorders in killed for seconds in missing(*recorders)]
    assert max(short) < 1.3, short
    fault("SIGKILL, %d times, after 0.05 to 2.5 s" % len(short), "is gone", -signal.SIGKILL,
          "readable each time, up to its last flush (one a second)",
          "the last %.2f s missing at most, %.2f s on average" % (
              max(short), sum(short) / len(short)))


def test_killed_while_it_starts(some_python, tmp_path, is_full, fault):
    """No file, or one that is read."""
    chance, count, absent = random.Random(2), 50 if is_full else 5, 0
    with spinning(some_python) as workload:
        for i in range(count):
            output = tmp_path / ("%d.pyebpf" % i)
            with Recorder(output, "-p", workload.pid) as recorder:
                time.sleep(chance.uniform(0, 0.3))
                recorder.stop(signal.SIGKILL)
            if not output.exists():
                absent += 1
                continue
            done = run("report", output)
            assert done.returncode == 0 or is_short(done), done
    fault("SIGKILL, %d times, in the first 0.3 s" % count, "is gone", -signal.SIGKILL,
          "none, or one that is read", "%d without a file, %d with one" % (absent, count - absent))


# --- The recorder cannot keep up -----------------------------------------------------------------


STOPPED = 0.68  # who draws the periods is stopped as well: the last one stays, within 30 % of the rate


@contextlib.contextmanager
def stopped(recorder, seconds):
    recorder.process.send_signal(signal.SIGSTOP)
    yield
    time.sleep(seconds)
    recorder.process.send_signal(signal.SIGCONT)


def test_full_ring(some_python, tmp_path, fault):
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
        + c["task_work_ring_full"] > judge.least(4999 * used, c, STOPPED), (used, c)
    fault("a ring of 64 KiB, 4,999 Hz, 200 frames deep, and the recorder stopped for 2 s",
          "counts what does not fit, goes on", 0, complete(output), figures(c))


def test_stopped_for_3_seconds(some_python, tmp_path, fault):
    """At an ordinary rate the ring holds what comes meanwhile."""
    output = tmp_path / "x.pyebpf"
    with spinning(some_python, share=None) as workload:
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
    assert spins(output) > judge.least(HZ * used, c, STOPPED), (used, c)
    fault("the recorder stopped for 3 s", "the ring holds what comes meanwhile", 0,
          complete(output), figures(c))


def test_no_space_left(some_python, tmp_path, fault):
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
        first, second = text.splitlines()
        assert "No space left" in first and "x.pyebpf" in first, text
        assert second == "try: df -h, then -o FILE on a file system with more space"
        shutil.copy(disk / "x.pyebpf", tmp_path)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    counts = leaf_counts(frames(export(tmp_path / "x.pyebpf")))
    left = sum(count for (name, _), count in counts.items() if name.startswith("f_"))
    assert left > 100
    fault("no space left (a tmpfs of 12 KiB)", "ends, and says which file", 1,
          "readable up to its last flush", "%d samples; said: %s" % (
              left, first.replace(str(disk), "/disk")))


# --- Crowds --------------------------------------------------------------------------------------


CROWDS = [("threads", 1000, 5000), ("processes", 300, 2000), ("forks", 500, 5000),
          ("execs", 200, 2000)]


@pytest.mark.parametrize("case,count,full_count", [
    pytest.param(*row, id=row[0], marks=pytest.mark.alone if row[0] == "execs" else ())
    for row in CROWDS])
def test_crowd(case, count, full_count, some_python, tmp_path, is_full, fault):
    output = tmp_path / "x.pyebpf"
    count = full_count if is_full else count
    target = ("-a",) if case == "execs" else None
    with Workload(some_python, "crowd.py", 2, case, count) as workload:
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
    slack = 4 * expected ** 0.5 + min(c["not_delivered"], judge.EXCUSE_MAX * expected)
    assert 0.93 * expected - slack <= got <= 1.05 * expected + slack, (got, expected, c)
    # one that execs while its tick is described takes the names along
    assert not c["ring_full"] and c["unnamed"] <= 0.005 * c["recorded"], c
    assert peak < 64 << 10, "%d KiB" % peak
    fault("%d %s" % (count, case), "records them", 0, complete(output),
          "%d samples where %.0f were due; %s; %.1f MiB of memory" % (
              got, expected, figures(c), peak / 1024))


# --- Others beside it ----------------------------------------------------------------------------


@contextlib.contextmanager
def running(*command):
    """Another program that is told to end by SIGINT."""
    with subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        try:
            yield other
            assert other.poll() is None, "%s ended by itself" % command[0]
            other.send_signal(signal.SIGINT)
            other.wait(harness.PATIENCE)
        finally:
            other.kill()


def record_beside(some_python, output, *command):
    """Records all of the machine while another profiler runs: the counters."""
    with running(*command) as other, spinning(some_python) as workload:
        wait_until(lambda: harness.has_events(other.pid), 20, "%s opens its events" % command[0])
        with Recorder(output, "-a", "-F", HZ) as recorder:
            recorder.wait_attached()
            before = cpu_seconds(workload.pid)
            time.sleep(1.5)
            used = cpu_seconds(workload.pid) - before
            recorder.finish()
    c = assert_accounted(output)
    found = spins(output)
    assert found > judge.least(HZ * used, c), (found, used, c)
    return "%d samples where %.0f were due; %s" % (found, HZ * used, figures(c))


@pytest.mark.alone
def test_beside_perf(some_python, tmp_path, fault):
    """Another profiler of the same event takes nothing away."""
    if not shutil.which("perf"):
        say_skipped("no perf here")
    output = tmp_path / "x.pyebpf"
    seen = record_beside(some_python, output, "perf", "record", "-q", "-e", "cpu-clock", "-F", HZ,
                         "-a", "-g", "-o", tmp_path / "perf.data")
    assert os.path.getsize(tmp_path / "perf.data") > 10000
    fault("`perf record -a` beside it", "records", 0, complete(output), seen)


@pytest.mark.alone
def test_beside_bpftrace(some_python, tmp_path, fault):
    if not shutil.which("bpftrace"):
        say_skipped("no bpftrace here")
    output = tmp_path / "x.pyebpf"
    seen = record_beside(some_python, output, "bpftrace", "-e",
                         "profile:hz:%d { @[kstack] = count(); }" % HZ)
    fault("bpftrace with a BPF program on the same clock beside it", "records", 0,
          complete(output), seen)


@pytest.mark.alone
def test_beside_another_pyebpf(some_python, tmp_path, fault):
    """Both see everything; neither records the other."""
    output, second = tmp_path / "x.pyebpf", tmp_path / "second.pyebpf"
    seen = record_beside(some_python, output, PYEBPF, "record", "-a", "-F", HZ, "-o", second)
    c = assert_accounted(second)
    assert spins(second) > judge.least(spins(output), c) > 0, c
    fault("two pyebpf at once, both `-a`", "both record", 0, complete(output) + "; the other: "
          + complete(second), seen)


# --- --rotate ------------------------------------------------------------------------------------


def test_rotate(some_python, tmp_path, fault):
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
    assert len(paths) >= 3, paths
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
    assert_sum_of_parts(paths, total["weight"])
    fault("`--rotate 1s`", "a new file each second", 0,
          "%d files, each complete by itself" % len(paths),
          "%s; samples of all files: %d" % (figures(total), samples))


def assert_sum_of_parts(paths, weight):
    """Read together, the files give what they give one by one."""
    parts = {}
    for path in paths:
        for stack, count in frames(export(path)).items():
            parts[stack] = parts.get(stack, 0) + count
    done = run("export", "-f", "collapsed", *paths)
    assert done.returncode == 0, done.stderr
    assert frames(harness.collapsed.parse(done.stdout)) == parts
    report = run("report", *paths)
    assert report.returncode == 0, report.stderr
    assert re.search(r"samples +%s of" % "{:,}".format(weight), report.stdout), report.stdout


def test_rotate_keeps_the_names_of_short_lives(some_python, tmp_path):
    """Processes that begin, are sampled and end while a file is closed: named in the next one."""
    with Workload(some_python, "halves.py", "forks", 600, 2) as workload:
        with Recorder(tmp_path / "x.pyebpf", "-p", workload.pid, "-F", 4999, "--rotate",
                      "1s") as recorder:
            recorder.wait_attached()
            workload.go()
            workload.truth()
            recorder.finish()
    files = sorted(tmp_path.glob("x-*.pyebpf"))
    assert len(files) >= 3, files
    for path in files:
        unknown = {stack: count for stack, count in frames(export(path)).items()
                   if any(name == "<unknown>" for name, _, _ in stack)}
        assert not unknown, (path.name, unknown)


def test_rotate_keep(some_python, tmp_path, fault):
    with spinning(some_python) as workload:
        with Recorder(tmp_path / "x", "-p", workload.pid, "-F", HZ, "--rotate", "2s",
                      "--rotate-keep", 2) as recorder:
            seen = set()

            def has_rotated_twice():
                seen.update(os.listdir(tmp_path))
                return len(seen) == 3

            wait_until(has_rotated_twice, 20, "the third file")
            time.sleep(1)
            recorder.finish()
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 2, paths
    counts = [spins(path) for path in paths]
    assert min(counts) > 0, counts
    # A tick at the seam may be counted in one file and recorded in the next: test_rotate adds up.
    assert all(chunks.read(path).is_finished for path in paths)
    fault("`--rotate 2s --rotate-keep 2`, ended in the third file", "removes the oldest", 0,
          "the last 2 files, each complete by itself", "%d and %d samples" % tuple(counts))


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
