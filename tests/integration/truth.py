# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Judges samples against what a workload says of itself."""
import collections
import math
import os


def share_error(count, total, expected):
    """How far count / total is out of 4 sigma (binomial) + 0.5 points of expected; <= 0: within."""
    if not total:
        return 1.0
    sigma = math.sqrt(expected * (1 - expected) / total)
    return abs(count / total - expected) - 4 * sigma - 0.005


def plausible(expected):
    """The most samples that may come where `expected` are expected, at 4 sigma."""
    return expected + 4 * math.sqrt(expected) + 3


EXCUSE_MAX = 0.02  # of the ticks due may be called not delivered: whoever calls more is wrong


def least(due, counters, share=0.97):
    """The fewest samples that there must be of this many ticks' CPU time, by a clock that is not the
    recorder's: a share, less four sigma (the number of ticks of one busy CPU scatters 0.6 times as much
    as that of independent ones), less what the kernel is said to have dropped, as far as that can be."""
    return share * due - 4 * 0.6 * math.sqrt(due) - min(counters["not_delivered"], EXCUSE_MAX * due)


CUT_MIN = 1000  # calls in 2 ms are what the slowest machine walks


def show(stack):
    text = ["%s (%s:%s)" % (ascii(name)[1:-1][:60], ascii(file)[1:-1][-40:], line)
            for name, file, line in stack]
    return ";".join(text if len(text) <= 12 else text[:4] + ["... %d ..." % (len(text) - 10)]
                    + text[-6:])


class Verdict:
    """exact: samples by site, those of a walk that says it ended early included. near: right functions,
    at a line of theirs where they are for about a microsecond on their way in and out. between: outside
    the sites. wrong: [(why, stack, count)]."""

    def __init__(self):
        self.exact = collections.Counter()
        self.near = []
        self.between = collections.Counter()
        self.wrong = []
        self.total = 0

    def text(self):
        rows = ["%d samples: %d exact, %d near, %d between, %d wrong" % (
            self.total, sum(self.exact.values()), sum(n for _, n in self.near),
            sum(self.between.values()), sum(n for _, _, n in self.wrong))]
        rows += ["%s: %d x %s" % (why, n, show(stack)) for why, stack, n in self.wrong[:12]]
        rows += ["near: %d x %s" % (n, show(stack)) for stack, n in self.near[:6]]
        return "\n  ".join(rows)


