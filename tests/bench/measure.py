# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is measured, one function a measurement: a target, a profiler, numbers."""
import bisect
import contextlib
import json
import os
import random
import re
import statistics
import time

import kernel
from target import Target
from tools import Failed

START_SECONDS = 1.0    # a profiler that has started by then is at work
SAMPLER_INTERVAL_SECONDS = 0.05
WINDOW_SECONDS = 0.1
EDGE_SECONDS = 0.005   # of a window that is left out: the switch is not sharp
TRUST_SAMPLES = 256    # as in bpf/cache.h


def start_on(target, tool, hz, output, final=False):
    run = tool.start(target.pid, hz, output, final)
    time.sleep(START_SECONDS)
    return run


# --- Cost of the sampler -------------------------------------------------------------------------


def sampler_ns(python, tool, depth, hz, seconds, output):
    """BPF time a tick at a constant stack of that depth, every name already sent: the median of
    intervals, since other programs, and other virtual machines, take time in some of them."""
    means = []
    with kernel.bpf_stats(), Target(python, "shape.py", seconds + 4, "steady", depth) as target:
        with tool.start(target.pid, hz, output) as run:
            target.go()
            # 16 code objects are described in a sample: all of them within depth / 16 samples. Up to
            # 3.11 the TRUST_SAMPLES (bpf/cache.h) after that compare each name, which takes longer.
            time.sleep(0.5 + (2 * depth / 16 + 2 * TRUST_SAMPLES) / hz)
            run.check()
            before = kernel.sampler_runs(run.pid)
            for _ in range(round(seconds / SAMPLER_INTERVAL_SECONDS)):
                time.sleep(SAMPLER_INTERVAL_SECONDS)
                after = kernel.sampler_runs(run.pid)
                if after[0] > before[0]:
                    means.append((after[1] - before[1]) / (after[0] - before[0]))
                before = after
    if not means:
        raise Failed("no ticks in %g s" % seconds)
    return statistics.median(means)


def fit_line(points):
    """(intercept, slope) of [(x, y)], every point equally wrong in proportion to its y."""
    weights = [1 / (y * y) for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points)) / total
    slope = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points)) / \
        sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points))
    return mean_y - slope * mean_x, slope


# --- Slowdown and pauses -------------------------------------------------------------------------


class Toggled:
    """Ratios of ON windows to the OFF windows beside them, of one or more runs."""

    def __init__(self):
        self.wall = []
        self.cpu = []
        self.off_cpu = {True: [], False: []}  # seconds off the CPU in each unit of work
        self.wall_seconds = {True: 0.0, False: 0.0}

    def add(self, marks, windows):
        walls = [wall for wall, _ in marks]
        for pair in zip(windows[::2], windows[1::2]):
            spans = {}
            for on, start, end in pair:
                first, last = bisect.bisect_left(walls, start), bisect.bisect_left(walls, end) - 1
                if last > first:
                    spans[on] = marks[first:last + 1]
            if len(spans) < 2:
                continue
            a, b = [[(span[-1][i] - span[0][i]) / (len(span) - 1) for i in (0, 1)]
                    for span in (spans[True], spans[False])]
            self.wall.append(a[0] / b[0])
            self.cpu.append(a[1] / b[1])
            for on, span in spans.items():
                self.wall_seconds[on] += span[-1][0] - span[0][0]
                self.off_cpu[on] += [(y[0] - x[0]) - (y[1] - x[1])
                                     for x, y in zip(span, span[1:])]

    def off_cpu_share(self, on):
        return sum(self.off_cpu[on]) / self.wall_seconds[on]


def toggle(python, tool, hz, seconds, output, into, of_another=False):
    """Switches the profiler off and on within one run of the target: drift hits both alike.
    of_another: what it records is another process, which does nothing."""
    windows = []
    file = os.fdopen(os.memfd_create("marks"), "r")
    with contextlib.ExitStack() as stack:
        stack.enter_context(file)
        target = stack.enter_context(Target(python, "meter.py", seconds, file.fileno(),
                                            pass_fds=(file.fileno(),)))
        recorded = stack.enter_context(Target(python, "shape.py", seconds, "steady")) \
            if of_another else target
        with start_on(recorded, tool, hz, output) as run:
            run.check()
            switch = tool.switch(run, target.pid)
            target.go()
            end = time.perf_counter() + seconds - 0.4
            while time.perf_counter() < end:
                for on in random.sample((True, False), 2):
                    switch.switch(on)
                    time.sleep(switch.settle if on else EDGE_SECONDS)
                    start = time.perf_counter()
                    time.sleep(WINDOW_SECONDS)
                    windows.append((on, start, time.perf_counter()))
            switch.switch(False)
            target.truth()
            switch.close()
            run.check()
        file.seek(0)
        marks = json.load(file)
    into.add(marks, windows)


