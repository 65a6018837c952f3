# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent: what operators met with real engines, networks and disks."""
import re
import subprocess
import time

import engines
import pytest
from engine_server import Answer, Engine
from harness import PATIENCE, wait_until
from test_agent import Agent, put_rows, spinning

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]
# What Pyroscope 2.2 says while one of its writers is away, in the body of a 500.
UNAVAILABLE = ('{"code":"unknown","message":"push series with index 0 and id  failed: rpc error: '
               'code = Unavailable desc = service is unavailable"}')


def test_500_that_says_unavailable_is_no_fault_of_the_profile(tmp_path):
    """However often: it is not given up after three tries."""
    put_rows(tmp_path, 1)
    with Engine("pyroscope", script=[Answer(500, text=UNAVAILABLE)] * 2) as engine:
        with Agent(tmp_path, "pyroscope", engine.url, window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "it is stored")
            assert agent.pushes("unavailable") == 2 and agent.pushes("failed") == 0
            assert agent.metric("push_dropped_samples_total") == 0
            agent.stop()
        assert engine.stored


def test_losses_are_said(some_python, tmp_path):
    """What the spool throws away is in the log, by reason, as it is counted."""
    with spinning(some_python):
        with Agent(tmp_path, "pyroscope", "http://127.0.0.1:%d" % engines.free_port()) as agent:
            agent.stop()
        with open(agent.config) as f:
            text = f.read()
        with open(agent.config, "w") as f:
            f.write(text.replace("spool:\n", "spool:\n  max_age: 2s\n"))
        agent.process = None
        with agent:
            wait_until(lambda: "spool: expired: " in agent.text(), PATIENCE, "it is said")
            counted = agent.metric("spool_lost_samples_total", reason="expired")
            said = sum(int(n) for n in re.findall(r"spool: expired: (\d+) samples", agent.text()))
            assert 0 < said <= counted
            agent.stop()


def test_before_anything_was_stored(tmp_path):
    """The age of the last success is that of the agent: an alert on it does not fire at once."""
    before = time.time()
    with Agent(tmp_path, "pyroscope", "http://127.0.0.1:%d" % engines.free_port(),
               window="30m") as agent:
        stored = agent.metric("last_stored_timestamp_seconds")
        assert before - 1 < stored == agent.metric("start_time_seconds") < time.time() + 1
        assert re.search(r'^pyebpf_build_info\{version="[^"]+"\} 1$', agent.fetch("/metrics")[1], re.M)
        agent.stop()


def test_token_over_http_is_warned_of(tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret\n")
    with Agent(tmp_path, "pyroscope", "http://127.0.0.1:%d" % engines.free_port(),
               output="  token_file: %s\n" % token, window="30m") as agent:
        assert "output.url is http" in agent.text()
        agent.stop()


def test_folder_that_is_run_names_its_service(some_python, tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "__main__.py").write_text("import time\nwhile True: sum(range(100000)), time.sleep(0.008)\n")
    process = subprocess.Popen([*some_python.command, str(folder / "__main__.py")],
                               env={"PATH": "/usr/bin"})
    try:
        with Engine("pyroscope") as engine:
            with Agent(tmp_path, "pyroscope", engine.url) as agent:
                wait_until(lambda: engine.total("shop") > 0, PATIENCE, "it has its folder's name")
                agent.stop()
    finally:
        process.kill()
        process.wait()
