#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measures what pyebpf makes of every interpreter and every way Python comes, and says so in a page.

    coverage_table.py [-o docs/interpreters.md] [--section=NAME,...] [--only=PART,...]

Each row is a real process, recorded while it runs the workloads of the tests and judged by what
these say of themselves. A cell out of its bounds is bold and makes the exit status 1; what could not
be run says so, with the reason. --section: interpreters, ways, short. --only: rows whose names hold
one of the parts. What is not measured anew stays as it is in the file.
PYEBPF: the program (build/pyebpf).
"""
import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))
sys.path.insert(0, HERE)

import build_freethreaded  # noqa: E402
import containers  # noqa: E402
import filesystems  # noqa: E402
import harness  # noqa: E402
import packages  # noqa: E402
import pytest  # noqa: E402
import pythons  # noqa: E402
import test_places as places  # noqa: E402
import test_shapes as shapes  # noqa: E402
import test_short_lived as short_lived  # noqa: E402
import test_versions as versions  # noqa: E402
import truth as judge  # noqa: E402
from conftest import FEW  # noqa: E402
from spinning import children, family  # noqa: E402

COLUMNS = ("found", "named", "lines right", "share right", "GIL-free kept", "torn",
           "first sample after ms")
HZ, FAST_HZ = 997, 10000
MOMENTS_MS = 2000
WITHIN = os.path.join(harness.WORKLOADS, "within.py")
SITES = versions.SITES
# asyncio.run() is refused where a loop runs already.
SITES_OF_SERVERS = tuple(name for name in SITES if name != "asyncio_loop")


# --- Ways to come ---------------------------------------------------------------------------------


class Way:
    """How a workload is started, and what record is told.

    command   see harness.Workload
    started   called with the workload when it is ready, before it is recorded
    targets   record's arguments for a process
    is_late   record comes before the program, and records all of the machine
    has_more  what is recorded does more than the workload: that is left out
    sites     of lines.py
    """

    def __init__(self, python, command=None, env=None, started=None, targets=None, is_late=False,
                 has_more=False, sites=SITES, start=None):
        self.python, self.command, self.env = python, command, env
        self.started = started or (lambda workload: None)
        self.targets = targets or (lambda pid: ("-p", pid))
        self.is_late, self.has_more = is_late, has_more or is_late
        self.sites = sites
        self.start = start or self.start_workload

    @contextlib.contextmanager
    def start_workload(self, name, *arguments):
        with harness.Workload(self.python, name, *arguments, command=self.command,
                              env=self.env) as workload:
            try:
                workload.pid = youngest(workload.process.pid)
                self.started(workload)
                yield workload
            finally:
                for pid in reversed(family(workload.process.pid)[1:]):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, 9)


def youngest(pid):
    """The process at the end of a line of parents that only wait."""
    return [member for member in family(pid) if not children(member)][-1]


SHAPES = {}  # {name: context manager of (interpreters, folder) that gives a Way}


def shape(name):
    def register(function):
        SHAPES[name] = contextlib.contextmanager(function)
        return function
    return register


class Interpreters:
    """Those that the shapes are made with."""

    def __init__(self, found):
        usable = [p for p in found if not p.free_threaded and not p.debug]
        direct = [p for p in usable if p.via == "direct"]
        self.shared = last(p for p in direct if p.linkage == "shared")
        self.static = last(p for p in direct if p.linkage == "static")
        self.other_shared = last(p for p in direct if p.linkage == "shared"
                                 and self.shared and p.minor != self.shared.minor)
        self.rooted = {p.minor: p for p in usable if p.via == "chroot" and p.linkage == "static"}

    def newest_rooted(self):
        if not self.rooted:
            raise pythons.Unavailable("no interpreter with a root of its own")
        return self.rooted[max(self.rooted)]


def last(found):
    found = list(found)
    return found[-1] if found else None


def run_file(words):
    """Python's source that runs a workload: [path, argument...]."""
    return "import sys\nsys.argv = %r\nexec(compile(open(%r).read(), %r, 'exec'))\n" % (
        words, words[0], words[0])


