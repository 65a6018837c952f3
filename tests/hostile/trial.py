# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One attack under one command: what happens, and whether that is all right."""
import collections
import contextlib
import os
import re
import signal
import subprocess
import threading
import time

import chunks
import collapsed
import commands
import truth
from scene import HONEST_LEAF, status_kib, waited_for_cpu
from spinning import cpu_seconds

REPORTS = re.compile(r"Sanitizer|runtime error: |BUG: ")
END_SECONDS = 2  # from SIGTERM, but for what it waits for a CPU
RECORDER_NICE = -15  # what is asked for is its own time, not what a busy machine leaves it
PATIENCE = 40  # seconds until what hangs is killed: a failure
PEAK_KIB = 256 << 10
SANITIZED = 4  # times the time and memory, of a build with sanitizers
HONEST_SHARE = 0.95

Outcome = collections.namedtuple("Outcome", "failures status end_seconds peak_kib honest_got honest_due lost")


class Watch(threading.Thread):
    """Follows a process: the most memory it had, and how long it waited for a CPU."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak_kib, self.waited, self.is_over = pid, 0, 0.0, threading.Event()

    def run(self):
        while not self.is_over.wait(0.02):
            self.peak_kib = max(self.peak_kib, status_kib(self.pid, "VmHWM"))
            self.waited = max(self.waited, waited_for_cpu(self.pid))


def honest_samples(program, recording, pid):
    """Samples of the honest process in its function, without parsing others: circles of frames give
    stacks of 4,096."""
    process = subprocess.Popen([program, "export", "-f", "collapsed", "--processes", recording],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    count = 0
    with process.stdout:
        for line in process.stdout:
            line = line.decode("utf-8", "surrogateescape")
            if f"({pid})" in line[:60]:
                path, _, number = line.rpartition(" ")
                if collapsed.parse_frame(path.rpartition(";")[2]).name == HONEST_LEAF:
                    count += int(number)
    process.wait()
    return count


class Trial:
    def __init__(self, attack, command, scene, programs, seconds):
        self.attack, self.scene, self.seconds = attack, scene, seconds
        self.command_class = commands.COMMANDS[command]
        self.program = programs["plain" if attack.is_plain else "sanitized"]
        self.is_sanitized = self.program != programs["plain"]
        self.plain = programs["plain"]
        self.failures, self.lost = [], []
        self.got = self.due = 0

    def fail(self, text):
        self.failures.append(text)

    def run(self):
        with self.scene as scene:
            honest = scene.honest()
            self.attack.start(scene)
            command = self.command_class(scene, self.program, [*scene.pids, honest.pid],
                                         self.attack.prefix)
            scene.stack.callback(command.close)
            outcome = self.record(command, honest.pid)
        return outcome

    def record(self, command, honest_pid):
        command.start(**self.attack.options(self.scene))
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, command.process.pid, RECORDER_NICE)
        watch = Watch(command.process.pid)
        watch.start()
        if not self.attack.is_at_start:
            command.wait_ready()
        before = cpu_seconds(honest_pid)
        with contextlib.suppress(ProcessLookupError):
            self.attack.during(self.scene, command.process, self.seconds)
        used = cpu_seconds(honest_pid) - before
        end_seconds = self.end(command, watch)
        watch.is_over.set()
        self.judge(command, watch, end_seconds)
        self.judge_output(command, honest_pid, used)
        return Outcome(self.failures, command.process.returncode, end_seconds, watch.peak_kib, self.got,
                       self.due, "; ".join(dict.fromkeys(self.lost)))

    def end(self, command, watch):
        """Seconds from SIGTERM to its end, without those that others had the CPUs for."""
        began, waited = time.monotonic(), watch.waited
        if command.process.poll() is None:
            command.process.send_signal(self.attack.last_signal(self.scene))
        try:
            command.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.fail(f"does not end within {PATIENCE} s of SIGTERM")
            command.process.kill()
            command.process.wait()
        return max(time.monotonic() - began - (watch.waited - waited), 0)

    def judge(self, command, watch, end_seconds):
        factor = SANITIZED if self.is_sanitized else 1
        text, status = command.text() + command.reports(), command.process.returncode
        if status not in (self.attack.statuses or command.statuses):
            self.fail(f"exit code {status}")
        if end_seconds > END_SECONDS * factor:
            self.fail(f"ends {end_seconds:.1f} s after SIGTERM")
        if watch.peak_kib > PEAK_KIB * factor:
            self.fail(f"{watch.peak_kib} KiB of memory")
        if REPORTS.search(text):
            self.fail("a sanitizer's report")
        if self.attack.says and not re.search(self.attack.says, text):
            self.fail(f"does not say {self.attack.says!r}")
        if self.failures:
            self.failures.append(text[-6000:])

    def judge_output(self, command, honest_pid, used):
        recordings = command.recordings()
        for path in recordings:
            done = subprocess.run([self.program, "report", path], check=False, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            said = done.stdout.decode("utf-8", "replace")
            if REPORTS.search(said) or done.returncode not in (0, 3) and not self.is_cut(said):
                self.fail(f"report ends with {done.returncode}: {said[-2000:]}")
            self.lost += [" ".join(line.split()[1:]) for line in said.splitlines() if line.startswith("lost ")]
        if command.judges_honest and command.process.returncode == 0 and not recordings:
            self.fail("exit code 0, and no recording")
        elif self.attack.is_honest_judged and command.judges_honest and command.process.returncode == 0:
            self.judge_honest(recordings[0], honest_pid, used)
        if self.attack.is_honest_judged and command.said_of_honest() is False:
            self.fail(f"the honest process is not shown: {command.text()[-2000:]}")

    def is_cut(self, said):
        """Of a recorder that could not write on."""
        return self.attack.is_cut and "cut off before its first sample" in said

    def judge_honest(self, recording, pid, used):
        counters = chunks.read(recording).counters
        self.got = honest_samples(self.plain, recording, pid)
        self.due = max(round(used * commands.HZ) - counters["cpu_unwatched"], 0)
        least = truth.least(self.due, counters, HONEST_SHARE)
        if self.got < least:
            self.fail(f"{self.got} samples of the honest process, {self.due} due, {least:.0f} at least: "
                      f"{self.lost}")


def send_signals(process, chance, numbers, seconds):
    """At random moments."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(chance.uniform(0, 0.2))
        process.send_signal(chance.choice(numbers))
    process.send_signal(signal.SIGCONT)
