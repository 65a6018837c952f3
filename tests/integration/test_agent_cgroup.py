# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent with `cgroup:`: who is in it is recorded, nobody else, by either version."""
import pytest
from engine_server import Engine
from harness import PATIENCE, wait_until
from spinning import cpu_seconds
from test_agent import RATE, Agent, spinning
from test_places import cgroup_v1, cgroup_v2, move  # noqa: F401; fixtures

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]


@pytest.mark.parametrize("version", ["cgroup_v2", "cgroup_v1"])
def test_only_who_is_in_the_cgroup(request, some_python, version, tmp_path):
    """Those in it or below it at the start, and who comes later, until it leaves: with the ticks of
    the CPU time that they had there."""
    folder = request.getfixturevalue(version)
    with Engine("pyroscope") as engine, spinning(some_python, name="early") as early, \
            spinning(some_python, name="below") as below, \
            spinning(some_python, name="late") as late, spinning(some_python, name="beside"):
        move(early.pid, folder)
        move(below.pid, folder + "/inner")
        with Agent(tmp_path, "pyroscope", engine.url, more="cgroup: %s\n" % folder) as agent:
            wait_until(lambda: engine.total("early") and engine.total("below"), PATIENCE,
                       "those in it are recorded")
            assert not engine.total("late")
            before = cpu_seconds(late.pid)
            move(late.pid, folder)
            wait_until(lambda: engine.total("late") > 20, PATIENCE, "and who comes later")
            move(late.pid, folder.rpartition("/")[0])
            spent = cpu_seconds(late.pid) - before
            windows = agent.metric("windows_total")
            wait_until(lambda: agent.metric("windows_total") >= windows + 3, PATIENCE,
                       "windows without it")
            agent.stop()
        assert {service for service, _ in engine.stored} == {"early", "below", "late"}
        assert engine.total() == agent.recorded()
        # of version 1 the list is read four times a second
        slack = 0.5 * RATE if version == "cgroup_v1" else 4
        assert engine.total("late") <= spent * RATE + 4 * (spent * RATE) ** 0.5 + slack
        for target in early, below, late:
            move(target.pid, folder.rpartition("/")[0])


def test_cgroup_that_is_not_there(tmp_path):
    agent = Agent(tmp_path, "files", more="cgroup: /sys/fs/cgroup/no/such/one\n")
    with pytest.raises(AssertionError, match="the agent ended with 1: .*no/such/one"):
        agent.start()
