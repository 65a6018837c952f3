# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs to profile."""
import contextlib
import json
import os
import subprocess
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = [os.path.join(HERE, "targets"), os.path.join(os.path.dirname(HERE), "workloads")]


def go_first():
    """In the child: programs outside the bench do not take its CPU, which would count as pauses and
    as samples in which nothing changed. With one CPU it would starve the profiler."""
    if os.cpu_count() > 1:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


class Target:
    """One program: READY on start, then go(), truth(). Killed at the end of the `with`.

    Its source is handed over on the command line: an interpreter in a chroot need not see it."""

    def __init__(self, python, name, *arguments, pass_fds=()):
        path = next(path for path in (os.path.join(folder, name) for folder in FOLDERS)
                    if os.path.exists(path))
        with open(path) as f:
            source = f.read()
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8")
        for key in ("PYTHONHOME", "PYTHONPATH"):
            env.pop(key, None)
        self.process = subprocess.Popen(
            python.command + ["-c", source, *map(str, arguments)], env=env,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=go_first,
            pass_fds=pass_fds)
        self.pid = self.process.pid
        self.watchdog = threading.Timer(120, self.process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()
        self.ready = self.line().split()[1:]

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("%s ended early: status %s" % (
                " ".join(self.process.args[:-1])[:80], self.process.wait()))
        return line

    def go(self):
        self.process.stdin.write("GO\n")
        self.process.stdin.flush()

    def truth(self):
        return json.loads(self.line())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.watchdog.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