def embedded(python, folder, linkage):
    f = shapes.facts(python)
    program = os.path.join(folder, "server")
    if linkage == "shared":
        library = ["-L" + f["LIBDIR"], "-Wl,-rpath," + f["LIBDIR"], "-l:" + f["INSTSONAME"]]
    else:
        library = [os.path.join(f["LIBPL"], f["LIBRARY"]), "-Wl,-export-dynamic"]
    shapes.compile_program(program, "-I" + f["INCLUDEPY"], *library,
                           *(f["LIBS"] + " " + f["SYSLIBS"]).split(), "-lm", "-ldl", "-lpthread",
                           "-lutil")
    return program


def script_in(folder, words):
    path = os.path.join(folder, "script.py")
    with open(path, "w") as f:
        f.write(run_file(words))
    return path


@shape("embedded in a program, shared libpython")
def _(found, folder):
    program = embedded(found.shared, folder, "shared")
    yield Way(found.shared, lambda words: [program, script_in(folder, words)],
              shapes.home(found.shared))


@shape("embedded in a program, static libpython")
def _(found, folder):
    program = embedded(found.shared, folder, "static")
    yield Way(found.shared, lambda words: [program, script_in(folder, words)],
              shapes.home(found.shared))


@shape("static, stripped, renamed to nginx")
def _(found, folder):
    program = os.path.join(folder, "nginx")
    subprocess.run(["strip", "-s", "-o", program, found.static.runtime], check=True)
    yield Way(found.static, [program], shapes.home(found.static))


@shape("embedded, static, not one symbol left")
def _(found, folder):
    program = embedded(found.shared, folder, "static")
    subprocess.run(["strip", "-s", program], check=True)
    yield Way(found.shared, lambda words: [program, script_in(folder, words)],
              shapes.home(found.shared))


@shape("program deleted")
def _(found, folder):
    program = os.path.join(folder, "python")

    def command(words):
        shutil.copy(found.static.runtime, program)
        return [program, *words]

    yield Way(found.static, command, shapes.home(found.static),
              started=lambda workload: os.remove(program))


def own_library(found, folder):
    """(path of a libpython of its own, environment that has it loaded)."""
    copy = os.path.join(folder, os.path.basename(os.path.realpath(found.shared.runtime)))
    shutil.copy(found.shared.runtime, copy)
    return copy, {"LD_LIBRARY_PATH": folder}


def assert_maps(workload, path):
    with open("/proc/%d/maps" % workload.pid) as maps:
        assert path in maps.read(), "it does not map " + path


@shape("libpython deleted")
def _(found, folder):
    def started(workload):
        assert_maps(workload, copy)
        os.remove(copy)

    def command(words):
        own_library(found, folder)
        return found.shared.command + words

    copy, env = own_library(found, folder)
    yield Way(found.shared, command, env, started)


@shape("libpython replaced by another version's")
def _(found, folder):
    def started(workload):
        assert_maps(workload, copy)
        shutil.copy(found.other_shared.runtime, copy + ".new")
        os.rename(copy + ".new", copy)

    def command(words):
        own_library(found, folder)
        return found.shared.command + words

    copy, env = own_library(found, folder)
    yield Way(found.shared, command, env, started)


@shape("late dlopen() of libpython, under -a")
def _(found, folder):
    f = shapes.facts(found.shared)
    program = os.path.join(folder, "late")
    shapes.compile_program(program, "-DLATE", "-ldl")
    library = os.path.join(f["LIBDIR"], f["INSTSONAME"])
    yield Way(found.shared, lambda words: [program, library, "400", script_in(folder, words)],
              shapes.home(found.shared), is_late=True)


@shape("python -I -S -c")
def _(found, folder):
    yield Way(found.shared, lambda words: found.shared.command + ["-I", "-S", "-c",
                                                                  run_file(words)])


