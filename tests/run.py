#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds, runs the stages of a tier, and adds up what they report.

    tests/run.py [--tier=check|test|all] [--only=STAGE,...] [-- PYTEST ARGUMENT...]

Stages run in lanes side by side, and after those that they need; --only runs these and what they
need. What a stage says is kept in build/test-results/STAGE.log, and shown where it failed. What was
skipped must be in tests/allowed-skips.txt, else it counts as failed. Of what failed beside other
tests a few are judged once more, alone; one that then passes is shown as UNSTEADY with what it said
first: a test to mend, not a verdict on the change. The last line is `N passed, N failed, N skipped`.
Exit code 0 only if something passed and nothing failed.
"""
import argparse
import collections
import contextlib
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parent
RESULTS = ROOT / "build" / "test-results"
CPUS = os.cpu_count() or 1
COMPILERS = ("gcc", "clang")
TYPES = ("Debug", "Release", "RelWithDebInfo", "MinSizeRel")

# Processes that run the integration tests, which wait for their targets half of their time.
WORKERS = {"check": CPUS, "test": CPUS + 1, "all": CPUS}
# Mutations of each corpus by fuzz/replay.c, seconds of libFuzzer for each target.
MUTATIONS = {"check": 200, "test": 200, "all": 200000}
FUZZ_SECONDS = 120
# Seconds of CPU time of all stages, which two CPUs at load 8 have in ten minutes; files that are named.
CPU_BUDGET = {"test": 840}
DEAREST = 20
# Of a stage, failed tests that are judged again: more of them are no chance.
AGAIN_MAX = 8
# Seconds of trials of hostile/hostile.py.
HOSTILE_SECONDS = {"test": 60, "all": 1200}
# What is never judged again: a sanitizer's finding is one, whenever it comes.
FINDING = re.compile(r"Sanitizer|runtime error: ")
# An assertion that fails leaves behind what the test had.
LEAKS = re.compile(r"^==\d+==ERROR: LeakSanitizer: .*?^SUMMARY: AddressSanitizer: .*?$", re.M | re.S)
ASSERTION_FAILED = re.compile(r"^\[ +FAILED +\] \w+$", re.M)
# Line tables that lint/linetable_oracle makes up for each interpreter.
ORACLE_COUNT = {"check": 2000, "test": 2000, "all": 20000}
# Numbers without end: ten times as fast without a sanitizer.
SIMULATION = "^unit/diff/test_simulation$"


class Stage:
    """A command. report: the JUnit file it writes; None: its tests are those that its output tells
    of, or it is one itself, which fails if it says `refused`. is_quiet: it gives way to what runs
    beside it. again: the stage that runs the tests of these ids alone."""

    def __init__(self, name, title, command, needs=(), report=None, environment=None,
                 is_quiet=False, refused=None, again=None):
        self.name, self.title, self.command, self.needs = name, title, command, needs
        self.report, self.environment, self.is_quiet = report, environment or {}, is_quiet
        self.refused, self.again = refused, again
        self.passed, self.failed, self.skipped = 0, [], []
        self.of_chance = {}  # id: (what `failed` has of it, what it said)
        self.unsteady = []
        self.cpu_of_files = collections.Counter()  # seconds, as pytest tells of each test
        self.seconds = self.cpu_seconds = 0.0
        self.is_done = threading.Event()

    def run(self, log):
        """log: the file for what it says."""
        command = ["nice", "-n", "15", *self.command] if self.is_quiet else self.command
        if self.report:
            self.report.unlink(missing_ok=True)
        start = time.monotonic()
        with open(log, "wb") as output:
            process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **self.environment},
                                       stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - start
        self.cpu_seconds = used.ru_utime + used.ru_stime
        try:
            if self.report:
                for case in ElementTree.parse(self.report).iter("testcase"):
                    self.take_case(case)
            else:
                self.take_output(log.read_text(errors="replace"), status)
        except (OSError, ElementTree.ParseError) as error:
            self.failed.append(f"no report ({error})")
        if status and not self.failed:
            self.failed.append(f"exit code {status}, though no test failed")
        if not self.passed and not self.failed and not self.skipped:
            self.failed.append("no tests ran")

    def take_output(self, output, status):
        inner = list(tests_within(output))
        self.skipped += [(test, reason) for test, outcome, reason in inner if outcome == "skipped"]
        self.failed += [test for test, outcome, _ in inner if outcome == "failed"]
        if self.refused and self.refused in output:
            self.failed.append(f"it says {self.refused!r}")
            return
        self.passed += sum(outcome == "passed" for _, outcome, _ in inner) if inner else not status

    def take_case(self, case):
        name = case.get("name", "?")
        if case.get("classname", name) != name:
            name = f"{case.get('classname')}::{name}"
        skipped = case.find("skipped")
        message = skipped.get("message", "") if skipped is not None else ""
        output = case.findtext("system-out") or ""
        for one in case.iterfind("properties/property[@name='cpu']"):
            self.cpu_of_files[case.get("file")] += float(one.get("value"))
        inner = list(tests_within(output))
        self.skipped += [(f"{name}::{test}", reason) for test, outcome, reason in inner
                         if outcome == "skipped"]
        failure = case.find("failure")
        if failure is not None or case.find("error") is not None:
            tests = [f"::{test}" for test, outcome, _ in inner if outcome == "failed"]
            failed = [name + test for test in tests or [""]]
            self.failed += failed
            if failure is not None and not has_finding(output + (failure.text or "")):
                self.of_chance[id_of(case)] = failed, failure.get("message") or "no message"
        elif case.get("status") in ("notrun", "disabled") and not message.startswith("SKIP_"):
            self.failed.append(f"{name}: did not run: {message}")  # ctest: no such program
            return
        elif skipped is not None:
            said = re.findall(r"^SKIPPED: (.*)", output, re.M)
            self.skipped.append((name, said[0] if said else message or "no reason given"))
        self.passed += (sum(outcome == "passed" for _, outcome, _ in inner) if inner
                        else case.find("failure") is None and case.find("error") is None
                        and skipped is None)


def has_finding(output):
    return bool(FINDING.search(LEAKS.sub("", output) if ASSERTION_FAILED.search(output) else output))


def id_of(case):
    """What pytest and ctest call it. xdist adds @GROUP to a name."""
    name = re.sub(r"@[\w-]+$", "", case.get("name", "?"))
    return f"{case.get('file')}::{name}" if case.get("file") else name


def tests_within(output):
    """(name, outcome, reason) of each test that a program says it ran, as cmocka or TAP has it."""
    running = reason = None
    for line in output.splitlines():
        said = re.match(r"SKIPPED: (.*)", line)
        begun = re.match(r"\[ RUN +\] (\w+)$", line)
        ended = re.match(r"\[ +(OK|FAILED|SKIPPED|ERROR) +\] (\w+)$", line)
        tap = re.match(r"(not )?ok \d+ - (.*?)(?: # SKIP ?(.*))?$", line)
        if said:
            reason = said.group(1)
        elif begun:
            running, reason = begun.group(1), None
        elif ended and ended.group(2) == running:  # the summary names them once more
            outcome = {"OK": "passed", "SKIPPED": "skipped"}.get(ended.group(1), "failed")
            yield running, outcome, reason or "no reason given"
            running = None
        elif tap:
            outcome = "failed" if tap.group(1) else "passed" if tap.group(3) is None else "skipped"
            yield tap.group(2), outcome, tap.group(3) or "no reason given"


# --- What may be skipped --------------------------------------------------------------------------


def read_allowed(text, tier):
    """[(pattern of STAGE::TEST, of its reason)] of the list, for this tier."""
    allowed = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if not line or line.startswith("#"):
            continue
        if len(cells) != 4 or not all(cells):
            sys.exit("tests/allowed-skips.txt: not TIERS | TEST | REASON | WHY: " + line)
        if cells[0] == "*" or tier in cells[0].split(","):
            allowed.append((cells[1], cells[2]))
    return allowed


def judge_skips(stages, allowed):
    """What is skipped and is not in the list has failed."""
    for stage in stages:
        for name, reason in list(stage.skipped):
            if not any(fnmatch.fnmatchcase(f"{stage.name}::{name}", test)
                       and fnmatch.fnmatchcase(reason, why) for test, why in allowed):
                stage.skipped.remove((name, reason))
                stage.failed.append(f"{name}: skipped, which tests/allowed-skips.txt does not "
                                    f"allow: {reason}")


# --- Stages ---------------------------------------------------------------------------------------


def python_with(*modules):
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, "-c", "import " + ", ".join(modules)],
                              stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            return python
    return sys.exit(f"tests/run.py: no Python has {' and '.join(modules)}: make deps")


def build(name, title, *more, is_quiet=False):
    return Stage(name, title, ["make", "-s", name.split(":")[0], *more], is_quiet=is_quiet,
                 refused="warning: ")


def ctest(name, title, folder, *selection, needs=(), environment=None, is_quiet=False):
    report = RESULTS / f"{name}.xml"
    command = ["ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error",
               "--test-output-size-passed", "1000000", "--output-junit", str(report)]

    def again(ids):
        chosen = "^(%s)$" % "|".join(map(re.escape, ids))
        report = RESULTS / f"{name}-again.xml"
        return Stage(f"{name}-again", "alone", [*command[:-1], str(report), "-R", chosen],
                     report=report, environment=environment)

    return Stage(name, title, [*command, f"-j{CPUS}", *selection], needs, report, environment,
                 is_quiet, again=again)


def pytest(name, title, *arguments, needs=(), environment=None, workers=0):
    report = RESULTS / f"{name}.xml"
    modules = ("pytest", "xdist") if workers else ("pytest",)
    spread = ["-n", str(workers), "--dist", "loadgroup"] if workers else []
    command = [python_with(*modules), "-B", "-m", "pytest", "-p", "no:cacheprovider", "-rfE",
               "-o", "junit_family=xunit1", "--durations=15"]
    environment = {"PYEBPF": str(ROOT / "build" / "pyebpf"), **(environment or {})}

    def again(ids):
        report = RESULTS / f"{name}-again.xml"
        tier = [word for word in arguments if word.startswith("--tier=")]
        return Stage(f"{name}-again", "alone", [*command, f"--junitxml={report}", *tier, *ids],
                     report=report, environment=environment)

    return Stage(name, title, [*command, f"--junitxml={report}", *spread, *arguments], needs, report,
                 environment, again=again)


def files_marked(mark):
    """Files of integration/ that have tests so marked: to import all takes 4 s of CPU time."""
    return [str(path.relative_to(ROOT)) for path in sorted((TESTS / "integration").glob("test_*.py"))
            if f"mark.{mark}" in path.read_text()]


def type_stages():
    """All build types by both compilers, but for that of the release build."""
    return [build(f"build-type:{compiler}-{kind}", f"{kind} by {compiler}",
                  f"COMPILER={compiler}", f"TYPE={kind}", is_quiet=True)
            for compiler in COMPILERS for kind in TYPES
            if (compiler, kind) != ("gcc", "RelWithDebInfo")]


def lanes_of(tier, arguments):
    """Stages of the tier, by lane."""
    release = build("build-tests", "the release build, with what tests need of it")
    pythons = Stage("pythons", "interpreters that are not here are fetched",
                    [sys.executable, "-B", "tests/tools/pythons.py", "--check"])
    asan = build("build-asan", "gcc with ASan and UBSan", is_quiet=tier != "check")
    unit = ctest("unit", "unit tests, fuzz corpora, lints, with ASan and UBSan", "build-asan",
                 "-L", "unit", "-E", SIMULATION, *(["-LE", "slow"] if tier == "check" else []),
                 needs=("build-asan", "pythons"), is_quiet=tier != "check")
    integration = pytest("integration", "pytest on the release build", "tests/integration", f"--tier={tier}",
                         "-m", "not alone and not hostile", *arguments, needs=("build-tests", "pythons"),
                         workers=WORKERS[tier])
    if tier == "check":
        return [[release, integration], [pythons, asan, unit]]

    def marked(mark):
        return [*files_marked(mark), f"--tier={tier}", "-m", mark, *arguments]

    alone = pytest("alone", "what other tests beside it would disturb", *marked("alone"),
                   needs=("build-tests", "pythons"))
    hostile = pytest("hostile", "targets that rewrite themselves, with ASan and UBSan", *marked("hostile"),
                     needs=("build-asan", "pythons"))
    attacks = Stage("attacks", "attacks on the recorder, with ASan and UBSan",
                    [python_with("pytest"), "-B", "tests/hostile/hostile.py", "--junit",
                     str(RESULTS / "attacks.xml"), "--seconds", str(HOSTILE_SECONDS[tier]),
                     *(["--undisturbed"] if tier == "test" else [])], ("build-tests", "build-asan", "pythons"),
                    RESULTS / "attacks.xml")
    browser = ctest("browser", "the page in a browser", "build", "-L", "browser",
                    needs=("build-tests",))
    clang = build("build-clang", "clang: its warnings of the program and its tests", is_quiet=True)
    tsan = build("build-tsan", "gcc with TSan", is_quiet=True,
                 *(["PROGRAMS=pyebpf threaded_programs"] if tier == "test" else []))
    threads = ctest("threads", "unit tests of what has threads, with TSan", "build-tsan",
                    *(["-L", "threads"] if tier == "test" else ["-R", "^unit/"]),
                    "-E", "^unit/target/test_proc$", needs=("build-tsan",), is_quiet=True)
    races = pytest("races", "the agent and readers of several files, with TSan", *marked("threads"),
                   needs=("build-tsan", "pythons"),
                   environment={"PYEBPF": str(ROOT / "build-tsan" / "pyebpf"),
                                "TSAN_OPTIONS": "halt_on_error=1 exitcode=66"})
    simulation = ctest("simulation", "comparisons of programs whose change is known", "build", "-R",
                       SIMULATION, needs=("build-tests",), is_quiet=True)
    lanes = [[release, integration, alone, hostile, attacks, races], [browser, simulation],
             [pythons, asan, unit, tsan, threads, clang]]
    if tier == "all":
        lanes[-1] += type_stages()
        lanes[0] += [
            pytest("kernels", "the release build on other kernels, under qemu", "tests/kernels",
                   needs=("build-tests",)),
            build("build-fuzz", "clang with libFuzzer"),
            Stage("fuzz", f"libFuzzer, {FUZZ_SECONDS} s a target",
                  [sys.executable, "-B", "tests/fuzz/fuzz.py", "--seconds", str(FUZZ_SECONDS),
                   "--junit", str(RESULTS / "fuzz.xml"), "build-fuzz"], ("build-fuzz",),
                  RESULTS / "fuzz.xml")]
    return lanes


def select(lanes, wanted):
    """Those stages, and what they need."""
    known = {stage.name: stage for lane in lanes for stage in lane}
    unknown = set(wanted) - set(known)
    if unknown:
        sys.exit(f"tests/run.py: no stage {', '.join(sorted(unknown))}; there are: "
                 + ", ".join(known))
    chosen = list(wanted)
    for name in chosen:
        chosen += [other for other in known[name].needs if other not in chosen]
    return [[stage for stage in lane if stage.name in chosen] for lane in lanes]


def run_stage(stage, stages):
    for name in stage.needs:
        stages[name].is_done.wait()
        if stages[name].failed:
            stage.failed.append(f"did not run: {name} failed")
            return
    print(f"=== {stage.name}: {stage.title}", flush=True)
    log = RESULTS / f"{stage.name.replace(':', '-')}.log"
    stage.run(log)
    said = log.read_text(errors="replace") if stage.failed else ""
    print(f"{said}=== {stage.name}: {stage.passed} passed, {len(stage.failed)} failed, "
          f"{len(stage.skipped)} skipped in {stage.seconds:.0f} s, CPU {stage.cpu_seconds:.0f} s",
          flush=True)


def run_lane(lane, stages):
    for stage in lane:
        try:
            run_stage(stage, stages)
        except Exception as error:  # pylint: disable=broad-except; others wait for it
            stage.failed.append(repr(error))
        finally:
            stage.is_done.set()


def run_lanes(lanes):
    stages = {stage.name: stage for lane in lanes for stage in lane}
    threads = [threading.Thread(target=run_lane, args=(lane, stages)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return list(stages.values())


def judge_again(stages):
    """What the clock or chance of a crowded machine may have failed is judged alone."""
    for stage in stages:
        if not stage.of_chance or not stage.again or len(stage.of_chance) > AGAIN_MAX:
            continue
        second = stage.again(list(stage.of_chance))
        run_stage(second, {})
        if second.skipped or len(second.failed) > len(second.of_chance):
            continue
        for test, (failed, said) in stage.of_chance.items():
            if test not in second.of_chance:
                stage.failed = [name for name in stage.failed if name not in failed]
                stage.passed += len(failed)
                stage.unsteady += [(name, said.partition("\n")[0]) for name in failed]


def say_cpu_time(stages, tier):
    """A budget stays one where it is seen."""
    of_files = sum((stage.cpu_of_files for stage in stages), collections.Counter())
    for file, seconds in of_files.most_common(DEAREST):
        print(f"CPU {seconds:6.1f} s {file}")
    budget = f", of {CPU_BUDGET[tier]} s" if tier in CPU_BUDGET else ""
    print(f"CPU {sum(stage.cpu_seconds for stage in stages):6.0f} s in all{budget}")


def summarize(stages, tier):
    print("\n=== summary")
    for stage in stages:
        print(f"{stage.name:28} {stage.passed:5} passed {len(stage.failed):5} failed "
              f"{len(stage.skipped):5} skipped {stage.seconds:6.0f} s, CPU {stage.cpu_seconds:4.0f} s")
    say_cpu_time(stages, tier)
    for stage in stages:
        for name, reason in stage.skipped:
            print(f"SKIPPED {stage.name}: {name}: {reason}")
    for stage in stages:
        for name, said in stage.unsteady:
            print(f"UNSTEADY {stage.name}: {name}: passed alone; beside others: {said[:200]}")
    for stage in stages:
        for name in stage.failed:
            print(f"FAILED {stage.name}: {name}")
    passed = sum(stage.passed for stage in stages)
    failed = sum(len(stage.failed) for stage in stages)
    skipped = sum(len(stage.skipped) for stage in stages)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return passed > 0 and failed == 0


def seed():
    """The commit: each draws other interpreters, and always the same ones."""
    with contextlib.suppress(OSError):
        done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            return done.stdout.strip()
    return "0"


def set_environment(tier):
    """Sets what the stages' programs read."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYEBPF_SEED", seed())
    print(f"=== PYEBPF_SEED={os.environ['PYEBPF_SEED']}: which interpreters some tests draw", flush=True)
    os.environ.update(PYEBPF_TIER=tier, PYEBPF_MUTATIONS=str(MUTATIONS[tier]),
                      PYEBPF_ORACLE_COUNT=str(ORACLE_COUNT[tier]))
    if shutil.which("ccache"):  # CMake takes the first one up; a clone elsewhere finds the same
        os.environ.setdefault("CMAKE_C_COMPILER_LAUNCHER", "ccache")
        os.environ.setdefault("CCACHE_BASEDIR", str(ROOT))
        os.environ.setdefault("CCACHE_NOHASHDIR", "1")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tier", choices=("check", "test", "all"), default="test")
    parser.add_argument("--only", default="", help="stages, by name, divided by commas")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args(arguments)

    set_environment(options.tier)
    lanes = lanes_of(options.tier, options.pytest)
    wanted = [name for name in options.only.split(",") if name]
    stages = run_lanes(select(lanes, wanted) if wanted else lanes)
    judge_again(stages)
    judge_skips(stages, read_allowed((TESTS / "allowed-skips.txt").read_text(), options.tier))
    return 0 if summarize(stages, options.tier) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
