# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The profilers that are compared, each as it is started, switched and read."""
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import kernel
import recording

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
PYEBPF = os.path.abspath(os.environ.get("PYEBPF") or os.path.join(REPOSITORY, "build", "pyebpf"))
PATIENCE = 60  # seconds until a profiler that does not end is killed


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "pyebpf")


def loud(text):
    print("bench: *** %s ***" % text, file=sys.stderr, flush=True)


class Failed(Exception):
    """A profiler did not do its work; the text is what it said."""


def ignore_nothing():
    """In the child: a background shell has SIGINT ignored, which is inherited."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Run:
    """A profiler at work, with its output file. Killed at the end of the `with`."""

    def __init__(self, tool, command, output, prepare=None):
        """prepare: what the child does first."""
        self.tool = tool
        self.output = output
        self.log = output + ".log"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(output)
        self.started = time.monotonic()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, preexec_fn=prepare or ignore_nothing)
        self.pid = self.process.pid

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def fail(self):
        raise Failed("%s: %s" % (self.tool.name, " | ".join(self.text().split("\n")[-6:])[-300:]))

    def check(self):
        if self.process.poll() is not None:
            self.fail()

    def stop(self):
        """Ends it the ordinary way. Returns the most memory it had, also while it ended."""
        end = time.monotonic() + PATIENCE
        peak = kernel.peak_bytes(self.pid)
        self.process.send_signal(signal.SIGINT)
        while self.process.poll() is None:
            peak = max(peak, kernel.peak_bytes(self.pid))
            if time.monotonic() > end:
                self.process.kill()
            time.sleep(0.002)
        if not os.path.exists(self.output):
            self.fail()
        return peak

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()


class EventSwitch:
    """Off and on by the profiler's own perf events: the kernel's part and its own are gone."""

    settle = 0.005  # seconds from on to the steady state

    def __init__(self, run, target_pid):
        self.events = kernel.Events(run.pid)
        if not self.events.fds:
            run.fail()

    def switch(self, on):
        self.events.switch(on)

    def close(self):
        self.events.switch(True)
        self.events.close()


class StopSwitch:
    """Off and on by SIGSTOP and SIGCONT, never while it traces the target, which then would hang.

    Some then make up for the samples they missed; that is over after a while."""

    settle = 0.1

    def __init__(self, run, target_pid):
        self.run = run
        self.target_pid = target_pid

    def switch(self, on):
        if on:
            os.kill(self.run.pid, signal.SIGCONT)
            return
        end = time.monotonic() + 3
        while time.monotonic() < end:
            os.kill(self.run.pid, signal.SIGSTOP)
            while not kernel.is_stopped(self.run.pid):
                time.sleep(0.0002)
            if not kernel.is_traced(self.target_pid):
                return
            os.kill(self.run.pid, signal.SIGCONT)
            time.sleep(random.uniform(0.0002, 0.005))
        raise Failed("%s holds the target at all times" % self.run.tool.name)

    def close(self):
        self.switch(True)


def collapsed(path):
    """[(frames, count)] of "frame;frame;... count" lines."""
    samples = []
    with open(path, errors="replace") as f:
        for line in f:
            stack, _, count = line.rpartition(" ")
            if stack and not line.startswith("#"):
                samples.append((stack.split(";"), int(count)))
    return samples


class Tool:
    switch = StopSwitch
    samples_cpu_time = False  # of the target; else wall time

    def start(self, pid, hz, output, final=False):
        """final: in the form its users keep, which samples() need not be able to read."""
        return Run(self, self.command(pid, hz, output, final), output)


class Pyebpf(Tool):
    name = "pyebpf"
    switch = EventSwitch
    samples_cpu_time = True

    def __init__(self, program=PYEBPF):
        self.program = program

    def missing(self):
        if not os.path.exists(self.program):
            return "%s is not built" % self.program
        return None

    def command(self, pid, hz, output, final):
        which = ["-p", str(pid)] if pid else ["-a"]
        return [self.program, "record", *which, "-F", str(hz), "-o", output]

    def samples(self, run):
        done = subprocess.run([self.program, "export", "-f", "collapsed", "-o", run.output + ".collapsed",
                               run.output], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if done.returncode:
            raise Failed("pyebpf export: " + done.stdout[-300:])
        return collapsed(run.output + ".collapsed")

    def count(self, run):
        c = recording.counters(run.output)
        return c["recorded"] + c["task_work_recorded"]

    def lost_share(self, run):
        c = recording.counters(run.output)
        return c["not_delivered"] / max(1, c["not_delivered"] + c["weight"])


class PySpy(Tool):
    def __init__(self, *options):
        self.options = list(options)
        self.name = " ".join(("py-spy",) + options)
        self.program = os.path.join(cache_dir(), "bench-venv", "bin", "py-spy")
        if not os.path.exists(self.program):
            self.program = shutil.which("py-spy")

    def missing(self):
        return None if self.program else "py-spy is not installed"

    def command(self, pid, hz, output, final):
        return [self.program, "record", *self.options, "-r", str(hz), "-f", "raw", "-o", output,
                "-p", str(pid)]

    def samples(self, run):
        return collapsed(run.output)

    def lost_share(self, run):
        match = re.search(r"Samples: (\d+) Errors: (\d+)", run.text())
        if not match:
            return None
        samples, errors = map(int, match.groups())
        return errors / max(1, samples + errors)


class Austin(Tool):
    name = "austin"

    def __init__(self):
        self.program = os.path.join(cache_dir(), "bench-venv", "bin", "austin")
        if not os.path.exists(self.program):
            self.program = shutil.which("austin")

    def missing(self):
        if not self.program:
            return "austin is not installed"
        done = subprocess.run([self.program, "--version"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        return "austin does not run: " + done.stdout.strip() if done.returncode else None

    def command(self, pid, hz, output, final):
        return [self.program, "-i", "%dus" % (1000000 // hz), "-o", output, "-p", str(pid)]

    def samples(self, run):
        """Its count is a time; each line is a sample."""
        return [(frames, 1) for frames, _ in collapsed(run.output)]

    def lost_share(self, run):
        match = re.search(r"Error rate[^\d]*(\d+)/(\d+)", re.sub(r"\x1b\[[\d;]*m", "", run.text()))
        return int(match.group(1)) / max(1, int(match.group(2))) if match else None


class Sampling(Tool):
    """CPython 3.15's own: it samples its own version only, from another process."""

    name = "profiling.sampling"

    def __init__(self, python):
        self.python = python

    def missing(self):
        return None if self.python else "no python3.15 with profiling.sampling"

    def command(self, pid, hz, output, final):
        return self.python.command + ["-m", "profiling.sampling", "attach", "-r", str(hz),
                                      "--binary" if final else "--collapsed", "-o", output,
                                      str(pid)]

    def samples(self, run):
        return collapsed(run.output)

    def count(self, run):
        # Of its attempts ("Captured") some fail: what is in the file counts.
        match = re.search(r"written to .* \((\d+) samples\)", run.text())
        if not match:
            run.fail()
        return int(match.group(1))

    def lost_share(self, run):
        match = re.search(r"Error rate: ([\d.]+)", run.text())
        return float(match.group(1)) / 100 if match else None


class PerfFloor(Tool):
    """The price of the timer itself: perf record without stacks."""

    name = "perf record"
    switch = EventSwitch

    def missing(self):
        return None if shutil.which("perf") else "perf is not installed (package linux-perf)"

    def command(self, pid, hz, output, final):
        return ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(hz), "-o", output,
                "-p", str(pid)]


class Column:
    """A profiler on a target's interpreter."""

    def __init__(self, tool, python):
        self.tool = tool
        self.python = python
        self.is_ours = isinstance(tool, Pyebpf)
        self.title = "%s on 3.%d" % (tool.name, python.minor)


def find_sampling(pythons):
    """An interpreter with profiling.sampling that sees /proc: not one in a chroot."""
    for python in pythons:
        if python.minor == 15 and python.via != "chroot" and not python.free_threaded:
            done = subprocess.run(python.command + ["-m", "profiling.sampling", "--help"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode == 0:
                return python
    return None
