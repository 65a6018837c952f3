# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Limits that are reached: of a disk, a file, descriptors, memory. One line says which, a second one what to
do."""
import contextlib
import os
import pathlib
import resource
import signal
import subprocess
import sys

import engines
import pytest
from harness import PATIENCE, PYEBPF, Recorder, draw, on_terminal, run
from test_places import mounted_cgroups, move, new_cgroup
from test_rights import own_program  # noqa: F401

pytestmark = [pytest.mark.usefixtures("pyebpf")]

WORK = "import json\nfor i in range(%d): json.loads(json.dumps({'a': [i] * 20}))\n"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("exhausted") / "x.pyebpf"
    done = run("record", "-F", 4999, "-o", path, "--", sys.executable, "-c", WORK % 12000)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size > 4096
    return path


@pytest.fixture
def full(tmp_path):
    """A file system of one page."""
    folder = tmp_path / "full"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def commands(recording):
    return {"cat": ["cat", recording, recording, "-o", "o.pyebpf"],
            "import": ["import", recording, "-o", "o.pyebpf"],
            "export": ["export", "-f", "json", recording, "-o", "o.json"],
            "heatmap": ["export", "-f", "heatmap", recording, "-o", "o.heatmap"],
            "page": ["report", recording, "-o", "o.html"]}


NAMES = ["cat", "import", "export", "heatmap", "page"]


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk(name, recording, full):
    done = run(*commands(recording)[name], cwd=full)
    first, second = done.stderr.splitlines()
    assert done.returncode == 1 and first.endswith(": No space left on device"), done.stderr
    assert second == "try: df -h, then -o FILE on a file system with more space"
    assert not list(full.iterdir())  # nothing is left of it


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_file_sizes(name, recording, tmp_path):
    """SIGXFSZ would end the program."""
    done = run(*commands(recording)[name], cwd=tmp_path,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)))
    first, second = done.stderr.splitlines()
    assert done.returncode == 1 and first.endswith(": File too large"), done.stderr
    assert second == "try: ulimit -f unlimited, then the same again"
    assert not list(tmp_path.iterdir())


def test_a_limit_of_file_sizes_while_it_records(tmp_path):
    output = tmp_path / "x.pyebpf"
    with Recorder(output, "-F", 4999, "--", sys.executable, "-c", WORK % 400000) as recorder:
        recorder.wait_attached()
        resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE, (2048, 2048))
        status, said = recorder.process.wait(30), recorder.text().splitlines()
    assert status == 1 and f"pyebpf record: write {output}: File too large" in said, said
    assert "try: ulimit -f unlimited, then the same again" in said, said
    assert not output.exists() or output.stat().st_size <= 2048


def test_a_command_has_the_signal_as_it_was(tmp_path):
    """Of the recorder that is ignored, not of what it starts."""
    done = run("record", "-q", "-o", tmp_path / "x.pyebpf", "--", "perl", "-e",
               "print defined $SIG{XFSZ} && $SIG{XFSZ} eq 'IGNORE' ? 'ignored' : 'default'")
    assert done.stdout == "default", done


def test_too_few_descriptors(tmp_path):
    done = run("record", "-o", tmp_path / "x.pyebpf", "--", "true",
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)))
    first, second = done.stderr.splitlines()
    assert done.returncode == 1 and "Too many open files" in first, done.stderr
    assert second == "try: ulimit -n 1024, then the same again"


TRY_FILES = "try: ulimit -n 1024, then the same again"
TRY_MEMORY = "try: ulimit -v unlimited, then the same again"
LIMITS = {  # what is limited, to how much, what is said then, and what to try
    "files": (resource.RLIMIT_NOFILE, range(4, 41), "open files", TRY_FILES),
    "memory": (resource.RLIMIT_AS, [n << 20 for n in (*range(20, 64, 4), *range(64, 200, 8))],
               "the address space is limited to", TRY_MEMORY),
}


TARGET = "import time\nwhile True: sum(range(10000)), time.sleep(0.002)"


def limited_commands(recording, pid, folder):
    (folder / "agent.yaml").write_text("output:\n  engine: files\n  directory: %s/out\nspool:\n  directory: %s/spool\nhttp:\n  port: %d\n" % (
        folder, folder, engines.free_port()))
    return {"record": ["record", "-p", pid, "-d", "500ms", "-F", "999", "-o", "r.pyebpf"],
            "record a page": ["record", "-p", pid, "-d", "500ms", "-F", "999", "-o", "r.html"],
            "dump": ["dump", "-p", pid],
            "top": ["top", "-p", pid],
            "agent": ["agent", "--config", "agent.yaml"],
            "report": ["report", recording],
            "page": ["report", recording, "-o", "r.html"],
            "diff": ["diff", recording, recording],
            "cat": ["cat", recording, recording, "-o", "c.pyebpf"],
            "import": ["import", recording, "-o", "i.pyebpf"],
            "export": ["export", "-f", "pprof", recording, "-o", "p.pb.gz"],
            "heatmap": ["export", "-f", "heatmap", recording, "-o", "x.heatmap"],
            "doctor": ["doctor"]}


def run_limited(command, limit, folder):
    """(status, what it said). limit() sets it. top wants a terminal; it and the agent are ended once they work."""
    with on_terminal([PYEBPF, *command], stderr=subprocess.PIPE, cwd=folder, encoding="utf-8",
                     preexec_fn=limit) as (process, _):
        if command[0] in ("top", "agent"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1.5)
            process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE)[1]
        return process.returncode, said


LIMITED = [(name, what) for name in ("record", "record a page", "dump", "top", "agent", "report", "page", "diff", "cat", "import",
                                     "export", "heatmap", "doctor") for what in LIMITS]


@pytest.mark.parametrize("name,what", LIMITED, ids=[" ".join(each) for each in LIMITED])
def test_too_few_say_so(name, what, recording, is_full, tmp_path):
    """At each limit a command does its work, or says what is too few and what to try; it does not hang or crash."""
    resource_, amounts, words, hint = LIMITS[what]
    wrong = {}
    with subprocess.Popen([sys.executable, "-c", TARGET]) as target:
        command = list(map(str, limited_commands(recording, target.pid, tmp_path)[name]))
        try:
            for amount in amounts if is_full else draw(list(amounts), 4, name + what):
                status, said = run_limited(command, lambda: resource.setrlimit(resource_, (amount, amount)), tmp_path)
                if status == 127 and "loading shared libraries" in said:
                    continue  # it has not begun
                lines = [line for line in said.splitlines() if not line.startswith("pyebpf: warning")]
                if status not in (0, 1, 3) or (status and not (words in lines[0] and hint in lines)):
                    wrong[amount] = status, said
        finally:
            target.kill()
    assert not wrong


# --- Processes ------------------------------------------------------------------------------------


@pytest.fixture
def pids_cgroup():
    """A new cgroup whose processes may be limited: its folder."""
    roots = [path for path, options in mounted_cgroups("cgroup") if "pids" in options]
    roots += [path for path, _ in mounted_cgroups("cgroup2")
              if "pids" in (pathlib.Path(path) / "cgroup.subtree_control").read_text().split()]
    if not roots:
        pytest.skip("no pids controller of cgroups here")
    yield from map(pathlib.Path, new_cgroup(roots[0]))


TRY_PIDS = "try: a higher limit: --pids-limit of docker and podman, TasksMax= of systemd"
NEEDS_PROCESSES = ("record", "record a page", "dump", "page", "heatmap", "command", "agent that sends")
SENDS = """output:
  engine: pyroscope
  url: http://127.0.0.1:9
