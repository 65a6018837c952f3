# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which bytecode instruction samples are at, against programs whose hot instruction is known."""
import collections

import pytest
from harness import Recorder, Workload, export, frames, run
from htmlpage import Page

pytestmark = pytest.mark.usefixtures("pyebpf")

SECONDS = 0.3
HZ = 1999


def record(python, folder, *arguments):
    """(truth, recording) of workloads/opcodes.py."""
    output = folder / "opcodes.pyebpf"
    with Workload(python, "opcodes.py", SECONDS) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ, *arguments) as recorder:
            recorder.wait_attached()
            workload.go()
            truth = workload.truth()
            recorder.finish()
    return truth, output


def page_of(recording, folder):
    done = run("report", "-o", folder / "page.html", recording)
    assert done.returncode == 0, done.stderr
    return Page(folder / "page.html")


def check_hot_lines(page, hot):
    for name, (line, instruction, share) in hot.items():
        there = {op: n for (at, op), n in page.opcodes_of(name).items() if at == line}
        total = sum(there.values())
        assert total > SECONDS * HZ / 12, (name, there)
        assert there.get(instruction, 0) >= share * total, (name, instruction, there)


def check_all_lines(page, there):
    right, wrong = 0, collections.Counter()
    for name, instructions in there.items():
        expected = set(map(tuple, instructions))
        for at, count in page.opcodes_of(name).items():
            right += count if at in expected else 0
            wrong[(name, *at)] += count if at not in expected else 0
    assert right > SECONDS * HZ
    assert sum(wrong.values()) <= 0.01 * right, +wrong


@pytest.mark.few_pythons
def test_opcodes_are_those_that_the_interpreter_has_there(python, tmp_path):
    truth, recording = record(python, tmp_path, "--opcodes")
    page = page_of(recording, tmp_path)
    check_hot_lines(page, truth["hot"])
    check_all_lines(page, truth["there"])


def test_opcodes_change_no_stack(some_python, tmp_path):
    _, recording = record(some_python, tmp_path, "--opcodes")
    page = page_of(recording, tmp_path)
    assert page.stacks() == frames(export(recording))
    assert sum(n for name in set(page.name) for n in page.opcodes_of(name).values()) \
        == sum(page.stacks().values())


def test_opcodes_are_not_there_unless_asked_for(some_python, tmp_path):
    _, recording = record(some_python, tmp_path)
    assert "opcodes" not in page_of(recording, tmp_path).facts
