#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measures pyebpf beside py-spy, austin and CPython 3.15's profiling.sampling, as far as they are
installed, and beside a bare perf record. Runs alternate, so that a drift of the machine hits all.
Nothing is asserted: it prints."""
import argparse
import collections
import datetime
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile

import agent
import kernel
import large
import measure
import table
import tools

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
import pythons  # noqa: E402

# Seconds are of one run; a measurement of one cell takes rounds of them.
Plan = collections.namedtuple("Plan", "depths sampler_seconds sampler_rounds rates other_rates "
                              "toggle_seconds toggle_rounds cells alternate_seconds alternate_rounds "
                              "file_rates file_seconds start_rounds page_sizes "
                              "agent_windows agent_starts large_samples")
QUICK = Plan((50, 800), 0.5, 1, (100, 1000), (999,), 2, 2, ((1000, 200),), 1.5, 2, (1000,), 3, 1,
             (10000, 100000), 2, 2000, 1000000)
FULL = Plan((10, 50, 200, 800), 0.6, 6, (100, 1000, 10000), (99, 999, 9999), 5, 4,
            ((1000, 200), (1000, 20), (10000, 200), (10000, 20)), 3, 2,
            (99, 1000, 10000), 6, 5, (10000, 100000, 1000000, "diff:1000000"), 12, 100000,
            10000000)
PARTS = ("sampler", "slowdown", "others", "stacks", "files", "start", "page", "large", "agent")
AGENT_PROCESSES = 200
CHURN_HZ = 997


def rate_text(hz):
    return "%g kHz" % (hz / 1000) if hz >= 1000 else "%d Hz" % hz


def per_frame_goal_ns(minor):
    return 180 if minor <= 10 else 100 if minor <= 13 else 40


class Bench:
    def __init__(self, plan, found, folder):
        self.plan = plan
        self.found = found
        self.output = os.path.join(folder, "output")
        self.main = None
        self.sampler = table.Table("BPF program of pyebpf: ns a sample at a constant stack, by "
                                   "depth", "Python")
        self.page = table.Table("A page in headless Chromium, by call paths", "")
        self.large = table.Table("Large recordings: the shorter of some runs", "")
        self.agent = table.Table("pyebpf agent", "")
        self.ours = tools.Pyebpf()
        self.floor = None
        self.columns = []

    # --- What there is ---

    def choose(self):
        """Two targets: the newest interpreter that all but profiling.sampling know, and 3.15."""
        common = self.python(13) or self.found[-1]
        self.is_present(self.ours)
        pyebpf_on = [common]
        candidates = [(tools.PySpy(), common), (tools.PySpy("--nonblocking"), common),
                      (tools.Austin(), common)]
        sampling = tools.Sampling(tools.find_sampling(self.found))
        if self.is_present(sampling):
            pyebpf_on.append(self.python_exact(sampling.python))
            candidates.append((sampling, pyebpf_on[-1]))
        columns = [tools.Column(self.ours, python) for python in pyebpf_on]
        columns += [tools.Column(tool, python) for tool, python in candidates
                    if isinstance(tool, tools.Sampling) or self.is_present(tool)]
        if not os.path.exists(tools.PYEBPF):
            columns = [column for column in columns if not column.is_ours]
        self.columns = columns
        floor = tools.PerfFloor()
        if self.is_present(floor):
            self.floor = tools.Column(floor, common)
        self.main = table.Table("Side by side", "", [
            column.title for column in ([self.floor] if self.floor else []) + self.columns])

    def is_present(self, tool):
        why = tool.missing()
        if why:
            tools.loud("NOT COMPARED WITH %s: %s" % (tool.name, why))
        return not why

    def python(self, newest):
        """The newest ordinary interpreter up to that minor, this machine's own before sid's."""
        fit = [p for p in self.found if 8 <= p.minor <= newest and not p.free_threaded
               and not p.debug and p.via != "loader"]
        return max(fit, key=lambda p: (p.minor, p.via == "direct", p.version,
                                       p.linkage == "static"), default=None)

    def python_exact(self, like):
        """The same interpreter in its ordinary surroundings: not started by a loader."""
        return next((p for p in self.found if p.version == like.version and p.via != "loader"
                     and p.linkage == "static" and not p.free_threaded), like)

    # --- Parts ---

    def attempt(self, what, function, *arguments):
        """None and a loud line instead of the end of the bench."""
        try:
            return function(*arguments)
        except (tools.Failed, OSError, RuntimeError, ValueError, subprocess.SubprocessError) as e:
            tools.loud("%s: %s" % (what, e))
            return None

    def say(self, text):
        print("bench: " + text, file=sys.stderr, flush=True)

    def part_sampler(self):
        """The least of some rounds, as far apart as can be: where another virtual machine is busy on
        the same core all takes up to twice as long, for seconds."""
        if not os.path.exists(tools.PYEBPF):
            return
        found = []
        for minor in range(8, 16):
            python = self.python(minor)
            if python and python.minor == minor:
                found.append(python)
            else:
                tools.loud("NOT MEASURED ON 3.%d: no such interpreter" % minor)
        least = {}
        for i, python, depth in itertools.product(range(self.plan.sampler_rounds), found,
                                                  self.plan.depths):
            self.say("sampler, round %d, %s, %d deep" % (i + 1, python.name, depth))
            # A rate at which even 800 frames stay far below the time budget.
            ns = self.attempt("sampler on %s" % python.name, measure.sampler_ns, python, self.ours,
                              depth, 500, self.plan.sampler_seconds, self.output)
            if ns is not None:
                least[python, depth] = min(ns, least.get((python, depth), ns))
        for python in found:
            # <module> and steady() are on the stack too.
            self.put_sampler(python, [(depth + 2, least[python, depth])
                                      for depth in self.plan.depths if (python, depth) in least])

    def put_sampler(self, python, points):
        row = "%d.%d.%d" % python.version
        for depth, ns in points:
            self.sampler.put(row, str(depth - 2), "%.0f" % ns, {"ns": ns, "depth": depth})
        if len(points) < 2:
            return
        base, slope = measure.fit_line(points)
        goal = per_frame_goal_ns(python.minor)
        for column, ns, limit in (("base", base, 1000), ("a frame", slope, goal)):
            self.sampler.put(row, column, "%.*f" % (column != "base", ns), {"ns": ns})
            self.sampler.put(row, "goal, " + column, str(limit))
            if ns > limit:
                self.sampler.misses.append("BPF ns, %s, on %s: %.1f (goal: at most %d)" % (
                    column, row, ns, limit))

    def part_slowdown(self):
        columns = ([self.floor] if self.floor else []) + self.columns
        for hz in self.plan.rates:
            sums = {column.title: measure.Toggled() for column in columns}
            for i in range(self.plan.toggle_rounds):
                for column in columns:
                    self.say("slowdown at %s, round %d, %s" % (rate_text(hz), i + 1, column.title))
                    self.attempt("slowdown", measure.toggle, column.python, column.tool, hz,
                                 self.plan.toggle_seconds, self.output, sums[column.title])
            for column in columns:
                self.put_slowdown(hz, column, sums)

    def put_slowdown(self, hz, column, sums):
        t = sums[column.title]
        if len(t.wall) < 4:
            tools.loud("%s at %s: the target did too little to compare" % (column.title,
                                                                            rate_text(hz)))
            return
        at = " at " + rate_text(hz)
        for label, values in (("target's wall clock, x", t.wall), ("target's CPU time, x", t.cpu)):
            middle, low, high = measure.interval(values)
            self.main.put(label + at, column.title, "%.3f ±%.3f" % (middle, (high - low) / 2),
                          {"hz": hz, "median": middle, "low": low, "high": high,
                           "pairs": len(values)})
        floor = self.floor and sums[self.floor.title]
        if floor and len(floor.cpu) >= 4 and column is not self.floor:
            middle, low, high = measure.ratio_interval(t.cpu, floor.cpu)
            limit = {"goal": 1.05, "value": middle} if column.is_ours and hz <= 1000 else {}
            self.main.put("CPU time over perf record's, x" + at, column.title,
                          "%.3f ±%.3f" % (middle, (high - low) / 2),
                          {"hz": hz, "ratio": middle, "low": low, "high": high}, **limit)
        self.main.put("off the CPU" + at + ", % (without)", column.title, "%.1f (%.1f)" % tuple(
            100 * t.off_cpu_share(on) for on in (True, False)), {"hz": hz})
        self.main.put("pause p99" + at + ", ms (without)", column.title, "%.2f (%.2f)" % tuple(
            1000 * measure.quantile(t.off_cpu[on], 0.99) for on in (True, False)), {"hz": hz})

    def part_others(self):
        """What a process pays that is not recorded: the tick, and a look at whose it is."""
        ours = [column for column in self.columns if column.is_ours][:1]
        for hz, column in itertools.product(self.plan.other_rates, ours):
            sums = measure.Toggled()
            for i in range(self.plan.toggle_rounds * 2):
                self.say("others at %s, round %d, %s" % (rate_text(hz), i + 1, column.title))
                self.attempt("others", measure.toggle, column.python, column.tool, hz,
                             self.plan.toggle_seconds, self.output, sums, True)
            if len(sums.cpu) < 4:
                tools.loud("others at %s: they did too little to compare" % rate_text(hz))
                continue
            middle, low, high = measure.interval(sums.cpu)
            self.main.put("CPU time of a process not recorded, x at " + rate_text(hz), column.title,
                          "%.4f ±%.4f" % (middle, (high - low) / 2),
                          {"hz": hz, "median": middle, "low": low, "high": high,
                           "pairs": len(sums.cpu)})

    def part_stacks(self):
        for hz, period_us in self.plan.cells:
            sums = {column.title: measure.Stacks() for column in self.columns}
            for i in range(self.plan.alternate_rounds):
                for column in self.columns:
                    self.say("stacks at %s, %d us, round %d, %s" % (rate_text(hz), period_us, i + 1,
                                                                    column.title))
                    self.attempt("stacks", measure.alternate, column.python, column.tool, hz,
                                 period_us, self.plan.alternate_seconds, self.output,
                                 sums[column.title])
            for column in self.columns:
                self.put_stacks(hz, period_us, column, sums[column.title])

    def put_stacks(self, hz, period_us, column, s):
        if not s.samples:
            return
        at = " at " + rate_text(hz)
        ours = column.is_ours
        torn = s.torn / s.samples
        self.main.put("torn stacks%s, chains of %d us" % (at, period_us), column.title,
                      "%d of %d" % (s.torn, s.samples) if ours else "%.2f %%" % (100 * torn),
                      {"hz": hz, "torn": s.torn, "samples": s.samples},
                      **({"goal": 0, "value": torn} if ours else {}))
        if period_us != self.plan.cells[0][1]:
            return
        achieved = s.samples / s.sampled_seconds / hz
        self.main.put("samples" + at + ", % of those asked for", column.title,
                      "%.1f" % (100 * achieved), {"hz": hz, "achieved": achieved})
        if s.lost:
            lost = statistics.fmean(s.lost)
            self.main.put("not delivered or failed" + at + ", %", column.title,
                          "%.2f" % (100 * lost), {"hz": hz, "lost": lost})
        # The goal is about many samples: at few, what a process costs that only waits shows.
        own_us = s.own_cpu / s.samples * 1e6
        self.main.put("own CPU a sample" + at + ", us", column.title, "%.2f" % own_us,
                      {"hz": hz, "us": own_us},
                      **({"goal": 1, "value": own_us} if ours and hz >= 10000 else {}))
        mib = (s.peak_bytes + s.kernel_bytes) / (1 << 20)
        self.main.put("memory" + at + ", MiB", column.title, "%.0f" % mib,
                      {"hz": hz, "resident": s.peak_bytes, "bpf": s.kernel_bytes},
                      **({"goal": 64, "value": mib} if ours else {}))

    def part_files(self):
        """Ours and profiling.sampling's beside each other, on the same interpreter."""
        sampling = next((c for c in self.columns if isinstance(c.tool, tools.Sampling)), None)
        if not sampling:
            tools.loud("FILE SIZES NOT COMPARED: no profiling.sampling")
        python = sampling.python if sampling else self.python(15)
        pair = [c for c in self.columns if c is sampling or c.is_ours and c.python is python]
        for kind in ("steady", "mixed", "churning"):
            for hz in self.plan.file_rates:
                sizes = {}
                seconds = self.plan.file_seconds * (2 if hz < 1000 else 1)
                for column in pair:
                    self.say("file of %s at %s, %s" % (kind, rate_text(hz), column.title))
                    sizes[column] = self.attempt("file", measure.file_size, python, column.tool,
                                                 kind, hz, seconds, self.output)
                self.put_files(kind, hz, sizes)

    def put_files(self, kind, hz, sizes):
        sizes = {column: size for column, size in sizes.items() if size and size[1]}
        a_sample = {column: size[0] / size[1] for column, size in sizes.items()}
        theirs = [value for column, value in a_sample.items() if not column.is_ours]
        row = "bytes a sample, %s at %s" % (kind, rate_text(hz))
        for column, value in a_sample.items():
            self.main.put(row, column.title, "%.2f" % value,
                          {"hz": hz, "bytes": sizes[column][0], "samples": sizes[column][1]})
            if column.is_ours and theirs and value > theirs[0]:
                self.main.misses.append("%s: %.2f (goal: below the %.2f of profiling.sampling)" % (
                    row, value, theirs[0]))
        for column, (_, _, peak) in sizes.items():
            mib = peak / (1 << 20)
            self.main.put("memory, %s at %s, MiB" % (kind, rate_text(hz)), column.title,
                          "%.0f" % mib, {"hz": hz, "bytes": peak},
                          **({"goal": 64, "value": mib} if column.is_ours else {}))

    def part_start(self):
        times = collections.defaultdict(list)
        jobs = [("start to first sample, ms", column, False) for column in self.columns]
        jobs += [("start to first sample with -a, ms", column, True) for column in self.columns
                 if column.is_ours]
        for i in range(self.plan.start_rounds):
            for row, column, everything in jobs:
                self.say("start, round %d, %s" % (i + 1, column.title))
                ms = self.attempt("start", measure.start_ms, column.python, column.tool,
                                  self.output, everything)
                if ms is not None:
                    times[row, column.title].append(ms)
        for row, column, everything in jobs:
            values = times[row, column.title]
            if values:
                middle = statistics.median(values)
                limit = {"goal": 500 if everything else 150, "value": middle} \
                    if column.is_ours else {}
                self.main.put(row, column.title, "%.0f" % middle, {"ms": values}, **limit)

    def part_page(self):
        """CPU time of scripts on the main thread, first paint, memory: tests/bench/page.js."""
        self.say("page")
        measured = self.attempt("pages", self.measure_pages) or {"rows": []}
        for name, *cells in measured["rows"]:
            for column, text in zip(measured["columns"], cells):
                self.page.put(name, column, text)

    def measure_pages(self):
        command = ["node", os.path.join(HERE, "page.js"), "--json",
                   *map(str, self.plan.page_sizes)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise tools.Failed(done.stdout.strip() or "see above")
        return json.loads(done.stdout)

    def part_large(self):
        for kind in ("steady", "cyclic"):
            self.say("%d samples, %s" % (self.plan.large_samples, kind))
            with tempfile.TemporaryDirectory(prefix="pyebpf-bench-") as folder:
                found = self.attempt("large recordings", large.measure, kind,
                                     self.plan.large_samples, folder)
            if found:
                self.put_large(*found)

    def put_large(self, stacks, found):
        column = "%s samples, %s stacks" % tuple("{:,}".format(n) for n in (
            self.plan.large_samples, stacks))
        for what, (wall, cpu, memory) in found.items():
            mib = memory / (1 << 20)
            self.large.put(what + ", s", column, "%.2f" % wall, {"s": wall}, goal=2, value=wall)
            self.large.put(what + ", CPU s", column, "%.2f" % cpu, {"s": cpu})
            self.large.put(what + ", MiB", column, "%.0f" % mib, {"bytes": memory}, goal=512,
                           value=mib)

    def part_agent(self):
        """Beside many processes, and while others start and end."""
        python = self.python(13) or self.found[-1]
        for hz in (19, 99):
            self.say("agent at %d Hz" % hz)
            found = self.attempt("agent", agent.steady, python, hz, AGENT_PROCESSES,
                                 self.plan.agent_windows)
            if found:
                self.put_agent(hz, found)
        self.say("agent, %d process starts" % self.plan.agent_starts)
        found = self.attempt("agent", agent.churn, python, CHURN_HZ, self.plan.agent_starts)
        if found:
            self.put_churn(found)

    def put_agent(self, hz, found):
        column = "%d Hz, %d processes" % (hz, AGENT_PROCESSES)
        windows, services = found["windows"], max(1, found["services"])
        mib = found["resident"] / (1 << 20)
        rows = (("samples a window of %d s" % agent.WINDOW_SECONDS, "%.0f",
                 found["samples"] / windows),
                ("own CPU, % of one CPU", "%.2f", 100 * found["cpu"] / found["seconds"]),
                ("own CPU a sample, us", "%.0f", found["cpu"] / found["samples"] * 1e6),
                ("requests a window", "%.0f", services),
                ("bytes a window", "%.0f", found["bytes"] / windows),
                ("bytes a request", "%.0f", found["bytes"] / windows / services),
                ("memory of BPF maps and programs, MiB", "%.0f", found["bpf"] / (1 << 20)))
        for row, form, value in rows:
            self.agent.put(row, column, form % value, found)
        self.agent.put("resident memory at most, MiB", column, "%.0f" % mib, found,
                       goal=64, value=mib)

    def put_churn(self, found):
        column = "%d Hz, %d process starts" % (CHURN_HZ, found["starts"])
        mib = [value / (1 << 20) for value in found["resident"]]
        peak = found["peak"] / (1 << 20)
        self.agent.put("resident memory at most, MiB", column, "%.0f" % peak, found,
                       goal=64, value=peak)
        self.agent.put("process starts a second", column, "%.0f" % (found["starts"] / found["seconds"]),
                       found)
        self.agent.put("own CPU a process start, us", column,
                       "%.0f" % (found["cpu"] / found["starts"] * 1e6), found)
        self.agent.put("rows of processes afterwards", column, "%.0f" % found["rows"], found)
        self.agent.put("resident memory before, and after each quarter, MiB", column,
                       ", ".join("%.1f" % value for value in mib), found)


# --- Front ---------------------------------------------------------------------------------------


def version_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return (done.stdout.strip().splitlines() or ["?"])[0] if done.returncode == 0 else "?"


def head(bench, mode, started):
    lines = ["Machine: " + kernel.machine()]
    versions = []
    for column in bench.columns:
        if isinstance(column.tool, tools.Sampling):
            versions.append("profiling.sampling of CPython %d.%d.%d" % column.python.version)
        elif not column.is_ours:
            versions.append(version_of([column.tool.program, "--version"]))
    lines.append("Compared: " + ", ".join(dict.fromkeys(versions)) if versions
                 else "Compared with nothing: no other profiler is installed")
    lines.append("Interpreters: " + ", ".join(dict.fromkeys(
        column.python.name for column in bench.columns)))
    lines.append("Measured: %s, %s" % (started.strftime("%Y-%m-%d"), mode))
    return lines


def misses(bench):
    found = (bench.sampler.misses + bench.main.misses + bench.large.misses +
             bench.agent.misses)
    return ["Misses its goal: " + text for text in found] or ["No goal is missed."]


def markdown(bench, lines, command):
    out = ["`%s`" % command, ""] + ["%s  " % line for line in lines] + [""]
    for t in (bench.main, bench.sampler, bench.page, bench.large, bench.agent):
        if t.rows:
            out += [t.markdown(), ""]
    return "\n".join(out + ["- " + text for text in misses(bench)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 minutes instead of 20")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART",
                        help="one of " + ", ".join(PARTS) + "; may be repeated")
    parser.add_argument("--no-provision", action="store_true",
                        help="only interpreters that are installed here")
    parser.add_argument("--json", metavar="FILE", help="all numbers, also those behind the table")
    parser.add_argument("--markdown", metavar="FILE",
                        help="the tables, for a page; in a FILE with the lines "
                        "'<!-- bench: start -->' and '<!-- bench: end -->' only what is between "
                        "them is replaced")
    arguments = parser.parse_args()
    if os.geteuid():
        sys.exit("bench: needs root: it samples other processes and counts the time of programs "
                 "in the kernel")
    plan = QUICK if arguments.quick else FULL
    started = datetime.datetime.now()
    found = pythons.find_all(not arguments.no_provision)
    if not found:
        sys.exit("bench: no CPython found")
    with tempfile.TemporaryDirectory(prefix="pyebpf-bench-") as folder:
        bench = Bench(plan, found, folder)
        bench.choose()
        lines = head(bench, "quick" if arguments.quick else "full", started)
        neighbours = kernel.Neighbours()
        for part in arguments.only or PARTS:
            getattr(bench, "part_" + part)()
        lines.append("Meanwhile " + neighbours.text())
    print("\n".join(lines) + "\n")
    for t in (bench.main, bench.sampler, bench.page, bench.large, bench.agent):
        if t.rows:
            print(t.plain() + "\n")
    print("\n".join(misses(bench)))
    if arguments.json:
        with open(arguments.json, "w") as f:
            json.dump({"about": lines, "plan": plan._asdict(), "main": bench.main.values,
                       "sampler": bench.sampler.values,
                       "agent": bench.agent.values, "page": bench.page.values, "large": bench.large.values,
                       "misses": misses(bench)}, f, indent=1)
    if arguments.markdown:
        command = ["sudo tests/bench/run.sh"] + ["--quick"] * arguments.quick
        command += ["--only " + part for part in arguments.only or ()]
        table.write_markdown(arguments.markdown, "bench", markdown(bench, lines, " ".join(command)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
