# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `pyebpf agent` costs beside many processes, and what it sends."""
import contextlib
import http.server
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

import kernel
import tools

SERVICES = 20
WINDOW_SECONDS = 5


class Sink:
    """Answers every request as an engine that has stored it."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Crowd:
    """Python processes of some services: targets/services.py."""

    def __init__(self, python, processes):
        with open(os.path.join(tools.HERE, "targets", "services.py")) as f:
            source = f.read()
        self.process = subprocess.Popen(
            python.command + ["-c", source, str(processes), str(SERVICES)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.expect("READY")

    def expect(self, word):
        if self.process.stdout.readline().strip() != word:
            raise tools.Failed("services.py ended early")

    def start(self, count):
        """So many processes begin and end."""
        self.process.stdin.write("%d\n" % count)
        self.process.stdin.flush()
        self.expect("DONE")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Agent:
    def __init__(self, folder, url, hz):
        self.port = free_port()
        config = os.path.join(folder, "agent.yaml")
        with open(config, "w") as f:
            f.write("rate: %d\ncpu_budget: 100%%\nwindow: %ds\njitter_percent: 0\noutput:\n"
                    "  engine: pyroscope\n  url: %s\nspool:\n  directory: %s/spool\nhttp:\n"
                    "  port: %d\n" % (hz, WINDOW_SECONDS, url, folder, self.port))
        self.log = open(os.path.join(folder, "agent.log"), "w+")
        self.process = subprocess.Popen([tools.PYEBPF, "agent", "-v", "--config", config],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.pid = self.process.pid

    def metrics(self):
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.port, timeout=10) as f:
            text = f.read().decode()
        return {name: float(value) for name, value in re.findall(r"^pyebpf_(\S+) (\S+)$", text, re.M)}

    def wait_for_windows(self, count):
        """Until that many more are over. The metrics and the CPU time then."""
        first = None
        end = time.monotonic() + count * WINDOW_SECONDS * 3 + tools.PATIENCE
        while time.monotonic() < end:
            if self.process.poll() is not None:
                self.log.seek(0)
                raise tools.Failed("agent: " + self.log.read()[-300:])
            with contextlib.suppress(OSError):
                m = self.metrics()
                first = m["windows_total"] if first is None else first
                if m["windows_total"] >= first + count:
                    return m, kernel.cpu_seconds(self.pid)
            time.sleep(0.1)
        raise tools.Failed("agent: no window within its time")

    def resident(self):
        return self.metrics()["agent_resident_bytes"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(tools.PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def steady(python, hz, processes, windows):
    """Costs of some windows beside that many processes, by name."""
    with tempfile.TemporaryDirectory(prefix="pyebpf-bench-") as folder, Sink() as sink, \
            Crowd(python, processes), Agent(folder, sink.url, hz) as agent:
        before, cpu_before = agent.wait_for_windows(1)
        start = time.monotonic()
        after, cpu_after = agent.wait_for_windows(windows)
        seconds = time.monotonic() - start
        kernel_bytes = kernel.bpf_bytes(agent.pid)
        peak = kernel.peak_bytes(agent.pid)

    def grown(name):
        return after.get(name, 0) - before.get(name, 0)
    samples = grown("samples_total")
    if not samples:
        raise tools.Failed("agent: no samples")
    return {"samples": samples, "windows": grown("windows_total"), "seconds": seconds,
            "cpu": cpu_after - cpu_before, "bytes": grown("encoded_bytes_total"),
            "services": after["services"], "resident": peak, "bpf": kernel_bytes}


def churn(python, hz, starts, steps=4):
    """Memory that is resident before and after each part of so many process starts. To the sampler a
    forked process is as new as one that was executed: nothing that is known of its parent counts for
    it, its code objects are sent again. At a rate that meets most of them once."""
    with tempfile.TemporaryDirectory(prefix="pyebpf-bench-") as folder, Sink() as sink, \
            Crowd(python, 0) as crowd, Agent(folder, sink.url, hz) as agent:
        agent.wait_for_windows(1)
        resident, seconds = [agent.resident()], 0
        cpu = kernel.cpu_seconds(agent.pid)
        for _ in range(steps):
            begin = time.monotonic()
            crowd.start(starts // steps)
            seconds += time.monotonic() - begin
            rows = agent.wait_for_windows(2)[0]['bpf_map_entries{map="procs"}']
            resident.append(agent.resident())
        return {"starts": starts, "resident": resident, "peak": kernel.peak_bytes(agent.pid),
                "bpf": kernel.bpf_bytes(agent.pid), "seconds": seconds, "rows": rows,
                "cpu": kernel.cpu_seconds(agent.pid) - cpu}
