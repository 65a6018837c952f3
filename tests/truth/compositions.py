# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compositions of mode, target, life and interpreter: which there are, how they are drawn, and how one runs."""
import collections
import contextlib
import json
import os
import random
import secrets
import subprocess
import tempfile
import threading

import harness
import packages
from test_places import members

HZ = 997
HERE = os.path.dirname(os.path.abspath(__file__))
CALLED = "syscalls:sys_enter_getppid"

# What a mode shows of a measured function: kinds of samples, and the amount that must be there, of what the
# program said of one call. An amount is seconds, bytes or a number of events. spins: functions whose CPU time is of
# weight; others only show that they are not in the recording.
Mode = collections.namedtuple("Mode", "options kinds unit amount act least_minor spins")
ALL = ("computes", "computes_longer", "sums", "handles")


def if_said(fact, amount):
    return lambda said: said[amount] if said.get(fact) else 0


def waited(said):
    return said["wall"] - said["cpu"]


MODES = {
    "cpu": Mode(["--mode", "cpu"], ["cpu"], "ns", lambda said: said["cpu"], "all", 6, ALL),
    "wall": Mode(["--mode", "wall"], ["cpu", "off-cpu"], "ns", lambda said: said["wall"], "all", 6, ALL),
    "off-cpu": Mode(["--mode", "off-cpu"], ["off-cpu"], "ns", waited, "all", 6, ALL[:1]),
    "gil": Mode(["--mode", "gil"], ["gil"], "ns", lambda said: 0 if said.get("free") else said["cpu"], "all", 6, ALL),
    "exception": Mode(["--mode", "exception"], ["exception"], "ns", if_said("handles", "cpu"), "all", 7, ["handles"]),
    "memory": Mode(["--mode", "memory"], ["memory"], "bytes", if_said("bytes", "bytes"), "all", 6, []),
    "events": Mode(["-e", CALLED], [CALLED], "count", if_said("calls", "calls"), "all", 6, []),
    "async": Mode(["--mode", "wall", "--async"], ["task"], "ns", if_said("suspended", "wall"), "tasks", 8, []),
    "labels": Mode(["--mode", "cpu", "--label", "route=contextvar:ROUTE"], ["cpu"], "ns",
                   lambda said: said["cpu"], "routes", 7, ALL),
}
LIVES = ("here", "fork", "fork_of_thread", "grandchild", "spawn", "exec", "exec_of_thread", "exec_of_child",
         "exec_of_shell", "threads", "exit", "killed", "stopped", "daemonised", "prefork", "greenlets", "uvloop")
# Lives that need a package of PyPI (tools/packages.py), and the minors it has binaries for.
PACKAGES = {"greenlets": range(8, 14), "uvloop": range(8, 14)}


class Composition(collections.namedtuple("Composition", "mode target life begins python")):
    """begins: the program does, "before" the recorder or "later"."""

    def __str__(self):
        return "-".join([self.mode, self.target, self.life, self.begins, self.python.name])

    def facts(self):
        return {**self._asdict(), "python": self.python.name}

    def is_possible(self):
        minor = self.python.minor
        if minor < MODES[self.mode].least_minor:
            return False
        if self.life in PACKAGES:
            if self.python.via != "direct" or minor not in PACKAGES[self.life]:
                return False
        if self.life == "daemonised" and self.target == "command":
            return False  # the recording ends with the command
        if self.life in ("daemonised", "spawn", "prefork", "exec_of_child", "grandchild") and self.target == "no-children":
            return False  # the process itself does nothing
        if self.life == "exec_of_shell" and self.python.root:
            return False  # there is no shell
        if self.mode == "async" and self.life in ("greenlets", "uvloop"):
            return False  # a loop does not run in another
        if self.begins == "later":
            return self.target in ("command", "all", "cgroup", "container")
        return self.target != "command"


# Compositions that once were wrong, with any interpreter.
KEPT = (
    ("async", "several", "prefork", "before"),  # one early look stood for all of a life
    ("wall", "no-children", "exec", "before"),  # the times of the program before were lost
)


def kept(seed, found):
    """Each with an interpreter that the seed draws."""
    chance = random.Random(seed)
    for values in KEPT:
        possible = [c for c in (Composition(*values, python) for python in found) if c.is_possible()]
        if possible:
            yield chance.choice(possible)


def draw(count, seed, found):
    """So many compositions. Each value of each axis is met as often as every other, as far as it is possible."""
    chance = random.Random(seed)
    axes = [MODES, TARGETS, LIVES, ("before", "later"), found]
    left = [[] for _ in axes]
    drawn = []
    while len(drawn) < count:
        for attempt in range(1000):
            for axis, values in zip(axes, left):
                if not values:
                    values.extend(chance.sample(list(axis), len(axis)))
            picked = [chance.randrange(len(values)) for values in left]
            composition = Composition(*(values[i] for values, i in zip(left, picked)))
            if composition.is_possible():
                for values, i in zip(left, picked):
                    values.pop(i)
                drawn.append(composition)
                break
            if attempt % 50 == 49:  # these values go with none of the others
                for values, axis in zip(left, axes):
                    values.extend(chance.sample(list(axis), len(axis)))
    return drawn


