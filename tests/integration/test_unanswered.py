# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Memory and files that never answer: a FUSE server has taken the request. Whoever waits for it cannot be
killed; pyebpf ends all the same, on a quiet machine within two seconds of SIGTERM, and says what did not
answer."""
import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import engines
import pytest
from harness import PYEBPF, WORKLOADS, Recorder, Workload, draw, go_ahead, has_events, is_polling, on_terminal, run, wait_until
from htmlpage import Page
from test_short_waits import assert_whole
from test_sources import Target

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.few_pythons]

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 30  # with a busy machine; what hangs does so for ever
END = 3  # seconds: two, and one until we see it
CONTENT = b"A=B\0" * (1 << 18)


class Deaf:
    """A file of a file system whose server stops to answer."""

    def __init__(self, folder, content=CONTENT, *words):
        self.folder = str(folder / "mount")
        os.mkdir(self.folder)
        (folder / "content").write_bytes(content)
        self.path = os.path.join(self.folder, "file")
        self.server = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "fuse_server.py"), str(folder / "content"), self.folder, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.server.stdout.readline() == b"READY\n"

    def stop(self, word="deaf"):
        self.server.stdin.write(word.encode() + b"\n")
        self.server.stdin.flush()
        assert self.server.stdout.readline() == b"OK\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.kill()  # whoever waits for it goes on
        self.server.wait()
        subprocess.run(["umount", "-l", self.folder], check=True)


MODES = {
    "cpu": ["record", "-o", "x.pyebpf", "-p"],
    "wall": ["record", "--mode", "wall", "-o", "x.pyebpf", "-p"],
    "off-cpu": ["record", "--mode", "off-cpu", "-o", "x.pyebpf", "-p"],
    "gil": ["record", "--mode", "gil", "-o", "x.pyebpf", "-p"],
    "exception": ["record", "--mode", "exception", "-o", "x.pyebpf", "-p"],
    "memory": ["record", "--mode", "memory", "-o", "x.pyebpf", "-p"],
    "tasks": ["record", "--mode", "wall", "--async", "-o", "x.pyebpf", "-p"],
    "labels": ["record", "--mode", "wall", "--label", "route=contextvar:route", "-o", "x.pyebpf", "-p"],
    "page": ["record", "--mode", "wall", "-o", "x.html", "-p"],
    "dump": ["dump", "-p"],
    "dump of locals": ["dump", "--locals=full", "-p"],
    "dump of tasks": ["dump", "--async", "-p"],
    "doctor": ["doctor", "-p"],
    "top": ["top", "-p"],
    "top of tasks": ["top", "--async", "-p"],
    "agent": ["agent", "--config", "agent.yaml"],
}
AGENT = """window: 1s
output:
  engine: files
  directory: out
spool:
  directory: spool
http:
  port: %d
"""
STATES = [(what, how) for what in ("name", "lines", "items", "type", "arguments") for how in ("busy", "idle")]


def target_of(python, path, what, how):
    """The target's arguments are long enough for all that it does to them."""
    return Workload(python, "unanswered.py", path, what, how, "x" * 8192)


def watch(mode, pid, folder):
    """on_terminal(), of a mode."""
    (folder / "agent.yaml").write_text(AGENT % engines.free_port())
    words = MODES[mode]
    return on_terminal([PYEBPF, *words, *([pid] if words[-1] == "-p" else [])], cwd=folder, stderr=subprocess.STDOUT,
                       env=dict(os.environ, TERM="xterm"), preexec_fn=go_ahead)


