# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPUs that come and go while it records: what runs there is seen a second later."""
import os

import chunks
import pytest
import truth as judge
from engine_server import Engine
from harness import PATIENCE, Recorder, Workload, export, frames, leaf_counts, wait_until
from test_agent import SERVICE, Agent, spinning
from test_robust import complete, figures

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.alone]
HZ = 997
CPU = 1
SWITCH = "/sys/devices/system/cpu/cpu%d/online" % CPU


def switch(is_on):
    with open(SWITCH, "w") as f:
        f.write("%d" % is_on)


@pytest.fixture
def switchable():
    """A second CPU that can be switched off, on again in the end."""
    try:
        switch(True)
    except OSError as e:
        pytest.skip("no second CPU that can be switched off: %s" % e)
    yield
    switch(True)


def record_there(workload, recorder):
    """Spins on that CPU alone; counts the samples of it."""
    os.sched_setaffinity(workload.pid, {CPU})
    workload.go()
    truth = workload.truth()
    recorder.finish()
    seen = leaf_counts(frames(export(recorder.output)))
    got = sum(count for (name, _), count in seen.items() if name == "spin_idle")
    return got, truth["cpu"]["spin_idle"], recorder.text()


def test_cpu_that_comes_later(switchable, some_python, tmp_path):
    with Workload(some_python, "family.py", 4, "idle") as workload:
        switch(False)
        with Recorder(tmp_path / "x.pyebpf", "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            switch(True)
            got, cpu, text = record_there(workload, recorder)
    assert got > 0.6 * cpu * HZ, (got, cpu, text)


@pytest.mark.parametrize("target", ["named", "all"])
def test_cpu_that_was_away(target, switchable, some_python, tmp_path, fault):
    """What ran there until it was seen again has a name of its own among what was lost."""
    output = tmp_path / "x.pyebpf"
    with Workload(some_python, "family.py", 4, "idle") as workload:
        named = ("-p", workload.pid) if target == "named" else ("-a",)
        with Recorder(output, *named, "-F", HZ) as recorder:
            recorder.wait_attached()
            switch(False)
            switch(True)
            got, cpu, text = record_there(workload, recorder)
    c = chunks.read(output).counters
    assert got > 0.6 * cpu * HZ, (got, cpu, text)
    assert 0 < c["cpu_unwatched"] < 1.3 * HZ and "on a CPU that had just come online" in text, (c, text)
    # Under -a it is the share of a second that the targets had of both CPUs, of which one is idle.
    unwatched = c["cpu_unwatched"] if target == "named" else HZ
    assert got + unwatched > judge.least(cpu * HZ, c), (got, cpu, c)
    if target == "named":
        fault("a CPU that goes away and comes back, where the target runs from then on",
              "opens an event there, within a second", 0, complete(output), figures(c))


def test_agent_follows_cpus(switchable, some_python, tmp_path):
    """With what it may use only to open an event: it does not end, and sees what runs there."""
    with Engine("pyroscope") as engine, spinning(some_python) as spinner:
        os.sched_setaffinity(spinner.pid, {0, CPU})
        switch(False)
        with Agent(tmp_path, "pyroscope", engine.url) as agent:
            switch(True)
            os.sched_setaffinity(spinner.pid, {CPU})
            wait_until(lambda: agent.metric("windows_total") >= 3, PATIENCE, "some windows")
            before = engine.total(SERVICE)
            wait_until(lambda: engine.total(SERVICE) > before + 100, PATIENCE, "samples arrive")
            agent.stop()
        assert engine.total() == agent.recorded()
