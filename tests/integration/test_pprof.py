# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""export -f pprof: the same samples as collapsed text, for our parser and for go tool pprof."""
import collections
import re

import engines
import pprof
import pytest
import pythons
from harness import Workload, export, record_to, run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.quick]
HZ = 997


def record(python, output, *case):
    with Workload(python, "family.py", 0.3, *case) as workload:
        record_to(output, workload, HZ)
    return output


@pytest.mark.parametrize("options", [[], ["--threads"], ["--processes", "--threads"]],
                         ids=lambda options: " ".join(options) or "plain")
def test_same_samples_as_collapsed(some_python, options, tmp_path):
    recording = record(some_python, tmp_path / "x.pyebpf", "threads", 4)
    output = tmp_path / "x.pb.gz"
    done = run("export", "-o", output, *options, recording)
    assert done.returncode == 0, done.stderr
    profile = pprof.Profile(output)
    assert profile.stacks() == export(recording, *options)
    assert profile.types == [("samples", "count"), ("cpu", "nanoseconds")]
    assert profile.period == 1000000000 // HZ
    assert all(s.values[1] == s.values[0] * profile.period for s in profile.samples)
    assert 0 < profile.duration_ns < 60e9 and profile.time_ns > 1700000000e9


def test_record_writes_it(some_python, tmp_path):
    output = record(some_python, tmp_path / "x.pprof", "fork")
    profile = pprof.Profile(output)
    names = {frame.name for sample in profile.samples for frame in sample.frames}
    assert {"fork_parent", "fork_child"} <= names, names
    assert [path.name for path in tmp_path.iterdir()] == ["x.pprof"]


@pytest.mark.full
def test_go_reads_it(some_python, tmp_path):
    """Names as they are, `<module>` too; totals exact; processes by tag."""
    try:
        engines.go()
    except pythons.Unavailable as error:
        pytest.skip(str(error))
    recording = record(some_python, tmp_path / "x.pyebpf", "fork")
    output = tmp_path / "x.pb.gz"
    assert run("export", "--processes", "-o", output, recording).returncode == 0
    total = collections.Counter()
    for stack, count in export(recording).items():
        for name in {frame.name for frame in stack.frames}:
            total[name] += count
    shown = engines.go_pprof("-top", "-cum", "-nodecount=100000", "-nodefraction=0",
                             "-sample_index=samples", "-unit=count", str(output))
    rows = re.findall(r"^ *\d+ +[\d.]+% +[\d.]+% +(\d+) +[\d.]+% +(.*?)(?: \(inline\))?$", shown,
                      re.M)
    assert {name: int(count) for count, name in rows} == dict(total)
    assert "<module>" in total
    pids = {tag[2] for stack in export(recording, "--processes") for tag in stack.tags}
    tags = re.search(r"^ *pid:.*?(?=^$|\Z)", engines.go_pprof("-tags", str(output)), re.M | re.S)
    assert len(pids) == 2
    assert pids == {int(pid) for pid in re.findall(r": (\d+)$", tags.group(), re.M)}
