# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent: many services and an engine that takes half a second for each request."""
import gzip
import json
import re
import subprocess

import engine_server
import pytest
from engine_server import Answer, Engine
from harness import PATIENCE, wait_until
from test_agent import Agent, make_pprof, names

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]
SERVICES, DELAY_S = 200, 0.5  # what Pyroscope 2.2 takes in the middle


def put_services(tmp_path, kind, count=SERVICES, profile=lambda number: {}):
    """A spool with a profile for each of so many services, as a window leaves it."""
    spool = tmp_path / "spool"
    spool.mkdir()
    for number in range(1, count + 1):
        labels = [("__name__", "process_cpu"), ("service_name", "s%d" % number)]
        body = engine_server.make_series(labels, make_pprof(name="n%d" % number, **profile(number)),
                                         kind == "parca")
        body = json.dumps(json.loads(body), separators=(",", ":")).encode()  # as the agent writes
        if kind == "pyroscope":
            body = gzip.compress(body)
        engine_server.spool_put(spool, number, 1, body, kind)


def found(engine):
    """The services that were put into the spool, once for each time that one was stored."""
    with engine.lock:
        return sorted(name for _, stacks in engine.stored for name in names(stacks)
                      if re.fullmatch(r"n\d+", name))


def all_of(count):
    return sorted("n%d" % number for number in range(1, count + 1))


@pytest.mark.threads
@pytest.mark.parametrize("kind", ["pyroscope", "parca"])
def test_two_hundred_services(kind, tmp_path):
    """Several series a request, several requests at a time, over connections that are kept: as many
    rounds of the engine's half second as fit into a third of a window of 15 s are more than enough."""
    put_services(tmp_path, kind)
    with Engine(kind, delay_s=DELAY_S) as engine:
        with Agent(tmp_path, kind, engine.url, window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are answered")
            assert agent.metric("push_stored_samples_total") == SERVICES
            assert agent.metric("spool_oldest_age_seconds") == 0
            requests = agent.pushes("stored")
            assert agent.metric("push_duration_seconds_count") == requests
            assert agent.metric("push_duration_seconds_sum") >= DELAY_S * requests
            agent.stop()
        assert found(engine) == all_of(SERVICES)
        most = max(stored for _, stored in engine.answered)
    print("requests", requests, "profiles in one", most, "at once", engine.under_way_most)
    assert requests <= SERVICES / 15 and most > 1
    assert engine.under_way_most > 1
    assert len(engine.connections) <= 24  # output.connections


def test_one_connection_is_kept(tmp_path):
    """One after the other: the next request goes over the same one."""
    put_services(tmp_path, "pyroscope")
    with Engine("pyroscope") as engine:
        with Agent(tmp_path, "pyroscope", engine.url, output="  connections: 1\n",
                   window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are answered")
            agent.stop()
        assert found(engine) == all_of(SERVICES)
        assert engine.under_way_most == 1 and len(engine.requests) > 1
        assert len(engine.connections) == 1


def test_nothing_is_sent_again_unseen(tmp_path):
    """Of a connection that was kept and that dies over a request, libcurl would send it once more by
    itself: what may come twice is counted."""
    put_services(tmp_path, "pyroscope", 70)
    with Engine("pyroscope", script=[Answer(200), Answer(hang_up=True)]) as engine:
        with Agent(tmp_path, "pyroscope", engine.url, output="  connections: 1\n",
                   window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are answered")
            assert agent.pushes("unanswered") == 1
            assert agent.pushes("stored") + 1 == len(engine.requests)
            agent.stop()
        assert found(engine) == all_of(70)


def test_no_connection_is_kept_where_nothing_may_come_twice(tmp_path):
    put_services(tmp_path, "pyroscope", 70)
    with Engine("pyroscope") as engine:
        with Agent(tmp_path, "pyroscope", engine.url,
                   output="  connections: 1\n  unanswered: drop\n", window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are answered")
            agent.stop()
        assert found(engine) == all_of(70)
        assert len(engine.connections) == len(engine.requests) > 1


def test_part_of_a_request_is_refused(tmp_path):
    """The others were stored, and come once; the ones that were not are dropped alone, and counted."""
    put_services(tmp_path, "pyroscope", 40, lambda number: {"age": 3700 if number % 10 == 3 else 0})
    with Engine("pyroscope") as engine:
        with Agent(tmp_path, "pyroscope", engine.url, window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are answered")
            assert agent.metric("push_dropped_samples_total") == 4
            assert agent.metric("push_stored_samples_total") == 36
            agent.stop()
        assert found(engine) == sorted(set(all_of(40)) - {"n3", "n13", "n23", "n33"})


def test_part_of_a_request_has_to_wait(tmp_path):
    """A limit that is reached in mid request: what was stored comes once, the rest later."""
    put_services(tmp_path, "pyroscope", 40)
    is_busy = [True]
    with Engine("pyroscope", refuses=lambda service: is_busy[0] and service in ("s7", "s38")) as engine:
        with Agent(tmp_path, "pyroscope", engine.url, window="30m") as agent:
            wait_until(lambda: agent.pushes("throttled") >= 2, PATIENCE, "it is busy")
            assert agent.metric("spool_entries") == agent.metric("spool_samples") == 2
            assert agent.metric("spool_oldest_age_seconds") > 0
            is_busy[0] = False
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "it takes them")
            assert agent.metric("push_dropped_samples_total") == 0
            agent.stop()
        assert found(engine) == all_of(40)


def test_list_of_failures_that_is_cut(tmp_path):
    """Not trusted: what it does not name any more was not stored either. It comes again, all of it."""
    put_services(tmp_path, "pyroscope", 40)
    text = "push series with index 3 and id  failed: " + "x" * 1000
    cut = (("Content-Length", "5000"), ("Connection", "close"))
    with Engine("pyroscope", script=[Answer(500, cut, text=text)]) as engine:
        with Agent(tmp_path, "pyroscope", engine.url, output="  connections: 1\n",
                   window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are answered")
            assert agent.pushes("failed") == 1
            assert agent.metric("push_stored_samples_total") == 40
            agent.stop()
        assert found(engine) == all_of(40)


def test_services_in_one_window(some_python, tmp_path):
    """Recorded, not made up: a window's services come in few requests, and all of it once."""
    code = "import time\nwhile True: sum(range(20000)), time.sleep(0.05)"
    spinners = [subprocess.Popen([*some_python.command, "-c", code],
                                 env={"OTEL_SERVICE_NAME": "svc-%d" % i}) for i in range(20)]
    try:
        with Engine("pyroscope") as engine:
            with Agent(tmp_path, "pyroscope", engine.url, window="2s") as agent:
                wait_until(lambda: max([n for _, n in engine.answered], default=0) >= 10, PATIENCE,
                           "ten services in one request")
                agent.stop()
            assert engine.total() == agent.recorded()
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()
