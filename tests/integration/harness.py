# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs workloads and pyebpf beside them."""
import contextlib
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import collapsed

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
WORKLOADS = os.path.join(os.path.dirname(HERE), "workloads")
PYEBPF = os.path.abspath(os.environ.get("PYEBPF") or os.path.join(REPOSITORY, "build", "pyebpf"))
POLLS = {"x86_64": ("7", "271"), "aarch64": ("73",)}[os.uname().machine]  # poll(), ppoll()
SEED = os.environ.get("PYEBPF_SEED", "0")  # tests/run.py sets the commit
PATIENCE = 60  # seconds after which a process that should have ended is killed: a failure


def draw(found, count, name):
    """Draws `count` of the list, in its order. The seed and the test's name decide: a commit always draws
    the same ones, and other commits draw others."""
    chosen = random.Random("%s %s" % (SEED, name)).sample(range(len(found)), min(count, len(found)))
    return [found[i] for i in sorted(chosen)]


def wait_until(fact, seconds, what):
    end = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > end:
            raise AssertionError("%s: not within %d s" % (what, seconds))
        time.sleep(0.01)


def stage(python, name, folder, source=WORKLOADS):
    """The path of a workload (of a file below `source`) as the interpreter sees it; copied with those it
    may import below the interpreter's root where that has one."""
    if not python.root:
        return os.path.join(source, name)
    target = os.path.join(python.root, "tmp", os.path.basename(folder))
    shutil.copytree(source, target, dirs_exist_ok=True)
    return os.path.join("/tmp", os.path.basename(folder), name)


def unstage(python, folder):
    if python.root:
        shutil.rmtree(os.path.join(python.root, "tmp", os.path.basename(folder)),
                      ignore_errors=True)


def go_ahead(pid=0):
    """Schedules a process that mostly waits before all other programs, so that its times depend on itself. Without
    a PID: the caller, as preexec_fn of such a process."""
    if os.cpu_count() > 1:
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))


