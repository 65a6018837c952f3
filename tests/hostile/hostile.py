#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Attacks pyebpf, by targets and around it, and prints what was tried, how often, and what was lost.

    hostile.py [--seconds=N] [--length=N] [--seed=N] [--attacks=TEXT,...] [--commands=NAME,...]
               [--pythons=NAME,...] [--undisturbed] [--junit=FILE] [--page=FILE]

As root. Each trial is one attack under one command, on an interpreter drawn by the seed, beside an honest
process. It asserts:
- the recorder ends within two seconds of SIGTERM, waiting for a CPU not counted, with a documented exit code
- no sanitizer reports anything; memory is bounded
- `report` loads the output
- the honest process has 95 % of its samples (record of CPU time), or is shown (dump)
All attacks take turns until the time is over. --undisturbed leaves out what the whole machine notices: steps
of the clock, a CPU that goes away. --page puts the table into a page (docs/faults.md), behind what is there of
other things. PYEBPF: the program (build/pyebpf); PYEBPF_ASAN: that with sanitizers
(build-asan/pyebpf), which is taken if it is there. Exit status 1 if a trial failed.
"""
import argparse
import collections
import os
import pathlib
import platform
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import xml.etree.ElementTree as ElementTree

import scene as scenes
import sections
import truth
from attacks import ATTACKS
from commands import COMMANDS
from trial import HONEST_SHARE, Outcome, Trial

ROOT = scenes.TESTS.parent
INTRODUCTION = """\
`make hostile` attacks the recorder: targets that rewrite what pyebpf reads of them, and trouble around it. One run of it
(`tests/hostile/hostile.py --seed {options.seed}`: {count} trials in {minutes:.0f} minutes, {kernel}, {cpus} CPUs) wrote
this table. The build has ASan and UBSan, but for limits of memory. Each trial asserts:

- The recorder ends within two seconds of SIGTERM, waiting for a CPU not counted (eight with sanitizers).
- Its exit code is a documented one, and no sanitizer reports anything.
- Its memory stays below 256 MiB (1 GiB with sanitizers). `report` loads its output.
- An honest process beside the attacked one has 95 % of the samples that its CPU time makes, within the scatter of
  counts. `dump` shows it.

