# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent: what is recorded reaches the engine, once, whatever the engine does meanwhile."""
import collections
import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import engine_server
import engines
import otlp
import pytest
import pythons
from engine_server import Answer, Engine
from harness import PATIENCE, PYEBPF, Workload, export, run, wait_until
from spinning import cpu_seconds

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]
SERVICE = "under-test-%d" % os.getpid()  # others on this machine may run the same
ONE_BY_ONE = "  connections: 1\n"  # requests, so that they have an order
RATE = 199


class Agent:
    """One in the background, with its own spool and port."""
    prefix = ()  # of its command

    def __init__(self, folder, engine, url=None, output="", more="", window="1s", environment=None):
        self.folder = str(folder)
        self.spool = os.path.join(self.folder, "spool")
        self.host, self.port = "127.0.0.1", engines.free_port()
        self.config = os.path.join(self.folder, "agent.yaml")
        self.engine, self.url, self.window = engine, url, window
        self.output, self.more = output, more
        self.environment = dict(os.environ, **environment or {})
        self.write_config()
        self.log = tempfile.TemporaryFile()
        self.process = None

    def write_config(self):
        output = self.output + (
            "  url: %s\n" % self.url if self.url else "  directory: %s/out\n" % self.folder)
        self.put_config("  engine: %s\n%s" % (self.engine, output))

    def put_config(self, output):
        # It looks at other tests' programs too, which may cost it more than 1 %.
        budget = "" if "cpu_budget" in self.more else "cpu_budget: 100%\n"
        with open(self.config + ".new", "w") as f:
            f.write("rate: %d\nwindow: %s\n%soutput:\n%sspool:\n  directory: %s\nhttp:\n  port: %d\n%s" % (
                RATE, self.window, budget, output, self.spool, self.port, self.more))
        os.replace(self.config + ".new", self.config)

    def start(self):
        self.process = subprocess.Popen([*self.prefix, PYEBPF, "agent", "-v", "--config", self.config],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        env=self.environment)
        wait_until(lambda: self.get("/readyz") == 200, PATIENCE, "the agent is ready")
        return self

    def fetch(self, path):
        with urllib.request.urlopen("http://%s:%d%s" % (self.host, self.port, path), timeout=10) as f:
            return f.status, f.read().decode()

    def get(self, path):
        if self.process.poll() is not None:
            raise AssertionError("the agent ended with %d: %s" % (self.process.returncode, self.text()))
        try:
            return self.fetch(path)[0]
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def metric(self, name, **labels):
        label = "{%s}" % ",".join('%s="%s"' % pair for pair in labels.items()) if labels else ""
        for line in self.fetch("/metrics")[1].splitlines():
            if line.startswith("pyebpf_%s%s " % (name, label)):
                return float(line.split()[-1])
        raise AssertionError("no metric " + name + label)

    def pushes(self, outcome):
        return self.metric("pushes_total", outcome=outcome)

    def text(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def recorded(self):
        """Samples of all windows that ended, by the log."""
        return sum(int(n) for n in re.findall(r"window: .*?, (\d+) samples", self.text()))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(PATIENCE)
        assert status == 0, self.text()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, failed, *_):
        if self.process.poll() is None:
            self.kill()
        if failed:
            print(self.text()[-4000:])


@contextlib.contextmanager
def spinning(python, seconds=600, name=SERVICE, first=None, rest=0.008):
    """A service that burns CPU in one function, for about 2 ms, and rests for so many seconds, again and again: its
    process. first: what it calls before its exec."""
    code = ("import time\ndef hot():\n while time.time() < end: sum(range(100000)), time.sleep(%g)\n"
            "end = time.time() + %d\nhot()")
    process = subprocess.Popen([*python.command, "-c", code % (rest, seconds)],
                               env=dict(os.environ, OTEL_SERVICE_NAME=name), preexec_fn=first)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def names(stacks):
    return {frame.name for stack in stacks for frame in stack.frames}


@pytest.mark.threads
@pytest.mark.quick
@pytest.mark.parametrize("kind", ["pyroscope", "parca", "otlp"])
def test_everything_arrives_once(some_python, kind, tmp_path):
    with Engine(kind) as engine, spinning(some_python):
        with Agent(tmp_path, kind, engine.url, more="labels:\n  env: test\n") as agent:
            wait_until(lambda: engine.total(SERVICE) > 50, PATIENCE, "samples arrive")
            agent.stop()
            assert engine.total() == agent.recorded()
        assert "hot" in names(engine.stacks(SERVICE))
    assert os.listdir(agent.spool) == ["lock"]


WAITING = """
import threading, time
def nap():
    while True: time.sleep(0.2)
threading.Thread(target=nap, daemon=True).start()
def hot():
    while True: sum(range(1000))
hot()
"""
TYPES = {  # of CPU time, of waiting
    "pyroscope": ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "off_cpu:off_cpu:nanoseconds::"),
    "parca": ("process_cpu:cpu:nanoseconds:cpu:nanoseconds",
              "off_cpu:wallclock:nanoseconds:samples:count"),
    "otlp": (":samples:count:cpu:nanoseconds", ":off_cpu:nanoseconds::")}


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["pyroscope", pytest.param("parca", marks=pytest.mark.full),
                                  pytest.param("otlp", marks=pytest.mark.full)])
