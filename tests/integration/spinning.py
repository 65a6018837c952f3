# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that spin in workloads/spin.py's spin_here(), however they are started, and its samples."""
import contextlib
import os
import subprocess
import sys

import harness
import pytest
from harness import WORKLOADS, cpu_seconds, export, frames, leaf_counts

SCRIPT = os.path.join(WORKLOADS, "spin.py")
LEAF = ("spin_here", 9)  # its line in spin.py
HZ = 997


def say_skipped(reason):
    """A reason that must not be overlooked, beside the one in the summary."""
    print("SKIPPED: " + reason, file=sys.__stderr__, flush=True)
    pytest.skip(reason)


class Spinning:
    """A command that ends up in spin_here(); pid is that of the process that does, seen from here.

    The command may stay its parent (unshare -f, podman, a shell), then pid is found below it."""

    def __init__(self, *command, ready=True, **options):
        options["env"] = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **options.get("env") or {})
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.pid = self.process.pid
        if ready:
            self.expect_ready()

    def expect_ready(self):
        words = self.process.stdout.readline().decode().split()
        if words[:1] != ["READY"]:
            self.process.kill()
            raise AssertionError("%s: %s" % (self.process.args,
                                             self.process.stderr.read().decode()[-2000:]))
        self.inner_pid = int(words[1])
        leaves = [pid for pid in family(self.process.pid) if not children(pid)]
        self.pid = leaves[-1]

    def close(self):
        for pid in reversed(family(self.process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def children(pid):
    with contextlib.suppress(OSError), open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(word) for word in f.read().split()]
    return []


def family(pid):
    """A process and all below it, parents first."""
    found = [pid]
    for parent in found:
        found += children(parent)
    return found


FEWEST = 10  # samples that tell something
ENOUGH = 40  # of which one may be elsewhere


def record(folder, *arguments, seconds=0.3, **options):
    """(samples as {frames: count}, what record said) of a recording of this length, or of a longer
    one where others have the CPUs."""
    samples, text = record_once(folder, *arguments, seconds=seconds, **options)
    while 0 < sum(samples.values()) < ENOUGH and seconds < 8:
        seconds *= 4
        samples, text = record_once(folder, *arguments, seconds=seconds, **options)
    return samples, text


def record_once(folder, *arguments, seconds, wrapper=(), status=0):
    output = os.path.join(str(folder), "spinning.pyebpf")
    command = ("record", "-F", HZ, "-o", output, "-d", "%dms" % (seconds * 1000), *arguments)
    done = subprocess.run([str(word) for word in (*wrapper, harness.PYEBPF, *command)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=harness.PATIENCE, text=True)
    assert done.returncode == status, (done.returncode, done.stderr)
    return (frames(export(output)) if status == 0 else {}), done.stderr


def record_pid(folder, pid, seconds=0.3, **options):
    """Records one process and checks that its samples are the CPU time it used, by its clock."""
    before = cpu_seconds(pid)
    samples, text = record(folder, "-p", pid, seconds=seconds, **options)
    used = cpu_seconds(pid) - before
    total = sum(samples.values())
    assert total <= used * HZ + 4 * (used * HZ) ** 0.5 + 2, (total, used, text)
    assert_spins(samples, text)
    return samples


def assert_spins(samples, text="", least=0.95, leaf=LEAF, at_least=FEWEST):
    """At least this share of the samples is at this leaf."""
    counts = leaf_counts(samples)
    total = sum(counts.values())
    assert total >= at_least, (counts, text)
    assert counts.get(leaf, 0) >= least * total, (leaf, counts, text)


def pids(output):
    """PIDs of the processes that a recording shows."""
    return {ident for stack in export(output, "--processes")
            for kind, _, ident in stack.tags if kind == "process"}
