#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf beside the profilers that people have: the OpenTelemetry eBPF profiler, perf with -X perf, py-spy,
austin, profiling.sampling; on the same programs, in turns: what each costs, how much of what it was asked for
it delivers, whether its stacks are whole and its lines right, which short-lived processes it sees. What is
missing is fetched or built into ~/.cache/pyebpf first. Nothing is asserted: it prints, and says where
pyebpf is behind.

    profilers.py [--quick] [--only COLUMN]... [--markdown FILE] [--json FILE]
"""
import argparse
import collections
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import kernel
import system_tools
import table
import tools
from measure import START_SECONDS
from target import Target

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
import pythons  # noqa: E402

Plan = collections.namedtuple("Plan", "rates seconds rounds children")
QUICK = Plan((19, 99, 999), 2, 1, 15)
FULL = Plan((19, 99, 999), 4, 2, 40)
CHAIN_PERIOD_US = 200
DEPTH = 20  # of the chains: perf keeps 127 calls of C, four of which are one of Python
BRIEF_HZ = 99
COMMAND = "sudo tests/bench/profilers.py"
# What counts as level: so much of the better one's value, or so many points of per cent.
LEVEL_SHARE, LEVEL_POINTS = 0.05, 0.5

# --- Judging stacks of workloads/chains.py ---------------------------------------------------------

CHAIN = re.compile(r"(?:.*\.)?([ab])(\d+)\Z")
OUTER = ["<module>", "main"]


def line_of(number):
    """Where function N of a chain calls the next one, or the last one spins."""
    return 2 * number + 2


def are_lines_right(frames, chain):
    """Each has one. The innermost one may be on the line of its `def`: it is being entered."""
    return all(frame.line for frame in frames) and all(
        frame.line == line_of(n) or (i + 1 == len(chain) and frame.line == line_of(n) - 1)
        for i, (_, n, frame) in enumerate(chain))


def judge(frames):
    """(Is it whole, are the lines right); None: it is from before or after what is measured."""
    if not frames:
        return False, False
    chain = [(match.group(1), int(match.group(2)), frame)
             for frame, match in ((frame, CHAIN.match(frame.name)) for frame in frames) if match]
    if not chain and OUTER[1] not in [frame.name for frame in frames]:
        return None
    outer = [frame.name.rsplit(".", 1)[-1] for frame in frames[:len(frames) - len(chain)]]
    is_whole = outer == OUTER and all(
        letter == chain[0][0] and n == i for i, (letter, n, _) in enumerate(chain))
    return is_whole, are_lines_right(frames, chain)


# --- Columns ---------------------------------------------------------------------------------------


def newest(found, minor):
    """The interpreter of this machine's own up to that minor, or the one in sid's root."""
    fit = [p for p in found if 8 <= p.minor <= minor and not p.free_threaded and not p.debug and
           p.via != "loader"]
    return max(fit, key=lambda p: (p.minor, p.via == "direct", p.version, p.linkage == "static"),
               default=None)


def choose(found, only):
    """On the newest that all know, and on 3.15, which has its own profiler and frame pointers."""
    common, last = newest(found, 13), newest(found, 15)
    columns = [tools.Column(system_tools.Pyebpf(), common), tools.Column(system_tools.Pyebpf(True), common),
               tools.Column(system_tools.Otel(), common), tools.Column(system_tools.PySpy(), common),
               tools.Column(system_tools.Austin(), common), tools.Column(system_tools.Perf(), common)]
    if last.minor == 15:
        sampling = system_tools.Sampling(tools.find_sampling(found))
        columns += [tools.Column(system_tools.Pyebpf(), last), tools.Column(sampling, last),
                    tools.Column(system_tools.Perf(), last)]
    there = []
    for column in columns:
        if only and not any(text in column.title for text in only):
            continue
        column.tool.provide()
        why = column.tool.missing()
        if why:
            tools.loud("NOT COMPARED WITH %s: %s" % (column.title, why))
        else:
            there.append(column)
    return there


class Options:
    """An interpreter with options of its own, as target.Target takes it."""

    def __init__(self, python, options):
        self.command = [*python.command, *options]


# --- Measuring -------------------------------------------------------------------------------------


class Steady:
    """Sums over the runs of one cell, and the most memory of them."""

    def __init__(self):
        self.wall = self.due = self.own = 0.0  # seconds; ticks; seconds
        self.bpf_ns = self.peak = self.samples = self.whole = self.right = 0

    def add(self, other):
        for name, value in vars(other).items():
            setattr(self, name, max(self.peak, value) if name == "peak" else getattr(self, name) + value)


class Brief(Steady):
    def __init__(self):
        self.children = self.seen = self.samples = self.peak = 0
        self.due = 0.0


def target_of(column, name, seconds, *arguments):
    return Target(Options(column.python, column.tool.interpreter_options), name, seconds, *arguments)


def run_steady(column, hz, seconds, output):
    tool, into = column.tool, Steady()
    warm = ["warm"] * tool.is_slow_to_know
    with target_of(column, "chains.py", seconds, CHAIN_PERIOD_US, DEPTH, *warm) as target, \
            tool.start(target.pid, hz, output) as run:
        tool.wait_ready(run, target, column.python)
        time.sleep(START_SECONDS)
        run.check()
        own, bpf = kernel.cpu_seconds(run.pid), kernel.sampler_runs(run.pid)
        start, run.since_ns = time.monotonic(), time.time_ns()
        target.go()
        truth = target.truth()
        wall = time.monotonic() - start
        into.own += kernel.cpu_seconds(run.pid) - own
        into.bpf_ns += kernel.sampler_runs(run.pid)[1] - bpf[1]
        into.wall += wall
        into.due += hz * (truth["cpu"] if tool.samples_cpu_time else wall)
        kernel_bytes = kernel.bpf_bytes(run.pid)
        into.peak = max(into.peak, kernel_bytes + tool.finish(run, column.python))
        for frames, count in tool.samples_by_pid(run, target.pid).get(target.pid, ()):
            verdict = judge(frames)
            if verdict:
                into.samples += count
                into.whole += count * verdict[0]
                into.right += count * verdict[1]
        tool.clean([target.pid])
    return into


def run_brief(column, script, children, output):
    """Processes of 50 ms, by profilers that can see others than the one they are started on."""
    tool, into = column.tool, Brief()
    with target_of(column, "brief_children.py", script, children) as target, \
            tool.start(target.pid, BRIEF_HZ, output, final=True) as run:
        tool.wait_ready(run, target, column.python)
        time.sleep(START_SECONDS)
        run.check()
        target.go()
        told = {child["pid"]: child["ns"] for child in target.truth()["children"]}
        tool.finish(run, column.python)
        found = tool.samples_by_pid(run, target.pid)
        for pid, ns in told.items():
            count = sum(count for frames, count in found.get(pid, ())
                        if frames and frames[-1].name == "in_python")
            into.children += 1
            into.seen += bool(count)
            into.due += ns * 1e-9 * BRIEF_HZ
            into.samples += count
        tool.clean([target.pid, *told])
    return into


class Bench:
    def __init__(self, plan, columns, folder):
        self.plan, self.columns = plan, columns
        self.output = os.path.join(folder, "output")
        self.script = shutil.copy(os.path.join(os.path.dirname(HERE), "workloads", "brief.py"), folder)
        self.steady = collections.defaultdict(Steady)  # by rate and column
        self.brief = collections.defaultdict(Brief)    # by column
        self.table = table.Table("Beside other profilers", "", [c.title for c in columns])
        self.better = {}  # by row: what is better, "less", "more", or "100"
        self.marks = collections.defaultdict(dict)  # by row and column

    def attempt(self, what, sums, function, *arguments):
        """A run that fails does not count."""
        print("profilers: " + what, file=sys.stderr, flush=True)
        try:
            sums.add(function(*arguments))
        except (tools.Failed, AssertionError, OSError, RuntimeError, ValueError, KeyError,
                subprocess.SubprocessError) as e:
            tools.loud("%s: %s" % (what, e))

    def measure(self):
        with kernel.bpf_stats():
            for i in range(self.plan.rounds):
                for hz in self.plan.rates:
                    for column in self.columns:
                        self.attempt("%d Hz, round %d, %s" % (hz, i + 1, column.title),
                                     self.steady[hz, column], run_steady, column, hz, self.plan.seconds,
                                     self.output)
                for column in self.columns:
                    if column.tool.sees_children and column.python.via == "direct":
                        self.attempt("short-lived, round %d, %s" % (i + 1, column.title),
                                     self.brief[column], run_brief, column, self.script,
                                     self.plan.children, self.output)

    def put(self, row, column, better, form, value):
        self.better[row] = better
        self.marks[row][column] = value
        self.table.put(row, column.title, form % value, {"value": value})

    def fill(self):
        for hz in self.plan.rates:
            for column in self.columns:
                if self.steady[hz, column].wall:
                    self.put_steady(hz, column, self.steady[hz, column])
        for column, s in self.brief.items():
            if s.children:
                self.put("short-lived processes seen, %", column, "more", "%.0f", 100 * s.seen / s.children)
                self.put("samples of their function, % of those due", column, "100", "%.0f",
                         100 * s.samples / s.due)

    def put_steady(self, hz, column, s):
        at = " at %d Hz" % hz
        self.put("own CPU%s, %% of a CPU" % at, column, "less", "%.2f", 100 * s.own / s.wall)
        if column.tool.has_bpf:
            self.put("its BPF program%s, %% of a CPU" % at, column, "less", "%.3f",
                     1e-7 * s.bpf_ns / s.wall)
        self.put("memory%s, MiB" % at, column, "less", "%.0f", s.peak / (1 << 20))
        self.put("samples%s, %% of those due" % at, column, "100", "%.1f", 100 * s.samples / s.due)
        if s.samples:
            self.put("complete Python stacks%s, %%" % at, column, "more", "%.1f", 100 * s.whole / s.samples)
            self.put("all lines right%s, %%" % at, column, "more", "%.1f", 100 * s.right / s.samples)

    # --- Where we are behind ---

    def ours_like(self, column):
        """The column of ours to hold it against: the same interpreter, and as many processes."""
        return next((c for c in self.columns if c.is_ours and c.python is column.python and
                     c.tool.is_system_wide == column.tool.is_system_wide), None)

    def compare(self, row, column):
        """'behind', 'level', 'ahead' of another column, or None."""
        ours = self.ours_like(column)
        values = self.marks[row]
        if column.is_ours or ours not in values or column not in values:
            return None
        a, b = values[ours], values[column]
        if self.better[row] == "100":
            a, b = abs(100 - a), abs(100 - b)
        is_share = self.better[row] != "less"
        if abs(a - b) <= (LEVEL_POINTS if is_share else LEVEL_SHARE * max(a, b)):
            return "level"
        return "ahead" if (a > b) == (self.better[row] == "more") else "behind"

    def behind(self):
        out = []
        for column in self.columns:
            for word in ("behind", "level"):
                rows = [row for row in self.marks if self.compare(row, column) == word]
                if rows:
                    out.append("%s %s: %s" % ("Behind" if word == "behind" else "Level with", column.title,
                                              "; ".join(together(rows))))
        return out


def together(rows):
    """What rows are of several rates once: "memory (19, 99 Hz)"."""
    rates = {}
    for row in rows:
        name, _, rest = row.partition(" at ")
        rates.setdefault(name.partition(",")[0], []).extend(rest.split(" ")[:1] if rest else [])
    return ["%s (%s Hz)" % (name, ", ".join(hz)) if hz else name for name, hz in rates.items()]


# --- Front -----------------------------------------------------------------------------------------


def versions(columns):
    for column in columns:
        tool = column.tool
        if isinstance(tool, system_tools.Otel):
            yield "OpenTelemetry eBPF profiler " + tool.VERSION
        elif isinstance(tool, system_tools.Sampling):
            yield "profiling.sampling of CPython %d.%d.%d" % column.python.version
        elif isinstance(tool, system_tools.Perf):
            yield subprocess.check_output(["perf", "--version"], text=True).strip()
        elif not column.is_ours:
            yield subprocess.check_output([tool.program, "--version"], text=True).split("\n")[0].strip()


def head(columns, mode):
    return ["Machine: " + kernel.machine(),
            "Compared: " + ", ".join(dict.fromkeys(versions(columns))),
            "Interpreters: " + ", ".join(dict.fromkeys(column.python.name for column in columns)),
            "Measured: %s, %s; load before %.2f" % (datetime.datetime.now().strftime("%Y-%m-%d %H:%M"), mode,
                                                    os.getloadavg()[0])]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n    ", 1)[0])
    parser.add_argument("--quick", action="store_true", help="3 minutes instead of 10")
    parser.add_argument("--only", action="append", metavar="COLUMN", help="those whose title has this text")
    parser.add_argument("--json", metavar="FILE", help="the numbers")
    parser.add_argument("--markdown", metavar="FILE", help="the table, for a page, in place of what is "
                        "between its lines '<!-- profilers: start -->' and '<!-- profilers: end -->'")
    arguments = parser.parse_args()
    if os.geteuid():
        sys.exit("profilers: needs root: it samples other processes and loads BPF programs")
    subprocess.run(["sh", os.path.join(HERE, "install.sh")], check=True)
    columns = choose(pythons.find_all(), arguments.only)
    begin = time.monotonic()
    lines = head(columns, "quick" if arguments.quick else "full")
    with tempfile.TemporaryDirectory(prefix="pyebpf-bench-") as folder:
        bench = Bench(QUICK if arguments.quick else FULL, columns, folder)
        neighbours = kernel.Neighbours()
        try:
            bench.measure()
        finally:
            for column in columns:
                column.tool.close()
        lines.append("Meanwhile %s" % neighbours.text())
    bench.fill()
    notes = bench.behind()
    print("\n".join(lines) + "\n\n" + bench.table.plain() + "\n\n" + "\n".join(notes))
    print("\n%.0f s" % (time.monotonic() - begin), file=sys.stderr)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as f:
            json.dump({"about": lines, "values": bench.table.values, "notes": notes}, f, indent=1)
    if arguments.markdown:
        command = COMMAND + " --quick" * arguments.quick
        table.write_markdown(arguments.markdown, "profilers", "\n".join(
            ["`%s`" % command, "", *("%s  " % line for line in lines), "", bench.table.markdown(), "",
             *("- " + note for note in notes)]) + "\n")


if __name__ == "__main__":
    main()