@shape("zipapp")
def _(found, folder):
    def command(words):
        source, archive = os.path.join(folder, "app"), os.path.join(folder, "app.pyz")
        os.makedirs(source, exist_ok=True)
        shutil.copy(words[0], os.path.join(source, "__main__.py"))
        subprocess.run([*found.shared.command, "-m", "zipapp", source, "-o", archive], check=True)
        return [*found.shared.command, archive, *words[1:]]

    yield Way(found.shared, command)


@shape("PyInstaller, one file")
def _(found, folder):
    def command(words):
        name = os.path.splitext(os.path.basename(words[0]))[0]
        program = os.path.join(folder, "dist", name)
        if not os.path.exists(program):
            program = packages.bundle(found.shared, words[0], os.path.join(folder, "dist"))
        return [program, *words[1:]]

    yield Way(found.shared, command)


def multiprocessing(method):
    def make(found, folder):
        yield Way(found.shared, lambda words: [*found.shared.command, WITHIN, method, *words])
    shape("multiprocessing, %s" % method)(make)


for method in ("fork", "spawn", "forkserver"):
    multiprocessing(method)


class Request:
    """A workload that a server's worker runs to answer a request: as harness.Workload is used."""

    def __init__(self, server, port, words):
        self.process, self.pid = server, server.pid
        self.url = "http://127.0.0.1:%d/" % port
        self.words, self.answer = words, None

    def ask(self, word):
        request = urllib.request.Request(self.url, json.dumps(
            {"arguments": self.words, "stdin": word + "\nEXIT\n"}).encode())
        with urllib.request.urlopen(request, timeout=harness.PATIENCE) as response:
            self.answer = response.read().decode()

    def go(self, word="GO"):
        self.thread = threading.Thread(target=self.ask, args=(word,))
        self.thread.start()

    def truth(self):
        self.thread.join()
        return json.loads(self.answer.splitlines()[1])


def server(name):
    def make(found, folder):
        packages_folder = packages.folder_of(found.shared, "servers")

        @contextlib.contextmanager
        def start(workload, *arguments):
            port = shapes.free_port()
            command = [word.format(port=port) for word in shapes.SERVERS[name]]
            with shapes.Spinning(*found.shared.command, *command, ready=False,
                                 cwd=harness.WORKLOADS,
                                 env={"PYTHONPATH": packages_folder}) as process:
                harness.wait_until(lambda: shapes.answers(port), 30, name + " answers")
                yield Request(process.process, port, [
                    os.path.join(harness.WORKLOADS, workload), *map(str, arguments)])

        yield Way(found.shared, start=start, has_more=True, sites=SITES_OF_SERVERS)
    shape("%s, 2 workers" % name)(make)


for name in sorted(shapes.SERVERS):
    server(name)


@shape("cgroup, by --cgroup")
def _(found, folder):
    root = next((path for path, _ in places.mounted_cgroups("cgroup2")), None)
    if not root:
        raise pythons.Unavailable("no cgroup version 2 is mounted")
    path = os.path.join(root, "pyebpf-table-%d" % os.getpid())
    os.mkdir(path)
    try:
        yield Way(found.shared, started=lambda workload: places.move(workload.pid, path),
                  targets=lambda pid: ("--cgroup", path))
    finally:
        harness.wait_until(lambda: not places.members(path), 10, "the cgroup is empty")
        os.rmdir(path)


@shape("container (podman, runc), by --container")
def _(found, folder):
    for program in ("podman", "runc"):
        if not shutil.which(program):
            raise pythons.Unavailable("no %s here (apt-get install podman runc)" % program)
    python = found.newest_rooted()
    ident = os.path.join(folder, "cid")

    def command(words):
        with contextlib.suppress(FileNotFoundError):
            os.remove(ident)
        return [*containers.PODMAN, "-i", "--cidfile", ident, "-v", harness.WORKLOADS + ":/opt/w:ro",
                "--rootfs", python.root + ":O", "/usr/bin/python3.%d" % python.minor,
                "/opt/w/" + os.path.basename(words[0]), *words[1:]]

    def started(workload):
        workload.ident = open(ident).read().strip()
        workload.pid = int(containers.podman("inspect", "-f", "{{.State.Pid}}", workload.ident))

    def targets(pid):
        return "--container", open(ident).read().strip()

    yield Way(python, command, started=started, targets=targets)


