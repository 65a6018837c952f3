# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record --async: samples in tasks against what each task used by its own clock, and task time against waits
that are known."""
import collections
import json
import re

import judge
import pytest
import test_dump_tasks
from harness import Workload, record_to, run
from truth import share_error

pytestmark = pytest.mark.usefixtures("pyebpf")

HZ = 1999


def samples_of(recording, *arguments):
    done = run("export", "-f", "jsonl", *arguments, recording)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def own(sample):
    """The program's functions, root first."""
    return [frame[0] for frame in sample["stack"] if (frame[1] or "").endswith("tasked.py")]


def has_tasks(python):
    return python.minor >= 8


# --- samples ------------------------------------------------------------------------------------------------

def check_labels(samples, truth):
    seen = collections.Counter()
    for sample in samples:
        seen[sample["labels"].get("task")] += sample["value"]
    assert set(seen) <= set(truth), (seen, truth)
    used, total = sum(truth.values()), sum(seen.values())
    for label, seconds in truth.items():
        error = share_error(seen[label] * len(samples) / total, len(samples), seconds / used)
        assert error <= 0, (label, seconds / used, seen[label] / total, len(samples))


def check_chains(samples):
    """Below each task are those who await it, as of the sweep before, and no loop."""
    assert samples
    for sample in samples:
        names = [frame[0] for frame in sample["stack"]]
        assert names[:names.index("parent")] in ([], ["work_all"]), names
        assert names[-4:-1] in (["nameless", "innermost", "work"], ["generated", "innermost", "work"]), names


def record_work(start, folder, *arguments, seconds=0.6):
    output = folder / "work.pyebpf"
    with start as workload:
        truth, text = record_to(output, workload, HZ, *arguments)
    return [s for s in samples_of(output, "--kind", "cpu") if "spin" in own(s)], truth, text


@pytest.mark.few_pythons
@pytest.mark.quick
def test_samples_are_of_their_tasks(python, tmp_path, is_full):
    if not has_tasks(python):
        return
    start = Workload(python, "tasked.py", "work", 5 if is_full else 0.5)
    samples, truth, text = record_work(start, tmp_path, "--async")
    check_labels(samples, truth)
    check_chains(samples)
    assert "no tasks found" not in text, text


@pytest.mark.full
def test_samples_are_of_their_tasks_everywhere(any_python, tmp_path):
    if has_tasks(any_python):
        samples, truth, _ = record_work(Workload(any_python, "tasked.py", "work", 2), tmp_path, "--async")
        check_labels(samples, truth)
        check_chains(samples)


@pytest.mark.full
def test_samples_are_of_their_tasks_with_uvloop(any_python, tmp_path):
    if not has_tasks(any_python) or any_python.via != "direct" or any_python.source == "twin":
        return  # no pip there
    start = test_dump_tasks.workload(any_python, "tasked.py", "work", 2, "uvloop", package="async")
    samples, truth, _ = record_work(start, tmp_path, "--async")
    check_labels(samples, truth)
    check_chains(samples)


def check_nurseries(samples):
    """Each task's own function is below the one whose nursery it is in."""
    assert samples
    for sample in samples:
        label, names = sample["labels"].get("task"), own(sample)
        assert names[-3:] == ["trio_innermost", "work", "spin"], names
        assert names[-4] == {"zw\u00f6lf": "trio_one", "__main__.trio_two": "trio_two"}.get(label, label), (label, names)
        assert names[:-4] in (["trio_all", "trio_parent"], []), names


@pytest.mark.full
def test_samples_are_of_trios_tasks(any_python, tmp_path):
    if not has_tasks(any_python) or any_python.via != "direct" or any_python.source == "twin":
        return  # no pip there
    start = test_dump_tasks.workload(any_python, "tasked.py", "trio", 2, package="async")
    samples, truth, _ = record_work(start, tmp_path, "--async")
    check_labels(samples, truth)
    check_nurseries(samples)


def test_the_loop_is_kept_below(some_python, tmp_path):
    start = Workload(some_python, "tasked.py", "work", 0.2)
    samples, truth, _ = record_work(start, tmp_path, "--async=loop")
    assert samples
    for sample in samples:
        names = [frame[0].split(".")[-1] for frame in sample["stack"]]
        loop = names.index("_run_once")
        assert names[0] == "<module>" and "spin" not in names[:loop]
        assert names.count("work_all") <= 1 and "work_all" not in names[:loop], names


