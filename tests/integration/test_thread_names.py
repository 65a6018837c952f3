# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads have the names that the program gave them, on every version, however it is recorded."""
import json
import os

import pytest
from harness import Recorder, Workload, export, record_to, run, stage, unstage

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997
LONGEST = 128
LEAST_NAMED = 0.8
ATTEMPTS = 4


def names_by_pid(recording):
    """{pid: {function: {name of its thread: samples}}}; of main threads, function "main"."""
    found = {}
    for stack, count in export(recording, "--processes", "--threads").items():
        tags = {kind: (name, ident) for kind, name, ident in stack.tags}
        name, tid = tags["thread"]
        pid = tags["process"][1]
        functions = {frame.name for frame in stack.frames if frame.file.endswith("named.py")}
        for function in {"main"} if tid == pid else functions:
            by_name = found.setdefault(pid, {}).setdefault(function, {})
            by_name[name] = by_name.get(name, 0) + count
    return found


def judge(truth, found):
    for function, names in truth["names"].items():
        wanted = {name if len(name) <= LONGEST else name[:LONGEST] + "\u2026" for name in names}
        if names == [""]:
            wanted = set(found["main"]) & set(found.get(function, ()))  # its process's
        seen = found.get(function, {})
        # Names are read while the threads run: on a crowded CPU some ticks are before that.
        right = sum(count for name, count in seen.items() if name in wanted)
        assert wanted and wanted <= set(seen), (function, names, found)
        assert right >= LEAST_NAMED * sum(seen.values()), (function, names, found)
    later = found["renamed_later"]
    assert later["the later name"] > later["the first name"] / 2, later


def in_time(attempt):
    """Names are read while the threads live: where nobody gives the recorder a CPU some are missed."""
    for number in range(ATTEMPTS):
        try:
            attempt()
            return
        except AssertionError:
            if number == ATTEMPTS - 1:
                raise


def of_a_process(python, tmp_path):
    def attempt():
        recording = tmp_path / "names.pyebpf"
        with Workload(python, "named.py") as workload:
            truth, _ = record_to(recording, workload, HZ)
        judge(truth, names_by_pid(recording)[workload.pid])

    in_time(attempt)


def of_a_command(python, tmp_path):
    script = stage(python, "named.py", str(tmp_path))

    def attempt():
        recording = tmp_path / "names.pyebpf"
        done = run("record", "-F", HZ, "-o", recording, "--", *python.command, script)
        assert done.returncode == 0, done.stderr
        truth = json.loads(done.stdout.splitlines()[-1])
        (found,) = names_by_pid(recording).values()
        judge(truth, found)

    try:
        in_time(attempt)
    finally:
        unstage(python, str(tmp_path))


@pytest.mark.few_pythons
@pytest.mark.spread("python", "how")
@pytest.mark.parametrize("how", [of_a_process, of_a_command])
def test_of(python, how, tmp_path):
    how(python, tmp_path)


def test_of_one_that_waits_to_the_end(some_python, tmp_path):
    """Its only sample comes in its last moment, when nobody can ask for its name."""
    recording = tmp_path / "waits.pyebpf"
    with Workload(some_python, "leaves.py", "waits") as workload:
        with Recorder(recording, "-p", workload.pid, "--mode", "wall") as recorder:
            recorder.wait_attached()
            workload.go()
            assert recorder.wait() == 0, recorder.text()
    waiting = [stack for stack in export(recording, "--threads", "--kind", "wall")
               if any(frame.name == "waits" for frame in stack.frames)]
    assert {name for stack in waiting for kind, name, _ in stack.tags if kind == "thread"} == \
        {"the early bird"}, waiting


def names_of_functions(recording, *functions):
    """{function: {(name, TID) of its thread: samples}}"""
    found = {}
    for stack, count in export(recording, "--threads").items():
        thread = next((name, ident) for kind, name, ident in stack.tags if kind == "thread")
        for function in {frame.name for frame in stack.frames}.intersection(functions):
            by_name = found.setdefault(function, {})
            by_name[thread] = by_name.get(thread, 0) + count
    return found


def test_as_of_the_sample(some_python, tmp_path):
    """A thread that has another name meanwhile keeps the one that it had then; Python's goes before."""
    recording = tmp_path / "renames.pyebpf"
    with Workload(some_python, "renames.py") as workload:
        record_to(recording, workload, HZ)
    found = names_of_functions(recording, "idle", "busy")
    for function in ("idle", "busy"):
        of_main = {name for name, tid in found[function] if tid == workload.pid}
        others = {name for name, tid in found[function] if tid != workload.pid}
        assert of_main == {"w: " + function}, found
        assert "the other" in others and others <= {"the other", "w: " + function}, found


def test_of_a_tid_that_comes_again(some_python, tmp_path):
    """Nobody has the name of the dead thread whose TID it has."""
    recording = tmp_path / "reused.pyebpf"
    with Workload(some_python, "reused.py") as workload:
        truth, _ = record_to(recording, workload, HZ)
    functions = ["t_%d" % number for number in range(len(truth["tids"]))]
    found = names_of_functions(recording, *functions)
    assert len(set(truth["tids"])) < len(functions), truth
    wrong = {function: names for function, names in found.items()
             if any(name != function and name.startswith("t_") for name, _ in names)}
    named = [function for function, names in found.items()
             if any(name == function for name, _ in names)]
    assert not wrong, (truth, wrong)
    assert len(named) >= len(functions) / 2, found


def test_of_every_version_at_once(request, tmp_path):
    def attempt():
        recording = tmp_path / "names.pyebpf"
        workloads = []
        try:
            with Recorder(recording, "-a", "-F", HZ) as recorder:
                # Names are read while the threads live, which takes part of a crowded CPU.
                os.setpriority(os.PRIO_PROCESS, recorder.process.pid, -15)
                recorder.wait_attached()
                for python in request.config.pythons:
                    workloads.append(Workload(python, "named.py"))
                for workload in workloads:
                    workload.go()
                truths = [workload.truth() for workload in workloads]
                recorder.finish()
            found = names_by_pid(recording)
            for workload, truth in zip(workloads, truths):
                judge(truth, found[workload.pid])
        finally:
            for workload in workloads:
                workload.close()

    in_time(attempt)