class SiteTruth:
    """What lines.py printed."""

    def __init__(self, truth):
        self.cpu = truth["cpu"]
        self.way = truth["way"]
        self.site_cpu = {site["name"]: site["cpu"] for site in truth["sites"]}
        self.lines = collections.defaultdict(set)
        for name, file, lines in truth["lines"]:
            self.lines[name, file].update(lines)
        self.by_stack = {}
        self.by_names = {}
        self.leaves = set()
        for site in truth["sites"]:
            for stack in site["stacks"]:
                stack = tuple(map(tuple, stack))
                name, file, line = stack[-1]
                for leaf_line in [line] + site["leaf_lines"]:
                    if leaf_line == line or leaf_line in self.lines[name, file]:
                        exact = stack[:-1] + ((name, file, leaf_line),)
                        other = self.by_stack.setdefault(exact, site["name"])
                        assert other == site["name"], "two sites with one stack: " + show(exact)
                self.by_names[tuple(frame[:2] for frame in stack)] = site["name"]
                self.leaves.add((name, file))

    def site_of_rest(self, stack):
        """The site of a stack whose walk says it ended early, which a slow machine makes it do among
        thousands of calls: the one whose innermost calls these are. None: of none, or on its way."""
        root, *rest = stack
        if root[0] != "<truncated>" or len(rest) < CUT_MIN:
            return None
        return next((name for site, name in self.by_stack.items()
                     if len(site) > len(rest) and site[-len(rest):] == tuple(rest)), None)

    def is_rest_on_its_way(self, stack):
        """Whether its walk ended early, and it is at lines of a function that calls itself so often."""
        return (stack[0][0] == "<truncated>" and len(stack) > CUT_MIN
                and all(frame[2] in self.lines[frame[:2]] for frame in stack[1:]))

    def is_on_its_way(self, stack):
        """Whether it becomes the stack of a site by further calls: a recursion not yet deep enough."""
        depth = len(stack) - 1
        return any(site[:depth] == stack[:depth] and site[depth][:2] == stack[depth][:2]
                   and stack[depth][2] in self.lines[stack[depth][:2]]
                   for site in self.by_stack if len(site) > depth)

    @staticmethod
    def keeps_books(stack):
        """Whether it is of the workload's own begin() or mark(), whose lambdas and generators are
        called as those of sites are."""
        return any(name in ("begin", "mark") and os.path.basename(file) == "lines.py"
                   for name, file, _ in stack)

    def judge(self, samples, hz, near_share=0.0025):
        """samples: {stack of (name, file, line), root first: count}; near_share: share of samples
        that may be near (at 1 kHz and with three bursts a site 1 in 10,000 are), or as many as the way takes."""
        verdict = Verdict()
        for stack, count in samples.items():
            verdict.total += count
            if stack in self.by_stack:
                verdict.exact[self.by_stack[stack]] += count
            elif stack and self.site_of_rest(stack):
                verdict.exact[self.site_of_rest(stack)] += count
            elif tuple(frame[:2] for frame in stack) in self.by_names:
                impossible = [f for f in stack if f[2] not in self.lines[f[:2]]]
                if impossible:
                    verdict.wrong.append(("line %d is not of this function" % impossible[0][2],
                                          stack, count))
                else:
                    verdict.near.append((stack, count))
            elif self.keeps_books(stack):
                verdict.between[stack] += count
            elif stack and stack[-1][:2] in self.leaves and not (
                    self.is_on_its_way(stack) or self.is_rest_on_its_way(stack)):
                verdict.near.append((stack, count))
            else:
                verdict.between[stack] += count
        near = sum(count for _, count in verdict.near)
        most = max(6 + verdict.total * near_share, 3 + plausible(verdict.total * self.way / self.cpu))
        if near > most:
            verdict.wrong += [("not the line it spins on", s, n) for s, n in verdict.near]
        outside = max(0.0, self.cpu - sum(self.site_cpu.values()))
        if sum(verdict.between.values()) > plausible(outside * hz * 1.25):
            verdict.wrong += [("too often outside the sites (%.0f expected)" % (outside * hz), s, n)
                              for s, n in verdict.between.most_common(8)]
        return verdict

    def share_errors(self, verdict):
        """The sites whose share of the samples is not their share of the CPU time."""
        total = sum(verdict.exact.values())
        cpu = sum(self.site_cpu.values())
        return ["%s: %d of %d samples, %.2f %% of the CPU time" % (
                    name, verdict.exact[name], total, 100 * spent / cpu)
                for name, spent in self.site_cpu.items()
                if share_error(verdict.exact[name], total, spent / cpu) > 0]


def torn(frames, depth):
    """Why a stack of chains.py is impossible, or None. frames: (name, file, line), root first."""
    if not frames or frames[0][0] != "<module>":
        return "does not begin with <module>"
    if len(frames) == 1:
        return None
    if frames[1][0] != "main":
        return "main is missing"
    chain = frames[2:]
    if not chain:
        return None
    letter = chain[0][0][:1]
    if letter not in ("a", "b"):
        return "unknown function " + chain[0][0]
    for level, (name, file, line) in enumerate(chain):
        if name != "%s%d" % (letter, level) or file != "chain_%s.py" % letter:
            return "%s after level %d of chain %s" % (name, level - 1, letter)
        is_leaf = level == len(chain) - 1
        allowed = (2 * level + 1, 2 * level + 2) if is_leaf else (2 * level + 2,)
        if line not in allowed:
            return "%s at line %d" % (name, line)
    return "deeper than the chain" if len(chain) > depth else None


def churn_error(frames, kind):
    """Why a stack of churn.py is impossible, or None."""
    if not frames or frames[-1][1] != "churn.py" or frames[-1][0] == "<module>":
        return None  # not in one of the functions
    if len(frames) < 2 or frames[-2][:2] != ("dispatch", "dispatch.py"):
        return "not called by dispatch()"
    k, odd = divmod(frames[-2][2] - 3, 2)
    if odd or not 0 <= k < 100:
        return "dispatch() calls nothing at line %d" % frames[-2][2]
    name, _, line = frames[-1]
    if name != ("f" if kind == "same" else "f_%02d" % k):
        return "call %d runs %s" % (k, name)
    spin = 2 + {"lines": k, "names": 0, "same": k % 30}[kind]
    if line not in (1, spin):
        return "call %d spins at line %d, not %d" % (k, spin, line)
    return None
