# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Time outside Python code is told, everywhere: threads without Python, an interpreter's start."""
import json
import os
import re
import time

import chunks
import pytest
import truth as judge
from harness import WORKLOADS, Recorder, Workload, export, frames, run

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997
OUTSIDE = (("<outside Python>", "~", 0),)


@pytest.fixture(scope="module")
def recorded(request, tmp_path_factory):
    """One recording for all who look at it: (truth, path, what the recorder said)."""
    output = tmp_path_factory.mktemp("outside") / "x.pyebpf"
    python = max((p for p in request.config.all_pythons if p.via == "direct"),
                 key=lambda p: p.version)
    return record(python, output)


def record(python, output):
    with Workload(python, "native.py", 0.7) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            workload.go()
            truth = workload.truth()
            recorder.finish()
            return truth, output, recorder.text()


def assert_share(truth, output):
    samples = frames(export(output))
    total = sum(samples.values())
    native = 1 - truth["python"] / truth["cpu"]
    assert 0.05 < native < 0.95, truth
    assert judge.share_error(samples.get(OUTSIDE, 0), total, native) <= 0.015, (samples, truth)
    in_python = sum(n for stack, n in samples.items()
                    if any(name == "python" for name, _, _ in stack))
    assert judge.share_error(in_python, total, 1 - native) <= 0.015, (samples, truth)


@pytest.mark.few_pythons
def test_thread_without_python(python, tmp_path):
    truth, output, _ = record(python, tmp_path / "x.pyebpf")
    assert_share(truth, output)


def test_summary_and_counters_add_up(recorded):
    truth, output, text = recorded
    assert "<outside Python>" in text, text
    counters = chunks.read(output).counters
    stacks = frames(export(output))
    assert counters["weight"] == sum(stacks.values())
    assert abs(counters["outside"] - stacks[OUTSIDE]) == 0
    ended = ("recorded", "ring_full", "idle", "kernel_thread", "filtered", "not_python",
             "unknown_process", "no_row", "skipped", "thread_state_fault", "thread_state_late", "no_scratch", "no_task_work",
             "task_work", "task_work_joined")
    assert counters["ticks"] == sum(counters[name] for name in ended), counters
    assert abs(counters["cpu_ns"] / 1e9 - truth["cpu"]) < 0.05 * truth["cpu"] + 0.02, counters


def test_report_page_exports_and_diff(recorded, tmp_path):
    _, output, _ = recorded
    assert re.search(r"^ *\d+\.\d% +\d+\.\d% .* <outside Python>", run("report", output).stdout, re.M)
    assert "<outside Python>" in run("report", "--tree", output).stdout
    assert run("report", output, "-o", tmp_path / "x.html").returncode == 0
    assert "outside Python" in run("report", output).stdout
    assert run("export", "-f", "pprof", output, "-o", tmp_path / "x.pb.gz").returncode == 0
    done = run("diff", output, output, "-o", tmp_path / "x.json")
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "x.json", encoding="utf-8") as f:
        compared = json.load(f)
    assert any(row[0] == "<outside Python>" for row in compared["frames"]), compared["frames"][:20]


def test_nothing_but_start_and_end_is_a_recording(some_python, tmp_path):
    """Few functions, if any: exit 0, for there were samples."""
    output = tmp_path / "x.pyebpf"
    with Recorder(output, "-F", "5k", "--", *some_python.command, "-S", "-E", "-c", "pass") as recorder:
        assert recorder.wait() == 0, recorder.text()
    assert frames(export(output)).get(OUTSIDE, 0) > 0


@pytest.mark.few_pythons
def test_a_command_is_known_before_it_starts(python, tmp_path):
    """By its files, so that no tick of it is lost: from 3.11 on these say the version."""
    seconds = 0.06 if python.version >= (3, 11) else 1  # others are looked at while they run
    loop = "import time\nwhile time.process_time() < %g: pass" % seconds
    commands = [[*python.command, "-c", loop]]
    if python.via == "direct":
        script = tmp_path / "run"
        script.write_text("#!%s\n%s\n" % (python.command[0], loop))
        script.chmod(0o755)
        commands += [[script], [*python.command, script]]
    ticks = lost = 0
    for number, command in enumerate(commands):
        output = tmp_path / ("%d.pyebpf" % number)
        with Recorder(output, "-F", "10k", "--", *command) as recorder:
            assert recorder.wait() == 0, recorder.text()
        counters = chunks.read(output).counters
        ticks += counters["weight"]
        lost += counters["unknown_process"]
        names = {name for stack in export(output, "--processes") for _, name, _ in stack.tags}
        assert names and not any("pyebpf" in name for name in names), names
    print("%d of %d" % (lost, ticks))
    if python.version >= (3, 11) and python.via == "direct":
        assert ticks > 300 * len(commands)
        assert lost <= 0.01 * ticks, (lost, ticks)


@pytest.mark.few_pythons
def test_ticks_in_the_midst_of_exec(python, tmp_path):
    """The program before has no memory by then, and had no Python code to run: none is lost."""
    if python.via != "direct":
        return
    output = tmp_path / "x.pyebpf"
    with Recorder(output, "-F", "10k", "--", *python.command, os.path.join(WORKLOADS, "execs.py"), 20) as recorder:
        assert recorder.wait() == 0, recorder.text()
    counters = chunks.read(output).counters
    assert counters["task_work_failed"] <= 0.002 * counters["weight"], counters


def test_cpu_and_wall_time_are_told(some_python, tmp_path):
    with Workload(some_python, "family.py", 0.3, "idle") as workload:
        workload.ahead()
        with Recorder(tmp_path / "x.pyebpf", "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            workload.go()
            spent = workload.truth()["cpu"]["spin_idle"] * 1000
            time.sleep(6 * spent / 1000)
            recorder.finish()
            text = recorder.text()
    match = re.search(r"^(\d+) ms of CPU time in (\d\S* s): mostly waiting", text, re.M)
    assert match and abs(int(match.group(1)) - spent) < 0.05 * spent + 20, (spent, text)
    assert re.search(r"time +%s ms of CPU time in %s: mostly waiting" % match.groups(),
                     run("report", tmp_path / "x.pyebpf").stdout)
