# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""export -f json: the same samples as collapsed text has, read by a reader that checks every sum."""
import json
import re

import profilejson
import pytest
from harness import PYEBPF, Workload, export, record_to, run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.quick]
HZ = 997


@pytest.fixture(name="recording")
def record(some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    with Workload(some_python, "family.py", 0.3, "threads", 4) as workload:
        record_to(output, workload, HZ)
    return output


def test_same_samples_as_collapsed(recording):
    profile = profilejson.export(PYEBPF, recording)
    stacks = export(recording)
    assert profile.collapsed() == stacks
    assert profile.kind["unit"] == "ns" and profile.period == 1000000000 // HZ
    assert profile.kind["samples"] == sum(stacks.values())
    by_function = profilejson.export(PYEBPF, "--no-lines", recording)
    assert by_function.collapsed() == export(recording, "--no-lines")
    assert all(line is None for _, _, line, _, _ in by_function.frames)


def test_threads_are_those_of_the_recording(recording):
    profile = profilejson.export(PYEBPF, recording)
    by_thread = {}
    for stack, samples in export(recording, "--threads").items():
        (_, name, tid), = stack.tags
        by_thread[tid] = name, by_thread.get(tid, (name, 0))[1] + samples
    assert {thread["tid"]: (thread["name"], thread["cpu"] // profile.period)
            for thread in profile.data["threads"]} == by_thread
    seconds = profile.data["recordings"][0]["seconds"]
    assert all(thread["end"] <= seconds for thread in profile.data["threads"])


def test_what_was_recorded(recording, some_python):
    data = profilejson.export(PYEBPF, recording).data
    facts, = data["recordings"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", facts["start"])
    assert facts["rate_hz"] == HZ and facts["mode"] == "cpu" and facts["work"] is None
    assert facts["python"] == [".".join(map(str, some_python.version))]
    assert facts["target"].startswith("pid ") and 0.1 < facts["seconds"] < 60


def test_modules_of_frames(recording):
    frames = profilejson.export(PYEBPF, recording).frames
    assert {"family", "threading"} <= {frame[4] for frame in frames}
    assert not [frame for frame in frames if frame[3] == "marker" and frame[4]]


def test_the_largest_only(recording):
    whole = profilejson.export(PYEBPF, recording)
    few = profilejson.export(PYEBPF, "--limit", "3", recording)
    assert sorted((path.total for path in few.paths), reverse=True) == \
        sorted((path.total for path in whole.paths), reverse=True)[:3]
    assert few.data["truncated"] == len(whole.paths) - 3
    assert len(few.data["functions"]) == 3 and few.total == whole.total
    assert few.data["left_out"]["threads"]["count"] == len(whole.data["threads"]) - 3
    heaviest = sorted((thread["cpu"] for thread in whole.data["threads"]), reverse=True)[:3]
    assert sorted((thread["cpu"] for thread in few.data["threads"]), reverse=True) == heaviest
    large = profilejson.export(PYEBPF, "--min-percent", "10", recording)
    assert len(large.paths) == sum(path.total * 10 >= whole.total for path in whole.paths)
    done = run("export", "-f", "json", "--min-percent", "101", recording)
    assert done.returncode == 2 and "not a number from 0 to 100" in done.stderr


def lines_of(*arguments):
    return profilejson.samples(run("export", "-f", "jsonl", *arguments).stdout)


def test_a_line_a_sample(recording):
    profile = profilejson.export(PYEBPF, recording)
    samples = lines_of(recording)
    assert sum(sample["value"] for sample in samples) == profile.total
    stacks = {}
    for sample in samples:
        assert (sample["recording"], sample["kind"], sample["unit"]) == (0, "cpu", "ns"), sample
        key = tuple((name, file, line) for name, file, line, _ in sample["stack"])
        stacks[key] = stacks.get(key, 0) + sample["value"]
    assert stacks == {tuple(frame[:3] for frame in chain): value
                      for chain, value in profile.stacks().items()}
    for thread in profile.data["threads"]:
        own = [sample for sample in samples if sample["tid"] == thread["tid"]]
        assert sum(sample["value"] for sample in own) == thread["cpu"]
        times = [sample["time"] for sample in own]
        assert (min(times), max(times)) == (thread["start"], thread["end"])


def test_lines_of_a_selection(recording, tmp_path):
    half = profilejson.export(PYEBPF, recording).data["recordings"][0]["seconds"] / 2
    parts = [lines_of("--time-range", part % half, recording) for part in ("..%.9fs", "%.9fs..")]
    assert sum(map(len, parts)) == len(lines_of(recording)) and all(parts)
    done = run("export", "-f", "jsonl", "-o", tmp_path / "x.jsonl", "--thread", "nosuch", recording)
    assert done.returncode == 3 and not (tmp_path / "x.jsonl").exists(), done


def test_text_has_no_times(tmp_path):
    text = tmp_path / "x.collapsed"
    text.write_text("main (a.py:1);f (a.py:2) 3\nmain (a.py:1) 1\n")
    profile = profilejson.export(PYEBPF, text)
    assert profile.kind == {"name": "samples", "unit": "count", "period": 1, "samples": 4,
                            "total": 4}
    facts, = profile.data["recordings"]
    assert facts["start"] is None and facts["seconds"] is None and facts["python"] == []
    assert profile.data["lost"] is None
    assert all(thread["start"] is None for thread in profile.data["threads"])


def test_recorded_at_once(some_python, tmp_path):
    output = tmp_path / "x.json"
    done = run("record", "-F", HZ, "-o", output, "--", *some_python.command, "-c",
               "sum(i for i in range(3000000))")
    assert done.returncode == 0, done.stderr
    profile = profilejson.Profile(output.read_text())
    assert any(frame[0] == "<genexpr>" for frame in profile.frames)
    assert json.loads(output.read_text())["schema"] == "pyebpf-profile/1"