Attackers of 3.6 to 3.15 are recorded by name with the honest process, but for `record -a` and the agent. "Lost" is the
largest loss that a recording names, of all processes in it.
"""
HEAD = ("attack", "trials", "failed", "under", "interpreters", "honest samples", "slowest end", "memory", "lost")

Result = collections.namedtuple("Result", "attack command python seconds outcome")


def programs():
    def path(variable, default):
        found = pathlib.Path(os.environ.get(variable) or ROOT / default).resolve()
        return str(found) if os.access(found, os.X_OK) else None

    plain = path("PYEBPF", "build/pyebpf")
    if not plain:
        sys.exit("hostile.py: no build/pyebpf: make build, or set PYEBPF")
    return {"plain": plain, "sanitized": path("PYEBPF_ASAN", "build-asan/pyebpf") or plain}


def build_library(folder):
    library = folder / "scribble.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, scenes.TARGETS / "scribble.c", "-lpthread"],
                   check=True)
    return library


def turns(chance, attacks, names):
    """(attack, command) without end: all attacks take turns, and each goes through its commands."""
    left = {attack: [] for attack in attacks}
    while True:
        for attack in chance.sample(attacks, len(attacks)):
            allowed = [name for name in ATTACKS[attack].commands if name in names]
            if allowed and not left[attack]:
                left[attack] = chance.sample(allowed, len(allowed))
            if allowed:
                yield attack, left[attack].pop()


class Run:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.chance = random.Random(options.seed)
        self.programs, self.library = programs(), build_library(folder)
        self.pythons = scenes.interpreters([name for name in options.pythons.split(",") if name])
        self.results, self.not_here = [], {}

    def attempt(self, attack, command):
        scratch = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        python = self.chance.choice(self.pythons)
        scene = scenes.Scene(scratch, self.chance, python, self.pythons, self.library)
        began = time.monotonic()
        try:
            outcome = Trial(ATTACKS[attack], command, scene, self.programs, self.options.length).run()
        except scenes.NotHere as error:
            self.not_here[attack] = str(error)
            return
        except Exception:  # pylint: disable=broad-except; one trial's, which is told of with the others
            outcome = Outcome([traceback.format_exc()], 0, 0, 0, 0, 0, "")
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        result = Result(attack, command, scene.python.name, time.monotonic() - began, outcome)
        self.results.append(result)
        tell(result)

    def run(self):
        attacks = [name for name, attack in ATTACKS.items()
                   if re.search(self.options.attacks, name)
                   and not (self.options.undisturbed and attack.disturbs_machine)]
        names = [name for name in self.options.commands.split(",") if name] or list(COMMANDS)
        if not attacks or set(names) - set(COMMANDS) or not self.pythons:
            sys.exit(f"hostile.py: no such attacks, commands or interpreters; attacks: {', '.join(ATTACKS)}; "
                     f"commands: {', '.join(COMMANDS)}")
        end = time.monotonic() + self.options.seconds
        for attack, command in turns(self.chance, attacks, names):
            if time.monotonic() > end or len(self.not_here) == len(attacks):
                break
            if attack not in self.not_here:
                self.attempt(attack, command)


def tell(result):
    o = result.outcome
    honest = f", honest {o.honest_got} of {o.honest_due}" if o.honest_due else ""
    print(f"{'FAILED' if o.failures else 'ok':6} {result.attack}: {result.command}, {result.python}: "
          f"exit {o.status}, ended in {o.end_seconds:.2f} s, {o.peak_kib >> 10} MiB{honest}"
          + (f"; lost: {o.lost}" if o.lost else "") + f" ({result.seconds:.0f} s)", flush=True)
    for failure in o.failures:
        print("       " + failure.replace("\n", "\n       "), flush=True)


def most_lost(results):
    """The largest share that one of them says it lost, and of what."""
    texts = [r.outcome.lost for r in results if r.outcome.lost not in ("", "nothing")]

    def share(text):
        return max([float(number) for number in re.findall(r"([\d.]+)%", text)] or [0])
    return max(texts, key=share)[:160] if texts else "nothing"


def row(attack, results):
    outcomes = [r.outcome for r in results]
    got, due = sum(o.honest_got for o in outcomes), sum(o.honest_due for o in outcomes)
    minors = sorted({tuple(map(int, r.python.split("-")[0].split(".")[:2])) for r in results})
    return (attack, str(len(results)), str(sum(bool(o.failures) for o in outcomes)),
            ", ".join(sorted({r.command for r in results})), ", ".join("%d.%d" % minor for minor in minors),
            f"{got:,} of {due:,}" if due else "", f"{max(o.end_seconds for o in outcomes):.2f} s",
            f"{max(o.peak_kib for o in outcomes) >> 10} MiB", most_lost(results))


def judge_sums(results):
    """[failure]: attacks under which the honest process has too few samples, all trials together."""
    for attack in ATTACKS:
        outcomes = [r.outcome for r in results if r.attack == attack and not r.outcome.failures]
        got, due = sum(o.honest_got for o in outcomes), sum(o.honest_due for o in outcomes)
        if got < truth.least(due, {"not_delivered": 0}, HONEST_SHARE):
            yield f"{attack}: the honest process has {got} of {due} samples in {len(outcomes)} trials"


def table(run):
    by_attack = {name: [r for r in run.results if r.attack == name] for name in ATTACKS}
    rows = [HEAD, ["---"] * len(HEAD), *(row(name, results) for name, results in by_attack.items() if results)]
    text = "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in rows)
    return text + "".join(f"\nNot tried: {name}: {why}.\n" for name, why in run.not_here.items())


def put_into_page(path, text, run):
    kernel = "Linux " + platform.release().split("-")[0]
    minutes = sum(r.seconds for r in run.results) / 60
    head = INTRODUCTION.format(options=run.options, kernel=kernel, cpus=os.cpu_count(), minutes=minutes,
                               count=len(run.results))
    sections.put(path, "Attacks", f"{head}\n{text}")


def write_junit(path, run):
    suite = ElementTree.Element("testsuite", name="hostile")
    for attack, why in run.not_here.items():
        case = ElementTree.SubElement(suite, "testcase", name=attack)
        ElementTree.SubElement(case, "skipped", message=why)
    for number, r in enumerate(run.results):
        case = ElementTree.SubElement(suite, "testcase", time="%.1f" % r.seconds,
                                      name=f"{r.attack}: {r.command}, {r.python} ({number})")
        if r.outcome.failures:
            text = re.sub(r"[^\t\n\x20-\x7e]", "?", "\n".join(r.outcome.failures))
            ElementTree.SubElement(case, "failure", message=text.strip().partition("\n")[0]).text = text
    ElementTree.ElementTree(suite).write(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seconds", type=float, default=600, help="of all trials, by the clock")
    parser.add_argument("--length", type=float, default=1.0, help="seconds that a trial records")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all that is drawn (the time)")
    parser.add_argument("--attacks", default="", help="whose names have this pattern")
    parser.add_argument("--commands", default="")
    parser.add_argument("--pythons", default="")
    parser.add_argument("--undisturbed", action="store_true")
    parser.add_argument("--junit")
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    if os.geteuid():
        sys.exit("hostile.py: needs root: sudo make hostile")
    with tempfile.TemporaryDirectory(prefix="pyebpf-hostile-", ignore_cleanup_errors=True) as folder:
        run = Run(options, pathlib.Path(folder))
        run.run()
    text = table(run)
    print("\n" + text, end="")
    failed = sum(bool(r.outcome.failures) for r in run.results)
    for failure in judge_sums(run.results):
        print("FAILED " + failure)
        failed += 1
    print(f"{len(run.results)} trials, {failed} failed; seed {options.seed}; {run.programs['sanitized']}")
    if options.junit:
        write_junit(options.junit, run)
    if options.page:
        put_into_page(options.page, text, run)
    return 1 if failed or not run.results else 0


if __name__ == "__main__":
    sys.exit(main())
