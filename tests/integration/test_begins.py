# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that begin while waits are recorded, in each way to be recorded: each wait is in samples with its function, as
long as it is known to be, or is lost by name. With --tier=all 300 processes and 200 short programs an interpreter and way;
PYEBPF_BEGINS: other counts, as begins.py has them."""
import collections
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading

import compositions
import harness
import pytest
from containers import PODMAN, podman
from harness import PATIENCE, Recorder, run
from spinning import say_skipped
from test_places import cgroup_v2  # noqa: F401; a fixture

pytestmark = pytest.mark.usefixtures("pyebpf")
# What begins.py begins: function, count, at once, seconds.
FEW = "execs:6:6:0.3 execs_briefly:6:1:0.03 execs_isolated:6:6:0.1 forks:3:3:0.1 spawns:3:3:0.1 waits_shortly:4:1:0.06"
MANY = "execs:30:30:4 execs_briefly:100:1:0.03 execs_isolated:100:20:0.1 forks:35:35:0.1 spawns:35:8:0.1 " \
    "waits_shortly:200:4:0.06"
SHARE = 0.9  # of the waits: those that are whole. A kernel may not tell of one switch of some hundred.
WHOLE = 0.9  # of its length is in a whole one; a thread that is preempted before it sleeps, sleeps for less

# Waits in one function: how many there were, and how many are whole.
Waits = collections.namedtuple("Waits", "count whole")


def said_waits(text):
    """{function: [(PID, ms)]}."""
    said = collections.defaultdict(list)
    for words in map(str.split, text.splitlines()):
        if len(words) == 3 and words[0].isdigit():
            said[words[1]].append((int(words[0]), int(words[2]) / 1e6))
    return said


def samples_of(recording, *options):
    done = run("export", "-f", "jsonl", "-o", "-", *options, recording)
    assert done.returncode == 0, done.stderr
    return map(json.loads, done.stdout.splitlines())


def recorded_waits(recording, names):
    """({(PID, function): ms}, {PID: ms of which no sample was taken})."""
    waited, unsampled = collections.Counter(), collections.Counter()
    for sample in samples_of(recording, "--kind", "off-cpu"):
        functions = {frame[0] for frame in sample["stack"]}
        for name in functions & names:
            waited[sample["pid"], name] += sample["value"] / 1e6
        if "<not sampled>" in functions:
            unsampled[sample["pid"]] += sample["value"] / 1e6
    return waited, unsampled


def lost_ms(recording):
    lost = json.loads(run("export", "-f", "json", recording).stdout)["lost"]
    return sum(ns for reason, ns in lost.items() if reason.startswith("switch_")) / 1e6


class Account:
    """Compares what processes said with what was recorded of them."""

    def __init__(self, said, recording, pids_are_said):
        self.said, self.recording = said, recording
        self.waited, self.unsampled = recorded_waits(recording, set(said))
        self.lost_ms = lost_ms(recording)
        if not pids_are_said:  # they are those of a PID namespace
            self.adopt_pids()
        self.waits = {name: Waits(len(lines), sum(not self.short_of(name, line) for line in lines))
                      for name, lines in self.said.items()}
        self.count, self.whole = map(sum, zip(*self.waits.values()))
        short = collections.Counter()
        for name, lines in self.said.items():
            for line in lines:
                short[line[0]] += self.short_of(name, line)
        self.unsampled_ms = sum(min(ms, self.unsampled[pid]) for pid, ms in short.items())
        # Of a process that was found late, or not at all: it must be among what was lost.
        self.missing_ms = sum(short.values()) - self.unsampled_ms

    def adopt_pids(self):
        """Each process has the PID of one that was recorded in the same functions."""
        adopted = {}
        for name, lines in self.said.items():
            found = [pid for pid, of in self.waited if of == name and pid not in adopted.values()]
            new = [pid for pid, _ in lines if pid not in adopted]
            adopted.update(zip(new, found))
        self.said = {name: [(adopted.get(pid, -pid), ms) for pid, ms in lines] for name, lines in self.said.items()}

    def short_of(self, name, line):
        """How much is missing of a wait that is not whole, in ms."""
        pid, ms = line
        got = self.waited[pid, name]
        return ms - got if got < WHOLE * ms else 0

    def found_instead(self):
        """For a person: {PID: {what was recorded of it: ms}}, where a wait is not whole."""
        short = {line[0] for name, lines in self.said.items() for line in lines if self.short_of(name, line)}
        found = {pid: collections.Counter() for pid in short}
        for sample in samples_of(self.recording):
            if sample["pid"] in found:
                what = " ".join([sample["kind"], *(frame[0] for frame in sample["stack"])])
                found[sample["pid"]][what] += round(sample["value"] / 1e6, 1)
        return found

    def facts(self):
        """For a person."""
        facts = {name: "%d of %d" % (waits.whole, waits.count) for name, waits in self.waits.items()}
        for what in "unsampled_ms", "missing_ms", "lost_ms":
            facts[what] = round(getattr(self, what))
        return json.dumps(facts)


class Launcher:
    """begins.py in the background, which begins nothing before go(). prefix: the words before its command."""

    def __init__(self, command, environment, prefix=()):
        self.process = subprocess.Popen([*prefix, *command], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.timer = threading.Timer(10 * PATIENCE, self.process.kill)
        self.timer.start()
        assert self.process.stdout.readline() == b"READY\n", command

    def said(self):
        with self.process:
            text = self.process.communicate(b"GO\n")[0].decode()
        self.timer.cancel()
        assert self.process.returncode == 0, text
        return text


class Scene:
    def __init__(self, python, folder, staged, cgroups, words):
        self.output = folder / "x.pyebpf"
        self.python, self.cgroups = python, cgroups
        self.script = staged(python, "begins.py")
        if python.via == "loader":  # multiprocessing would spawn it without the loader
            words = [word for word in words if not word.startswith("spawns")]
        self.command = [*python.command, self.script, *words]
        # Within a root of its own the interpreter is the command's last word.
        own = python.command[-1:] if python.root else python.command
        self.environment = dict(os.environ, BEGINS_COMMAND=json.dumps(own), PYTHONDONTWRITEBYTECODE="1")
        self.options = ["--mode", "wall"]

    def started(self):
        done = run("record", "-o", self.output, *self.options, "--", *self.command, env=self.environment,
                   timeout=10 * PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    def beside(self, launcher, *targets):
        with Recorder(self.output, *targets, *self.options) as recorder:
            recorder.wait_attached()
            said = launcher.said()
            if recorder.process.poll() is None:
                recorder.finish()
            return said, recorder.text()

    def attached(self):
        launcher = Launcher(self.command, self.environment)
        return self.beside(launcher, "-p", launcher.process.pid)

    def all(self):
        return self.beside(Launcher(self.command, self.environment), "-a")

    def in_cgroup(self):
        with compositions.cgroup(self.cgroups, "begins") as folder:
            launcher = Launcher(self.command, self.environment, compositions.enter(folder))
            return self.beside(launcher, "--cgroup", folder)

    def in_container(self):
        """A container with this system's files, or with those of the interpreter's root."""
        with contained(self.python, self.script) as (words, ident):
            inside = [self.python.command[-1]] if self.python.root else self.python.command
            launcher = Launcher([*words, *inside, *self.command[len(self.python.command):]], self.environment)
            return self.beside(launcher, "--container", ident())


@contextlib.contextmanager
def contained(python, script):
    """(the words that run a command in a container, a function of its ID)."""
    if not shutil.which("podman") or not shutil.which("runc"):
        say_skipped("no podman and runc here (apt-get install podman runc)")
    folder = tempfile.mkdtemp(prefix="pyebpf-test-")
    root, binds = python.root, []
    if not root:
        root = os.path.join(folder, "root")
        for name in ("usr", "proc", "sys", "dev", "tmp", "etc", "run"):
            os.makedirs(os.path.join(root, name))
        for name in ("bin", "lib", "lib64", "sbin"):
            os.symlink("usr/" + name, os.path.join(root, name))
        for path in {"/usr", os.path.dirname(script), os.path.expanduser("~/.pyenv"), os.path.expanduser("~/.cache")}:
            binds += ["-v", "%s:%s:ro" % (path, path)]
    ident_file = os.path.join(folder, "id")

    def ident():
        with open(ident_file) as f:
            return f.read()
    try:
        yield [*PODMAN, "-i", "--env", "BEGINS_COMMAND", "--cidfile", ident_file, *binds, "--rootfs", root + ":O"], ident
    finally:
        if os.path.exists(ident_file):
            podman("rm", "-f", "-t", "0", ident())
        shutil.rmtree(folder)


WAYS = {"started": Scene.started, "attached": Scene.attached, "all": Scene.all, "cgroup": Scene.in_cgroup,
        "container": Scene.in_container}


@pytest.mark.few_pythons(4)
@pytest.mark.spread("python", "way")
@pytest.mark.parametrize("way", WAYS)
def test_waits_of_processes_that_begin(python, way, tmp_path, staged, cgroup_v2, is_full, record_property):  # noqa: F811
    words = os.environ.get("PYEBPF_BEGINS") or (MANY if is_full else FEW)
    scene = Scene(python, tmp_path, staged, cgroup_v2, words.split())
    said, summary = WAYS[way](scene)
    account = Account(said_waits(said), scene.output, way != "container")
    record_property("begins", account.facts())
    print(python.name, way, account.facts())
    assert account.missing_ms <= account.lost_ms, (account.facts(), account.found_instead(), summary)
    if way != "all":  # beside many threads of others only a part of the short waits is sampled
        assert account.whole >= SHARE * account.count, (account.facts(), account.found_instead(), summary)