@shape("another mount namespace and root (unshare, chroot, overlay)")
def _(found, folder):
    python = found.newest_rooted()
    with filesystems.overlay(python.root, folder) as merged:
        def command(words):
            shutil.copy(os.path.join(harness.WORKLOADS, os.path.basename(words[0])),
                        merged + "/tmp")
            return ["unshare", "-m", "chroot", merged, "/usr/bin/python3.%d" % python.minor,
                    "/tmp/" + os.path.basename(words[0]), *words[1:]]

        yield Way(python, command)


@shape("chroot")
def _(found, folder):
    yield Way(found.newest_rooted())


def nested(levels):
    def make(found, folder):
        yield Way(found.shared, [*places.nested(levels), *found.shared.command])
    shape("PID namespace, %d deep" % levels)(make)


for levels in (1, 2):
    nested(levels)


def greenlets(kind):
    def make(found, folder):
        package = versions.greenlet_folder(found.shared)
        yield Way(found.shared, lambda words: [*found.shared.command, WITHIN, kind, package, *words])
    shape("inside a " + kind.replace("gevent", "gevent greenlet"))(make)


for kind in ("greenlet", "gevent"):
    greenlets(kind)


# --- Measuring ------------------------------------------------------------------------------------


def go_ahead(workload, word="GO"):
    """Sets it off, before other programs where that is allowed."""
    with contextlib.suppress(PermissionError, AttributeError):
        workload.ahead()
    workload.go(word)


def record(way, folder, hz, name, *arguments, go=go_ahead):
    """(what the workload says, {frames: count} of its processes)."""
    output = os.path.join(folder, "x.pyebpf")

    def finish(workload, recorder):
        go(workload)
        truth = workload.truth()
        members = set(family(workload.process.pid)) | {workload.pid}
        recorder.finish()
        samples = samples_of(output, members)
        return truth, at_work(samples, name) if way.has_more else samples

    with contextlib.ExitStack() as stack:
        if way.is_late:
            recorder = stack.enter_context(harness.Recorder(output, "-a", "-F", hz))
            recorder.wait_attached()
            workload = stack.enter_context(way.start(name, *arguments))
        else:
            workload = stack.enter_context(way.start(name, *arguments))
            recorder = stack.enter_context(harness.Recorder(
                output, *way.targets(workload.pid), "-F", hz))
            recorder.wait_attached()
        return finish(workload, recorder)


def at_work(samples, script):
    """Those inside the workload's main() or a thread of it: not its imports, nor its server's."""
    def is_at_work(stack):
        own = {name for name, file, _ in stack if file.endswith(script)}
        is_thread = any(name.endswith("_bootstrap") and file.endswith("threading.py")
                        for name, file, _ in stack)
        return "main" in own or own and is_thread or any(f[0] == "moments" for f in stack)

    return {stack: count for stack, count in samples.items() if is_at_work(stack)}


def samples_of(output, members):
    samples = {}
    for stack, count in harness.export(output, "--processes").items():
        if any(kind == "process" and ident in members for kind, _, ident in stack.tags):
            key = tuple(map(tuple, stack.frames))
            samples[key] = samples.get(key, 0) + count
    return samples


class Cell:
    def __init__(self, text, is_right=True):
        self.text, self.is_right = text, is_right

    def __str__(self):
        return self.text if self.is_right else "**%s**" % self.text


def number(count):
    return format(count, ",d")


