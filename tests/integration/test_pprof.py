# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""export -f pprof: the same samples as collapsed text, for our parser and for go tool pprof."""
import collections
import re

import engines
import pprof
import pytest
import pythons
from harness import Workload, export, make_recording, record_to, run

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


S = 10 ** 9
# By what golden/waits_recording.c tells: {type: (unit, total)}.
WAITS = {"cpu": ("nanoseconds", 7.06 * S), "off_cpu": ("nanoseconds", 42.94 * S),
         "wall": ("nanoseconds", 50 * S), "delay": ("nanoseconds", 7 * S),
         "rss_growth": ("bytes", 12 << 20)}


def exported(recording, *options):
    output = recording.with_suffix(".pb.gz")
    done = run("export", "-o", output, *options, recording)
    assert done.returncode == 0, done.stderr
    return pprof.Profile(output)


def test_all_kinds_are_in_one_profile(tmp_path):
    profile = exported(make_recording("waits_recording", tmp_path / "x.pyebpf"))
    assert dict(profile.types) == {name: unit for name, (unit, _) in WAITS.items()}
    for column, (name, _) in enumerate(profile.types):
        assert sum(s.values[column] for s in profile.samples) == round(WAITS[name][1]), name
    assert profile.strings[pprof.one(profile.fields, "default_sample_type")] == "wall"
    assert (profile.period_type, profile.period) == (("cpu", "nanoseconds"), 10000000)


def test_time_is_shown_first(tmp_path):
    """Whichever kind of samples came first; and go tool pprof finds no file that it would disassemble."""
    text = tmp_path / "x.script"
    text.write_text("a 1/1 1.0: 3 page-faults:\n\t0 f (m.py:2)\n\na 1/1 1.1: 9 cpu-clock:\n\t0 f (m.py:2)\n\n")
    profile = exported(text, "--from", "perf")
    assert [name for name, _ in profile.types] == ["page_faults", "cpu"]
    assert profile.strings[pprof.one(profile.fields, "default_sample_type")] == "cpu"
    profile = exported(make_recording("waits_recording", tmp_path / "x.pyebpf"))
    names = [profile.strings[pprof.one(mapping, "filename")] for mapping in profile.mappings.values()]
    assert names and not any("/" in name for name in names), names


@pytest.mark.parametrize("kind, type, period", [
    ("off-cpu", "off_cpu", ("", "")), ("wall", "wall", ("wall", "nanoseconds")),
    ("gil-contention", "delay", ("mutex", "count")), ("memory", "rss_growth", ("memory", "bytes"))])
def test_one_kind_is_under_its_own_name(kind, type, period, tmp_path):
    recording = make_recording("waits_recording", tmp_path / "x.pyebpf")
    profile = exported(recording, "--kind", kind)
    assert profile.types == [(type, WAITS[type][0])]
    assert profile.period_type == period
    assert sum(s.values[0] for s in profile.samples) == round(WAITS[type][1])
    assert profile.stacks() == export(recording, "--kind", kind)


def test_ticks_beside_another_kind(tmp_path):
    """Labels are told apart only where it is asked for."""
    recording = make_recording("kinds_recording", tmp_path / "x.pyebpf")
    profile = exported(recording, "--labels")
    assert [name for name, _ in profile.types] == ["samples", "cpu", "off_cpu"]
    routes = collections.Counter()
    for sample in profile.samples:
        routes[tuple(sorted(sample.labels.items()))] += sample.values[0]
    assert routes == {(("route", "/pay"),): 500, (("route", "/list"), ("user", "u1")): 500, (): 0}
    assert not any(sample.labels for sample in exported(recording).samples)


def test_collapsed_text_is_of_one_kind_and_says_so(tmp_path):
    recording = make_recording("waits_recording", tmp_path / "x.pyebpf")
    done = run("export", "-f", "collapsed", "--header", recording)
    assert done.stdout.startswith(
        "# pyebpf-collapsed interval_us=0.001 kind=wall unit=nanoseconds\n")
    assert "this format holds one kind of sample: wrote wall; 504 samples of other kinds; select one with --kind: gil-contention, " \
        "memory" in done.stderr, done.stderr
    done = run("export", "-f", "collapsed", "--header", "--kind", "memory", recording)
    assert done.stdout.startswith("# pyebpf-collapsed kind=memory unit=bytes\n")
    assert done.stderr == ""


@pytest.mark.full
def test_go_shows_each_kind(tmp_path):
    """Go reads the units and totals, as our own parser does in test_all_kinds_are_in_one_profile(). Go 1.25 builds the tool at its first use."""
    try:
        engines.go()
    except pythons.Unavailable as error:
        pytest.skip(str(error))
    output = tmp_path / "x.pb.gz"
    exported(make_recording("waits_recording", tmp_path / "x.pyebpf"))
    for name, (unit, total) in WAITS.items():
        shown = engines.go_pprof("-top", "-sample_index=" + name, "-unit=" + unit, str(output))
        assert "Type: %s\n" % name in shown
        found = re.search(r"of ([\d.]+)(\w+) total", shown)
        assert found, shown
        assert float(found.group(1)) == pytest.approx(total, rel=0.001), (name, shown)


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