def test_waiting_is_a_profile_type_of_its_own(some_python, kind, tmp_path):
    """A thread that naps waits all the time; what is pushed is what /metrics tells, in seconds."""
    cpu, waiting = TYPES[kind]
    with Engine(kind) as engine, contextlib.ExitStack() as stack:
        process = subprocess.Popen([*some_python.command, "-c", WAITING],
                                   env=dict(os.environ, OTEL_SERVICE_NAME=SERVICE))
        stack.callback(process.wait)
        stack.callback(process.kill)

        def napped():
            return sum(ns for s, ns in engine.stacks_of_type(SERVICE, waiting).items()
                       if [f.name for f in s.frames][-2:] == ["nap", "<sleep>"])

        with Agent(tmp_path, kind, engine.url, more="mode: wall\n") as agent:
            start = time.monotonic()
            wait_until(lambda: napped() > 0.8e9, PATIENCE, "waits arrive")
            elapsed = time.monotonic() - start
            agent.stop()
            assert agent.recorded() > 0
        hot = sum(ns for s, ns in engine.stacks_of_type(SERVICE, cpu).items()
                  if "hot" in [f.name for f in s.frames])
        assert napped() < (elapsed + 5) * 1e9
        assert hot > 0.1e9


GROWING = """
import time
kept = []
def grow():
    kept.append(b"x" * (1 << 20))
while True:
    grow()
    time.sleep(0.05)
"""
GROWTH = {  # of resident memory, of page faults
    "pyroscope": ("memory:rss_growth:bytes:memory:bytes",
                  "page_faults:page_faults:count:page_faults:count"),
    "otlp": (":rss_growth:bytes:memory:bytes", ":page_faults:count:page_faults:count")}
GROWTH["parca"] = GROWTH["pyroscope"]


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["pyroscope", pytest.param("parca", marks=pytest.mark.full),
                                  pytest.param("otlp", marks=pytest.mark.full)])
def test_memory_and_events_are_profile_types_of_their_own(some_python, kind, tmp_path):
    """What a line grows by, a MiB each time, and a fault a page of it."""
    memory, faults = GROWTH[kind]
    with Engine(kind) as engine, contextlib.ExitStack() as stack:
        def grown(of):
            return sum(n for s, n in engine.stacks_of_type(SERVICE, of).items()
                       if [f.name for f in s.frames][-1:] == ["grow"])

        with Agent(tmp_path, kind, engine.url, more="mode: memory\nevents: [page-faults]\n") as agent:
            process = subprocess.Popen([*some_python.command, "-c", GROWING],
                                       env=dict(os.environ, OTEL_SERVICE_NAME=SERVICE))
            stack.callback(process.wait)
            stack.callback(process.kill)
            wait_until(lambda: grown(memory) > 10 << 20, PATIENCE, "growth arrives")
            agent.stop()
        assert grown(memory) == pytest.approx(4096 * grown(faults), rel=0.1)
        assert not engine.stacks_of_type(SERVICE, TYPES[kind][0])  # no ticks: nobody asked for them
    shown = run("agent", "--check", "--config", agent.config)
    assert "mode: memory\nevents: ['page-faults']\n" in shown.stdout, shown.stdout


@pytest.mark.parametrize("kind", ["otlp", pytest.param("pyroscope", marks=pytest.mark.full),
                                  pytest.param("parca", marks=pytest.mark.full)])
def test_samples_have_the_ids_of_their_span(some_python, kind, tmp_path):
    """sample_labels: OTLP links to spans; Pyroscope, where a trace would be a series, is told the span alone."""
    with Engine(kind) as engine:
        def inside():
            return [(frames[i], labels, link) for frames, labels, link in list(engine.labelled)
                    for i in range(len(frames)) if frames[i].startswith("in_")]

        with Agent(tmp_path, kind, engine.url, more="sample_labels: [otel, 'user=contextvar:user']\n") as agent, \
                Workload(some_python, "otel_spans.py", 600, env={"OTEL_SERVICE_NAME": SERVICE}) as workload:
            workload.go()
            wait_until(lambda: len(inside()) > 30, PATIENCE, "samples of spans arrive")
            agent.stop()
        for name, labels, link in inside():
            told = dict(zip(("trace_id", "span_id"), name.split("_")[1:])) if name != "in_none" else {}
            if kind == "otlp":
                assert link == (tuple(told.values()) or None)
            if kind == "pyroscope":
                told.pop("trace_id", None)
            assert labels == told, (name, labels)
    shown = run("agent", "--check", "--config", agent.config)
    assert "sample_labels: [otel, 'user=contextvar:user']\n" in shown.stdout, shown.stdout


def test_excluded_services_stay_here(some_python, tmp_path):
    """Only what is included and not excluded is sent; the rest is counted."""
    with Engine("pyroscope") as engine, spinning(some_python, name="shop-web"), \
            spinning(some_python, name="shop-cron"), spinning(some_python, name="other"):
        with Agent(tmp_path, "pyroscope", engine.url,
                   more="services:\n  include: ['shop-*']\n  exclude: ['*-cron']\n") as agent:
            wait_until(lambda: engine.total() > 20, PATIENCE, "samples arrive")
            assert agent.metric("excluded_samples_total") > 0
            agent.stop()
        assert {service for service, _ in engine.stored} == {"shop-web"}
        assert engine.total() == agent.recorded()