spool:
  directory: %s/spool
kubernetes:
  source: files
http:
  port: %d
"""


@pytest.mark.parametrize("name", NEEDS_PROCESSES)
def test_a_cgroup_s_limit_of_processes(name, recording, pids_cgroup, tmp_path):
    """Whatever the limit, the command does its work, or says which limit it met, and never that memory is short."""
    ended = set()
    with subprocess.Popen([sys.executable, "-c", TARGET]) as target:
        commands = limited_commands(recording, target.pid, tmp_path)
        commands["command"] = ["record", "-o", "c.pyebpf", "--", sys.executable, "-c", WORK % 3000]
        commands["agent that sends"] = ["agent", "--config", "sends.yaml"]
        (tmp_path / "sends.yaml").write_text(SENDS % (tmp_path, engines.free_port()))
        try:
            for most in (1, 2, 3, 4, 5, 6, 7, 8, 24):
                (pids_cgroup / "pids.max").write_text(str(most))
                status, said = run_limited(list(map(str, commands[name])), lambda: move(os.getpid(), str(pids_cgroup)), tmp_path)
                lines = [line for line in said.splitlines() if not line.startswith("pyebpf: warning: 1 ")]
                ended.add(status)
                assert status in (0, 1), said
                assert "memory" not in said.replace("MiB of memory", ""), said
                if status:
                    assert f"too many processes: pids.max of {pids_cgroup} is {most}" in lines[0], said
                    assert TRY_PIDS in lines, said
        finally:
            target.kill()
    assert 0 in ended, said


USER = 61234  # has no other processes


def test_a_user_s_limit_of_processes(own_program):  # noqa: F811
    """Room for the target, for pyebpf, and for no further process."""
    def be_user():
        resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
    with subprocess.Popen([sys.executable, "-c", "while True: sum(range(1000))"], preexec_fn=be_user) as target:
        try:
            done = subprocess.run([own_program, "dump", "-p", str(target.pid)], preexec_fn=be_user, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
        finally:
            target.kill()
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "pyebpf dump: start a process: too many processes: this user may have 2 (ulimit -u)",
        "try: ulimit -u unlimited, then the same again"]
