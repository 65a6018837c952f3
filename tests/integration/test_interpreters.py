# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Interpreters of one process, which come and go."""
import re

import pytest
from harness import Workload, record_whole

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 1999
NUMBERED = re.compile(r"[abc]_(\d{5})$")


def has_interpreters(python):
    """Whether it has a module that makes interpreters."""
    return python.minor >= 8


@pytest.mark.parametrize("mode", ["cpu", "wall"])
@pytest.mark.spread("python", "mode")
def test_no_stack_is_of_two(python, mode, is_full, tmp_path):
    """The next interpreter, and its code objects, lie where those of the one before were."""
    if not has_interpreters(python):
        return
    with Workload(python, "interpreters.py", 2, 10 if is_full else 0.8) as workload:
        truth, samples, text = record_whole(workload, tmp_path, HZ, "--mode", mode)
    numbers = {stack: {match.group(1) for match in (NUMBERED.match(name) for name, _, _ in stack)
                       if match} for stack in samples}
    assert sum(count for stack, count in samples.items() if numbers[stack]) > 100, text
    assert len(set().union(*numbers.values())) > truth["interpreters"] / 4, (truth, text)
    assert not [stack for stack in samples if len(numbers[stack]) > 1], text
