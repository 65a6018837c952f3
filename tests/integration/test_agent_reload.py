# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent: another configuration is taken over whole or not at all, and an engine that hangs
holds up neither that nor the end. After each: recorded = stored + waiting + counted."""
import fcntl
import json
import os
import socket

import pytest
from engine_server import Engine, spool_put
from harness import PATIENCE, wait_until
from test_agent import SERVICE, Agent, spinning
from test_agent_engine import TIMEOUT, hung, waiting

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]


def bpf_programs(agent):
    """Ids of the BPF programs that it has loaded."""
    folder, found = "/proc/%d/fdinfo" % agent.process.pid, set()
    for name in os.listdir(folder):
        try:
            with open(os.path.join(folder, name)) as f:
                found |= {line.split()[1] for line in f if line.startswith("prog_id:")}
        except FileNotFoundError:
            pass
    return found


def port_that_is_taken(agent, taken):
    agent.port = taken.getsockname()[1]


def spool_that_cannot_be(agent, taken):
    agent.spool = agent.config + "/spool"  # below a file


def spool_of_another(agent, taken):
    agent.spool = os.path.join(agent.folder, "locked")


def cgroup_that_is_gone(agent, taken):
    agent.more = "cgroup: /sys/fs/cgroup/no/such/one\n"


def namespace_that_is_gone(agent, taken):
    agent.more = "pid_namespace: /proc/4194304/ns/pid\n"


def token_that_is_gone(agent, taken):
    agent.output = "  token_file: %s/no-token\n" % agent.folder


def api_server_that_nobody_names(agent, taken):
    agent.more = "kubernetes: {source: api}\n"


def window_that_is_none(agent, taken):
    agent.window = "soon"


def address_of_another(agent, taken):
    agent.more = "  address: 203.0.113.7\n"  # behind http.port, which stays


BAD = [
    (port_that_is_taken, "cannot listen on"),
    (address_of_another, "cannot listen on"),
    (spool_that_cannot_be, "Not a directory"),
    (spool_of_another, "another agent uses this spool"),
    (cgroup_that_is_gone, "no/such/one"),
    (namespace_that_is_gone, "pid_namespace: "),
    (token_that_is_gone, "output.token_file: "),
    (api_server_that_nobody_names, "kubernetes.url: missing"),
    (window_that_is_none, "window: 'soon'"),
]


IN_MINUTES = (port_that_is_taken, token_that_is_gone)


@pytest.mark.parametrize("spoil, said", [
    pytest.param(*row, id=row[0].__name__, marks=() if row[0] in IN_MINUTES else pytest.mark.full)
    for row in BAD])
def test_reload_that_cannot_start(some_python, spoil, said, tmp_path):
    """It is said, counted, and nothing else: the old one goes on, with its server, until it is right."""
    locked = tmp_path / "locked"
    locked.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as taken, open(locked / "lock", "w") as lock, \
            Engine("pyroscope") as engine, spinning(some_python):
        fcntl.flock(lock, fcntl.LOCK_EX)
        with Agent(tmp_path, "pyroscope", engine.url) as agent:
            good = dict(vars(agent))
            wait_until(lambda: engine.total(SERVICE) > 0, PATIENCE, "samples arrive")
            programs = bpf_programs(agent)
            spoil(agent, taken)
            agent.write_config()
            agent.port, agent.spool = good["port"], good["spool"]
            wait_until(lambda: agent.metric("reload_failures_total") == 1, PATIENCE, "it is refused")
            assert said in agent.text() and "keeping the previous configuration" in agent.text()
            before, windows = engine.total(SERVICE), agent.metric("windows_total")
            wait_until(lambda: engine.total(SERVICE) > before and
                       agent.metric("windows_total") >= windows + 2, PATIENCE, "the old one goes on")
            assert agent.get("/readyz") == 200 and agent.metric("reloads_total") == 0
            assert bpf_programs(agent) == programs
            vars(agent).update({key: good[key] for key in ("window", "more", "output")})
            agent.write_config()
            wait_until(lambda: agent.metric("reloads_total") == 1, PATIENCE, "it is mended")
            agent.stop()
        assert engine.total() == agent.recorded()


def test_log_format_alone_touches_nothing_else(some_python, tmp_path):
    """Neither the programs in the kernel nor the window under way."""
    with Engine("pyroscope") as engine, spinning(some_python):
        with Agent(tmp_path, "pyroscope", engine.url, window="30m") as agent:
            programs = bpf_programs(agent)
            assert programs
            agent.more = "log:\n  format: json\n"
            agent.write_config()
            wait_until(lambda: agent.metric("reloads_total") == 1, PATIENCE, "it is taken over")
            assert agent.metric("windows_total") == 0
            assert bpf_programs(agent) == programs
            agent.stop()
        assert json.loads(agent.text().splitlines()[-1])["level"] == "info"
        assert engine.total() == agent.recorded() > 0


CHANGES = [
    # what changes, do the BPF programs
    ("another port", {}, "", "", False),
    ("rules", {}, "", "relabel:\n  - {action: labeldrop, regex: host}\n", False),
    ("tenant", {}, "  tenant: team-b\n", "", False),
    ("budget", {}, "", "cpu_budget: 2%\n", False),
    ("window", {"window": "2s"}, "", "", False),
    ("another spool", {"spool": "other"}, "", "", False),
    ("what is recorded", {}, "", "pid_namespace: /proc/self/ns/pid\n", True),
]


@pytest.mark.parametrize("what, settings, output, more, is_new", [
    pytest.param(*row, id=row[0], marks=() if row[0] in (
        "another port", "what is recorded") else pytest.mark.full) for row in CHANGES])
def test_reload_changes_what_it_says(some_python, what, settings, output, more, is_new, tmp_path):
    """And no more, and nothing is lost on the way."""
    with Engine("pyroscope") as engine, spinning(some_python):
        with Agent(tmp_path, "pyroscope", engine.url) as agent:
            wait_until(lambda: engine.total(SERVICE) > 0, PATIENCE, "samples arrive")
            programs, lost = bpf_programs(agent), agent.metric("spool_lost_samples_total",
                                                               reason="expired")
            agent.output, agent.more, port = output, more, agent.port
            if what == "another port":
                with socket.create_server(("127.0.0.1", 0)) as free:
                    agent.port = free.getsockname()[1]
            if "spool" in settings:
                agent.spool = os.path.join(agent.folder, settings["spool"])
            agent.window = settings.get("window", agent.window)
            agent.write_config()
            wait_until(lambda: agent.get("/readyz") == 200 and agent.metric("reloads_total") == 1,
                       PATIENCE, "it is taken over")
            before = engine.total(SERVICE)
            wait_until(lambda: engine.total(SERVICE) > before, PATIENCE, "samples arrive again")
            assert (bpf_programs(agent) != programs) == is_new
            assert agent.metric("spool_lost_samples_total", reason="expired") == lost
            if what == "another port":
                with pytest.raises(OSError):
                    socket.create_connection(("127.0.0.1", port), 1).close()
            agent.stop()
        assert engine.total() == agent.recorded()


def test_end_during_a_reload(some_python, tmp_path):
    """SIGTERM while the old engine is still waited for."""
    with Engine("pyroscope") as first, Engine("pyroscope") as second, spinning(some_python):
        event = hung(first)
        with Agent(tmp_path, "pyroscope", first.url, output="  timeout: %ds\n" % TIMEOUT) as agent:
            wait_until(lambda: first.requests, PATIENCE, "a request hangs")
            agent.url = second.url
            agent.write_config()
            wait_until(lambda: agent.metric("reloads_total") == 1, PATIENCE, "it is read")
            agent.stop()
        event.set()
        assert waiting(agent) + first.total() + second.total() == agent.recorded() > 0


def test_losses_stay_counted_over_reloads(some_python, tmp_path):
    """Also those of a spool that is none any more: a counter that begins anew is a restart."""
    spool = tmp_path / "spool"
    spool.mkdir()
    spool_put(spool, 1, 7, b"body", "pyroscope", time_ns=1)
    with Engine("pyroscope") as engine, spinning(some_python):
        with Agent(tmp_path, "pyroscope", engine.url) as agent:
            def lost():
                return agent.metric("spool_lost_samples_total", reason="expired")
            wait_until(lambda: lost() == 7, PATIENCE, "it is too old")
            for other, reloads in (("other", 1), ("spool", 2)):
                agent.spool = os.path.join(agent.folder, other)
                agent.write_config()
                wait_until(lambda: agent.metric("reloads_total") == reloads, PATIENCE, "taken over")
                assert lost() == 7
            agent.engine, agent.url = "files", None
            agent.write_config()
            wait_until(lambda: agent.metric("reloads_total") == 3, PATIENCE, "taken over")
            assert lost() == 7
            agent.stop()
