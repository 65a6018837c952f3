# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The workloads themselves: CPython's own view of them must be what they say. Needs no pyebpf."""
import collapsed
import pytest
import truth as judge
from collapsed import Frame, Stack
from harness import Workload


@pytest.mark.few_pythons
def test_lines_selfcheck(python):
    with Workload(python, "lines.py", "--selfcheck", 2) as workload:
        workload.go()
        truth = workload.truth()
    sites = judge.SiteTruth(truth)
    samples = {tuple(map(tuple, stack)): count for stack, count in truth["samples"]}
    # CPython switches threads at jumps and calls only, and takes the sampler's time off the sites:
    # counts mean little here, places do.
    verdict = sites.judge(samples, hz=1e9, near_share=0.02)
    assert not verdict.wrong, verdict.text()
    assert sum(verdict.exact.values()) > 300, verdict.text()


@pytest.mark.parametrize("name,line,stack,count", [
    ("plain", "a (x.py:1);b.c (y/z.py:20) 3",
     [Frame("a", "x.py", 1), Frame("b.c", "y/z.py", 20)], 3),
    ("splits at the last parenthesis", "f (1) (x.py:2) 1", [Frame("f (1)", "x.py", 2)], 1),
    ("escaped separator", "f\\x3bg (x\\x20(1).py:2) 1", [Frame("f;g", "x (1).py", 2)], 1),
    ("other backslashes stay", "f\\n (x\\y.py:2) 1", [Frame("f\\n", "x\\y.py", 2)], 1),
    ("escaped backslash", "f (x\\x5cx3b.py:2) 1", [Frame("f", "x\\x3b.py", 2)], 1),
    ("marker", "f (x.py:2);<GC> 9", [Frame("f", "x.py", 2), Frame("<GC>", "~", 0)], 9),
    ("no lines", "f (x.py) 1", [Frame("f", "x.py", 0)], 1),
    ("colon in the file name", "f (c:1:2) 1", [Frame("f", "c:1", 2)], 1),
    ("no file name", "f (:2) 1", [Frame("f", "", 2)], 1),
], ids=lambda value: value if isinstance(value, str) and " " not in value else None)
def test_collapsed_reads(name, line, stack, count):
    assert collapsed.parse("# pyebpf-collapsed interval_us=1000\n" + line + "\n") == {
        Stack((), tuple(stack)): count}, name


def test_collapsed_tags():
    text = "process python (7);thread Main Thread (8);f (x.py:1) 2\n"
    assert collapsed.parse(text, tags=True) == {
        Stack((("process", "python", 7), ("thread", "Main Thread", 8)),
              (Frame("f", "x.py", 1),)): 2}


ROOT = (("<module>", "chains.py", 50), ("main", "chains.py", 36))


def chain(letter, first, last, leaf_line=None):
    rows = tuple(("%s%d" % (letter, i), "chain_%s.py" % letter, 2 * i + 2)
                 for i in range(first, last + 1))
    return rows[:-1] + (rows[-1][:2] + (leaf_line,),) if leaf_line else rows


@pytest.mark.parametrize("name,stack,is_torn", [
    ("whole", ROOT + chain("a", 0, 49), False),
    ("on its way down", ROOT + chain("b", 0, 20, 41), False),
    ("only main", ROOT, False),
    ("mixed", ROOT + chain("a", 0, 20) + chain("b", 21, 49), True),
    ("skips a level", ROOT + chain("a", 0, 20) + chain("a", 22, 49), True),
    ("no root", chain("a", 0, 49), True),
    ("no main", ROOT[:1] + chain("a", 0, 49), True),
    ("cut at the root", chain("a", 10, 49), True),
    ("wrong line", ROOT + chain("a", 0, 49, 99 + 2), True),
    ("caller at its def line", ROOT + chain("a", 0, 5, 11) + chain("a", 6, 49), True),
], ids=lambda value: value if isinstance(value, str) else None)
def test_torn_stacks_are_recognised(name, stack, is_torn):
    assert bool(judge.torn(stack, 50)) == is_torn, name


SITE = (("<module>", "p.py", 9), ("run", "p.py", 7), ("spin", "p.py", 3))
SITE_TRUTH = {"cpu": 1.01, "way": 0.0005, "sites": [{"name": "spin", "cpu": 1.0, "stacks": [SITE],
                                      "leaf_lines": []}],
              "lines": [["<module>", "p.py", [1, 8, 9]], ["run", "p.py", [6, 7]],
                        ["spin", "p.py", [2, 3, 4]]]}


@pytest.mark.parametrize("name,extra,is_wrong", [
    ("nothing", {}, False),
    ("two on the way in", {SITE[:2] + (("spin", "p.py", 2),): 2}, False),
    ("twenty on the way in", {SITE[:2] + (("spin", "p.py", 2),): 20}, True),
    ("a line of another function", {SITE[:2] + (("spin", "p.py", 7),): 1}, True),
    ("a caller's line of another function", {(SITE[0], ("run", "p.py", 3), SITE[2]): 1}, True),
    ("a caller's other line", {(SITE[0], ("run", "p.py", 6), SITE[2]): 10}, True),
    ("no root", {SITE[1:]: 10}, True),
    ("a frame too many", {SITE[:2] + SITE[1:]: 10}, True),
    ("no leaf", {SITE[:2]: 40}, True),
    ("a few in the driver", {SITE[:2]: 10}, False),
    ("unnamed", {(("<unknown>", "~", 0),): 40}, True),
    ("empty", {(): 40}, True),
], ids=lambda value: value if isinstance(value, str) else None)
def test_sites_are_judged(name, extra, is_wrong):
    verdict = judge.SiteTruth(SITE_TRUTH).judge({SITE: 1000, **extra}, hz=1000)
    assert bool(verdict.wrong) == is_wrong, name + ": " + verdict.text()


@pytest.mark.parametrize("count,is_wrong", [(20, False), (40, True)])
def test_the_way_of_a_slow_machine_is_no_wrong_line(count, is_wrong):
    near = SITE[:2] + (("spin", "p.py", 2),)
    verdict = judge.SiteTruth(dict(SITE_TRUTH, way=0.012)).judge({SITE: 1000, near: count}, hz=1000)
    assert bool(verdict.wrong) == is_wrong, verdict.text()


@pytest.mark.parametrize("name,kind,stack,is_wrong", [
    ("right", "lines", (("dispatch", "dispatch.py", 3 + 2 * 20), ("f_20", "churn.py", 22)), False),
    ("entering", "lines", (("dispatch", "dispatch.py", 43), ("f_20", "churn.py", 1)), False),
    ("another's name", "names", (("dispatch", "dispatch.py", 43), ("f_21", "churn.py", 2)), True),
    ("another's line", "same", (("dispatch", "dispatch.py", 43), ("f", "churn.py", 23)), True),
    ("between calls", "same", (("dispatch", "dispatch.py", 42), ("f", "churn.py", 22)), True),
    ("elsewhere", "same", (("make", "p/churn.py", 30),), False),
], ids=lambda value: value if isinstance(value, str) else None)
def test_reused_addresses_are_judged(name, kind, stack, is_wrong):
    assert bool(judge.churn_error(stack, kind)) == is_wrong, name