def interval(values, seed=1):
    """(median, low, high): 95 % by bootstrap."""
    rnd = random.Random(seed)
    medians = sorted(statistics.median(rnd.choices(values, k=len(values))) for _ in range(400))
    return statistics.median(values), medians[9], medians[390]


def ratio_interval(values, others):
    """The same of median(values) / median(others)."""
    rnd = random.Random(1)
    ratios = sorted(statistics.median(rnd.choices(values, k=len(values))) /
                    statistics.median(rnd.choices(others, k=len(others))) for _ in range(400))
    return statistics.median(values) / statistics.median(others), ratios[9], ratios[390]


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


# --- Stacks --------------------------------------------------------------------------------------

CHAIN_FRAME = re.compile(r"(?<![\w.])([ab])(\d+)(?!\w)")


def chain_of(frames):
    """[(letter, number)] of the frames of tests/workloads/chains.py in a stack."""
    return [(match.group(1), int(match.group(2)))
            for match in map(CHAIN_FRAME.search, frames) if match]


def is_torn(chain):
    """Whether the frames cannot have been on the stack together: root first, X0 to Xn."""
    return any(letter != chain[0][0] or number != i for i, (letter, number) in enumerate(chain))


class Stacks:
    """Sums over runs on the alternating chains."""

    def __init__(self):
        self.samples = self.torn = 0
        self.sampled_seconds = self.own_cpu = 0.0
        self.peak_bytes = self.kernel_bytes = 0
        self.lost = []


def alternate(python, tool, hz, period_us, seconds, output, into):
    with Target(python, "chains.py", seconds, period_us) as target:
        with start_on(target, tool, hz, output) as run:
            run.check()
            before = kernel.cpu_seconds(run.pid)
            start = time.monotonic()
            target.go()
            truth = target.truth()
            wall = time.monotonic() - start
            into.own_cpu += kernel.cpu_seconds(run.pid) - before
            into.kernel_bytes = max(into.kernel_bytes, kernel.bpf_bytes(run.pid))
            into.peak_bytes = max(into.peak_bytes, run.stop())
            into.sampled_seconds += truth["cpu"] if tool.samples_cpu_time else wall
            for frames, count in tool.samples(run):
                chain = chain_of(frames)
                if chain:
                    into.samples += count
                    into.torn += count * is_torn(chain)
            lost = tool.lost_share(run)
            if lost is not None:
                into.lost.append(lost)


# --- File ----------------------------------------------------------------------------------------


def file_size(python, tool, kind, hz, seconds, output):
    """(bytes, samples, peak memory) of one run, kept in the form its users keep."""
    with Target(python, "shape.py", seconds + START_SECONDS + 10, kind) as target:
        target.go()
        with start_on(target, tool, hz, output, final=True) as run:
            run.check()
            time.sleep(seconds)
            kernel_bytes = kernel.bpf_bytes(run.pid)
            peak = run.stop()
            return os.path.getsize(output), tool.count(run), peak + kernel_bytes


# --- Start ---------------------------------------------------------------------------------------

SLOT = re.compile(r"(?<!\w)slot_(\d+)")


def start_ms(python, tool, output, system_wide=False):
    """From its exec to its first sample, at 1 kHz."""
    seconds = 3.0
    with Target(python, "slots.py", seconds + 1) as target:
        origin = float(target.ready[0])
        with tool.start(0 if system_wide else target.pid, 1000, output) as run:
            time.sleep(seconds - 0.5)
            run.check()
            run.stop()
            slots = [int(match.group(1)) for frames, _ in tool.samples(run)
                     for match in map(SLOT.search, frames) if match]
        if not slots:
            raise Failed("%s: no sample within %g s" % (tool.name, seconds - 0.5))
        return (origin - run.started) * 1000 + min(slots)