# --- How one runs ---------------------------------------------------------------------------------

# said: lines of the program; pids: of the processes that were begun here; text: the recorder's summary.
Outcome = collections.namedtuple("Outcome", "said pids text")


class Program:
    """The program in the background. folder: the cgroup it runs in."""

    def __init__(self, command, environment, folder):
        words = [*(enter(folder) if folder else []), *command]
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.is_late = False
        self.timer = threading.Timer(harness.PATIENCE, self.give_up)
        self.timer.start()
        assert self.process.stdout.readline() == b"READY\n", command

    def give_up(self):
        self.is_late = True
        self.process.kill()

    def go(self):
        self.process.stdin.write(b"GO\n")
        self.process.stdin.flush()

    def said(self):
        """By all its processes, which are gone then."""
        with self.process:
            text = self.process.stdout.read().decode()
        self.timer.cancel()
        assert not self.is_late, "it does not end within %d s" % harness.PATIENCE
        return lines_said(text)


def lines_said(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Scene:
    """Where a composition runs: its command, and what the recorder is told but for its targets. cgroups: a folder
    in which some can be made; spin: seconds of CPU time of the program's functions that are of weight."""

    def __init__(self, composition, output, cgroups, spin):
        self.composition, self.output, self.cgroups = composition, output, cgroups
        self.python, mode = composition.python, MODES[composition.mode]
        self.folder = tempfile.mkdtemp(prefix="pyebpf-truth-")
        script = harness.stage(self.python, "program.py", self.folder, HERE)
        self.command = [*self.python.command, script, composition.life, mode.act]
        self.options = ["-F", HZ, *mode.options]
        # Within a root of its own the interpreter is the command's last word.
        own = self.python.command[-1:] if self.python.root else self.python.command
        self.environment = dict(os.environ, PROGRAM_COMMAND=json.dumps(own),
                                PROGRAM_SPIN=str(spin),
                                PROGRAM_SPINS=" ".join(mode.spins), PYTHONDONTWRITEBYTECODE="1")
        if composition.life in PACKAGES:
            self.environment["PYTHONPATH"] = packages.folder_of(self.python, composition.life)

    def run(self):
        try:
            return TARGETS[self.composition.target](self)
        finally:
            harness.unstage(self.python, self.folder)
            os.rmdir(self.folder)

    def started(self):
        done = harness.run("record", "-o", self.output, *self.options, "--", *self.command, env=self.environment)
        assert done.returncode == (128 + 9 if self.composition.life == "killed" else 0), done.stderr
        return Outcome(lines_said(done.stdout), [], done.stderr)

    def begin(self, count, folder):
        return [Program(self.command, self.environment, folder) for _ in range(count)]

    def beside(self, *targets, count=1, folder=None, by_pid=False):
        """count: of programs; folder: the cgroup they run in; by_pid: they are the targets."""
        programs = self.begin(count, folder) if self.composition.begins == "before" else []
        pids = [program.process.pid for program in programs]
        targets = [*targets, "-p", ",".join(map(str, pids))] if by_pid else targets
        with harness.Recorder(self.output, *targets, *self.options) as recorder:
            recorder.wait_attached()
            programs = programs or self.begin(count, folder)
            for program in programs:
                program.go()
            said = [line for program in programs for line in program.said()]
            status = recorder.wait() if by_pid else recorder.stop()
            assert status == 0, recorder.text()
            return Outcome(said, pids, recorder.text())

    def in_cgroup(self):
        with cgroup(self.cgroups, "truth") as folder:
            return self.beside("--cgroup", folder, folder=folder)

    def in_container(self):
        """A cgroup with the name of a container's. One process is in it before."""
        ident = secrets.token_hex(32)
        with cgroup(self.cgroups, "docker-%s.scope" % ident) as folder, \
                subprocess.Popen([*enter(folder), "sleep", "600"]) as first:
            harness.wait_until(lambda: str(first.pid) in members(folder), harness.PATIENCE, "it is in its cgroup")
            try:
                return self.beside("--container", ident[:12], folder=folder)
            finally:
                first.kill()


def enter(folder):
    """A command's first words, which has it run in the cgroup."""
    return ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', folder]


@contextlib.contextmanager
def cgroup(parent, name):
    """Its folder."""
    folder = os.path.join(parent, name)
    os.mkdir(folder)
    try:
        yield folder
    finally:
        harness.wait_until(lambda: not members(folder), harness.PATIENCE, "all have ended")
        os.rmdir(folder)


TARGETS = {
    "command": Scene.started,
    "pid": lambda scene: scene.beside(by_pid=True),
    "several": lambda scene: scene.beside(by_pid=True, count=2),
    "no-children": lambda scene: scene.beside("--no-children", by_pid=True),
    "all": lambda scene: scene.beside("-a"),
    "cgroup": Scene.in_cgroup,
    "container": Scene.in_container,
}
