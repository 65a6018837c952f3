# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What attacks and trials share: interpreters, programs that are started and ended, figures of /proc."""
import contextlib
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
for folder in ("integration", "tools"):
    sys.path.insert(0, str(TESTS / folder))

import pythons  # noqa: E402
import spinning  # noqa: E402

ATTACKER_NICE = 5  # the honest process has the larger part of a CPU
TARGETS = HERE / "targets"
HONEST_LEAF = spinning.LEAF[0]


class NotHere(Exception):
    """This machine cannot do this attack; the text says why."""


class Scene:
    """What one trial happens in: a folder, random numbers, an interpreter; all that is started ends with it."""

    def __init__(self, folder, chance, python, pythons_here, library):
        self.folder, self.chance, self.python, self.library = folder, chance, python, library
        self.pythons = pythons_here
        self.stack = contextlib.ExitStack()
        self.pids = []  # of the attacked
        self.output_folder = folder

    def start(self, *command, **options):
        """A program that says READY and its PID: Spinning."""
        return self.stack.enter_context(spinning.Spinning(*command, **options))

    def attack_with(self, script, *arguments, **options):
        """A hostile target of targets/, or of the workloads, that is recorded."""
        path = script if os.path.isabs(str(script)) else TARGETS / script
        target = self.start(*self.python.command, path, *arguments, **options,
                            preexec_fn=lambda: os.nice(ATTACKER_NICE))
        self.pids.append(target.process.pid)  # not of a child that it has just made
        return target

    def honest(self):
        """A process that nobody attacks."""
        return self.start("/usr/bin/python3", spinning.SCRIPT, 600)

    def choose_python(self, is_fit, what):
        """The trial's interpreter, or another one if that is not fit."""
        fit = [p for p in self.pythons if is_fit(p)]
        if not fit:
            raise NotHere("no interpreter here that is " + what)
        if self.python not in fit:
            self.python = self.chance.choice(fit)
        return self.python

    def mount(self, kind, options):
        folder = self.folder / "mounted"
        folder.mkdir()
        done = subprocess.run(["mount", "-t", kind, "-o", options, "none", folder], check=False,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise NotHere(f"no {kind} may be mounted: {done.stderr.strip()}")
        self.stack.callback(subprocess.run, ["umount", "-l", folder], check=True)
        return folder

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()


def interpreters(prefixes):
    """One of each minor version and linkage, or all whose names begin so."""
    found = [p for p in pythons.find_all() if p.minor in pythons.MINORS and p.via != "chroot"
             and not p.free_threaded and not p.debug]
    if prefixes:
        return [p for p in found if p.name.startswith(tuple(prefixes))]
    return list({(p.minor, p.linkage): p for p in found}.values())


def status_kib(pid, key):
    """VmHWM and the like; 0: it has ended."""
    with contextlib.suppress(OSError, ProcessLookupError), open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    return 0


def waited_for_cpu(pid):
    """Seconds that the process's first thread could run and had no CPU."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[1]) / 1e9
    return 0.0
