# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that begin while recording, and wait: no tick may ever meet one. Each wait is in samples with its
function, or the summary says what became of its time. A kernel may not tell of one switch of some hundred: of the
wait that ended there no sample is taken, and its time is lost by name."""
import collections
import ctypes
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from harness import PATIENCE, Recorder, run
from test_places import cgroup_v2, move  # noqa: F401; a fixture

pytestmark = pytest.mark.usefixtures("pyebpf")
COUNT = 30
SHARE = 0.9  # of the processes: those that are whole


def waits_of(recording, names):
    """{(PID, name): ms of waiting in the function}."""
    done = run("export", "-f", "jsonl", "-o", "-", "--kind", "off-cpu", recording)
    assert done.returncode == 0, done.stderr
    waited = collections.Counter()
    for sample in map(json.loads, done.stdout.splitlines()):
        for name in {frame[0] for frame in sample["stack"]}.intersection(names):
            waited[sample["pid"], name] += sample["value"] / 1e6
    return waited


def lost_ms(recording):
    """Of all that waited: what the kernel did not tell of, or could not be walked."""
    lost = json.loads(run("export", "-f", "json", recording).stdout)["lost"]
    return sum(ns for reason, ns in lost.items() if reason.startswith("switch_")) / 1e6


def assert_whole(recording, pids, ms, text):
    waited = waits_of(recording, ["only_wait"])
    short = {pid: round(ms - waited[pid, "only_wait"]) for pid in pids if waited[pid, "only_wait"] < 0.9 * ms}
    assert sum(short.values()) <= lost_ms(recording), (short, text)
    assert len(short) <= (1 - SHARE) * len(pids), (short, text)


@pytest.mark.few_pythons(4)
@pytest.mark.spread("python", "at_once")
@pytest.mark.parametrize("at_once", [1, 10])
def test_waits_of_processes_that_begin(python, at_once, tmp_path, staged):
    """Under -a, of a command that was met before and of one that was not."""
    script = staged(python, "only_waits.py")
    command = [*python.command, script, "0.03" if at_once == 1 else "0.3"]
    output = tmp_path / "x.pyebpf"
    pids = []
    with Recorder(output, "-a", "--mode", "wall") as recorder:
        recorder.wait_attached()
        for _ in range(0, COUNT, at_once):
            running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                       for _ in range(at_once)]
            pids += [int(process.communicate(timeout=PATIENCE)[0]) for process in running]
        recorder.finish()
        assert_whole(output, pids, 30 if at_once == 1 else 300, recorder.text())


COMPUTES = "import time\nwhile time.process_time() < 0.2: pass"
WAITS = "import time; time.sleep(0.3)"
# A Python that is known, as soon as it waits, and executes another program.
KNOWN = "import os, sys, time; time.sleep(0.01); os.execv(sys.argv[1], sys.argv[1:])"
# Programs, and how many of their threads wait 300 ms.
ENDS = {
    "exit": (WAITS, 1),
    "exec": (WAITS + "; import os; os.execv('/bin/true', ['true'])", 1),
    "thread": ("import time, threading; t = threading.Thread(target=time.sleep, args=(0.3,)); t.start(); t.join()", 2),
    "fork": ("import time, os; p = os.fork(); os.waitpid(p, 0) if p else time.sleep(0.3)", 2),
    "fork_exec": ("import time, os; p = os.fork(); os.waitpid(p, 0) if p else [time.sleep(0.3), "
                  "os.execv('/bin/true', ['true'])]", 2),
}


@pytest.mark.parametrize("ends, is_known_before", [*((ends, False) for ends in ENDS), ("fork", True), ("fork_exec", True)])
def test_waits_of_a_new_binary_that_ends_before_a_look(ends, is_known_before, cgroup_v2, request, tmp_path):  # noqa: F811
    """The first processes of a program, while the recorder is kept from looking at them. is_known_before: they ran a known
    Python before."""
    python = next(p for p in request.config.all_pythons if p.via == "direct" and p.linkage == "static")
    output, count = tmp_path / "x.pyebpf", 3
    code, waiters = ENDS[ends]

    def run_inside(*command):
        subprocess.run(command, env=dict(os.environ, PYTHONHOME=python.prefix), check=True,
                       preexec_fn=lambda: move(os.getpid(), cgroup_v2), timeout=PATIENCE)
    with Recorder(output, "--cgroup", cgroup_v2, "--mode", "wall") as recorder:
        recorder.wait_attached()
        begin = time.monotonic()
        run_inside(python.runtime, "-c", COMPUTES)  # a recording of nothing is an error
        recorder.process.send_signal(signal.SIGSTOP)
        for i in range(count):
            before = [python.runtime, "-c", KNOWN] if is_known_before else []
            run_inside(*before, shutil.copy(python.runtime, tmp_path / ("python%d" % i)), "-c", code)
        lived = time.monotonic() - begin
        recorder.process.send_signal(signal.SIGCONT)
        recorder.finish()
        text = recorder.text()
    lost = json.loads(run("export", "-f", "json", output).stdout)["lost"]
    assert 0.3 * count * waiters <= lost.get("switch_unknown_process", 0) / 1e9 <= lived * waiters, (lost, lived, text)
    assert "process not yet identified as Python" in text


PTRACE_TRACEME = 0
libc = ctypes.CDLL(None, use_errno=True)


def test_waits_of_programs_whose_first_process_is_held_up(cgroup_v2, request, tmp_path, staged):  # noqa: F811
    """For longer than others are looked at, before its linker comes to map Python."""
    python = next(p for p in request.config.all_pythons if p.via == "direct" and p.linkage == "shared")
    script, output = staged(python, "only_waits.py"), tmp_path / "x.pyebpf"
    programs = [shutil.copy(python.command[0], tmp_path / ("python%d" % i)) for i in range(6)]

    def begin(program, call):
        def enter():
            move(os.getpid(), cgroup_v2)
            call()
        return subprocess.Popen([program, script, "0.03"], preexec_fn=enter, stdout=subprocess.PIPE,
                                env=dict(os.environ, PYTHONHOME=python.prefix))
    with Recorder(output, "--cgroup", cgroup_v2, "--mode", "wall", "-F", "49") as recorder:
        recorder.wait_attached()
        stopped = [begin(program, lambda: libc.ptrace(PTRACE_TRACEME, 0, None, None)) for program in programs]
        for process in stopped:
            assert os.WIFSTOPPED(os.waitpid(process.pid, 0)[1])
        time.sleep(2.5)
        for process in stopped:
            process.kill()
            process.communicate()
        running = [begin(program, lambda: None) for program in programs]
        pids = [int(process.communicate(timeout=PATIENCE)[0]) for process in running]
        recorder.finish()
        assert_whole(output, pids, 30, recorder.text())


DAEMONS = ["daemon_sleeps", "daemon_gets", "daemon_locks", "main_waits"]


@pytest.mark.few_pythons(4)
@pytest.mark.parametrize("seconds", [1, 0.05])
def test_waits_of_daemon_threads_at_return(python, seconds, tmp_path, staged):
    """They end after Python has freed the states of these threads. What was before the process was known to run Python
    is <not sampled>, and so are those that ended before anybody looked."""
    output = tmp_path / "x.pyebpf"
    done = run("record", "--mode", "wall", "-o", output, "--", *python.command, staged(python, "daemons.py"), seconds)
    assert done.returncode == 0, done.stderr
    waited = collections.Counter()
    for (_, name), ms in waits_of(output, [*DAEMONS, "<not sampled>"]).items():
        waited[name] += ms
    missing = sum(max(0, 990 * seconds - waited[name]) for name in DAEMONS)
    assert missing <= waited["<not sampled>"] and missing < 400, (waited, done.stderr)
