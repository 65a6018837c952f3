# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Targets whose files do not answer, as those on a network mount that hangs, that are stopped, or end
while they are looked at: they hold up nobody but whoever asked for them."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest
import truth as judge
from harness import HERE, PYEBPF, WORKLOADS, Recorder, Workload, export, run, wait_until
from spinning import cpu_seconds

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997


class Mount:
    """The program on a file system of our own; hang() stops that, and starts it again."""

    def __init__(self, program, folder):
        self.folder = str(folder)
        os.makedirs(self.folder)
        self.server = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "fuse_server.py"), program, self.folder],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.server.stdout.readline() != b"READY\n":
            pytest.skip("no file system of our own: %s" % self.server.stderr.read().decode())
        self.program = os.path.join(self.folder, "file")

    def hang(self):
        self.server.stdin.write(b"\n")
        self.server.stdin.flush()
        assert self.server.stdout.readline() == b"OK\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.kill()  # what waits for it goes on
        self.server.wait()
        subprocess.run(["umount", "-l", self.folder], check=False)


@pytest.fixture
def static_python():
    for path in ("/usr/bin/python3.11", "/usr/bin/python3.13"):
        if os.path.exists(path):
            return path
    pytest.skip("no interpreter that brings its library with it")


@contextlib.contextmanager
def hanging(static_python, tmp_path):
    """(mount, PID) of a Python that spins, and whose program's file does not answer any more."""
    with Mount(static_python, tmp_path / "mount") as mount:
        env = dict(os.environ, PYTHONHOME="/usr", PYTHONDONTWRITEBYTECODE="1")
        with subprocess.Popen([mount.program, os.path.join(WORKLOADS, "spin.py")], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout.readline().startswith(b"READY"), "it does not run"
                mount.hang()
                yield mount, process.pid
            finally:
                process.kill()


@contextlib.contextmanager
def stopped(python):
    """A Python that spun, and does nothing any more."""
    with subprocess.Popen([python, os.path.join(WORKLOADS, "spin.py")], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline().startswith(b"READY")
            process.send_signal(signal.SIGSTOP)
            yield
        finally:
            process.kill()


@contextlib.contextmanager
def dying(python):
    """Pythons one after the other, each of which ends in the midst of its start."""
    loop = "while :; do timeout -s KILL 0.02 %s -S -c 'while True: pass'; done" % python
    with subprocess.Popen(["/bin/sh", "-c", loop], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as shell:
        try:
            yield
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


@pytest.mark.parametrize("others", ["hanging", "stopped", "dying"])
def test_whoever_runs_beside_is_recorded(others, static_python, some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    beside = {"hanging": lambda: hanging(static_python, tmp_path),
              "stopped": lambda: stopped(static_python), "dying": lambda: dying(static_python)}
    with beside[others](), Workload(some_python, "family.py", 1, "concurrent", 4) as workload:
        with Recorder(output, "-a", "-F", HZ) as recorder:
            recorder.wait_attached()
            workload.go()
            truth = workload.truth()
            began = time.monotonic()
            recorder.finish()
            assert time.monotonic() - began < 2
    got, threads = {}, {}
    for stack, count in export(output, "--processes", "--threads").items():
        tags = {kind: (name, ident) for kind, name, ident in stack.tags}
        if tags["process"][1] == workload.pid:
            function = stack.frames[-1].name
            got[function] = got.get(function, 0) + count
            threads.setdefault(function, set()).add(tags["thread"][0])
    for function, cpu in truth["cpu"].items():
        assert got.get(function, 0) > judge.least(HZ * cpu, {"not_delivered": 0}), (got, truth)
        assert any(name.startswith("Thread-") for name in threads[function]), threads


CROWD = 64  # as many as there are readers (WORKERS_MAX)
RESTS = "import time\nprint('READY', flush=True)\nwhile True: sum(range(10000)); time.sleep(0.2)"
WORK = """
import time
def beside_a_crowd(end):
    while time.process_time() < end: sum(range(1000))
beside_a_crowd(0.4)
"""


@contextlib.contextmanager
def crowd_of_nobody(program):
    """Processes of one user, whose program is about to hang."""
    processes = [subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "-S", "-c", RESTS],
                                  env=dict(os.environ, PYTHONHOME="/usr"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                 for _ in range(CROWD)]
    try:
        for process in processes:
            assert process.stdout.readline() == b"READY\n"
        yield
    finally:
        for process in processes:
            process.kill()


@pytest.mark.alone
def test_a_user_whose_processes_hang_holds_up_no_other(static_python, tmp_path):
    """A program that is new, of another user, is identified while as many hang as there are readers."""
    with open("/proc/self/cgroup") as f:
        if re.search("[0-9a-f]{64}", f.read()):
            pytest.skip("all is of one container here")
    output, program = tmp_path / "x.pyebpf", shutil.copy(static_python, tmp_path / "fresh")
    folder = tempfile.mkdtemp(prefix="pyebpf-test-")
    os.chmod(folder, 0o755)
    with Mount(static_python, os.path.join(folder, "mount")) as mount, crowd_of_nobody(mount.program):
        mount.hang()
        try:
            with Recorder(output, "-a", "-F", HZ) as recorder:
                recorder.wait_attached()
                wait_until(lambda: recorder.text().count("timed out") >= 3, 30, "three are named")
                work = subprocess.run([program, "-S", "-E", "-c", WORK], env=dict(os.environ, PYTHONHOME="/usr"), check=False)
                recorder.finish()
                text = recorder.text()
        finally:
            mount.server.kill()
    assert work.returncode == 0
    found = sum(count for stack, count in export(output).items()
                if any(frame[0] == "beside_a_crowd" for frame in stack.frames))
    assert found > 0.5 * HZ * 0.4, (found, text)


def test_named_one_is_refused(static_python, tmp_path):
    with hanging(static_python, tmp_path) as (_, pid):
        done = run("record", "-p", pid, "-d", "1s", "-o", tmp_path / "x.pyebpf", timeout=30)
    assert done.returncode == 3, done
    assert re.search(r"pid %d: reading its memory or files timed out" % pid, done.stderr), done


READS = """
import os, sys, threading
fd = os.open(sys.argv[1], os.O_RDONLY)
def reads(): os.pread(fd, 1, 4 << 20)  # far from what was read ahead
os.pread(fd, 1, 0)
print("READY", flush=True)
sys.stdin.readline()
for _ in range(2):
    threading.Thread(target=reads, name="reads", daemon=True).start()
sys.stdin.readline()
"""


def letters(pid):
    """The states of its threads, as the kernel calls them."""
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/stat" % (pid, tid)) as f:
            yield f.read().rpartition(")")[2].split()[0]


def test_dump_of_threads_that_hang_there(static_python, some_python, tmp_path):
    """One waits for the answer, the other for the same page: uninterruptible, until it is killed."""
    with Mount(static_python, tmp_path / "mount") as mount:
        with subprocess.Popen([*some_python.command, "-c", READS, mount.program], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                assert process.stdout.readline() == "READY\n"
                mount.hang()
                process.stdin.write("\n")
                process.stdin.flush()
                wait_until(lambda: "D" in letters(process.pid), 20, "one is uninterruptible")
                done = run("dump", "--json", "-p", process.pid, timeout=30)
                text = run("dump", "-p", process.pid, timeout=30)
            finally:
                process.kill()
                mount.server.kill()  # it ends when its requests do
    assert done.returncode == text.returncode == 0, (done.stderr, text.stderr)
    threads = [thread for thread in json.loads(done.stdout)["processes"][0]["threads"]
               if thread["name"] == "reads"]
    assert len(threads) == 2
    for thread in threads:
        assert thread["state"] == "blocked" and thread["is_consistent"], thread
        assert (thread["wait"], thread["file"]) == ("read: file", mount.program), thread
        assert thread["frames"][-1]["name"] == "reads" and thread["frames"][-1]["line"] == 4
    assert '"reads"' in text.stdout and "read: file, fd " in text.stdout, text.stdout


def test_dump_of_one_whose_program_hangs(static_python, tmp_path):
    with hanging(static_python, tmp_path) as (mount, pid):
        one, all = run("dump", "-p", pid, timeout=60), run("dump", "-a", timeout=120)
        doctor = run("doctor", "-p", pid, timeout=60)
        mount.server.kill()
    words = "pid %d: reading its memory or files timed out" % pid
    for done in (one, doctor):
        assert done.returncode == 3 and words in done.stderr, done
    assert words in all.stderr, all.stderr  # and others are looked at


def test_a_command_whose_file_hangs_is_named(static_python, tmp_path):
    with Mount(static_python, tmp_path / "mount") as mount:
        assert os.access(mount.program, os.X_OK)  # the kernel keeps that
        mount.hang()
        with subprocess.Popen([PYEBPF, "record", "-o", tmp_path / "x.pyebpf", "--", mount.program, "-c", "pass"],
                              stderr=subprocess.PIPE, text=True) as recorder:
            said = recorder.stderr.readline()  # after a second
            mount.hang()  # no more
            recorder.communicate(timeout=60)
    assert said.startswith("pyebpf: warning: %s: reading its memory or files timed out" % mount.program), said


def test_it_is_recorded_once_it_answers(static_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with hanging(static_python, tmp_path) as (mount, pid):
        with Recorder(output, "-a", "-F", HZ) as recorder:
            recorder.wait_attached()
            time.sleep(0.5)
            mount.hang()  # no more
            before = cpu_seconds(pid)
            wait_until(lambda: cpu_seconds(pid) > before + 1.5, 60, "it has run")
            recorder.finish()
        tags = export(output, "--processes")
    got = sum(count for stack, count in tags.items()
              if stack.tags[0][2] == pid and stack.frames[-1][0] == "spin_here")
    assert got > 0.5 * HZ, (got, tags)  # of 1.5 s: it may be looked at a second later
