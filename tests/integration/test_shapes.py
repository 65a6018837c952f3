# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How an interpreter comes: embedded, stripped, renamed, deleted, loaded late, bundled, in servers.

Each shape is recorded; at least 95 % of its samples must be at the line that spins."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.request

import harness
import packages
import pytest
import pythons
from harness import Recorder, WORKLOADS, export, frames, wait_until
from spinning import HZ, SCRIPT, Spinning, assert_spins, family, pids, record, record_pid, say_skipped

pytestmark = pytest.mark.usefixtures("pyebpf")
SOURCE = os.path.join(os.path.dirname(harness.HERE), "tools", "embed.c")
FACTS = """
import json, sysconfig
print(json.dumps({key: sysconfig.get_config_var(key) or "" for key in
    ("INCLUDEPY", "LIBDIR", "INSTSONAME", "LIBPL", "LIBRARY", "LIBS", "SYSLIBS", "LINKFORSHARED")}))
"""


def pytest_generate_tests(metafunc):
    """embeddable: interpreters with headers and a library beside them, here."""
    if "embeddable" not in metafunc.fixturenames:
        return
    found = [p for p in metafunc.config.all_pythons if p.via == "direct" and p.source == "pyenv"
             and p.linkage == "shared" and not p.free_threaded]
    if metafunc.config.getoption("--tier") != "all":
        found = found[-1:]
    metafunc.parametrize("embeddable", found, ids=[p.name for p in found])


@pytest.fixture
def shared_python(request):
    """The newest that runs in place and has a libpython."""
    found = [p for p in request.config.all_pythons
             if p.via == "direct" and p.linkage == "shared" and not p.free_threaded]
    if not found:
        say_skipped("no interpreter with a libpython that runs in place")
    return found[-1]