def test_rules_change_and_drop_what_is_sent(some_python, tmp_path):
    """By the labels of each process, those that are not sent among them; equal ones are one series."""
    rules = """relabel:
  - {action: drop, source_labels: [service_name], regex: '.*-cron'}
  - {source_labels: [service_name], regex: '(shop)-.*', target_label: service_name}
  - {source_labels: [__python_version, host], regex: '(3[.]\\d+).*;.+', target_label: python}
  - {action: labeldrop, regex: 'host|container_id|pod_uid'}
"""
    with Engine("pyroscope") as engine, spinning(some_python, name="shop-web"), \
            spinning(some_python, name="shop-api"), spinning(some_python, name="shop-cron"):
        with Agent(tmp_path, "pyroscope", engine.url, more=rules) as agent:
            wait_until(lambda: engine.total("shop") > 50, PATIENCE, "samples arrive")
            assert agent.metric("excluded_samples_total") > 0
            agent.stop()
        assert not {"shop-web", "shop-api", "shop-cron"} & {service for service, _ in engine.stored}
        version = "3.%d" % some_python.minor
        ours = [labels for labels in engine.labels if labels["service_name"] == "shop"]
        assert all(labels == {"__name__": "process_cpu", "service_name": "shop", "python": version}
                   for labels in ours), ours
        assert engine.total() == agent.recorded()
    shown = run("agent", "--check", "--config", agent.config)
    assert shown.returncode == 0 and "action: labeldrop, separator" in shown.stdout, shown.stdout


@contextlib.contextmanager
def in_pid_namespaces(python):
    """Services "inside" a PID namespace and "deeper" in one of its own there: unshare's process."""
    spin = "%s -c 'import time\nwhile True: sum(range(100000)), time.sleep(0.008)'" % " ".join(python.command)
    script = ("OTEL_SERVICE_NAME=inside %s & OTEL_SERVICE_NAME=deeper "
              "unshare --pid --fork --kill-child %s" % (spin, spin))
    process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", script])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_only_one_pid_namespace(some_python, tmp_path):
    """The kernel leaves out what is not in it, before a stack is walked."""
    with Engine("pyroscope") as engine, spinning(some_python, name="outside"), \
            in_pid_namespaces(some_python) as unshare:
        children = "/proc/%d/ns/pid_for_children" % unshare.pid
        own = os.stat("/proc/self/ns/pid").st_ino
        wait_until(lambda: os.path.exists(children) and os.stat(children).st_ino != own, PATIENCE,
                   "the namespace is there")
        with Agent(tmp_path, "pyroscope", engine.url,
                   more="pid_namespace: %s\n" % children) as agent:
            wait_until(lambda: engine.total("inside") > 20 and engine.total("deeper") > 20,
                       PATIENCE, "samples of both arrive")
            assert agent.metric("recorder_total", counter="filtered") > 0
            assert agent.metric("excluded_samples_total") == 0
            agent.stop()
        assert {service for service, _ in engine.stored} == {"inside", "deeper"}


def test_pid_namespace_that_is_none(tmp_path):
    for path, said in (("/proc/self/ns/net", "no PID namespace"), ("/proc/none", "No such file")):
        agent = Agent(tmp_path, "files", more="pid_namespace: %s\n" % path)
        done = run("agent", "--config", agent.config)
        assert done.returncode == 1 and "pid_namespace: " in done.stderr and said in done.stderr


