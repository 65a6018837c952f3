#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs stages of tests/run.py many times beside busy loops, and prints which tests failed how often.

    tests/tools/beside_hogs.py [--times=20] [--hogs=3] [--tier=test] [--only=STAGE,...] [-- ARGUMENT...]

Builds what the stages need first, without the loops. ARGUMENTs go to the stage's command, ctest or
pytest: `--only=unit -- -R ^unit/cmd/`. Nothing is judged again. What a run with a failed test said is in
build/test-results/beside-hogs/STAGE-RUN.log. Exit code 0 only if no test failed in any run.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import run  # noqa: E402

SUITES = ("unit", "threads", "integration", "alone", "hostile", "races", "browser")
LOGS = run.RESULTS / "beside-hogs"


@contextlib.contextmanager
def beside(count):
    """count busy loops, each a process."""
    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def stages_of(tier):
    return {stage.name: stage for lane in run.lanes_of(tier, []) for stage in lane}


def build(names, tier):
    """Runs what the stages need. Exits where that fails."""
    lanes = run.lanes_of(tier, [])
    needed = {need for lane in lanes for stage in lane if stage.name in names for need in stage.needs}
    if not needed:
        return
    chosen = run.select(lanes, sorted(needed))
    for lane in chosen:
        for stage in lane:
            stage.is_quiet = False  # there is nothing beside it to give way to
    for stage in run.run_lanes(chosen):
        if stage.failed:
            sys.exit(f"beside_hogs: {stage.name} failed")


def run_once(name, number, options):
    """The stage, after one run of it."""
    stage = stages_of(options.tier)[name]
    stage.is_quiet = False  # a niced stage gets nothing beside loops that are not
    stage.command = [*stage.command, *options.arguments]
    log = LOGS / f"{name}-{number}.log"
    stage.run(log)
    if not stage.failed:
        log.unlink()
    print(f"{name} {number}: {stage.passed} passed, {len(stage.failed)} failed in {stage.seconds:.0f} s, "
          f"CPU {stage.cpu_seconds:.0f} s", flush=True)
    return stage


def run_suite(name, options):
    """{test: how often it failed}"""
    failed = collections.Counter()
    with beside(options.hogs):
        for number in range(1, options.times + 1):
            failed.update(set(run_once(name, number, options).failed))
    return failed


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--hogs", type=int, default=3)
    parser.add_argument("--tier", choices=("check", "test", "all"), default="test")
    parser.add_argument("--only", default=",".join(SUITES), help="stages, by name, divided by commas")
    parser.add_argument("arguments", nargs="*", help="for ctest or pytest, after --")
    options = parser.parse_args(arguments)

    LOGS.mkdir(parents=True, exist_ok=True)
    run.set_environment(options.tier)
    names = [name for name in options.only.split(",") if name]
    unknown = set(names) - set(stages_of(options.tier))
    if unknown:
        sys.exit(f"beside_hogs: no stage {', '.join(sorted(unknown))}")
    build(names, options.tier)
    start = time.monotonic()
    failed = {name: run_suite(name, options) for name in names}
    print(f"\n{options.times} runs beside {options.hogs} busy loops on {os.cpu_count()} CPUs, "
          f"{time.monotonic() - start:.0f} s")
    for name, tests in failed.items():
        print(f"{name}: " + (f"{len(tests)} tests failed" if tests else "no test failed"))
        for test, count in tests.most_common():
            print(f"  {count} of {options.times}  {test}")
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