def facts(python):
    done = subprocess.run([*python.command, "-c", FACTS], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def compile_program(output, *arguments):
    if not pythons.cc():
        say_skipped("no C compiler here")
    done = subprocess.run([pythons.cc(), "-O1", "-o", str(output), SOURCE, *arguments],
                          stderr=subprocess.PIPE, text=True)
    if done.returncode:
        say_skipped("cannot embed: " + done.stderr.strip()[-300:])


def home(python):
    return {"PYTHONHOME": python.prefix}


# --- Embedded, late, stripped, renamed ------------------------------------------------------------


@pytest.mark.parametrize("linkage", ["shared", "static"])
def test_embedded(embeddable, linkage, tmp_path):
    f = facts(embeddable)
    program = tmp_path / "server"
    if linkage == "shared":
        library = ["-L" + f["LIBDIR"], "-Wl,-rpath," + f["LIBDIR"],
                   "-l:" + f["INSTSONAME"]]
    else:
        archive = os.path.join(f["LIBPL"], f["LIBRARY"])
        if not os.path.exists(archive):
            say_skipped("no " + archive)
        library = [archive, "-Wl,-export-dynamic"]
    compile_program(program, "-I" + f["INCLUDEPY"], *library,
                    *(f["LIBS"] + " " + f["SYSLIBS"]).split(), "-lm", "-ldl", "-lpthread", "-lutil")
    with Spinning(program, SCRIPT, env=home(embeddable)) as target:
        record_pid(tmp_path, target.pid)


# Within the second in which a new program is looked at again and again.
@pytest.mark.parametrize("milliseconds", [70, 90, 400])
@pytest.mark.parametrize("target", ["command", "all"])
@pytest.mark.spread("target", "milliseconds")
def test_late_dlopen(embeddable, target, milliseconds, tmp_path):
    """A program that loads libpython when it has been running, and been asked about, for a while."""
    f = facts(embeddable)
    program, output = tmp_path / "late", tmp_path / "late.pyebpf"
    compile_program(program, "-DLATE", "-ldl")
    short = tmp_path / "spin.py"
    with open(SCRIPT) as source:
        short.write_text(source.read().replace("else 60", "else 1").replace("perf_counter", "process_time"))
    command = [str(program), os.path.join(f["LIBDIR"], f["INSTSONAME"]), str(milliseconds),
               str(short)]
    env = dict(os.environ, **home(embeddable))
    if target == "command":
        done = subprocess.run([harness.PYEBPF, "record", "-F", str(HZ), "-o", output, "--", *command],
                              env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 0, done.stderr
        samples = frames(export(output))
    else:
        with Recorder(output, "-a", "-F", HZ) as recorder:
            recorder.wait_attached()
            with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as process:
                assert process.wait(60) == 0
            recorder.finish()
        samples = frames_of(output, process.pid)
    # What it did before is outside Python, as far as it was met then.
    before = samples.pop((("<outside Python>", "~", 0),), 0)
    assert before <= 1.2 * HZ * milliseconds / 1000 + 50, (before, milliseconds)
    assert_spins(samples, at_least=50)


def test_events_of_late_dlopen(embeddable, tmp_path):
    """No tick and no switch makes these processes known: they begin, fork before anybody has looked at them, and
    wait before the recorded event comes."""
    f = facts(embeddable)
    program, output = tmp_path / "late", tmp_path / "late.pyebpf"
    compile_program(program, "-DLATE", "-ldl")
    command = [program, os.path.join(f["LIBDIR"], f["INSTSONAME"]), "5", os.path.join(WORKLOADS, "called.py")]
    said = []
    with Recorder(output, "-a", "-e", "syscalls:sys_enter_getppid") as recorder:
        recorder.wait_attached()
        for _ in range(4):
            done = subprocess.run(command, env=dict(os.environ, **home(embeddable)), stdout=subprocess.PIPE, check=True)
            said += [int(line) for line in done.stdout.split()]
        recorder.finish()
    calls = [sum(count for stack, count in frames_of(output, pid).items() if stack[-1][0] == "calls") for pid in said]
    assert len(calls) == 8 and set(calls) == {2000}, (calls, recorder.text())


def frames_of(output, pid):
    samples = {}
    for stack, count in export(output, "--processes").items():
        if ("process", pid) in [(kind, ident) for kind, _, ident in stack.tags]:
            key = tuple(map(tuple, stack.frames))
            samples[key] = samples.get(key, 0) + count
    return samples


def test_stripped_and_renamed(request, tmp_path):
    """Static interpreters without a symbol table, under the name of a web server."""
    found = [p for p in request.config.all_pythons if p.via == "direct" and p.linkage == "static"
             and not p.free_threaded]
    if not shutil.which("strip") or not found:
        say_skipped("no strip (binutils), or no static interpreter")
    for python in found if request.config.getoption("--tier") == "all" else found[-1:]:
        program = tmp_path / "nginx"
        subprocess.run(["strip", "-s", "-o", program, python.runtime], check=True)
        with Spinning(program, SCRIPT, env=home(python)) as target:
            record_pid(tmp_path, target.pid)


def test_stripped_of_its_exports_too(request, embeddable, tmp_path):
    """Not one symbol left: from 3.10 on the section .PyRuntime tells, before it is refused."""
    f = facts(embeddable)
    archive = os.path.join(f["LIBPL"], f["LIBRARY"])
    if not shutil.which("strip") or not os.path.exists(archive):
        say_skipped("no strip (binutils), or no " + archive)
    program = tmp_path / "server"
    compile_program(program, "-I" + f["INCLUDEPY"], archive,
                    *(f["LIBS"] + " " + f["SYSLIBS"]).split(), "-lm", "-ldl", "-lpthread", "-lutil")
    subprocess.run(["strip", "-s", program], check=True)
    with Spinning(program, SCRIPT, env=home(embeddable)) as target:
        if embeddable.minor >= 10:
            record_pid(tmp_path, target.pid)
        else:
            _, text = record(tmp_path, "-p", target.pid, status=3)
            assert "no Python runtime" in text and str(program) in text, text


# --- Ways to start ---------------------------------------------------------------------------------


def test_command_line_script(some_python, tmp_path):
    with open(SCRIPT) as f, Spinning(*some_python.command, "-I", "-S", "-c", f.read()) as target:
        record_pid(tmp_path, target.pid)


def test_zipapp(some_python, tmp_path):
    source, archive = tmp_path / "app", tmp_path / "app.pyz"
    os.mkdir(source)
    shutil.copy(SCRIPT, source / "__main__.py")
    subprocess.run([*some_python.command, "-m", "zipapp", source, "-o", archive], check=True)
    with Spinning(*some_python.command, archive) as target:
        samples = record_pid(tmp_path, target.pid)
    assert any("app.pyz/__main__.py" in stack[-1][1] for stack in samples), samples


# --- Files that change -----------------------------------------------------------------------------


@pytest.fixture
def library(shared_python, tmp_path):
    """(folder, path of a libpython of its own, environment that has it loaded)."""
    folder = tmp_path / "lib"
    os.mkdir(folder)
    copy = folder / os.path.basename(os.path.realpath(shared_python.runtime))
    shutil.copy(shared_python.runtime, copy)
    return folder, copy, {"LD_LIBRARY_PATH": str(folder)}


def uses(pid, path):
    with open("/proc/%d/maps" % pid) as f:
        return str(path) in f.read()


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_library_gone_from_disk(request, shared_python, library, what, tmp_path):
    """What runs counts, not what an update has put there since, of another version at that."""
    folder, copy, env = library
    other = next(p for p in request.config.all_pythons if p.via == "direct"
                 and p.linkage == "shared" and p.minor != shared_python.minor)
    with Spinning(*shared_python.command, SCRIPT, env=env) as target:
        if not uses(target.pid, copy):
            say_skipped("this interpreter has a run path of its own")
        if what == "replaced":
            shutil.copy(other.runtime, str(copy) + ".new")
            os.rename(str(copy) + ".new", copy)
        else:
            os.remove(copy)
        record_pid(tmp_path, target.pid)


# --- Families that are there already ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing_children_already_there(some_python, method, tmp_path):
    with Spinning(*some_python.command, os.path.join(WORKLOADS, "pool.py"), method, 2) as target:
        parent = target.process.pid
        samples, text = record(tmp_path, "-p", parent)
        assert_spins(samples, text)
        seen = pids(tmp_path / "spinning.pyebpf")
        assert len(seen & set(family(parent)[1:])) == 2, (seen, family(parent))
        _, text = record(tmp_path, "-p", parent, "--no-children", status=3)


def test_child_of_a_program_without_python(some_python, tmp_path):
    with Spinning("sh", "-c", '"$@"; true', "sh", *some_python.command, SCRIPT) as target:
        assert target.pid != target.process.pid
        samples, text = record(tmp_path, "-p", target.process.pid)
        assert_spins(samples, text)
        _, text = record(tmp_path, "-p", target.process.pid, "--no-children", status=3)
        assert "no Python runtime" in text, text


def test_child_that_a_program_without_python_starts_later(some_python, tmp_path):
    """As a postmaster's or a launcher's: it is waited for, and that is said."""
    output = tmp_path / "later.pyebpf"
    command = ["sh", "-c", 'read go; "$@"; true', "sh", *map(str, some_python.command), SCRIPT, "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as parent:
        with Recorder(output, "-p", parent.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            parent.stdin.write(b"go\n")
            parent.stdin.flush()
            assert recorder.wait() == 0, recorder.text()
            text = recorder.text()
    assert re.search(r"warning: pid %d: no Python runtime in this process \(mappings: .*\): waiting "
                     "for a child process that runs Python" % parent.pid, text), text
    assert text.count("waiting for a child") == 1, text
    assert_spins(frames(export(output)), text, least=0.3)  # the rest is its start


def test_no_child_of_a_program_without_python(tmp_path):
    with subprocess.Popen(["sleep", "60"]) as target:
        try:
            wait_until(lambda: "python" not in os.readlink("/proc/%d/exe" % target.pid), 10, "exec")
            _, text = record(tmp_path, "-p", target.pid, status=3)
            assert "waiting for a child process that runs Python" in text, text
            assert re.search(r"no samples of pid %d in .*: no process that ran Python was "
                             "sampled" % target.pid,
                             text), text
            assert "try: pgrep -P %d" % target.pid in text, text
            _, text = record(tmp_path, "-p", target.pid, "--no-children", status=3)
            assert "no Python runtime" in text and "waiting" not in text, text
            assert "try: pyebpf doctor -p %d" % target.pid in text, text
        finally:
            target.kill()


# --- Two in one process ---------------------------------------------------------------------------


@pytest.fixture
def two_pythons(request, tmp_path):
    """(program, arguments, (version, library) of each): it spins in both."""
    found = [p for p in request.config.all_pythons if p.via == "direct" and p.source == "pyenv"
             and p.linkage == "shared" and not p.free_threaded and p.minor >= 8]
    if len(found) < 2 or not pythons.cc():
        say_skipped("no two interpreters with a libpython, or no C compiler here")
    known = [(python, facts(python)) for python in harness.draw(found, 2, request.node.nodeid)]
    libraries = [os.path.join(f["LIBDIR"], f["INSTSONAME"]) for _, f in known]
    program = tmp_path / "two_pythons"
    subprocess.run([pythons.cc(), "-O1", "-o", program, os.path.join(WORKLOADS, "two_pythons.c"), "-ldl",
                    "-lpthread"], check=True)
    words = [word for (python, _), library in zip(known, libraries) for word in (library, python.prefix)]
    return program, words, list(zip([".".join(map(str, p.version[:3])) for p, _ in known], libraries))


SAY_TWO = re.compile(r"CPython (\S+) of (\S+) is read, threads of CPython (\S+) of (\S+) are outside it")


def test_a_second_python_is_named(two_pythons, tmp_path):
    program, words, both = two_pythons
    with Spinning(program, 120, *words, ready=False) as target:
        assert target.process.stdout.readline() == b"READY\n"
        judge_two(target.process, both, tmp_path)


def test_a_second_python_that_comes_later_is_named(two_pythons, tmp_path):
    program, words, both = two_pythons
    with Recorder(tmp_path / "x.pyebpf", "-F", HZ, "--", program, 6, *words) as recorder:
        assert recorder.wait() == 0, recorder.text()
        text = recorder.text()
    assert text.count("has two Pythons") == 1, text
    read = SAY_TWO.search(text).groups()
    assert {read[:2], read[2:]} == set(both), (read, both)
    leaves = {stack[-1][0] for stack in frames(export(tmp_path / "x.pyebpf"))}
    shown, hidden = ("first", "second") if read[:2] == both[0] else ("second", "first")
    assert shown in leaves and hidden not in leaves, (leaves, text)


def judge_two(process, both, tmp_path):
    dump, doctor = (harness.run(command, "-p", process.pid).stdout for command in ("dump", "doctor"))
    samples, text = record(tmp_path, "-p", process.pid)
    said = {SAY_TWO.search(" ".join(output.split())).groups() for output in (dump, doctor, text)}
    assert len(said) == 1, (dump, doctor, text)
    read = said.pop()
    assert {read[:2], read[2:]} == set(both), (read, both)
    assert text.count("has two Pythons") == 1 and "two Pythons: CPython" in dump, (dump, text)
    shown, hidden = ("first", "second") if read[:2] == both[0] else ("second", "first")
    leaves = {stack[-1][0] for stack in samples}
    assert shown in leaves and "<outside Python>" in leaves and hidden not in leaves, samples
    dumped, = json.loads(harness.run("dump", "--json", "-p", process.pid).stdout)["processes"]
    assert (dumped["python"], dumped["other_python"]) == (read[0], read[2]), dumped


def test_one_python_is_not_two(shared_python, tmp_path):
    with Spinning(*shared_python.command, SCRIPT) as target:
        assert "two Pythons" not in record(tmp_path, "-p", target.pid)[1]
        assert "two Pythons" not in harness.run("doctor", "-p", target.pid).stdout


# --- From PyPI -------------------------------------------------------------------------------------


@contextlib.contextmanager
def unavailable_is_skipped():
    try:
        yield
    except pythons.Unavailable as e:
        say_skipped(str(e))


@pytest.mark.full
def test_bundled_as_one_file(shared_python, tmp_path):
    """A program without Python unpacks one and starts itself again as a child."""
    with unavailable_is_skipped():
        program = packages.bundle(shared_python, SCRIPT, str(tmp_path / "dist"))
    with Spinning(program) as target:
        record_pid(tmp_path, target.pid)
        samples, text = record(tmp_path, "-p", target.process.pid)
        assert_spins(samples, text)
    done = subprocess.run([harness.PYEBPF, "record", "-F", str(HZ), "-o", tmp_path / "x.pyebpf",
                           "--", program, "3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert_spins(frames(export(tmp_path / "x.pyebpf")), done.stderr.decode(), at_least=50)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port):
    with contextlib.suppress(OSError):
        with urllib.request.urlopen("http://127.0.0.1:%d/" % port, timeout=5) as response:
            return response.status == 200
    return False


SERVERS = {
    "gunicorn": ["-m", "gunicorn", "-w", "2", "-b", "127.0.0.1:{port}", "webapp:wsgi"],
    "uvicorn": ["-m", "uvicorn", "--workers", "2", "--port", "{port}", "--log-level", "warning",
                "webapp:asgi"],
}


@pytest.mark.full
@pytest.mark.parametrize("name", sorted(SERVERS))
def test_workers_of_a_server(shared_python, name, tmp_path):
    """-p of the master records the workers that are there."""
    with unavailable_is_skipped():
        folder = packages.folder_of(shared_python, "servers")
    port = free_port()
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            answers(port)

    command = [*shared_python.command, *(word.format(port=port) for word in SERVERS[name])]
    askers = [threading.Thread(target=ask) for _ in range(4)]
    with Spinning(*command, ready=False, cwd=WORKLOADS, env={"PYTHONPATH": folder}) as server:
        try:
            wait_until(lambda: answers(port), 30, name + " answers")
            for asker in askers:
                asker.start()
            samples, text = record(tmp_path, "-p", server.process.pid, seconds=2)
        finally:
            stop.set()
            for asker in filter(threading.Thread.is_alive, askers):
                asker.join()
    assert_spins(samples, text, at_least=100)


@pytest.fixture
def packaged_python(request):
    """The newest that runs in place and that PyPI has packages with C for."""
    found = [p for p in request.config.all_pythons
             if p.via == "direct" and p.minor in range(9, 14) and not p.free_threaded]
    if not found:
        say_skipped("no interpreter of Python 3.9 to 3.13 that runs in place")
    return found[-1]


def titles_of(pid):
    """{PID: what it calls itself}, of a process and its children."""
    titles = {}
    for member in family(pid):
        with open("/proc/%d/cmdline" % member, "rb") as f:
            titles[member] = f.read().rstrip(b"\0").replace(b"\0", b" ").decode()
    return titles


def names_in(recording):
    """{PID: its name in report --by process}."""
    said = harness.run("report", "--by", "process", "-n", "0", recording).stdout
    lines = re.sub(r"^.* m?s  ", "  ", said, flags=re.M)
    return {int(pid): name for name, pid in re.findall(r"^  (\S.*) \((\d+)\)$", lines, re.M)}


@pytest.mark.full
@pytest.mark.parametrize("targets", ["-p", "-a"])
def test_titles_of_celery(targets, packaged_python, tmp_path):
    """Its pool's processes are forked, and give themselves titles; the main one has one that tells what it does."""
    with unavailable_is_skipped():
        folder = packages.folder_of(packaged_python, "celery")
    (tmp_path / "queue").mkdir()
    output = tmp_path / "x.pyebpf"
    env = dict(os.environ, CELERY_FOLDER=str(tmp_path / "queue"), PYTHONPATH=folder + ":" + WORKLOADS,
               PYTHONDONTWRITEBYTECODE="1")
    command = [*packaged_python.command, "-m", "celery", "-A", "celeryapp", "worker", "-c", "2", "-n", "w1@here"]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        try:
            wait_until(lambda: len([t for t in titles_of(worker.pid).values() if "ForkPoolWorker" in t]) == 2, 60,
                       "its pool is there")
            with Recorder(output, *(["-p", worker.pid] if targets == "-p" else ["-a"]), "--mode", "wall") as recorder:
                recorder.wait_attached()
                time.sleep(3)
                titles = titles_of(worker.pid)
                recorder.finish()
        finally:
            worker.terminate()
    names = names_in(output)
    assert {pid: names.get(pid) for pid in titles} == titles, names
    spinning = {sample["process"] for sample in map(json.loads, harness.run(
        "export", "-f", "jsonl", "-o", "-", "--kind", "cpu", output).stdout.splitlines())
        if any(frame[0] == "spins_in_celery" for frame in sample["stack"])}
    assert spinning and all("ForkPoolWorker" in name for name in spinning), spinning
