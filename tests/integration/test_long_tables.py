# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Lines of code objects whose line tables do not come with their first sample."""
import collections
import json
import os
import re

import harness
import pytest
from harness import Recorder, Workload, export, frames, record_whole, run
from test_agent import Agent

pytestmark = pytest.mark.usefixtures("pyebpf")
CASES = ("module", "function", "statements", "several", "in_turn", "mixed")


def wrong_lines(samples, lines):
    """({(file, line): samples at a line that did not run}, samples of these files). A leaf may be at
    the lines that a function begins with: 3.11 goes through all of its code there."""
    wrong, seen = collections.Counter(), collections.Counter()
    for stack, count in samples.items():
        for i, (_, file, line) in enumerate(stack):
            if file in lines:
                seen[file] += count
                if line not in lines[file] and not (i == len(stack) - 1 and line in (1, 2, 3)):
                    wrong[file, line] += count
    return wrong, seen


def check(samples, truth, text):
    wrong, seen = wrong_lines(samples, truth["lines"])
    assert not wrong, (wrong, seen, text)
    assert len(seen) >= len(truth["lines"]) / 2, (seen, truth, text)


def check_case(python, case, tmp_path):
    with Workload(python, "long_tables.py", case, 0.4) as workload:
        truth, samples, text = record_whole(workload, tmp_path, 199)
    check(samples, truth, text)
    assert "approximate" not in text, text


@pytest.mark.quick
def test_below_a_deep_stack(python, tmp_path):
    """Each sample, from the first one on."""
    check_case(python, "deep", tmp_path)


@pytest.mark.few_pythons(4)
@pytest.mark.spread("python", "case")
@pytest.mark.parametrize("case", CASES)
def test_ten_thousand_lines(python, case, tmp_path):
    check_case(python, case, tmp_path)


@pytest.mark.few_pythons(1)
def test_of_the_whole_machine(python, tmp_path):
    """Several processes with several such functions each, all at once."""
    output = tmp_path / "all.pyebpf"
    workloads = [Workload(python, "long_tables.py", "several", 0.6) for _ in range(2)]
    try:
        with Recorder(output, "-a", "-F", 199) as recorder:
            recorder.wait_attached()
            for workload in workloads:
                workload.go()
            truths = [workload.truth() for workload in workloads]
            recorder.finish()
    finally:
        for workload in workloads:
            workload.close()
    check(frames(export(output)), truths[0], recorder.text())


@pytest.mark.few_pythons
def test_lines_that_are_gone_are_marked(python, tmp_path):
    """Functions that are freed while their tables are read: at their lines, or marked and counted."""
    with Workload(python, "long_tables.py", "dropped", 0.3) as workload:
        truth, samples, text = record_whole(workload, tmp_path, 199)
    wrong, _ = wrong_lines(samples, truth["lines"])
    assert all(line < 0 for _, line in wrong), (wrong, text)
    counted = re.search(r"; lines approximate in ([\d,]+) samples? ", text)
    assert sum(wrong.values()) == (int(counted.group(1).replace(",", "")) if counted else 0), (
        wrong, text)
    told = json.loads(run("export", "-f", "json", tmp_path / "whole.pyebpf").stdout)
    unknown = {file for _, file, line, *_ in told["frames"] if file in truth["lines"] and line is None}
    assert unknown == {file for file, line in wrong if line == -1}, (unknown, wrong)


@pytest.mark.few_pythons
def test_table_that_is_too_long(python, tmp_path):
    """Only its def line is known: marked, or left out where a line is a number."""
    file, data = "/srv/app/too_long.py", tmp_path / "whole.pyebpf"
    with Workload(python, "long_tables.py", "too_long", 0.5) as workload:
        _, samples, _ = record_whole(workload, tmp_path, 199)
    assert {line for stack in samples for _, at, line in stack if at == file} == {-1}, samples
    told = json.loads(run("export", "-f", "json", data).stdout)
    assert {line for _, at, line, *_ in told["frames"] if at == file} == {None}, told["frames"]
    assert "(%s:~1)" % file in run("export", "-f", "collapsed", data).stdout
    diff = json.loads(run("diff", "-f", "json", "--compat", "3.15", data, data).stdout)
    assert {line for _, at, line in diff["frames"] if at == file} == {0}, diff
    run("export", "-f", "heatmap", "-o", tmp_path / "heat", data)
    pages = "".join(page.read_text() for page in (tmp_path / "heat").glob("*.html"))
    assert re.search('title="line unknown"><td>\\?<td title=.*<i>in too_long</i>', pages), pages[:4000]
    check_dump(python, file)


def check_dump(python, file):
    with Workload(python, "long_tables.py", "too_long", 20) as workload:
        workload.go()
        harness.wait_until(lambda: 'File "%s", line ~1, in too_long' % file in run("dump", "-p", workload.pid).stdout,
                           10, "dump shows the function")
        threads = json.loads(run("dump", "--json", "-p", workload.pid).stdout)["processes"][0]["threads"]
    assert [frame["line"] for frame in threads[0]["frames"] if frame["file"] == file] == [None], threads


@pytest.mark.few_pythons
def test_table_of_a_coroutine_that_is_too_long(python):
    if python.minor < 8:
        return  # tasks are read of 3.8 and later
    with Workload(python, "long_tables.py", "awaits", 20) as workload:
        workload.go()
        harness.wait_until(lambda: "waits (/srv/app/waits.py:~1)" in run("dump", "--async", "-p", workload.pid).stdout,
                           10, "dump shows the coroutine")
        process, = json.loads(run("dump", "--async", "--json", "-p", workload.pid).stdout)["processes"]
    assert [frame["line"] for frame in process["tasks"][0]["frames"] if frame["name"] == "waits"] == [None], process


@pytest.mark.few_pythons(1)
@pytest.mark.xdist_group("agent")
def test_of_the_agent(python, tmp_path):
    """Over windows, of which each has frames of its own."""
    with Workload(python, "long_tables.py", "several", 2.5) as workload:
        with Agent(tmp_path, "files", more="pid_namespace: /proc/%d/ns/pid\n" % os.getpid()) as agent:
            workload.go()
            truth = workload.truth()
            harness.wait_until(lambda: agent.recorded() >= 199 * truth["cpu"] / 4, 10, "windows end")
            agent.stop()
            text = agent.text()
    samples = collections.Counter()
    for file in (tmp_path / "out").iterdir():
        samples.update(frames(export(file)))
    check(samples, truth, text)
