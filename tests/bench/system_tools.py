# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Profilers that record a machine, or a process with all that it starts, for profilers.py: beside those of
tools.py the OpenTelemetry eBPF profiler, and perf with Python's own perf maps. samples_by_pid() of each
gives {pid: [(frames, count)]}, frames root first, those of Python alone."""
import collections
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

import kernel
import tools
from target import Target

sys.path.insert(0, os.path.join(os.path.dirname(tools.HERE), "tools"))
import engines  # noqa: E402
import pythons  # noqa: E402

# line 0: the tool does not tell.
Frame = collections.namedtuple("Frame", "name file line")

NAME_PLACE = re.compile(r"(.*) \((.*?)(?::~?(\d+))?\)\Z", re.S)  # pyebpf, py-spy
PLACE_NAME = re.compile(r"(.*):(.*):(\d+)\Z", re.S)              # austin, profiling.sampling


def frame_of(text):
    match = NAME_PLACE.match(text)
    if match:
        return Frame(match.group(1), match.group(2), int(match.group(3) or 0))
    match = PLACE_NAME.match(text)
    return Frame(match.group(2), match.group(1), int(match.group(3))) if match else Frame(text, "", 0)


def by_pid(samples, pid, prefix=None):
    """Of collapsed stacks that begin with what names the process, or are all of one."""
    found = collections.defaultdict(list)
    for frames, count in samples:
        match = prefix.match(frames[0]) if prefix else None
        if prefix and not match:
            continue
        frames = [frame_of(text) for text in frames[1 if prefix else 0:]]
        found[int(match.group(1)) if match else pid].append((frames, count))
    return found


def wait_for_events(run):
    """It has its perf events open: it samples, or is about to."""
    end = time.monotonic() + tools.PATIENCE
    while not kernel.descriptors(run.pid, "[perf_event]"):
        run.check()
        if time.monotonic() > end:
            raise tools.Failed("%s: no events within %d s" % (run.tool.name, tools.PATIENCE))
        time.sleep(0.02)


class Scope:
    """What profilers.py asks of a tool, by default that of one process."""
    is_system_wide = False
    sees_children = False
    has_bpf = False
    interpreter_options = ()
    is_slow_to_know = False  # a program has to run for a while until it tells of it

    def provide(self):
        """Fetches or builds it where it is not there; missing() says what came of it."""

    def start(self, pid, hz, output, final=False):
        """final: with the processes that it starts."""
        run = super().start(pid, hz, output, final)
        run.is_final = final
        return run

    def wait_ready(self, run, target, python):
        run.check()

    def finish(self, run, python):
        """What it has seen is where samples_by_pid() looks for it. The most memory that it had."""
        return run.stop()

    def clean(self, pids):
        """What it has left elsewhere of these processes."""

    def close(self):
        """After its last run."""


class Pyebpf(Scope, tools.Pyebpf):
    has_bpf = True
    sees_children = True
    process = re.compile(r"process .* \((\d+)\)\Z", re.S)

    def __init__(self, is_system_wide=False):
        self.is_system_wide = is_system_wide
        self.name = "pyebpf -a" if is_system_wide else "pyebpf -p"

    def command(self, pid, hz, output, final):
        return super().command(0 if self.is_system_wide else pid, hz, output, final)

    def wait_ready(self, run, target, python):
        wait_for_events(run)

    def samples_by_pid(self, run, pid):
        path = run.output + ".collapsed"
        done = subprocess.run([tools.PYEBPF, "export", "-q", "-f", "collapsed", "--processes", "-o", path,
                               run.output], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise tools.Failed("pyebpf export: " + done.stdout[-300:])
        return by_pid(tools.collapsed(path), pid, self.process)


class PySpy(Scope, tools.PySpy):
    sees_children = True
    # Behind those of its parents, whose command line may have several lines.
    process = re.compile(r'process (\d+):"[^"\n]*";((?:(?!process \d+:)[^\n])*) (\d+)$', re.M)

    def command(self, pid, hz, output, final):
        return super().command(pid, hz, output, final) + ["--subprocesses"] * final

    def samples_by_pid(self, run, pid):
        if not run.is_final:
            return by_pid(self.samples(run), pid)
        found = collections.defaultdict(list)
        with open(run.output, errors="replace", encoding="utf-8") as f:
            for child, stack, count in self.process.findall(f.read()):
                found[int(child)].append(([frame_of(text) for text in stack.split(";")], int(count)))
        return found


class Austin(Scope, tools.Austin):
    sees_children = True
    process = re.compile(r"P(\d+)\Z")

    def command(self, pid, hz, output, final):
        return super().command(pid, hz, output, final) + ["-C"] * final

    def samples_by_pid(self, run, pid):
        found = by_pid(self.samples(run), pid, self.process)
        return {pid: [(frames[1:], count) for frames, count in stacks]  # behind the thread
                for pid, stacks in found.items()}


class Sampling(Scope, tools.Sampling):
    START_SECONDS = 3  # it imports a lot

    def wait_ready(self, run, target, python):
        time.sleep(self.START_SECONDS)

    def samples_by_pid(self, run, pid):
        return {pid: [(frames[1:], count)  # behind the thread
                      for frames, count in by_pid(self.samples(run), pid)[pid]]}


class Perf(Scope, tools.Tool):
    """perf record by frame pointers, of an interpreter that tells perf of its functions (-X perf)."""
    name = "perf, python -X perf"
    samples_cpu_time = True
    sees_children = True
    interpreter_options = ("-X", "perf")

    def missing(self):
        return None if shutil.which("perf") else "perf is not installed (package linux-perf)"

    def command(self, pid, hz, output, final):
        which = ["-a"] if final else ["-p", str(pid)]
        return ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", str(hz), "-o", output, *which]

    def wait_ready(self, run, target, python):
        wait_for_events(run)

    def samples_by_pid(self, run, pid):
        for path in glob.glob(os.path.join(pythons.cache_dir(), "*", "tmp", "perf-%d.map" % pid)):
            shutil.move(path, "/tmp")  # of an interpreter in a root of its own
        done = subprocess.run(["perf", "script", "-i", run.output, "-F", "pid,ip,sym", "--no-inline"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              errors="replace")
        found = collections.defaultdict(list)
        for block in done.stdout.split("\n\n"):
            lines = block.strip().split("\n")
            if lines[0].strip().isdigit():
                found[int(lines[0])].append((list(self.frames(lines[1:])), 1))
        return found

    @staticmethod
    def frames(lines):
        for line in reversed(lines):
            _, _, symbol = line.strip().partition(" ")
            if symbol.startswith("py::"):
                name, _, file = symbol[len("py::"):].rpartition(":")
                yield Frame(name, file, 0)

    def clean(self, pids):
        for pid in pids:
            with contextlib.suppress(FileNotFoundError):
                os.unlink("/tmp/perf-%d.map" % pid)


class Otel(Scope, tools.Tool):
    """The OpenTelemetry eBPF profiler, into a Collector on this machine, which writes what it gets."""
    name = "OpenTelemetry"
    VERSION = "v0.0.202633"
    MODULE = "go.opentelemetry.io/ebpf-profiler"
    PATIENCE = 30  # seconds until it tells of a process; it reports every five
    is_system_wide = True
    has_bpf = True
    samples_cpu_time = True
    sees_children = True
    is_slow_to_know = True

    def __init__(self):
        self.folder = os.path.join(tools.cache_dir(), "otel-ebpf-profiler", self.VERSION)
        self.program = os.path.join(self.folder, "ebpf-profiler")
        self.collector = None
        self.why = None
        self.at = 0

    def provide(self):
        """Both are built from the Go module proxy, once."""
        try:
            with pythons.provided_folder(self.folder, 1) as new:
                if new:
                    self.build(new)
            engines.collector()
        except pythons.Unavailable as e:
            self.why = str(e)

    def build(self, folder):
        """As a dependency of a module of ours: `go install` wants a list of versions as well."""
        go = engines.go()
        with open(os.path.join(folder, "go.mod"), "w", encoding="utf-8") as f:
            f.write("module bench\n\ngo 1.25\n\nrequire %s %s\n" % (self.MODULE, self.VERSION))
        pythons.run([go, "-C", folder, "build", "-mod=mod", "-o", "ebpf-profiler", self.MODULE],
                    "building " + self.MODULE)

    def missing(self):
        return self.why

    def command(self, pid, hz, output, final):
        return [self.program, "-collection-agent", self.collector.grpc, "-disable-tls",
                "-samples-per-second", str(hz)]

    def start(self, pid, hz, output, final=False):
        self.collector = self.collector or engines.Collector()
        self.at = self.size()
        run = tools.Run(self, self.command(pid, hz, output, final), output, kernel.allow_locked_memory)
        run.is_final, run.since_ns = final, 0
        open(output, "wb").close()
        return run

    def size(self):
        return os.path.getsize(self.collector.output) if os.path.exists(self.collector.output) else 0

    def wait_ready(self, run, target, python):
        """Until it tells of the target, which runs already, or of another like it."""
        wait_for_events(run)
        if run.is_final:
            self.wait_for_last(run, python)
        else:
            self.wait_for(run, target.pid)

    def finish(self, run, python):
        """At its end it does not send what it has: that is waited for."""
        self.wait_for_last(run, python)
        return run.stop()

    def wait_for_last(self, run, python):
        """Until it tells of a process that starts now: then it has told of all that was before."""
        with Target(python, "shape.py", tools.PATIENCE, "steady") as last:
            last.go()
            self.wait_for(run, last.pid)

    def wait_for(self, run, pid):
        end, size = time.monotonic() + self.PATIENCE, 0
        while size == self.size() or not any(frames for frames, _ in self.received(run)[pid]):
            size = self.size()
            run.check()
            if time.monotonic() > end:
                raise tools.Failed("%s: no stack within %d s" % (self.name, self.PATIENCE))
            time.sleep(0.2)

    def close(self):
        if self.collector:
            self.collector.__exit__()

    def samples_by_pid(self, run, pid):
        return self.received(run)

    def received(self, run):
        found = collections.defaultdict(list)
        with open(self.collector.output, encoding="utf-8") as f:
            f.seek(self.at)
            for line in f:
                if line.endswith("\n"):
                    read_otlp(json.loads(line), run.since_ns, found)
        return found


class OtlpTables:
    """The dictionary of a message of OTLP profiles in protobuf's JSON."""

    def __init__(self, message):
        self.tables = message.get("dictionary", {})
        self.strings = self.tables.get("stringTable", [""])

    def row(self, table, index):
        return self.tables[table][index]

    def string(self, row, name):
        return self.strings[int(row.get(name, 0))]

    def attributes(self, row):
        return self.named(self.row("attributeTable", i) for i in row.get("attributeIndices", ()))

    def named(self, attributes):
        return {entry.get("key") or self.string(entry, "keyStrindex"):
                next(iter(entry.get("value", {}).values()), None) for entry in attributes}

    def frames(self, sample):
        """Those of Python, root first."""
        stack = self.row("stackTable", sample.get("stackIndex", 0))
        for index in reversed(stack.get("locationIndices", ())):
            location = self.row("locationTable", index)
            if self.attributes(location).get("profile.frame.type") != "cpython":
                continue
            for line in location.get("lines", ()):
                function = self.row("functionTable", int(line.get("functionIndex", 0)))
                yield Frame(self.string(function, "nameStrindex"),
                            self.string(function, "filenameStrindex"), int(line.get("line", 0)))


def read_otlp(message, since_ns, found):
    """Adds the samples of an export request from that time on: {pid: [(frames, count)]}."""
    tables = OtlpTables(message)
    for resource in message.get("resourceProfiles", ()):
        of_resource = tables.named(resource.get("resource", {}).get("attributes", ()))
        for profile in (p for scope in resource.get("scopeProfiles", ()) for p in scope.get("profiles", ())):
            for sample in profile.get("samples", ()):
                told = dict(of_resource, **tables.attributes(sample))
                count = sum(int(at) >= since_ns for at in sample.get("timestampsUnixNano", ()))
                found[int(told.get("process.pid", 0))].append((list(tables.frames(sample)), count))