def test_totals_hold_across_a_change_of_rate(some_python, tmp_path):
    """Over its CPU budget the agent samples a tenth as often, and each sample stands for ten."""
    rate, rate_min = RATE, 19
    with Engine("pyroscope") as engine, spinning(some_python, rest=0.004) as spinner:
        wait_until(lambda: cpu_seconds(spinner.pid) > 0.3, PATIENCE, "it spins")
        agent = Agent(tmp_path, "pyroscope", engine.url,
                      more="rate_min: %d\ncpu_budget: 0.01%%\n" % rate_min)
        with agent:
            start, before = time.monotonic(), cpu_seconds(spinner.pid)
            wait_until(lambda: agent.metric("windows_total") >= 5, PATIENCE, "some windows")
            assert agent.metric("rate_hertz") == rate / (rate // rate_min)
            assert agent.metric("rate_changes_total") >= 1
            assert agent.metric("cost_ratio") > agent.metric("cpu_budget_ratio") == 1e-4
            agent.stop()
            elapsed, spun = time.monotonic() - start, cpu_seconds(spinner.pid) - before
    assert "cpu_budget is 0.01%" in agent.text()
    stride = rate // rate_min
    chance = stride * (elapsed * rate / stride) ** 0.5 / 2  # binomial, the most it can be
    assert abs(engine.total(SERVICE) - spun * rate) < 4 * chance + 3 * stride, (elapsed, spun)
    assert engine.total() == agent.recorded()


@pytest.mark.alone
def test_processes_that_ended_before_they_were_looked_at(tmp_path):
    """There is nothing to be known of them: no row is left. Maps and tables say how full they are."""
    count, in_ring = 60, []
    program = shutil.copy(shutil.which("perl"), tmp_path)  # one that nobody has been asked about
    with Agent(tmp_path, "files") as agent:
        def rows():
            in_ring.append(agent.metric("bpf_map_entries", map="events"))
            return agent.metric("bpf_map_entries", map="procs")
        wait_until(lambda: agent.metric("windows_total") >= 2, PATIENCE, "a window")
        before = rows()
        agent.process.send_signal(signal.SIGSTOP)
        ended = [subprocess.Popen([program, "-e", "1 for 1 .. 4000000"])
                 for _ in range(count)]
        for process in ended:  # not reaped: they are zombies
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        agent.process.send_signal(signal.SIGCONT)
        asked = agent.metric("windows_total")
        wait_until(lambda: rows() is not None and agent.metric("windows_total") >= asked + 2,
                   PATIENCE, "what was asked is answered")
        assert rows() < before + count / 2
        for process in ended:
            process.wait()
        assert agent.metric("bpf_map_max_entries", map="procs") >= 16384
        assert 0 < max(in_ring) <= agent.metric("bpf_map_max_entries", map="events")
        assert agent.metric("table_bytes", table="code_objects") < \
            agent.metric("table_max_bytes", table="code_objects")
        agent.stop()


@pytest.mark.quick
def test_files(some_python, tmp_path):
    """A recording a window; the last ones are kept, each of them whole."""
    with spinning(some_python):
        with Agent(tmp_path, "files", output="  keep: 2\n") as agent:
            wait_until(lambda: agent.metric("windows_total") >= 3, PATIENCE, "three windows")
            agent.stop()
    kept = sorted((tmp_path / "out").iterdir())
    assert len(kept) == 2, kept
    assert "hot" in names(export(kept[0]))


def test_files_beside_those_of_others(some_python, tmp_path):
    """Names of others that come later push out none of ours, and theirs stay; a folder's name is no pattern."""
    class InFolder(Agent):
        def write_config(self):
            self.put_config("  engine: files\n  keep: 2\n  directory: '%s/o*t'\n" % self.folder)
    for folder in ("o*t", "other_out"):
        (tmp_path / folder).mkdir()
    early, late, elsewhere, link = theirs = [
        tmp_path / name for name in ("o*t/pyebpf-19990101T000000Z.pyebpf", "o*t/pyebpf-29990101T000000Z.pyebpf",
                                     "other_out/pyebpf-19990101T000000Z.pyebpf", "o*t/pyebpf-29990102T000000Z.pyebpf")]
    for path in early, late:
        path.write_text("theirs")
        shutil.chown(path, "nobody")
    elsewhere.write_text("ours, of another time")
    link.symlink_to(elsewhere)
    with spinning(some_python), InFolder(tmp_path, "files") as agent:
        wait_until(lambda: agent.metric("windows_total") >= 3, PATIENCE, "three windows")
        agent.stop()
    mine = set((tmp_path / "o*t").iterdir()) - set(theirs)
    assert len(mine) == 2 and all(path.exists() for path in theirs), mine
    # stop() may end a window that has just begun, without a sample.
    assert any("hot" in names(export(path)) for path in mine)


# --- Rows of the engines' tables: entries put into the spool, sent by one agent -------------------


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def make_pprof(samples=1, depth=1, age=0, duration=1, name="f", padding=0):
    """One of pprof's, by hand: `samples` stacks of `depth` frames, one tick each."""
    strings = ["", "samples", "count", name] + ["x" * 1000 + str(i) for i in range(padding)]
    body = field(1, field(1, 1) + field(2, 2))
    body += b"".join(field(2, field(1, varint(i + 1) + varint(1) * (depth - 1)) + field(2, varint(1)))
                     for i in range(samples))
    body += b"".join(field(4, field(1, i + 1) + field(4, field(1, 1) + field(2, i + 1)))
                     for i in range(samples))
    body += field(5, field(1, 1) + field(2, 3))
    body += b"".join(field(6, text.encode()) for text in strings)
    body += field(9, int((time.time() - age) * 1e9))
    body += field(10, duration) if duration else b""
    return gzip.compress(body + field(11, field(1, 1) + field(2, 2)) + field(12, 1))


NAMED = [("__name__", "process_cpu"), ("service_name", "row")]
PYROSCOPE_ROWS = [
    # what, profile, labels, outcome, stored
    ("plain", {}, NAMED, "stored", 1),
    ("no service name", {}, NAMED[:1], "stored", 1),
    ("1,200 deep", {"depth": 1200}, NAMED, "stored", 1),
    ("older than an hour", {"age": 3700}, NAMED, "refused", 0),
    ("20 minutes ahead", {"age": -1200}, NAMED, "refused", 0),
    ("31 labels", {}, NAMED + [("l%d" % i, "x") for i in range(29)], "refused", 0),
    ("a label twice", {}, NAMED + NAMED[1:], "refused", 0),
    ("16,001 samples", {"samples": 16001}, NAMED, "refused", 0),
    ("beyond 4 MiB", {"padding": 4300}, NAMED, "refused", 0),
]
PARCA_ROWS = [
    ("plain", {}, NAMED, "stored", 1),
    ("no duration", {"duration": 0}, NAMED, "refused", 0),
]


@pytest.mark.parametrize("kind, rows", [("pyroscope", PYROSCOPE_ROWS), ("parca", PARCA_ROWS)],
                         ids=lambda value: value if isinstance(value, str) else "")
def test_rows_of_the_engine(kind, rows, tmp_path):
    """Each is stored, or dropped and counted, at its first try; none holds up the next."""
    spool = tmp_path / "spool"
    spool.mkdir()
    for number, (_, profile, labels, _, _) in enumerate(rows, 1):
        body = engine_server.make_series(labels, make_pprof(**profile), kind == "parca")
        if kind == "pyroscope":
            body = gzip.compress(body)
        engine_server.spool_put(spool, number, 1, body, kind)
    with Engine(kind) as engine:
        with Agent(tmp_path, kind, engine.url, window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are answered")
            for outcome in {row[3] for row in rows}:
                assert agent.pushes(outcome) == sum(row[3] == outcome for row in rows), agent.text()
            dropped = sum(row[3] == "refused" for row in rows)
            assert agent.metric("push_dropped_samples_total") == dropped
            agent.stop()
        assert len(engine.stored) >= sum(row[4] for row in rows)
        assert len([s for s in engine.stored if names(s[1]) == {"f"}]) == sum(r[4] for r in rows)


def put_rows(tmp_path, count):
    spool = tmp_path / "spool"
    spool.mkdir()
    for number in range(1, count + 1):
        body = engine_server.make_series(NAMED, make_pprof(name="n%d" % number))
        engine_server.spool_put(spool, number, 1, gzip.compress(body), "pyroscope")


ANSWERS = [
    # what, answers before the ordinary ones, outcome that is counted for them
    ("429", [Answer(429)], "throttled"),
    ("429 with Retry-After", [Answer(429, (("Retry-After", "2"),))], "throttled"),
    ("502", [Answer(502)], "unavailable"),
    ("503", [Answer(503)], "unavailable"),
    ("504", [Answer(504)], "unavailable"),
    ("401", [Answer(401)], "denied"),
    ("404", [Answer(404)], "wrong_url"),
    ("302", [Answer(302, (("Location", "/elsewhere"),))], "wrong_url"),
    ("500 once", [Answer(500)], "failed"),
    ("half-closed", [Answer(hang_up=True)], "unanswered"),
    ("slow", [Answer(200, delay_s=2)], None),
]


# The others are rows of the table in unit/agent too.
IN_MINUTES = ("429 with Retry-After", "503", "half-closed")


@pytest.mark.parametrize("what, script, outcome", [
    pytest.param(*row, id=row[0], marks=() if row[0] in IN_MINUTES else pytest.mark.full)
    for row in ANSWERS])
def test_answers_that_pass(what, script, outcome, tmp_path):
    """What is not stored is sent again, and nothing twice."""
    put_rows(tmp_path, 3)
    with Engine("pyroscope", script=script) as engine:
        with Agent(tmp_path, "pyroscope", engine.url, output=ONE_BY_ONE, window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are answered")
            if outcome:
                assert agent.pushes(outcome) == len(script), agent.text()
            assert agent.pushes("stored") == 3
            agent.stop()
        found = sorted(name for _, stacks in engine.stored for name in names(stacks)
                       if re.fullmatch(r"n\d", name))
        assert found == ["n1", "n2", "n3"]
        if "Retry-After" in what:
            assert engine.requests[1][0] - engine.requests[0][0] >= 2


@pytest.mark.full
def test_500_for_ever_is_given_up(tmp_path):
    """An empty profile is a 500 to Pyroscope, however often it is sent."""
    put_rows(tmp_path, 1)
    with Engine("pyroscope", script=[Answer(500)] * 4) as engine:
        with Agent(tmp_path, "pyroscope", engine.url, window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "it is given up")
            assert agent.pushes("failed") == 4
            assert agent.metric("push_dropped_samples_total") == 1


@pytest.mark.parametrize("kind", ["parca", "otlp"])
def test_wrong_url_keeps_what_there_is(kind, tmp_path):
    """Parca answers 200 and a web page there, a Collector 404. With the right URL it arrives."""
    spool = tmp_path / "spool"
    spool.mkdir()
    body = engine_server.make_series(NAMED, make_pprof(), is_wrapped=True)
    engine_server.spool_put(spool, 1, 1, body if kind == "parca" else gzip.compress(body), kind)
    with Engine(kind) as engine:
        with Agent(tmp_path, kind, engine.url + "/nowhere", window="30m") as agent:
            wait_until(lambda: agent.pushes("wrong_url") >= 1, PATIENCE, "an answer")
            assert agent.metric("spool_entries") == 1
            assert agent.metric("push_dropped_samples_total") == 0
            agent.stop()
        assert not engine.stored


def test_tls_with_certificates_of_both_sides(tmp_path):
    """The engine is known by ca_file, the agent by its certificate; a stranger is not spoken to."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=engine", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", str(key), "-out", str(certificate)], check=True,
                   stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.load_verify_locations(certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    put_rows(tmp_path, 1)
    with Engine("pyroscope", tls=context) as engine:
        with Agent(tmp_path, "pyroscope", engine.url, window="30m") as stranger:
            wait_until(lambda: stranger.pushes("unreachable") >= 1, PATIENCE, "it is refused")
            assert "certificate" in stranger.text()
            stranger.stop()
        assert not engine.stored
        known = "  ca_file: %s\n  cert_file: %s\n  key_file: %s\n" % (certificate, certificate, key)
        with Agent(tmp_path, "pyroscope", engine.url, output=known, window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "it arrives")
            agent.stop()
        assert [1 for _, stacks in engine.stored if names(stacks) == {"n1"}] == [1]


@pytest.mark.threads
def test_engine_down_then_up(some_python, tmp_path, is_full):
    """What was recorded meanwhile waits in the spool, and arrives once."""
    port, up_at = engines.free_port(), time.monotonic() + (60 if is_full else 0)
    with spinning(some_python):
        with Agent(tmp_path, "pyroscope", "http://127.0.0.1:%d" % port) as agent:
            wait_until(lambda: agent.pushes("unreachable") >= 2 and
                       agent.metric("windows_total") >= 2 and time.monotonic() >= up_at,
                       PATIENCE + 60, "windows wait")
            with Engine("pyroscope", port) as engine:
                wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are sent")
                agent.stop()
                assert engine.total() == agent.recorded()


def spooled(agent):
    """Names of what is whole in its spool."""
    return [name for name in os.listdir(agent.spool)
            if "-" in name and not name.endswith(".partial")]


def test_killed_in_mid_push(some_python, tmp_path):
    """The engine has read no request whole when the agent dies: all of it comes after a restart."""
    with spinning(some_python), socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        port = deaf.getsockname()[1]
        agent = Agent(tmp_path, "pyroscope", "http://127.0.0.1:%d" % port)
        with agent:
            wait_until(lambda: agent.metric("windows_total") >= 2, PATIENCE, "windows wait")
            connection, _ = deaf.accept()
            assert agent.metric("spool_entries") >= 2
            agent.kill()
            connection.close()
    waiting = sum(int(name.split("-")[2]) for name in spooled(agent))
    assert waiting == agent.recorded() > 0
    with Engine("pyroscope") as engine:
        with Agent(tmp_path, "pyroscope", engine.url, window="30m") as again:
            wait_until(lambda: again.metric("spool_entries") == 0, PATIENCE, "all are sent")
            assert engine.total() == waiting
            again.stop()


def test_killed_while_the_engine_answers(tmp_path):
    """Nothing is lost; what was sent whole and not answered at a kill, and that alone, comes twice."""
    rows, kills = 24, 3
    put_rows(tmp_path, rows)
    dead = [threading.Event() for _ in range(kills)]
    script = [answer for event in dead for answer in [Answer(200)] * 5 + [Answer(200, until=event)]]
    with Engine("pyroscope", script=script) as engine:
        def found():
            with engine.lock:
                stored = list(engine.stored)
            return collections.Counter(name for profile in stored for name in names(profile[1])
                                       if re.fullmatch(r"n\d+", name))
        for kill, event in enumerate(dead, 1):
            with Agent(tmp_path, "pyroscope", engine.url, output=ONE_BY_ONE,
                       window="30m") as agent:
                wait_until(lambda: len(engine.requests) == 6 * kill, PATIENCE, "one is in flight")
                agent.kill()
            event.set()
            assert len(spooled(agent)) == rows - 5 * kill
        with Agent(tmp_path, "pyroscope", engine.url, output=ONE_BY_ONE,
                       window="30m") as agent:
            wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are answered")
            agent.stop()
        wait_until(lambda: sum(found().values()) == rows + kills, PATIENCE, "late ones are stored")
        assert found() == {"n%d" % n: 2 if n in (6, 11, 16) else 1 for n in range(1, rows + 1)}


CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static const volatile long *offset_s;
static int (*real)(clockid_t, struct timespec *);

static void start(void)
{
	offset_s = mmap(NULL, sizeof(*offset_s), PROT_READ, MAP_SHARED,
			open(getenv("CLOCK_OFFSET"), O_RDONLY | O_CLOEXEC), 0);
	real = dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int r;

	if (!real)
		start(); /* libraries ask for the time before there are threads */
	r = real(clock, t);
	if (clock == CLOCK_REALTIME)
		t->tv_sec += *offset_s;
	return r;
}
"""


class Clock:
    """The time of day of a program that runs with `environment`, so many seconds off."""

    def __init__(self, folder):
        library = str(folder / "clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-xc", "-", "-o", library], input=CLOCK.encode(),
                       check=True)
        self.path = str(folder / "offset")
        self.environment = {"LD_PRELOAD": library, "CLOCK_OFFSET": self.path}
        self.set(0)

    def set(self, offset_s):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as f:
            f.write(offset_s.to_bytes(8, sys.byteorder, signed=True))


def test_clock_jumps(some_python, tmp_path):
    """Two hours ahead what waits is too old, and counted; the rest arrives once, before and after."""
    clock, port = Clock(tmp_path), engines.free_port()
    with spinning(some_python):
        with Agent(tmp_path, "parca", "http://127.0.0.1:%d" % port,
                   environment=clock.environment) as agent:
            wait_until(lambda: agent.metric("spool_entries") >= 2, PATIENCE, "windows wait")
            clock.set(7200)
            with Engine("parca", port) as engine:
                wait_until(lambda: engine.total() > 0, PATIENCE, "windows after the jump arrive")
                before, windows = engine.total(), agent.metric("windows_total")
                clock.set(0)
                wait_until(lambda: engine.total() > before and
                           agent.metric("windows_total") >= windows + 2, PATIENCE, "and back again")
                wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are sent")
                lost = agent.metric("spool_lost_samples_total", reason="expired")
                assert agent.get("/healthz") == 200
                agent.stop()
                assert lost > 0
                assert engine.total() + lost == agent.recorded()


@pytest.mark.full
def test_spool_disk_full(some_python, tmp_path):
    """The oldest make room; what is lost is counted; the agent goes on (as in unit/agent)."""
    spool = tmp_path / "spool"
    spool.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(spool)], check=True)
    try:
        with spinning(some_python):
            port = engines.free_port()
            with Agent(tmp_path, "pyroscope", "http://127.0.0.1:%d" % port) as agent:
                wait_until(lambda: agent.metric("spool_lost_samples_total", reason="spool_full") +
                           agent.metric("spool_lost_samples_total", reason="spool_failed") > 0,
                           PATIENCE, "the disk is full")
                with Engine("pyroscope", port) as engine:
                    wait_until(lambda: engine.total() > 0, PATIENCE, "the rest arrives")
                    agent.stop()
    finally:
        subprocess.run(["umount", str(spool)], check=True)


