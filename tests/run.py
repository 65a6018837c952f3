#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the test stages on finished builds and adds up what they report.

    tests/run.py [--tier=test|all] [--only=STAGE,...] [-- PYTEST ARGUMENT...]

Stages: unit (ctest -L unit, sanitizers), clang (ctest in the clang build), integration (pytest on
the release binary), kernels (the same binary on other kernels; --tier=all). The last line is
`N passed, N failed, N skipped`. Exit code 0 only if something passed and nothing failed.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Stage:
    def __init__(self, name, title, command, environment=None):
        self.name, self.title, self.command = name, title, command
        self.environment = environment or {}
        self.passed, self.failed, self.skipped = 0, [], []
        self.seconds = 0.0

    def run(self, report):
        report.unlink(missing_ok=True)
        print(f"\n=== {self.name}: {self.title}", flush=True)
        start = time.monotonic()
        status = subprocess.call(self.command, cwd=ROOT, env={**os.environ, **self.environment})
        self.seconds = time.monotonic() - start
        try:
            self.read(report)
        except (OSError, ElementTree.ParseError) as error:
            self.failed.append(f"no report ({error})")
        if status and not self.failed:
            self.failed.append(f"exit code {status}, though no test failed")
        if not self.passed and not self.failed and not self.skipped:
            self.failed.append("no tests ran")

    def read(self, report):
        for case in ElementTree.parse(report).iter("testcase"):
            name = case.get("name", "?")
            if case.get("classname", name) != name:
                name = f"{case.get('classname')}::{name}"
            skipped = case.find("skipped")
            message = skipped.get("message", "") if skipped is not None else ""
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed.append(name)
            elif case.get("status") in ("notrun", "disabled") and not message.startswith("SKIP_"):
                self.failed.append(f"{name}: did not run: {message}")  # ctest: no such program
            elif skipped is not None:
                self.skipped.append((name, skip_reason(case, message)))
            else:
                self.passed += 1
                # a test program may leave some of its tests out and pass
                for line in (case.findtext("system-out") or "").splitlines():
                    if line.startswith("SKIPPED: "):
                        print(f"note: {name}: {line}")


def skip_reason(case, message):
    for line in (case.findtext("system-out") or "").splitlines():
        if line.startswith("SKIPPED: "):
            return line[len("SKIPPED: "):]
    return message or "no reason given"


def python_with_pytest():
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, "-c", "import pytest"], stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            return python
    sys.exit("tests/run.py: no pytest: make deps")


def ctest(build, report, *selection):
    return ["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error",
            "--test-output-size-passed", "65536", "--output-junit", str(report),
            f"-j{os.cpu_count() or 1}", *selection]


def make_stages(options, reports):
    unit, clang, integration, kernels = (
        reports / f"{name}.xml" for name in ("unit", "clang", "integration", "kernels"))
    # lints look at the sources, not at a build: once is enough
    selection = ["-E", "^lint/"] + (["-LE", "vm"] if options.tier == "test" else [])
    pytest = [python_with_pytest(), "-B", "-m", "pytest", "tests/integration", "-p", "no:cacheprovider",
              "-rfEs", "-o", "junit_family=xunit1", f"--tier={options.tier}",
              f"--junitxml={integration}", *options.pytest]
    stages = [
        Stage("unit", "ctest -L unit, gcc with ASan and UBSan",
              ctest(options.build_asan, unit, "-L", "unit")),
        Stage("clang", "ctest, clang", ctest(options.build_clang, clang, *selection),
              {"PYEBPF_TIER": options.tier}),
        Stage("integration", "pytest on the release build", pytest,
              {"PYEBPF": str(options.build / "pyebpf")}),
    ]
    if options.tier == "all":
        command = [python_with_pytest(), "-B", "-m", "pytest", "tests/kernels", "-p",
                   "no:cacheprovider", "-rfEs", f"--junitxml={kernels}"]
        stages.append(Stage("kernels", "the release build on other kernels, under qemu", command,
                            {"PYEBPF": str(options.build / "pyebpf")}))
    return stages


def summarize(stages):
    print("\n=== summary")
    for stage in stages:
        print(f"{stage.name:12} {stage.passed:5} passed {len(stage.failed):5} failed "
              f"{len(stage.skipped):5} skipped {stage.seconds:8.1f} s")
    for stage in stages:
        for name, reason in stage.skipped:
            print(f"SKIPPED {stage.name}: {name}: {reason}")
    for stage in stages:
        for name in stage.failed:
            print(f"FAILED {stage.name}: {name}")
    passed = sum(stage.passed for stage in stages)
    failed = sum(len(stage.failed) for stage in stages)
    skipped = sum(len(stage.skipped) for stage in stages)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return passed > 0 and failed == 0


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tier", choices=("test", "all"), default="test")
    parser.add_argument("--only", default="", help="stages, by name, divided by commas")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--build-asan", type=pathlib.Path, default=ROOT / "build-asan")
    parser.add_argument("--build-clang", type=pathlib.Path, default=ROOT / "build-clang")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args(arguments)
    for name in ("build", "build_asan", "build_clang"):
        setattr(options, name, getattr(options, name).resolve())

    reports = options.build / "test-results"
    reports.mkdir(parents=True, exist_ok=True)
    stages = make_stages(options, reports)
    wanted = [name for name in options.only.split(",") if name]
    unknown = set(wanted) - {stage.name for stage in stages}
    if unknown:
        parser.error(f"no stage {', '.join(sorted(unknown))}")
    stages = [stage for stage in stages if not wanted or stage.name in wanted]
    for stage in stages:
        stage.run(reports / f"{stage.name}.xml")
    return 0 if summarize(stages) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
