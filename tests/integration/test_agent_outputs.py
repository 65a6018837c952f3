# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent with several outputs: each gets every window, and none waits for another. For each of
them: recorded = stored + waiting + counted."""
import os
import time

import pytest
from engine_server import Answer, Engine
from harness import PATIENCE, run, wait_until
from test_agent import SERVICE, Agent, export, names, spinning
from test_agent_engine import TIMEOUT, hung

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]


class ManyOutputs(Agent):
    """outputs: {name: (engine, url, more keys)}."""

    def __init__(self, folder, outputs, **settings):
        self.outputs = outputs
        super().__init__(folder, None, **settings)

    def write_config(self):
        keys = [dict({"name": name, "engine": engine, "url": url}, **more)
                for name, (engine, url, more) in self.outputs.items()]
        lines = ["  - {%s}\n" % ", ".join("%s: '%s'" % pair for pair in each.items() if pair[1])
                 for each in keys]
        self.put_config("".join(lines))

    def waiting(self, name):
        """Samples in the spool of an output."""
        return sum(int(entry.split("-")[2]) for entry in os.listdir(os.path.join(self.spool, name))
                   if entry != "lock")


def reach(engine, samples=50):
    wait_until(lambda: engine.total(SERVICE) > samples, PATIENCE, "samples arrive")


@pytest.mark.quick
def test_each_gets_everything(some_python, tmp_path):
    """Two engines and a folder, each in its own form."""
    with Engine("pyroscope") as first, Engine("otlp") as second, spinning(some_python):
        outputs = {"a": ("pyroscope", first.url, {}), "b": ("otlp", second.url, {}),
                   "c": ("files", None, {"directory": tmp_path / "out", "keep": 0})}
        with ManyOutputs(tmp_path, outputs) as agent:
            for name, engine in (("a", first), ("b", second)):
                reach(engine)
                wait_until(lambda output=name: agent.metric("pushes_total", output=output,
                                                            outcome="stored") > 0,
                           PATIENCE, "its answer has arrived")
                assert 0 < agent.metric("push_stored_samples_total", output=name) <= engine.total()
                assert agent.metric("push_duration_seconds_count", output=name) > 0
            agent.stop()
        assert first.total() == second.total() == agent.recorded()
        assert first.stacks(SERVICE).total() == second.stacks(SERVICE).total()
        assert "hot" in names(second.stacks(SERVICE))
    kept = sum(count for file in (tmp_path / "out").iterdir() for count in export(file).values())
    assert kept == agent.recorded()
    assert not agent.waiting("a") and not agent.waiting("b")


@pytest.mark.parametrize("trouble", [
    "hangs", pytest.param("refuses", marks=pytest.mark.full),
    pytest.param("is away", marks=pytest.mark.full)])
def test_one_in_trouble_holds_up_no_other(some_python, trouble, tmp_path):
    """The other has each window soon after its end, nothing of the first one's is lost, and all end
    within the time of one."""
    with Engine("pyroscope") as good, Engine("pyroscope") as bad, spinning(some_python):
        url, event = bad.url, None
        if trouble == "hangs":
            event = hung(bad)
        elif trouble == "refuses":
            bad.script.extend([Answer(503)] * 1000)
        else:
            url = "http://127.0.0.1:1"
        outputs = {"bad": ("pyroscope", url, {"timeout": "%ds" % TIMEOUT}),
                   "good": ("pyroscope", good.url, {})}
        with ManyOutputs(tmp_path, outputs) as agent:
            reach(good)
            for _ in range(3):
                windows = agent.metric("windows_total")
                wait_until(lambda before=windows: agent.metric("windows_total") > before, PATIENCE,
                           "a window")
                wait_until(lambda: agent.metric("spool_entries", output="good") == 0, 3,
                           "it is not held up")
            assert agent.metric("spool_entries", output="bad") > 0
            assert agent.metric("push_stored_samples_total", output="bad") == 0
            start = time.monotonic()
            agent.stop()
            print("ended after %.1f s" % (time.monotonic() - start))
        if event:
            event.set()
        assert good.total() == agent.recorded() == agent.waiting("bad") > 0
        assert not agent.waiting("good") and bad.total() == 0


def test_two_that_hang_end_together(some_python, tmp_path):
    """In the two seconds that one alone has."""
    with Engine("pyroscope") as first, Engine("otlp") as second, spinning(some_python):
        events = [hung(first), hung(second)]
        more = {"timeout": "%ds" % TIMEOUT}
        outputs = {"a": ("pyroscope", first.url, more), "b": ("otlp", second.url, more)}
        with ManyOutputs(tmp_path, outputs) as agent:
            wait_until(lambda: first.requests and second.requests, PATIENCE, "both hang")
            start = time.monotonic()
            agent.stop()
            took = time.monotonic() - start
        for event in events:
            event.set()
        assert agent.waiting("a") == agent.waiting("b") == agent.recorded() > 0
        assert took < 3.9, took  # one after the other would be four


def test_outputs_come_and_go(some_python, tmp_path):
    """A reload adds one and takes one away; the third has every sample, before and after."""
    with Engine("pyroscope") as stays, Engine("pyroscope") as goes, Engine("otlp") as comes, \
            spinning(some_python):
        event = hung(goes)
        outputs = {"goes": ("pyroscope", goes.url, {"timeout": "%ds" % TIMEOUT}),
                   "stays": ("pyroscope", stays.url, {})}
        with ManyOutputs(tmp_path, outputs) as agent:
            reach(stays)
            agent.outputs = {"stays": outputs["stays"], "comes": ("otlp", comes.url, {})}
            agent.write_config()
            wait_until(lambda: agent.metric("reloads_total") == 1, PATIENCE, "it is taken over")
            reach(comes)
            lost = agent.waiting("goes")
            assert lost > 0 and "%d samples remain unsent" % lost in agent.text()
            stored = agent.metric("push_stored_samples_total", output="stays")
            assert stored > 0
            agent.outputs = dict(agent.outputs, goes=outputs["goes"])
            event.set()
            goes.script.clear()
            agent.write_config()
            wait_until(lambda: agent.metric("reloads_total") == 2, PATIENCE, "it is back")
            wait_until(lambda: goes.total() > lost, PATIENCE, "it has what waited, and more")
            assert agent.metric("push_stored_samples_total", output="stays") >= stored
            agent.stop()
        assert stays.total() == agent.recorded()
        assert 0 < comes.total() < agent.recorded()


def test_one_becomes_several(some_python, tmp_path):
    """What waits for the only one goes on where the list names its spool."""
    with Engine("pyroscope") as engine, Engine("otlp") as other, spinning(some_python):
        event = hung(engine)
        with Agent(tmp_path, "pyroscope", engine.url, output="  timeout: %ds\n" % TIMEOUT) as agent:
            wait_until(lambda: engine.requests and agent.metric("windows_total") >= 2, PATIENCE,
                       "a request hangs")
            event.set()
            engine.script.clear()
            listed = ManyOutputs(tmp_path, {
                "first": ("pyroscope", engine.url, {"spool": agent.spool}),
                "second": ("otlp", other.url, {})})
            listed.port = agent.port
            listed.write_config()
            wait_until(lambda: agent.metric("reloads_total") == 1, PATIENCE, "it is taken over")
            reach(other)
            agent.stop()
        assert engine.total() + listed_waiting(agent) == agent.recorded() > other.total() > 0


def listed_waiting(agent):
    return sum(int(entry.split("-")[2]) for entry in os.listdir(agent.spool)
               if entry.count("-") == 3)


def test_wrong_lists(tmp_path):
    """--check says which, before anything is started."""
    for text, said in (
            ("[{engine: otlp, url: 'http://h'}, {engine: otlp, url: 'http://i'}]",
             "two are called otlp: give each a name of its own"),
            ("[{engine: otlp, url: 'http://h', spool: /s}, {engine: parca, url: 'http://i', spool: /s}]",
             "otlp and parca have the same spool, /s"),
            ("[{engine: otlp, url: 'http://h'}, {name: x, engine: parca, url: 'http://i', token_file: /no}]",
             "output.token_file of x: /no: No such file")):
        (tmp_path / "a.yaml").write_text("output: %s\n" % text)
        done = run("agent", "--check", "--config", tmp_path / "a.yaml")
        assert done.returncode and said in done.stderr, (text, done.stderr)