@pytest.mark.threads
@pytest.mark.quick
def test_reload(some_python, tmp_path):
    """A wrong configuration changes nothing; a right one is taken over, and nothing is lost."""
    with Engine("otlp") as first, Engine("pyroscope") as second, spinning(some_python):
        with Agent(tmp_path, "otlp", first.url) as agent:
            wait_until(lambda: first.total() > 0, PATIENCE, "the first has some")
            good = agent.window
            agent.window = "soon"
            agent.write_config()
            agent.process.send_signal(signal.SIGHUP)
            wait_until(lambda: agent.metric("reload_failures_total") >= 1, PATIENCE, "it is refused")
            assert "agent.yaml:2: window: 'soon'" in agent.text()
            agent.window, agent.engine, agent.url = good, "pyroscope", second.url
            agent.write_config()
            agent.process.send_signal(signal.SIGHUP)
            wait_until(lambda: second.total() > 0, PATIENCE, "the second has some")
            agent.stop()
            assert first.total() + second.total() == agent.recorded()


@pytest.mark.parametrize("address, asked", [
    ("::1", "[::1]"), ("::", "[::1]"), ("::", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")])
def test_metrics_are_served_by_either_protocol(address, asked, tmp_path):
    if ":" in address and not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("this kernel has no IPv6")
    agent = Agent(tmp_path, "files")
    with open(agent.config, "a") as f:
        f.write("  address: '%s'\n" % address)
    agent.host = asked
    with agent:
        assert agent.metric("windows_total") >= 0
        agent.stop()


def test_file_that_changes(some_python, tmp_path):
    """It is read again without a signal, once for each change; a wrong one changes nothing."""
    with Engine("otlp") as first, Engine("pyroscope") as second, spinning(some_python):
        with Agent(tmp_path, "otlp", first.url) as agent:
            good, agent.window = agent.window, "soon"
            agent.write_config()
            wait_until(lambda: agent.metric("reload_failures_total") == 1, PATIENCE, "it is refused")
            agent.window, agent.engine, agent.url = good, "pyroscope", second.url
            agent.write_config()
            wait_until(lambda: second.total() > 0, PATIENCE, "the second has some")
            assert agent.metric("reloads_total") == 1
            assert agent.metric("reload_failures_total") == 1
            agent.stop()
            assert first.total() + second.total() == agent.recorded()


# Their numbers in linux/capability.h.
DAC_READ_SEARCH, SYS_PTRACE, SYS_NICE, PERFMON, BPF, CHECKPOINT_RESTORE = (1 << n for n in (2, 19, 23, 38, 39, 40))
IN_EFFECT = DAC_READ_SEARCH | SYS_PTRACE | SYS_NICE | CHECKPOINT_RESTORE
FOR_A_SESSION = PERFMON | BPF


def assert_privileges(agent):
    """Of every thread of it."""
    kept = "CAP_BPF at each use of a map" in agent.text()  # Linux before 6.0
    tasks = "/proc/%d/task" % agent.process.pid
    for tid in os.listdir(tasks):
        with open(os.path.join(tasks, tid, "status")) as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        effective, permitted = (int(status[name], 16) for name in ("CapEff", "CapPrm"))
        assert effective & ~(IN_EFFECT | (FOR_A_SESSION if kept else 0)) == 0, (tid, effective)
        assert effective & SYS_PTRACE
        assert permitted & ~(IN_EFFECT | FOR_A_SESSION) == 0, (tid, permitted)
        assert int(status["CapInh"], 16) == 0
        assert status["NoNewPrivs"] == "1"


def test_privileges_that_are_not_needed_are_gone(some_python, tmp_path):
    """Processes that come later are recorded without them, and a reload has what it needs."""
    with Engine("pyroscope") as engine:
        with Agent(tmp_path, "pyroscope", engine.url) as agent:
            assert_privileges(agent)
            with spinning(some_python, name="later"):
                wait_until(lambda: engine.total("later") > 0, PATIENCE, "a new process is recorded")
            agent.more = "pid_namespace: /proc/self/ns/pid\n"  # a new session in the kernel
            agent.write_config()
            agent.process.send_signal(signal.SIGHUP)  # beside the reload of a changed file
            wait_until(lambda: agent.text().count("recording cpu at") >= 2, PATIENCE, "it goes on")
            with spinning(some_python, name="last"):
                wait_until(lambda: engine.total("last") > 0, PATIENCE, "and one after the reload")
            assert_privileges(agent)
            agent.stop()


@pytest.mark.threads
def test_json_log(tmp_path):
    """Each line of it an object; an engine that is away is a warning."""
    port = engines.free_port()
    put_rows(tmp_path, 1)
    with Agent(tmp_path, "pyroscope", "http://127.0.0.1:%d" % port, window="30m",
               more="log:\n  format: json\n") as agent:
        wait_until(lambda: agent.pushes("unreachable") >= 1, PATIENCE, "the engine is away")
        agent.stop()
    lines = [json.loads(line) for line in agent.text().splitlines()]
    assert any(line["level"] == "warning" and "push: unreachable" in line["message"] for line in lines)
    assert all(re.match(r"20\d\d-\d\d-\d\dT", line["time"]) for line in lines)


@pytest.mark.threads
def test_secrets_stay_in_their_file(some_python, tmp_path):
    """The engine gets the token, read anew for each request; nothing else does."""
    token = tmp_path / "token"
    token.write_text("s3cret-one\n")
    with Engine("pyroscope") as engine, spinning(some_python):
        with Agent(tmp_path, "pyroscope", engine.url,
                   output="  token_file: %s\n  tenant: team-a\n" % token) as agent:
            wait_until(lambda: engine.requests, PATIENCE, "the first request")
            token.write_text("s3cret-two\n")
            wait_until(lambda: engine.requests[-1][1]["Authorization"] == "Bearer s3cret-two",
                       PATIENCE, "the new token is used")
            metrics = agent.fetch("/metrics")[1]
            agent.stop()
        assert engine.requests[0][1]["Authorization"] == "Bearer s3cret-one"
        assert engine.requests[0][1]["X-Scope-OrgID"] == "team-a"
    shown = run("agent", "--check", "--config", agent.config)
    assert shown.returncode == 0 and str(token) in shown.stdout
    for text in (agent.text(), metrics, shown.stdout, shown.stderr):
        assert "s3cret" not in text


@pytest.mark.parametrize("library, said", [("libcurl", "send profiles and ask for pods"),
                                           ("libmicrohttpd", "serve metrics (http.port)")])
def test_library_that_is_not_there(library, said, tmp_path):
    """The agent says which; other commands load neither."""
    agent = Agent(tmp_path, "pyroscope", "http://127.0.0.1:1")
    hidden = re.search(r"=> (\S+/%s\.so\S*)" % library, subprocess.run(
        ["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, text=True, check=True).stdout).group(1)
    script = 'mount --bind /dev/null "$0" && exec "$@"'
    for command, status in (["agent", "--config", agent.config], 1), (["--version"], 0):
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, hidden, PYEBPF, *command], text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == status, done
        assert ("load what the agent needs to " + said in done.stderr) == (status == 1), done.stderr


@pytest.mark.parametrize("text, said", [
    ("window: 1s\n", "output.engine: missing"),
    ("output:\n  engine: loki\n", ":2: output.engine: 'loki' is not one of: files, pyroscope"),
    ("output:\n  engine: otlp\n", ":2: output.engine: otlp needs output.url"),
    ("rate: 19\nwindov: 1s\n", ":2: windov: unknown key; valid keys: mode, events, event_period, sample_labels, rate, rate_min, cpu_budget, window"),
    ("output:\n  engine: otlp\n  url: http://u:pw@h\n", ":3: output.url: must not contain a password"),
])
@pytest.mark.quick
def test_check_names_line_and_key(text, said, tmp_path):
    config = tmp_path / "agent.yaml"
    config.write_text(text)
    done = run("agent", "--check", "--config", config)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert "pw" not in done.stderr


@pytest.mark.full
def test_collector_has_what_was_recorded(some_python, tmp_path):
    """A real one: the totals of what its file exporter wrote are the agent's."""
    try:
        engines.collector()
    except pythons.Unavailable as error:
        pytest.skip(str(error))
    with engines.Collector() as collector, spinning(some_python):
        url = collector.url.rpartition("/v1development")[0]
        with Agent(tmp_path, "otlp", url) as agent:
            wait_until(lambda: agent.pushes("stored") >= 3, PATIENCE, "some is stored")
            agent.stop()
            recorded = agent.recorded()
        requests = []

        def is_all_there():
            requests[:] = map(otlp.Request, collector.received(1))
            return sum(sum(r.stacks().values()) for r in requests) == recorded
        wait_until(is_all_there, PATIENCE, "the Collector has written it all")
    assert SERVICE in {request.resource["service.name"] for request in requests}
