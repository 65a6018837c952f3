#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What labels add to the BPF time of a sample, of a stack of ten calls in a context of 20 other variables:
each kind in turn, round after round, beside samples without any; the least and the median of the rounds.
The program goes before all others meanwhile. Nothing is asserted: it prints.

    labels.py [--seconds N] [--rounds N] [PYTHON...]    the beginnings of interpreters' names
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import kernel

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("tools", "integration"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))
import harness  # noqa: E402
import packages  # noqa: E402
import pythons  # noqa: E402

HZ = 1999
PYTHONS = ["3.11.7-shared", "3.13.0-shared"]
KINDS = {"none": [], "a label that is not set": ["--label", "x=contextvar:nothing"],
         "a label": ["--label", "route=contextvar:route"],
         "two labels": ["--label", "route=contextvar:route", "--label", "user=contextvar:user"],
         "otel": ["--label", "otel"]}
SCRIPT = """
import contextvars
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

others = [contextvars.ContextVar("v%d" % i) for i in range(20)]
route, user = contextvars.ContextVar("route"), contextvars.ContextVar("user")
def down(depth):
    if depth: return down(depth - 1)
    print("READY", flush=True)
    while True: pass
for i, variable in enumerate(others): variable.set(i)
route.set("/orders"); user.set(90211)
with TracerProvider().get_tracer("bench").start_as_current_span("span"): down(8)
"""


def cpu_seconds(pid):
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0]) / 1e9


def sample_ns(pid, seconds, options, output):
    """BPF time by the samples that were due in the CPU time of the program meanwhile."""
    with harness.Recorder(output, "-q", "-p", pid, "-F", HZ, *options) as recorder:
        recorder.wait_attached()
        time.sleep(0.3)
        began, ns = cpu_seconds(pid), kernel.sampler_runs(recorder.process.pid)[1]
        time.sleep(seconds)
        ns = kernel.sampler_runs(recorder.process.pid)[1] - ns
        samples = (cpu_seconds(pid) - began) * HZ
        recorder.finish()
    return ns / samples


def measure(python, options):
    env = packages.environment(packages.folder_of(python, "opentelemetry"))
    found = {name: [] for name in KINDS}
    with subprocess.Popen([*python.command, "-c", SCRIPT], env=env, stdout=subprocess.PIPE) as process, \
            tempfile.TemporaryDirectory() as folder, kernel.bpf_stats():
        try:
            assert process.stdout.readline() == b"READY\n"
            with harness.ahead(process.pid):
                for _ in range(options.rounds):
                    for name, words in KINDS.items():
                        found[name].append(sample_ns(process.pid, options.seconds, words,
                                                     os.path.join(folder, "x.pyebpf")))
        finally:
            process.kill()
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("pythons", nargs="*", default=PYTHONS)
    options = parser.parse_args()
    print("%-16s %-26s %9s %9s %9s" % ("us a sample", "", "least", "median", "more"))
    for python in pythons.find_all():
        if not python.name.startswith(tuple(options.pythons)):
            continue
        found = measure(python, options)
        least = min(found["none"])
        for name, ns in found.items():
            print("%-16s %-26s %9.2f %9.2f %9.2f" % (
                python.name, name, min(ns) / 1e3, statistics.median(ns) / 1e3, (min(ns) - least) / 1e3),
                flush=True)


if __name__ == "__main__":
    main()
