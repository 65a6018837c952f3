# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""export -f perfetto: the samples that jsonl has, a slice a wait, for our reader of the format and
for Perfetto's own trace_processor."""
import collections
import json

import engines
import perfetto
import pytest
import pythons
from harness import Workload, make_recording, record_to, run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.quick]
S = 10 ** 9
# By what golden/waits_recording.c tells.
TOTALS = {"wall, ns": 50 * S, "cpu, ns": 7060 * S // 1000, "off-cpu, ns": 42940 * S // 1000,
          "gil-contention, ns": 7 * S, "memory, bytes": 12 << 20}
UNITS = {"ns": ", ns", "bytes": ", bytes", "count": ""}


def exported(recording):
    output = recording.with_suffix(".pftrace")
    done = run("export", "-o", output, recording)
    assert done.returncode == 0, done.stderr
    return output


def samples(recording):
    return [json.loads(line) for line in run("export", "-f", "jsonl", recording).stdout.splitlines()]


def is_time(sample):
    return sample["kind"] in ("cpu", "off-cpu")


def told(recording):
    """{(what is counted, pid, tid, function): (samples, sum)} of leaves, of the samples."""
    found = collections.Counter(), collections.Counter()
    kinds = {sample["kind"] for sample in samples(recording)}
    for sample in samples(recording):
        names = ["wall, ns"] if is_time(sample) and "off-cpu" in kinds else []
        names.append(sample["kind"] + UNITS[sample["unit"]])
        for name in names:
            key = name, sample["pid"], sample["tid"], sample["stack"][-1][0]
            found[0][key] += 1
            found[1][key] += sample["value"]
    return {key: (count, found[1][key]) for key, count in found[0].items()}


def waits(recording):
    """(tid, reason, ns) of each that is known to have been there and then."""
    return sorted((sample["tid"], sample["stack"][-1][0][1:-1], round(sample["duration"] * S))
                  for sample in samples(recording) if is_time(sample) and sample["duration"]
                  and sample["stack"][0][0] != "<not sampled>")


def near(found, wanted, ns):
    """jsonl has seconds, as a double."""
    assert [wait[:2] for wait in found] == [wait[:2] for wait in wanted]
    assert all(abs(a[2] - b[2]) <= ns for a, b in zip(found, wanted))


def test_waits_and_their_values(tmp_path):
    recording = make_recording("waits_recording", tmp_path / "x.pyebpf")
    trace = perfetto.Trace(exported(recording).read_bytes())
    totals = collections.Counter()
    for each in trace.samples.values():
        for sample in each:
            totals.update(sample.values)
    assert totals == TOTALS
    assert trace.threads[500, 503] == "late" and trace.processes[600] == "service"
    near(sorted((s.tid, s.name, s.end_ns - s.begin_ns) for s in trace.slices), waits(recording), 1)
    assert {s.category for s in trace.slices} == {"GIL", "Wait"}
    assert {s.function for s in trace.slices if s.name == "disk"} == {"extension"}


def judge(recording):
    """As trace_processor reads it: all is there, nothing is an error."""
    try:
        rows = engines.trace_processor(exported(recording), {
            "errors": "select name, value from stats where value and severity in "
                      "('error', 'data_loss')",
            "names": "select p.pid, t.tid, p.name, t.name from thread t join process p using(upid) "
                     "where t.utid in (select utid from perf_sample)",
            "samples": "include perfetto module linux.perf.counters; "
                       "select ct.name, p.pid, t.tid, f.name, sum(s.counter_value > 0), "
                       "sum(s.counter_value) from linux_perf_sample_with_counters s "
                       "join thread t using(utid) join process p using(upid) "
                       "join stack_profile_callsite l on l.id = s.callsite_id "
                       "join stack_profile_frame f on f.id = l.frame_id "
                       "join perf_counter_track ct on ct.id = s.track_id group by 1, 2, 3, 4",
            "waits": "select t.tid, s.name, s.dur from slice s join thread_track k on "
                     "k.id = s.track_id join thread t using(utid) where s.category != 'GC'",
            "lines": "select distinct f.name, y.source_file, y.line_number "
                     "from stack_profile_frame f join stack_profile_symbol y using(symbol_set_id)",
        })
    except pythons.Unavailable as error:
        pytest.skip(str(error))
    assert not rows["errors"]
    assert {tuple(row[:4]): (row[4], row[5]) for row in rows["samples"] if row[4]} == \
        told(recording)
    near(sorted(map(tuple, rows["waits"])), waits(recording), 1)
    all_samples = samples(recording)
    assert {tuple(row) for row in rows["names"]} == {
        (s["pid"], s["tid"], s["process"], s["thread"]) for s in all_samples}
    assert {tuple(row) for row in rows["lines"] if row[1]} == {
        tuple(frame[:3]) for s in all_samples for frame in s["stack"]
        if frame[1] and frame[3] == "python"}


@pytest.mark.full
def test_trace_processor_reads_it(tmp_path):
    judge(make_recording("waits_recording", tmp_path / "x.pyebpf"))


@pytest.mark.full
def test_trace_processor_reads_a_real_one(some_python, tmp_path):
    recording = tmp_path / "x.pyebpf"
    with Workload(some_python, "family.py", 0.3, "threads", 4) as workload:
        record_to(recording, workload, 997)
    judge(recording)