def test_tasks_that_no_look_met_are_counted(some_python, tmp_path):
    """They live for 200 us, and looks are 100 ms apart: of nearly all nobody knows who awaits them, which is said."""
    output = tmp_path / "brief.pyebpf"
    with Workload(some_python, "tasked.py", "brief", 1000) as workload:
        _, text = record_to(output, workload, HZ, "--async")
    roots = collections.Counter(own(s)[0] for s in samples_of(output) if s["labels"].get("task") and own(s))
    said = int(re.search(r"([\d,]+) samples? in tasks too short-lived to scan", text).group(1).replace(",", ""))
    assert roots["brief"] > 0
    assert roots["brief"] <= said <= roots["brief"] + roots["brief_all"], (roots, text)


# --- task time ----------------------------------------------------------------------------------------------

def places(samples):
    """{functions of the program from the worker down: seconds}."""
    found = collections.Counter()
    for sample in samples:
        names = own(sample)
        start = [i for i, name in enumerate(names) if name.startswith("worker")]
        if start:
            found[" ".join(names[start[0]:])] += sample["value"] / 1e9
    return dict(found)


def record_waits(python, folder, *arguments):
    output = folder / "waits.pyebpf"
    with Workload(python, "tasked.py", *arguments) as workload:
        truth, text = record_to(output, workload, 99, "--mode", "wall", "--async")
    return places(samples_of(output, "--kind", "task")), truth, output, text


@pytest.mark.few_pythons
def test_tasks_that_wait_all_the_time(python, tmp_path):
    """Each counts for as long as the recording took: nothing is left to chance."""
    if not has_tasks(python):
        return
    found, truth, output, text = record_waits(python, tmp_path, "parked", 0.5, 50)
    took = found["worker_for_ever in_sleep"] / truth["worker_for_ever in_sleep"]
    assert took >= 0.5
    assert {place: seconds / took for place, seconds in found.items()} == pytest.approx(truth, rel=1e-6), text
    assert re.search(r"task time \(--kind task\), \+-[\d.]+% or better", text), text
    ended = json.loads(run("export", "-f", "json", output).stdout)["recordings"][0]["seconds"]
    assert took == pytest.approx(ended, rel=1e-3)


@pytest.mark.few_pythons
def test_tasks_of_forked_loops(python, tmp_path, is_full):
    """Children that only wait, from their begin to their end: none has the time of another one, and none lacks any."""
    if not has_tasks(python):
        return
    output = tmp_path / "forked.pyebpf"
    with Workload(python, "tasked.py", "forked", 2, 10 if is_full else 2) as workload:
        truth, text = record_to(output, workload, 99, "--mode", "wall", "--async")
    found = collections.Counter()
    for sample in samples_of(output, "--kind", "task"):
        found[str(sample["pid"])] += sample["value"] / 1e9
    # A child's tasks begin and end as one, so their times deviate as one.
    deviation = max(10 * judge.LOOKS * judge.look_distance(text) / judge.NS, 0.1 * max(truth.values()))
    assert dict(found) == pytest.approx(truth, abs=deviation), text
    assert sum(found.values()) == pytest.approx(sum(truth.values()), abs=deviation * len(truth) ** 0.5), text
    assert "ended before a look" not in text, text


@pytest.mark.full
@pytest.mark.parametrize("number, seconds", [(200, 30), (1000, 60)])
def test_task_time_is_the_programs_own(any_python, tmp_path, number, seconds):
    """Waits of known length, within 5 %: as shares, since the recording is longer than what the program measured."""
    if not has_tasks(any_python):
        return
    found, truth, _, text = record_waits(any_python, tmp_path, "known", seconds, number)
    found, truth = ({place: spent / sum(of.values()) for place, spent in of.items()} for of in (found, truth))
    assert {place: found.get(place, 0) for place in truth} == pytest.approx(truth, rel=0.05), text


# --- what there is not --------------------------------------------------------------------------------------

def test_a_program_without_asyncio(some_python, tmp_path):
    output = tmp_path / "none.pyebpf"
    with Workload(some_python, "brief.py", "python", ready=False) as workload:
        workload.process.wait()
    done = run("record", "--async", "-F", HZ, "-o", output, "--", *some_python.command, "-c", "sum(range(3000000))")
    assert done.returncode == 0 and "--async: no tasks found" in done.stderr, done.stderr


@pytest.mark.full
@test_dump_tasks.KNOWN_FREE_THREADED
def test_samples_are_of_their_tasks_free_threaded(free_threaded, tmp_path):
    samples, truth, _ = record_work(Workload(free_threaded, "tasked.py", "work", 2), tmp_path, "--async")
    check_labels(samples, truth)
    check_chains(samples)
