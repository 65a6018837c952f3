# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A Python that changes its own mappings is recorded like others, and hides no other one that runs the same file."""
import pytest
from harness import Recorder, Workload, draw, export, run
from spinning import SCRIPT, Spinning

pytestmark = pytest.mark.usefixtures("pyebpf")
FEWEST = 5


def pytest_generate_tests(metafunc):
    """Of those that can see their own mappings: a root directory of their own has no /proc."""
    found = [p for p in metafunc.config.all_pythons if p.via != "chroot"]
    if metafunc.config.draws:
        found = draw(found, 2, metafunc.definition.nodeid)
    metafunc.parametrize("disguised_python", found, ids=[p.name for p in found])


def counts(output):
    """{PID: samples in spin_here()}."""
    found = {}
    for stack, count in export(output, "--processes").items():
        if any(frame.name == "spin_here" for frame in stack.frames):
            pid = stack.tags[0][2]
            found[pid] = found.get(pid, 0) + count
    return found


@pytest.mark.parametrize("how", ["header", "copy", "rewrite"])
def test_disguised(disguised_python, how, tmp_path):
    output = tmp_path / "x.pyebpf"
    with Workload(disguised_python, "disguised.py", how) as disguised:
        named = run("dump", "-p", disguised.pid)
        assert named.returncode == 0 and "spin_here" in named.stdout, named
        with Spinning(*disguised_python.command, SCRIPT, "60") as other:
            with Recorder(output, "-a", "-F", 999) as recorder:
                recorder.wait_attached()
                with Spinning(*disguised_python.command, SCRIPT, "1") as late:
                    late.process.wait()
                recorder.finish()
    found = counts(output)
    for pid in (disguised.pid, other.pid, late.pid):
        assert found.get(pid, 0) > FEWEST, (pid, found)