@pytest.mark.parametrize("mode", list(MODES))
def test_it_ends_when_it_is_told_to(mode, some_python, is_full, tmp_path):
    """Each mode, of a process in each state, one after the other: in two states, with --tier=all in ten."""
    for number, (what, how) in enumerate(STATES if is_full else draw(STATES, 2, mode)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with Deaf(folder) as deaf, target_of(some_python, deaf.path, what, how) as target:
            deaf.stop()
            try:
                with watch(mode, target.pid, folder) as (process, said):
                    time.sleep(0.8)  # it is at work, or hangs
                    begin = time.monotonic()
                    process.send_signal(signal.SIGTERM)
                    process.wait(PATIENCE)
                    seconds = time.monotonic() - begin
            finally:
                deaf.server.kill()  # what hangs goes on, the target too
            assert process.returncode in (0, 3, -signal.SIGTERM), (what, how, said)
            assert seconds < END, (what, how, said)
            if (folder / "x.pyebpf").exists():
                assert run("report", folder / "x.pyebpf").returncode in (0, 3), (what, how, said)


NAMING = ["cpu", "wall", "gil", "tasks", "labels", "top", "agent"]


@pytest.mark.parametrize("what", ["name", "lines"])
def test_what_does_not_answer_is_named(what, some_python, tmp_path):
    """By all at once."""
    with Deaf(tmp_path) as deaf, target_of(some_python, deaf.path, what, "busy") as target, contextlib.ExitStack() as stack:
        deaf.stop()
        stack.callback(deaf.server.kill)
        watched = {}
        for mode in NAMING:
            folder = tmp_path / mode
            folder.mkdir()
            watched[mode] = stack.enter_context(watch(mode, target.pid, folder))
        named = re.compile(rb"pid %d: (its memory does not answer|reading its memory or files timed out)" % target.pid)
        wait_until(lambda: all(named.search(said) for _, said in watched.values()), PATIENCE, "all name it")
        for process, _ in watched.values():
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0


def is_whole(recording):
    done = run("report", recording)
    return done.returncode in (0, 3) and "cut off" not in done.stderr


@contextlib.contextmanager
def first_of_a_namespace(mode, word, python, folder):
    """pyebpf as in a container, where the kernel lets the first process end after all others: SIGTERM is sent when
    its reader hangs. Yields its process, the server, and when that was. Alone: a recorder of another test may read the
    page before the server stops to answer, which then is there."""
    said = folder / "said"
    with said.open("wb") as errors, Deaf(folder, CONTENT, "async") as deaf:
        script = "%s %s %s name busy & read _; exec %s %s $!" % (
            shlex.join(python.command), os.path.join(WORKLOADS, "unanswered.py"), deaf.path, PYEBPF, shlex.join(MODES[mode]))
        with subprocess.Popen(["unshare", "-pf", "--kill-child", "--mount-proc", "sh", "-c", script], cwd=folder, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=errors, preexec_fn=go_ahead) as process:
            assert process.stdout.readline() == b"READY\n"
            deaf.stop(word)
            with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as f:
                first = int(f.read())
            process.stdin.write(b"\n")
            process.stdin.flush()
            wait_until(lambda: has_events(first) and is_polling(first), PATIENCE, "it records")
            try:
                wait_until(lambda: b"its memory" in said.read_bytes(), PATIENCE, "its reader hangs, and that is said")
                begin = time.monotonic()
                os.kill(first, signal.SIGTERM)
                yield process, deaf.server, begin
            finally:
                deaf.server.kill()
                process.kill()  # where it was not told to end
        assert process.returncode == 0, said.read_text()


@pytest.mark.alone
def test_it_ends_as_the_first_process_of_a_namespace(some_python, tmp_path):
    """The recorder's readers can be killed at a page that is read ahead."""
    with first_of_a_namespace("cpu", "deaf", some_python, tmp_path) as (process, _, begin):
        process.wait(PATIENCE)
        seconds = time.monotonic() - begin
    assert seconds < END


@pytest.mark.alone
def test_the_first_process_of_a_namespace_has_written_all_before_it_ends(some_python, tmp_path):
    """visit_thread() waits for a page in the kernel, where no signal ends it."""
    recording = tmp_path / "x.pyebpf"
    with first_of_a_namespace("wall", "hang", some_python, tmp_path) as (process, server, begin):
        wait_until(lambda: is_whole(recording), PATIENCE, "it has written")
        seconds = time.monotonic() - begin
        server.kill()
        process.wait(PATIENCE)
    assert seconds < END


# Code of some files, which runs and waits there.
OF_FILES = """import sys, threading
codes = [compile("\\n" * 3 + "for i in range(200000): pass", path, "exec") for path in sys.argv[1:]]
waits = [compile("\\n" * 3 + "import time; time.sleep(600)", path, "exec") for path in sys.argv[1:]]
for code in waits:
    threading.Thread(target=exec, args=(code, {}), daemon=True).start()
print("READY", flush=True)
while True:
    for code in codes:
        exec(code, {})
"""


def test_only_the_source_that_does_not_answer_is_missing(some_python, tmp_path):
    """In pages and heatmaps of record and export, and in dump. The others are shown, and this one is named."""
    source = "loop = 1  # mark\n" * 12
    before, deaf_path, after = (tmp_path / name for name in ("before.py", "deaf.py", "later.py"))
    for path in before, deaf_path, after:
        path.write_text(source)
    recording = tmp_path / "x.pyebpf"
    with Deaf(tmp_path, source.encode()) as deaf, Target(*some_python.command, "-c", OF_FILES, before, deaf_path, after) as target:
        done = run("record", "-p", target.pid, "-d", "500ms", "-F", 499, "-o", recording)
        assert done.returncode == 0 and str(deaf_path) not in done.stderr, done.stderr
        deaf_path.unlink()
        deaf_path.symlink_to(deaf.path)
        deaf.stop()
        try:
            outcomes = {
                "record": run("record", "-p", target.pid, "-d", "1s", "-F", 499, "-o", tmp_path / "record.html"),
                "report": run("report", recording, "-o", tmp_path / "report.html"),
                "heatmap": run("export", recording, "-o", tmp_path / "x.heatmap"),
                "dump": run("dump", "-p", target.pid),
            }
        finally:
            deaf.server.kill()
        for name, done in outcomes.items():
            assert done.returncode == 0, (name, done.stderr)
            assert f"source {deaf_path} is not shown: its file system does not answer" in done.stderr, (name, done.stderr)
        for name in "record", "report":
            assert set(Page(tmp_path / (name + ".html")).source) == {str(before), str(after)}, name
        pages = [path.read_text() for path in (tmp_path / "x.heatmap").iterdir()]
        assert sum("loop = 1" in text for text in pages) == 2
        assert outcomes["dump"].stdout.count("# mark") >= 2


@pytest.mark.parametrize("what", ["items", "type"])
def test_dump_says_what_does_not_answer_and_goes_on(what, some_python, tmp_path):
    with Deaf(tmp_path) as deaf, Workload(some_python, "waits.py", "crowd", 2) as other, \
            target_of(some_python, deaf.path, what, "idle") as target:
        deaf.stop()
        try:
            done = run("dump", "--locals=full", "-p", f"{target.pid},{other.pid}")
        finally:
            deaf.server.kill()
        assert done.returncode == 3, done.stderr
        assert f"pid {target.pid}: reading its memory or files timed out" in done.stderr
        assert f"pid {other.pid}, CPython" in done.stdout


def test_waits_of_others_are_recorded(some_python, tmp_path, staged):
    """Two threads wait with memory that does not answer: their processes are named, and processes that begin then have
    their waits."""
    script, output = staged(some_python, "only_waits.py"), tmp_path / "x.pyebpf"
    folders = [tmp_path / "0", tmp_path / "1"]
    for folder in folders:
        folder.mkdir()
    with Deaf(folders[0]) as one, Deaf(folders[1]) as two, \
            target_of(some_python, one.path, "name", "idle") as first, \
            target_of(some_python, two.path, "lines", "idle") as second:
        one.stop()
        two.stop()
        try:
            with Recorder(output, "-a", "--mode", "wall") as recorder:
                recorder.wait_attached()
                pids = [int(subprocess.run([*some_python.command, script, "0.3"], stdout=subprocess.PIPE,
                                           check=True).stdout) for _ in range(12)]
                recorder.finish()
                text = recorder.text()
        finally:
            one.server.kill()
            two.server.kill()
        for target in first, second:
            assert f"pid {target.pid}: its memory does not answer" in text, text
        assert "memory that does not answer" in text.replace("its memory", ""), text
        assert_whole(output, pids, 300, text)