def one_ahead():
    """For a process of one thread that goes before all other programs, so that what it gets of a CPU
    does not depend on them: another CPU is left for the recorder, and so it is one at a time on
    this machine. What is returned is to be closed when the process has ended."""
    lock = open(os.path.join(tempfile.gettempdir(), "pyebpf-test-ahead"), "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def ahead(pid):
    """The same for a process that is there."""
    lock = one_ahead()
    go_ahead(pid)
    return lock


class Skipped(Exception):
    """The workload says that this interpreter cannot do this."""


class Workload:
    """One workload: READY on start, then go(), truth(), exit().

    command: what stands before its path and arguments, instead of the interpreter's command; or a
    function of [path, argument...] that gives the whole command."""

    def __init__(self, python, name, *arguments, ready=True, command=None, env=None):
        self.python = python
        self.folder = tempfile.mkdtemp(prefix="pyebpf-test-")
        words = [stage(python, name, self.folder), *map(str, arguments)]
        self.command = command(words) if callable(command) else (command or python.command) + words
        self.errors = tempfile.TemporaryFile()
        clean = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONIOENCODING="utf-8",
                     LC_ALL="C.UTF-8")
        for key in ("PYTHONHOME", "PYTHONPATH"):
            clean.pop(key, None)
        self.process = subprocess.Popen(self.command, env=dict(clean, **env or {}),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors)
        self.pid = self.process.pid
        self.stack = contextlib.ExitStack()  # closed when it has ended
        self.watchdog = threading.Timer(PATIENCE * 4, self.process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()
        if ready:
            self.expect_ready()

    def line(self):
        line = self.process.stdout.readline().decode()
        if line.startswith("SKIP"):
            self.close()
            raise Skipped(line[5:].strip())
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise AssertionError("%s ended with %s: %s" % (
                self.command, self.process.returncode, self.errors.read().decode()[-2000:]))
        return line

    def expect_ready(self):
        assert self.line() == "READY\n"

    def go(self, word="GO"):
        self.process.stdin.write(word.encode() + b"\n")
        self.process.stdin.flush()

    def ahead(self):
        self.stack.enter_context(ahead(self.pid))

    def truth(self):
        return json.loads(self.line())

    def exit(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(b"EXIT\n")
            self.process.stdin.flush()
        self.process.wait(PATIENCE)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.stack.close()
        self.watchdog.cancel()
        self.process.stdin.close()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        unstage(self.python, self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(BrokenPipeError):
            self.close()


def run(*arguments, timeout=PATIENCE, **options):
    """pyebpf, to its end: CompletedProcess with text. Never waits for input."""
    return subprocess.run([PYEBPF, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                          encoding="utf-8", errors="surrogateescape", **options)


@contextlib.contextmanager
def on_terminal(command, **options):
    """(process, bytearray): its stdin and stdout are a terminal, of which a thread reads into the bytearray; it is
    not waited for."""
    leader, follower = os.openpty()
    process, written = subprocess.Popen(list(map(str, command)), stdin=follower, stdout=follower, **options), bytearray()
    os.close(follower)

    def drain():
        with contextlib.suppress(OSError):  # as it is at its end
            while True:
                written.extend(os.read(leader, 1 << 16))

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield process, written
    finally:
        process.kill()
        reader.join()
        os.close(leader)


def has_events(pid):
    """Whether the process has perf events open: it samples."""
    with contextlib.suppress(OSError):
        for fd in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(OSError):
                if "perf_event" in os.readlink("/proc/%d/fd/%s" % (pid, fd)):
                    return True
    return False


def is_polling(pid):
    """Whether the process waits in poll(), as record does once it has started."""
    with contextlib.suppress(OSError), open("/proc/%d/syscall" % pid) as f:
        return f.read().split()[0] in POLLS
    return False


def cpu_seconds(pid):
    """Returns the CPU time of the first thread."""
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0]) / 1e9


class Recorder:
    """`pyebpf record` in the background, with its output file."""

    def __init__(self, output, *arguments, **options):
        self.output = str(output)
        self.stdout = tempfile.TemporaryFile()
        self.stderr = tempfile.TemporaryFile()
        self.command = [PYEBPF, "record", "-o", self.output, *map(str, arguments)]
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                        stdout=self.stdout, stderr=self.stderr, **options)

    def text(self):
        self.stdout.seek(0)
        self.stderr.seek(0)
        return (self.stdout.read() + self.stderr.read()).decode("utf-8", "replace")

    def wait_attached(self):
        """Until it samples: its events are open, and it waits for what they bring, or has had a second of CPU
        time since (it may have work whenever one looks). On a busy machine it comes to that late."""
        pid, opened = self.process.pid, []

        def is_there():
            if self.process.poll() is not None:
                raise AssertionError("%s ended with %d: %s" % (
                    " ".join(self.command), self.process.returncode, self.text()))
            if not opened and has_events(pid):
                opened.append(cpu_seconds(pid))
            return opened and (is_polling(pid) or cpu_seconds(pid) > opened[0] + 1)
        wait_until(is_there, PATIENCE, "pyebpf record samples")

    def ahead(self):
        """Before all other programs, for tests that say when it does something; it waits mostly."""
        go_ahead(self.process.pid)

    def wait(self):
        """Its exit status."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError("%s does not end: %s" % (" ".join(self.command), self.text()))

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.wait()

    def finish(self):
        """Ends it the ordinary way, which must succeed."""
        assert self.stop() == 0, self.text()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def make_recording(name, path, *arguments):
    """One of those that tests/golden/NAME.c makes and tells of."""
    subprocess.run([os.path.join(os.path.dirname(PYEBPF), "tests", name), path,
                    *map(str, arguments)], check=True)
    return path


def export(recording, *arguments):
    """{Stack: count} of a recording. Frames of markers alone (no file) stay in."""
    done = run("export", "-f", "collapsed", *arguments, recording)
    assert done.returncode == 0, done.stderr
    return collapsed.parse(done.stdout,
                           tags="--threads" in arguments or "--processes" in arguments)


def frames(stacks):
    """{frames as plain tuples: count}."""
    plain = {}
    for stack, count in stacks.items():
        key = tuple(map(tuple, stack.frames))
        plain[key] = plain.get(key, 0) + count
    return plain


def record_to(output, workload, hz, *arguments):
    """Records a workload from before GO to after its truth: (truth, summary)."""
    with Recorder(output, "-p", workload.pid, "-F", hz, *arguments) as recorder:
        recorder.wait_attached()
        workload.go()
        truth = workload.truth()
        recorder.finish()
        return truth, recorder.text()


def record_whole(workload, folder, hz, *arguments):
    """(truth, {frames: count}, summary)."""
    output = os.path.join(str(folder), "whole.pyebpf")
    truth, text = record_to(output, workload, hz, *arguments)
    return truth, frames(export(output)), text


def leaf_counts(samples):
    """{(leaf's name, leaf's line): count}; a marker at the leaf gives (marker, 0)."""
    counts = {}
    for stack, count in samples.items():
        key = (stack[-1][0], stack[-1][2]) if stack else ("", 0)
        counts[key] = counts.get(key, 0) + count
    return counts


def summary_samples(text):
    """The number of samples in record's summary, or None if it does not say."""
    match = re.search(r"([\d,_ ]*\d)\s+samples", text)
    return int(re.sub(r"\D", "", match.group(1))) if match else None
