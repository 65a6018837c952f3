#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs every fuzz target of a libFuzzer build for some time each, beginning with its corpus.

    fuzz.py [--seconds=N | --total=N] [--jobs=N] [--junit=FILE] BUILD [TARGET...]

--seconds is the time of each by the clock, --total the CPU time of all together, split evenly. A corpus
TARGET_... is TARGET's as well. As many at a time as there are CPUs, or --jobs. What a target learned is kept
below BUILD/fuzz/TARGET and used the next time; an input that fails is left in BUILD/fuzz as TARGET-crash-...,
and belongs into tests/fuzz/corpus/TARGET once it is mended. Ends with a table. Exit status 1 if one failed.
"""
import argparse
import concurrent.futures
import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
INPUT_SECONDS, INPUT_MIB = 25, 3000  # that one input may take: seconds of CPU time

INTERRUPTED = 72  # libFuzzer's exit status at SIGINT


class Result:
    """What a target did, in libFuzzer's own words: 0 where it did not come to say them."""

    def __init__(self, name, status, said, seconds, cpu_seconds):
        def last(pattern, default=0):
            return int((re.findall(pattern, said) or [default])[-1])

        self.name, self.seconds, self.cpu_seconds = name, seconds, cpu_seconds
        self.inputs = last(r"stat::number_of_executed_units: (\d+)")
        self.edges = last(r" cov: (\d+)")
        self.new_edges = self.edges - last(r"INITED cov: (\d+)", self.edges)
        self.new_inputs = last(r"stat::new_units_added: +(\d+)")
        # A slow one is slow by the clock, which is no fault on a busy machine.
        self.found = [path for path in re.findall(r"Test unit written to (\S+)", said)
                      if "-slow-unit-" not in path]
        self.said = said[-4000:] if status not in (0, INTERRUPTED) else None

    def add(self, more):
        """What it did when it was started again."""
        for name in ("seconds", "cpu_seconds", "inputs", "new_edges", "new_inputs"):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        self.edges, self.found, self.said = more.edges, more.found, more.said


def command_of(program, folder, name, seconds):
    return [program, f"-timeout={INPUT_SECONDS}", f"-rss_limit_mb={INPUT_MIB}",
            f"-artifact_prefix={folder / name}-", "-print_final_stats=1",
            *([f"-max_total_time={seconds}"] if seconds else []),
            folder / name, CORPUS / name, *sorted(CORPUS.glob(name + "_*"))]


def takes_too_long(program, path):
    """libFuzzer's timeout is by the clock, which runs on where others have the CPUs."""
    process = subprocess.Popen([program, "-timeout=0", path], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (INPUT_SECONDS,) * 2))
    return process.wait() != 0


def run(program, seconds, cpu_seconds):
    """For so long by the clock, or until it has had so much CPU time; the other is 0."""
    result = run_once(program, seconds, cpu_seconds)
    slow = [path for path in result.found if "-timeout-" in path]
    if slow and not any(takes_too_long(program, path) for path in slow):
        for path in slow:
            os.remove(path)
        more = run(program, seconds and max(seconds - result.seconds, 1),
                   cpu_seconds and max(cpu_seconds - result.cpu_seconds, 1))
        result.add(more)
    return result


def run_once(program, seconds, cpu_seconds):
    name = program.name.partition("_")[2]
    folder = program.parent.parent / "fuzz"
    (folder / name).mkdir(parents=True, exist_ok=True)
    start, used, is_over = time.monotonic(), 0, False
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        process = subprocess.Popen(command_of(program, folder, name, seconds), stdout=log,
                                   stderr=subprocess.STDOUT)
        while process.poll() is None:
            with contextlib.suppress(OSError):
                used = time.clock_gettime(~process.pid << 3 | 2)  # its CPU clock, linux/posix-timers.h
            if cpu_seconds and used >= cpu_seconds and not is_over:
                is_over = True
                process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        log.seek(0)
        return Result(name, process.returncode, log.read(), time.monotonic() - start, used)


def tell(result):
    print(f"{result.name:16} {'ok' if result.said is None else 'FAILED':7} "
          f"{result.inputs:12,} inputs, {result.edges} edges", flush=True)
    return result


def print_table(results):
    print(f"\n{'target':16} {'CPU s':>7} {'executions':>12} {'edges':>7} {'new':>6} {'inputs kept':>12}  "
          "findings")
    for r in results:
        print(f"{r.name:16} {r.cpu_seconds:7.0f} {r.inputs:12,} {r.edges:7} {r.new_edges:6} "
              f"{r.new_inputs:12}  {', '.join(r.found) or ('none' if r.said is None else 'failed')}")
    print(f"{len(results)} targets{'':5} {sum(r.cpu_seconds for r in results):8.0f} "
          f"{sum(r.inputs for r in results):12,} {'':7} {sum(r.new_edges for r in results):6} "
          f"{sum(r.new_inputs for r in results):12}  "
          f"{sum(r.said is not None for r in results)} failed")


def write_junit(path, results):
    suite = ElementTree.Element("testsuite", name="fuzz")
    for r in results:
        case = ElementTree.SubElement(suite, "testcase", name=r.name, time="%.1f" % r.seconds)
        if r.said is not None:
            # what XML cannot hold is of no use to a reader either
            text = re.sub(r"[^\t\n\x20-\x7e]", "?", r.said)
            ElementTree.SubElement(case, "failure", message="fails").text = text
    ElementTree.ElementTree(suite).write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    times = parser.add_mutually_exclusive_group()
    times.add_argument("--seconds", type=int, default=60, help="of each target, by the clock")
    times.add_argument("--total", type=int, default=0, help="CPU time of all together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--junit")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("targets", nargs="*", help="all, if none is named")
    arguments = parser.parse_args()
    programs = [path for path in sorted(arguments.build.resolve().glob("tests/fuzz_*"))
                if path.is_file() and os.access(path, os.X_OK)]
    if arguments.targets:
        programs = [path for path in programs if path.name[len("fuzz_"):] in arguments.targets]
    if not programs:
        sys.exit(f"fuzz.py: no such targets in {arguments.build}: make build-fuzz")
    each = (0, arguments.total / len(programs)) if arguments.total else (arguments.seconds, 0)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda program: tell(run(program, *each)), programs))
    if arguments.junit:
        write_junit(arguments.junit, results)
    failed = [r for r in results if r.said is not None]
    for r in failed:
        print(f"\n=== {r.name}\n{r.said}")
    print_table(results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