def percent(part, whole):
    """Rounded down: 100 % is all of it."""
    return "%.2f %%" % (10000 * part // whole / 100) if part < whole else "100 %"


def measure_found(way, folder):
    """doctor -p says which version it is, where that was found, and how its stacks are found."""
    with way.start("moments.py", 100) as workload:
        done = harness.run("doctor", "-p", youngest_python(workload), "--json")
    facts = json.loads(done.stdout)
    if not facts["python"]:
        return Cell("no: " + facts["error"], False)
    said = facts["python"]["version"]
    want = "%d.%d.%d" % way.python.version
    flags = "t" * facts["python"]["free_threaded"] + "d" * facts["python"]["debug"]
    is_right = said.split("rc")[0] == want and flags == \
        "t" * way.python.free_threaded + "d" * way.python.debug
    return Cell("%s%s, by %s" % (said, flags, facts["python"]["found_by"]), is_right)


def youngest_python(workload):
    if isinstance(workload, Request):
        return youngest(workload.pid)
    return workload.pid


def measure_lines(way, folder, seconds):
    """[named, lines right]"""
    truth, samples = record(way, folder, HZ, "lines.py", seconds, *way.sites)
    sites = judge.SiteTruth(truth)
    total = sum(samples.values())
    named = sum(count for stack, count in samples.items()
                if stack and not any(frame[1] == "~" for frame in stack))
    verdict = sites.judge(samples, HZ)
    exact = sum(verdict.exact.values())
    inside = verdict.total - (0 if verdict.wrong else sum(verdict.between.values()))
    expected = HZ * sum(sites.site_cpu.values())
    is_right = not verdict.wrong and set(verdict.exact) == set(way.sites) and \
        exact > 0.8 * expected
    if not is_right:
        print("\n" + verdict.text(), file=sys.stderr)
    return [Cell(percent(named, total), named >= 0.999 * total),
            Cell("%s of %s" % (number(exact), number(inside)), is_right)]


def measure_shares(way, folder, seconds):
    truth, samples = record(way, folder, HZ, "shares.py", seconds, "random")
    counts = {"heavy": 0, "light": 0}
    for stack, count in samples.items():
        if stack and stack[-1][0] in counts:
            counts[stack[-1][0]] += count
    total = sum(counts.values())
    expected = truth["heavy"] / (truth["heavy"] + truth["light"])
    return Cell("%.1f of %.1f %%" % (100 * counts["heavy"] / max(total, 1), 100 * expected),
                total > 0.8 * HZ * truth["cpu"]
                and judge.share_error(counts["heavy"], total, expected) <= 0)


def measure_gil_free(way, folder, seconds):
    truth, samples = record(way, folder, HZ, "gilfree.py", seconds, "hashlib",
                            go=lambda workload: workload.go())  # more threads than CPUs
    counts = harness.leaf_counts(samples)
    right = sum(counts.get(tuple(leaf), 0) for leaf in truth["leaf"])
    total = sum(counts.values())
    return Cell(percent(right, max(total, 1)),
                right >= 0.98 * total and right >= 0.8 * HZ * sum(truth["threads"].values()))


def measure_torn(way, folder, seconds):
    """Stacks that mix two chains, or differ in what is below them."""
    truth, samples = record(way, folder, FAST_HZ, "chains.py", seconds, 20)
    roots, torn, total = {}, 0, 0
    for stack, count in samples.items():
        names = [frame[0] for frame in stack]
        is_chain = any(frame[1].startswith("chain_") for frame in stack)
        if not is_chain:
            continue
        total += count
        if "main" not in names:
            torn += count
            continue
        at = len(names) - 1 - names[::-1].index("main")
        roots[stack[:at]] = roots.get(stack[:at], 0) + count
        if judge.torn((("<module>", "", 0),) + stack[at:], 50):
            torn += count
    torn += sum(sorted(roots.values())[:-1])
    return Cell("%s of %s" % (number(torn), number(total)),
                not torn and total > 0.6 * FAST_HZ * truth["cpu"])


def record_running(way, folder):
    """As record(), of a workload that runs while record starts; None if it ended before that."""
    output = os.path.join(folder, "x.pyebpf")
    with way.start("moments.py", MOMENTS_MS) as workload:
        targets = way.targets(workload.pid)
        start = time.monotonic()
        with harness.Recorder(output, *targets, "-F", HZ) as recorder:
            workload.go(repr(start))
            truth = workload.truth()
            members = set(family(workload.process.pid)) | {workload.pid}
            status = recorder.stop()
        return None if status else (truth, samples_of(output, members))


def first_sample(way, folder):
    """Milliseconds from the start of record, or of the program that comes after it; None: none."""
    done = record(way, folder, HZ, "moments.py", MOMENTS_MS) if way.is_late else \
        record_running(way, folder)
    if not done:
        return None
    truth, samples = done
    lines = [frame[2] for stack in samples for frame in stack
             if frame[0] == "moments" and frame[2] > 1]  # at 1 it is just entered
    first = 2 * (min(lines, default=0) - 2)
    assert first >= truth["began"] - 2, (first, truth)
    return first


def measure_first(way, folder):
    """The least of three: what other programs take of the machine only adds to it."""
    tries = [first_sample(way, folder) for _ in range(3)]
    seen = [first for first in tries if first is not None]
    return Cell("%d" % min(seen)) if seen else Cell("none in %d" % MOMENTS_MS, False)


def measure(way, folder, seconds):
    """The cells of a row; one that fails does not take the others with it."""
    for function, count in (
            (lambda: [measure_found(way, folder)], 1),
            (lambda: measure_lines(way, folder, seconds), 2),
            (lambda: [measure_shares(way, folder, seconds)], 1),
            (lambda: [measure_gil_free(way, folder, seconds)], 1),
            (lambda: [measure_torn(way, folder, seconds)], 1),
            (lambda: [measure_first(way, folder)], 1)):
        try:
            yield from function()
        except harness.Skipped as e:
            yield from [Cell("not run: %s" % e)] * count
        except (AssertionError, subprocess.SubprocessError, OSError, ValueError) as e:
            traceback.print_exc()
            yield from [Cell("failed: " + one_line(e), False)] * count


def one_line(error):
    return " ".join(str(error).replace("|", "/").split())[:160]


def measured_row(make_way, seconds):
    """The cells of a row, or the reason why there are none."""
    with tempfile.TemporaryDirectory(prefix="pyebpf-table-") as folder, \
            contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        try:
            way = stack.enter_context(make_way(folder))
        except pytest.skip.Exception as e:
            return "not run: " + one_line(e.msg)
        except (pythons.Unavailable, OSError, subprocess.SubprocessError) as e:
            return "not run: " + one_line(e)
        except AttributeError as e:
            return "not run: an interpreter that this needs is not here (%s)" % one_line(e)
        return list(measure(way, folder, seconds))


# --- Rows -----------------------------------------------------------------------------------------


def plainly(python, env=None):
    return lambda folder: contextlib.nullcontext(Way(python, env=env))


def debug_build():
    """Debian's, for the release that this runs on: as test_versions.py has it."""
    minor = {"12": 11, "13": 13}.get(pythons.os_release("VERSION_ID"))
    if not minor:
        return None
    try:
        root = versions.unpacked("debug", ["python3.%d-dbg" % minor], True)
    except pytest.skip.Exception as e:
        print("debug build: " + e.msg, file=sys.stderr)
        return None
    python = pythons.Python([os.path.join(root, "usr/bin/python3.%dd" % minor)], "debian")
    if not python.ask():
        return None
    python.name = python.label()
    return python


def unbuilt(reason):
    @contextlib.contextmanager
    def make(folder):
        raise pythons.Unavailable(reason)
        yield  # contextmanager wants a generator
    return make


def rows_of_interpreters(found):
    """(name, how it runs, function of a folder that gives a Way)."""
    for python in found:
        yield python.name, {"direct": "", "chroot": "chroot", "loader": "its own loader"}[
            python.via], plainly(python)
    debug = debug_build()
    yield (debug.name if debug else "debug build"), "", \
        plainly(debug) if debug else unbuilt("no package with a debug build for this system")
    for minor in build_freethreaded.BUILDS:
        free_threaded = build_freethreaded.find(minor)
        yield (free_threaded.name if free_threaded else "3.%dt" % minor), "", \
            plainly(free_threaded) if free_threaded else \
            unbuilt("not built (tests/tools/build_freethreaded.py says why): its layout is "
                    "checked against headers")
    for python in found:
        if python.minor >= 13 and python.via == "chroot" and python.linkage == "static" \
                and versions.jit_is_available(python):
            yield python.name + ", JIT on", "chroot", plainly(python, {"PYTHON_JIT": "1"})


def rows_of_shapes(found):
    interpreters = Interpreters(found)
    for name, make in SHAPES.items():
        yield name, "", lambda folder, make=make: make(interpreters, folder)


# --- Short-lived ----------------------------------------------------------------------------------

SHORT_CASES = [("python", 999, 1), ("python", 999, 8), ("clock", 999, 1), ("clock", 999, 8)]
SHORT_KINDS = {"python": "interpreter", "clock": "vDSO, kernel"}


def measure_short(python, kind, hz, at_once, count):
    with tempfile.TemporaryDirectory(prefix="pyebpf-table-") as folder:
        try:
            script = harness.stage(python, "brief.py", folder)
            first, others, text = short_lived.record_children(
                python, script, os.path.join(folder, "x.pyebpf"), kind, hz, count, at_once)
        finally:
            harness.unstage(python, folder)
    got, sigma = short_lived.share(others), short_lived.uncertainty(others)
    return Cell("%.2f ± %.2f" % (100 * got, 100 * sigma),
                short_lived.SHARE - 4 * sigma <= got <= 1.01 + 4 * sigma)


def one_a_kind(found):
    """The oldest, and one for each way to keep frames."""
    return pythons.of_minors([p for p in found if p.via != "loader"], (pythons.MINORS[0], *FEW))


# --- The page -------------------------------------------------------------------------------------

INTRODUCTION = """\
# Interpreters, and the ways they come

`make coverage-table` measured this page: each row is a real process, recorded while it runs programs
whose stacks, lines and times are known. A cell in bold is out of its bounds; what was not run says
why. {machine}.

- **found**: what `pyebpf doctor -p` says it is and how it was found; right if the interpreter says
  the same of itself.
- **named**: samples in which each frame has its name, of all samples.
- **lines right**: samples whose whole stack (names, files, lines) is one that CPython itself saw at
  the place where the time was spent, of all that were there; {sites} kinds of place.
- **share right**: measured share of one of two functions, and the share of the CPU time that the
  program measured for it. Bounds: 4 sigma + 0.5 points.
- **GIL-free kept**: samples in C code that has released the GIL, with the right Python caller.
- **torn**: impossible stacks, of those taken at 10 kHz while two 50 frames deep chains alternate
  every 20 us.
- **first sample after ms**: from the start of `pyebpf record -p` to the first sample; under `-a`
  from the start of the program's work. The least of three: it holds the time to load the BPF
  programs, which grows on a busy machine.
"""


TITLES = {"interpreters": "Interpreters", "ways": "Ways they come",
          "short": "Short-lived processes"}


def page_row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


class Page:
    """Sections of one table each; rows of an earlier page stay until they are measured anew."""

    def __init__(self, path, introduction):
        self.path, self.introduction, self.wrong = path, introduction, []
        self.heads, self.rows = {}, {title: {} for title in TITLES.values()}
        with contextlib.suppress(FileNotFoundError), open(path) as f:
            for section in f.read().split("\n## ")[1:]:
                title, _, text = section.partition("\n\n")
                self.heads[title], line, rows = text.partition("---|\n")
                self.heads[title] += line
                self.rows[title] = {row.split(" | ")[0][2:]: row for row in rows.splitlines()}

    def section(self, name, head, text="", is_whole=True):
        self.title = TITLES[name]
        self.heads[self.title] = text + page_row(head) + "\n|" + "---|" * len(head) + "\n"
        if is_whole:
            self.rows[self.title] = {}

    def row(self, name, cells):
        line = page_row([name, *cells])
        self.rows[self.title][name] = line
        self.wrong += ["%s: %s" % (name, cell.text) for cell in cells
                       if isinstance(cell, Cell) and not cell.is_right]
        print(line, flush=True)

    def write(self):
        with open(self.path + ".new", "w") as f:
            f.write(self.introduction + "".join(
                "\n## %s\n\n%s%s\n" % (title, self.heads[title], "\n".join(rows.values()))
                for title, rows in self.rows.items() if rows))
        os.replace(self.path + ".new", self.path)


def coverage(page, section, rows, wanted, seconds):
    page.section(section, ("", *COLUMNS), is_whole=not wanted)
    for name, how, make in rows:
        if wanted and not any(part in name for part in wanted):
            continue
        cells = measured_row(make, seconds)
        if isinstance(cells, str):
            cells = [Cell(cells)] + [Cell("")] * (len(COLUMNS) - 1)
        page.row(name + (", " + how if how and how not in name else ""), cells)
    page.write()


def short_page(page, found, wanted, count):
    text = """\
%d processes of 50 ms under `record -a`, one after another and 8 at a time: of the CPU time that they
measure inside their own function, the percentage in samples with its name and line, and one sigma of
it. The first process of a new binary is left out: it is what the binary is learnt from. Over 100 %%
is the same uncertainty. Time is spent in Python code, or in the vDSO and the kernel (clock); required
is 99 %%.

""" % count
    page.section("short", ["", *("%s, %d Hz, %s" % (SHORT_KINDS[kind], hz, "8 at a time" if at_once > 1 else
                                         "one by one") for kind, hz, at_once in SHORT_CASES)], text, not wanted)
    for python in one_a_kind(found):
        if wanted and not any(part in python.name for part in wanted):
            continue
        page.row(python.name, [measure_short(python, kind, hz, at_once, count)
                               for kind, hz, at_once in SHORT_CASES])
    page.write()


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":")[1].strip() for line in f if line.startswith("model name")),
                     platform.machine())
    is_virtual = "hypervisor" in open("/proc/cpuinfo").read()
    return "%s, Linux %s, %d CPUs (%s)%s" % (
        harness.run("--version").stdout.strip(), platform.release().split("-")[0], os.cpu_count(),
        model.replace("(R)", "").replace("(TM)", ""), ", a virtual machine" if is_virtual else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("-o", "--output", default=os.path.join(
        harness.REPOSITORY, "docs", "interpreters.md"))
    parser.add_argument("--section", default=",".join(TITLES), help="by commas: %s" %
                        ", ".join(TITLES))
    parser.add_argument("--only", default="", help="rows whose names hold one of these, by commas")
    parser.add_argument("--seconds", type=float, default=3, help="of each recording (3)")
    parser.add_argument("--short", type=int, default=200, help="short-lived processes a cell (200)")
    options = parser.parse_args()
    sections = options.section.split(",")
    wanted = [part for part in options.only.split(",") if part]
    if os.geteuid():
        sys.exit("coverage_table.py: pyebpf records as root only")
    found = [p for p in pythons.find_all() if not p.free_threaded and not p.debug]
    page = Page(options.output, INTRODUCTION.format(machine=machine(), sites=len(SITES)))
    if "interpreters" in sections:
        coverage(page, "interpreters", rows_of_interpreters(found), wanted, options.seconds)
    if "ways" in sections:
        coverage(page, "ways", rows_of_shapes(found), wanted, options.seconds)
    if "short" in sections:
        short_page(page, found, wanted, options.short)
    for wrong in page.wrong:
        print("OUT OF BOUNDS: " + wrong)
    return 1 if page.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
