#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs every fuzz target of a libFuzzer build for some time each, beginning with its corpus.

    fuzz.py [--seconds=N] [--junit=FILE] BUILD [TARGET...]

A corpus TARGET_... is TARGET's as well. As many at a time as there are CPUs. What a target learned
is kept below BUILD/fuzz/TARGET and used the next time; an input that fails is left in BUILD/fuzz as
TARGET-crash-..., and belongs into tests/fuzz/corpus/TARGET once it is mended. Exit status 1 if one
failed.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
INPUT_SECONDS, INPUT_MIB = 25, 3000  # that one input may take


def run(program, seconds):
    """(name, seconds it took, what it said if it failed, else None)."""
    name = program.name.partition("_")[2]
    folder = program.parent.parent / "fuzz"
    (folder / name).mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    done = subprocess.run(
        [program, f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}",
         f"-rss_limit_mb={INPUT_MIB}", f"-artifact_prefix={folder / name}-", "-print_final_stats=1",
         folder / name, CORPUS / name, *sorted(CORPUS.glob(name + "_*"))],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    inputs = re.findall(r"stat::number_of_executed_units: (\d+)", done.stdout)
    covered = re.findall(r" cov: (\d+)", done.stdout)
    print(f"{name:16} {'ok' if done.returncode == 0 else 'FAILED':7} "
          f"{int(inputs[-1]) if inputs else 0:12,} inputs, {covered[-1] if covered else 0} edges",
          flush=True)
    return name, time.monotonic() - start, done.stdout[-4000:] if done.returncode else None


def write_junit(path, results):
    suite = ElementTree.Element("testsuite", name="fuzz")
    for name, seconds, said in results:
        case = ElementTree.SubElement(suite, "testcase", name=name, time="%.1f" % seconds)
        if said is not None:
            # what XML cannot hold is of no use to a reader either
            text = re.sub(r"[^\t\n\x20-\x7e]", "?", said)
            ElementTree.SubElement(case, "failure", message="fails").text = text
    ElementTree.ElementTree(suite).write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=int, default=60)
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
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda program: run(program, arguments.seconds), programs))
    if arguments.junit:
        write_junit(arguments.junit, results)
    failed = [result for result in results if result[2] is not None]
    for name, _, said in failed:
        print(f"\n=== {name}\n{said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
