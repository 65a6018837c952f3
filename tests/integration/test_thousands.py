# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Thousands of threads, of which the first is the last that a search comes to. Only with 12,000 of them (--tier=all)
does a search take longer than a sample may."""
import json
import re

import pytest
from harness import Workload, export, frames, record_to, run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.few_pythons(1)]

HZ = 99
SECONDS = 1.0  # of CPU time
FOUND_MIN = 0.6  # of the samples that this makes: on a busy machine ticks are lost
LATE_MAX = 20  # ticks: a search of 12,000 states is two or three
DUMP_SECONDS = 120  # --locals of 12,000 takes 3 s of CPU time


@pytest.fixture
def workload(python, is_full):
    with Workload(python, "thousands.py", SECONDS, 12000 if is_full else 1000) as started:
        started.count = 12000 if is_full else 1000
        yield started


def late_ticks(text):
    """Returns how many the summary says were lost as the thread's state was not found in time."""
    lost = re.search(r"thread state not found in time ([\d,]+)", text)
    return int(lost[1].replace(",", "")) if lost else 0


@pytest.mark.parametrize("mode", ["cpu", "wall"])
def test_first_thread_is_found(workload, mode, tmp_path):
    truth, text = record_to(tmp_path / "x.pyebpf", workload, HZ, "--mode", mode)
    stacks = frames(export(tmp_path / "x.pyebpf", "--kind", "cpu"))
    found = sum(count for stack, count in stacks.items() if any(frame[0] == "oldest_of_all" for frame in stack))
    unit = 1 if mode == "cpu" else 1e9 / HZ
    assert found / unit > FOUND_MIN * HZ * truth, (stacks, text)
    assert late_ticks(text) <= LATE_MAX, text


def has_call(thread, function):
    return any(frame["name"] == function for frame in thread["frames"])


def test_dump(workload):
    workload.go()
    workload.truth()
    done = run("dump", "--json", "-p", workload.pid, timeout=DUMP_SECONDS)
    assert done.returncode == 0, done
    threads = json.loads(done.stdout)["processes"][0]["threads"]
    assert len(threads) == workload.count + 1
    assert sum(has_call(thread, "wait_for_good") for thread in threads) == workload.count
    assert [thread["tid"] for thread in threads if has_call(thread, "oldest_of_all")] == [workload.pid]
    done = run("dump", "--locals", "-p", workload.pid, timeout=DUMP_SECONDS)
    assert done.returncode == 0, done
    assert "in oldest_of_all" in done.stdout and "in wait_for_good" in done.stdout, done.stdout[:10000]
