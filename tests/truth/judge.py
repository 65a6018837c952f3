# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Judges a recording by what the program said of itself."""
import collections
import json
import math
import re

import harness

NS = 1e9
PAGE = 4096  # a memory event
SHARE = 0.05  # of an amount may be missing, or be too much
SLACK = {"ns": 0.02 * NS, "bytes": 1 << 20, "count": 0}
# The share of an amount that may be lost by name. All events of a process may come before it is identified.
LOST_MAX = {"ns": 0.5, "bytes": 1, "count": 1}
UNDELIVERED_MAX = 0.02  # of an amount may be ticks that the kernel is said not to have delivered
# A task's time is known to 0.4 times the distance of two looks (docs/tasks.md), standard deviation.
LOOKS = 4 * 0.4
UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9}


def samples_of(recording):
    done = harness.run("export", "-f", "jsonl", "-o", "-", recording)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def look_distance(summary):
    """ns between two looks at the tasks of a process; 0: there were none."""
    said = re.search(r"^tasks: each process scanned every ([\d.]+) (\w+),", summary, re.M)
    return float(said.group(1)) * UNITS[said.group(2)] if said else 0


def unmet_processes(summary):
    said = re.search(r"(\d+) process(?:es)? ended before a look", summary)
    return int(said.group(1)) if said else 0


class Judge:
    """mode: one of compositions.MODES. said: the lines of the program. is_target: says of a PID whether it is
    recorded. summary: the recorder's."""

    def __init__(self, mode, hz, said, is_target, recording, summary):
        self.mode, self.hz, self.said, self.is_target = mode, hz, said, is_target
        self.is_of_tasks = "task" in mode.kinds
        self.distance, self.unmet = look_distance(summary), unmet_processes(summary)
        pids = {line["pid"] for line in said}  # others may run the program, too
        self.samples = [sample for sample in samples_of(recording)
                        if sample["kind"] in mode.kinds and sample["pid"] in pids]
        self.lines = {line["name"]: set(line["lines"]) for line in said}
        self.lost = json.loads(harness.run("export", "-f", "json", recording).stdout)["lost"]

    def lost_amount(self):
        """What was lost by name, in the unit of the mode. Waits are lost in nanoseconds, ticks by number."""
        amount = 0
        for reason, count in self.lost.items():
            if reason.startswith("event_"):
                amount += count * (PAGE if self.mode.unit == "bytes" else 1)
            elif reason.startswith("switch_"):
                amount += count
            elif reason != "not_delivered":
                amount += count * NS / self.hz
        return amount

    def expected(self):
        """{(PID, name, route): amount}. Tasks are looked at in one process after the other, seldom in each:
        their time is right of all processes together, whose PID is None."""
        amounts = collections.Counter()
        for line in self.said:
            amount = self.mode.amount(line) * (NS if self.mode.unit == "ns" else 1)
            key = self.key_of(line["pid"], line["name"], line.get("route"))
            amounts[key] += amount if self.is_target(line["pid"]) else 0
        return amounts

    def found(self):
        amounts = collections.Counter()
        for sample in self.samples:
            for name in {frame[0] for frame in sample["stack"]} & self.lines.keys():
                amounts[self.key_of(sample["pid"], name, sample["labels"].get("route"))] += sample["value"]
        return amounts

    def key_of(self, pid, name, route):
        return None if self.is_of_tasks else pid, name, route

    def looks_scatter(self, name):
        """Of all calls of a function that is a task, and those in processes that are said to be unmet."""
        calls = [line["wall"] * NS for line in self.said if line["name"] == name]
        return LOOKS * self.distance * math.sqrt(len(calls)) + self.unmet * max(calls, default=0)

    def between_calls(self, key):
        """ns for which a function that gives the GIL away in each of its calls may hold it in between: a share, as the
        caches are cold after each switch of a busy machine."""
        if self.mode.kinds != ["gil"]:
            return 0
        return sum(SHARE * line["cpu"] * NS for line in self.said
                   if line.get("free") and key == self.key_of(line["pid"], line["name"], line.get("route")))

    def wrong_amounts(self):
        found, lost = self.found(), self.lost_amount()
        expected = self.expected()
        for key in {**expected, **found}:
            amount, excuse = expected[key], 0
            scatter = SHARE * amount + SLACK[self.mode.unit] + self.between_calls(key)
            if self.is_of_tasks:
                scatter += self.looks_scatter(key[1])
            if self.mode.unit == "ns":
                scatter += 4 * 0.6 * math.sqrt(max(amount, 0) * NS / self.hz)
                excuse = min(self.lost.get("not_delivered", 0) * NS / self.hz, UNDELIVERED_MAX * amount)
            if found[key] > amount + scatter:
                yield "%s: %.4g, more than the %.4g of the program" % (key, found[key], amount)
            if found[key] < amount - scatter - excuse - min(lost, LOST_MAX[self.mode.unit] * amount):
                yield "%s: %.4g of %.4g, %.4g are lost by name" % (key, found[key], amount, lost)

    def wrong_stacks(self):
        for sample in self.samples:
            stack = [frame for frame in sample["stack"] if frame[3] == "python"]
            names = [frame[0] for frame in stack]
            for at, (name, file, line, _) in enumerate(stack):
                why = name in self.lines and why_wrong(names, at, line, self.lines[name], sample)
                if why:
                    yield "%s: %s" % (why, sample)

    def errors(self):
        return [*self.wrong_amounts(), *self.wrong_stacks()]

    def facts(self):
        """For tools/compositions_table.py: what was due and what was got, of all functions, and what was lost."""
        return {"due": sum(self.expected().values()), "got": sum(self.found().values()), "lost": self.lost}


def why_wrong(names, at, line, lines, sample):
    if at == 0 or names[at - 1] not in ("measured", "measured_task"):
        return "not called by measured()"
    if line not in lines and "approximate_lines" not in sample["flags"]:
        return "line %d is not of %s()" % (line, names[at])
    return None
