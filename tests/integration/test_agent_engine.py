# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent and an engine that is behind a proxy, or that takes a request and never answers, or not to the end."""
import contextlib
import http.client
import http.server
import threading
import time

import engines
import pytest
from engine_server import Answer, Engine
from harness import PATIENCE, go_ahead, wait_until
from test_agent import SERVICE, Agent, spinning, spooled

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]
TIMEOUT = 600  # output.timeout, seconds: longer than any test waits


class Proxy:
    """A forward proxy for plain HTTP: what it was asked for, and by whom it was passed on."""

    def __init__(self, port=0):
        self.urls = []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                proxy.urls.append(self.path)
                rest = self.path.partition("//")[2]
                host, _, path = rest.partition("/")
                connection = http.client.HTTPConnection(host, timeout=PATIENCE)
                headers = {name: value for name, value in self.headers.items()
                           if not name.lower().startswith("proxy-")}
                body = self.rfile.read(int(self.headers["Content-Length"]))
                connection.request("POST", "/" + path, body, headers)
                answer = connection.getresponse()
                text = answer.read()
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers["Content-Type"])
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_through_a_proxy(some_python, tmp_path):
    """Each request goes its way, none beside it; while it is away, all waits."""
    port = engines.free_port()
    with Engine("pyroscope") as engine, spinning(some_python):
        with Agent(tmp_path, "pyroscope", engine.url,
                   output="  proxy: http://127.0.0.1:%d\n" % port) as agent:
            wait_until(lambda: agent.pushes("unreachable") >= 1, PATIENCE, "the proxy is away")
            assert not engine.requests
            with Proxy(port) as proxy:
                wait_until(lambda: engine.total(SERVICE) > 50, PATIENCE, "samples arrive")
                agent.stop()
        assert engine.total() == agent.recorded()
        assert len(proxy.urls) == len(engine.requests)
        assert set(proxy.urls) == {engine.url + "/push.v1.PusherService/Push"}


def hung(engine):
    """An engine that takes requests whole and does not answer until the event is set."""
    event = threading.Event()
    engine.script.extend([Answer(503, until=event)] * 1000)
    return event


def waiting(agent):
    """Samples in its spool."""
    return sum(int(name.split("-")[2]) for name in spooled(agent))


@pytest.mark.threads
def test_stopped_while_the_engine_hangs(some_python, tmp_path):
    """It ends in good order, in time, and what was recorded is there for the next one: nothing was
    stored, so nothing comes twice."""
    with Engine("pyroscope") as engine, spinning(some_python):
        answer = hung(engine)
        with Agent(tmp_path, "pyroscope", engine.url, output="  timeout: %ds\n" % TIMEOUT) as agent:
            wait_until(lambda: engine.requests and agent.metric("windows_total") >= 2, PATIENCE,
                       "a request hangs")
            start = time.monotonic()
            agent.stop()
            print("ended after %.1f s" % (time.monotonic() - start))
        assert waiting(agent) == agent.recorded() > 0
        answer.set()
        engine.script.clear()
        before = len(engine.requests)
        with Agent(tmp_path, "pyroscope", engine.url, window="30m") as again:
            wait_until(lambda: again.metric("spool_entries") == 0, PATIENCE, "all are sent")
            assert len(engine.requests) > before
            assert engine.total(SERVICE) > 0 and engine.total() == agent.recorded()
            again.stop()


class Trickling(http.server.BaseHTTPRequestHandler):
    """An answer of a byte a second: it never comes to its end, and never stops."""

    def do_POST(self):
        self.server.asked.set()
        with contextlib.suppress(OSError):  # who asked has left
            for byte in b"HTTP/1.1 200 " + b"OK" * 300:
                self.wfile.write(bytes([byte]))
                time.sleep(1)

    def log_message(self, *_):
        pass


def test_stopped_while_the_engine_trickles(some_python, tmp_path):
    """Two seconds, and one until we see it; what was recorded is there for the next one."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Trickling) as server, spinning(some_python):
        server.daemon_threads, server.block_on_close, server.asked = True, False, threading.Event()
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        url = "http://127.0.0.1:%d" % server.server_address[1]
        with Agent(tmp_path, "pyroscope", url, output="  timeout: %ds\n" % TIMEOUT) as agent:
            assert server.asked.wait(PATIENCE)
            go_ahead(agent.process.pid)
            start = time.monotonic()
            agent.stop()
            assert time.monotonic() - start < 3
        server.shutdown()
        assert waiting(agent) == agent.recorded() > 0


def test_reloaded_while_the_engine_hangs(some_python, tmp_path):
    """The other engine gets all there is, what waited for the first one too, and once."""
    with Engine("pyroscope") as first, Engine("pyroscope") as second, spinning(some_python):
        answer = hung(first)
        with Agent(tmp_path, "pyroscope", first.url, output="  timeout: %ds\n" % TIMEOUT) as agent:
            wait_until(lambda: first.requests and agent.metric("windows_total") >= 2, PATIENCE,
                       "a request hangs")
            agent.url = second.url
            agent.write_config()
            wait_until(lambda: agent.metric("reloads_total") == 1, PATIENCE, "it is read again")
            wait_until(lambda: second.total(SERVICE) > 100, PATIENCE, "the second has some")
            assert agent.pushes("unanswered") >= 1
            agent.stop()
        answer.set()
        assert first.total() == 0
        assert second.total() == agent.recorded()
