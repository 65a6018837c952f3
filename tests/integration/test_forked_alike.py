# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes forked from one program: what they have in common is sent once, what each has made is its own."""
import collections
import json

import pytest
from harness import Workload, record_to, run

pytestmark = pytest.mark.usefixtures("pyebpf")


def samples_of(recording):
    return [json.loads(line) for line in run("export", "-f", "jsonl", "-o", "-", recording).stdout.splitlines()]


@pytest.mark.quick
@pytest.mark.spread("python", "kind")
@pytest.mark.parametrize("kind", ["name", "file", "line", "late_line"])
def test_functions_at_one_address(python, kind, tmp_path):
    output = tmp_path / "own.pyebpf"
    with Workload(python, "forked_alike.py", "own", kind, 0.1) as workload:
        truth, text = record_to(output, workload, 499)
    found = collections.defaultdict(collections.Counter)
    for sample in samples_of(output):
        for name, file, line, *_ in sample["stack"]:
            if name.startswith("spin_"):
                found[str(sample["pid"])][name, file, line] += 1
    assert set(found) == set(truth), text
    for pid, (name, file, line) in truth.items():
        # 3.11 and later enter a function at its first lines.
        wrong = {at: count for at, count in found[pid].items() if at[:2] != (name, file) or at[2] not in (1, 2, line)}
        assert not wrong and found[pid][name, file, line] >= 5, (wrong, found[pid], truth[pid])


@pytest.mark.few_pythons
def test_names_in_common(python, tmp_path, is_full):
    """Thousands of functions pass a ring that has no room for them once a process."""
    output = tmp_path / "shared.pyebpf"
    children, functions, seconds = (40, 3000, 6) if is_full else (8, 2000, 2)
    with Workload(python, "forked_alike.py", "shared", children, functions, seconds) as workload:
        truth, text = record_to(output, workload, 999, "--ring", "512K")
    samples = [s for s in samples_of(output) if any(frame[0] == "spin" for frame in s["stack"])]
    unnamed = sum(any(frame[0] == "<unknown>" for frame in s["stack"]) for s in samples)
    assert not unnamed and "ring buffer full" not in text, (unnamed, len(samples), text)
    assert len(samples) >= 999 * truth["cpu"] / 2, (len(samples), truth, text)
