# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Containers by podman and runc, whose limits are those that a small machine may set."""
import contextlib
import shutil
import subprocess

from harness import wait_until
from spinning import SCRIPT, say_skipped

PODMAN = ("podman", "--runtime", "runc", "run", "--rm", "--ulimit", "nofile=1024:1024",
          "--ulimit", "nproc=1024:1024", "--network", "none")


@contextlib.contextmanager
def container(python, *more):
    """A podman container over the interpreter's root, in which spin.py runs as /opt/python."""
    if not shutil.which("podman") or not shutil.which("runc"):
        say_skipped("no podman and runc here (apt-get install podman runc)")
    done = subprocess.run(
        [*PODMAN, "-d", "-v", "%s/usr/bin/python3.%d:/opt/python:ro" % (python.root, python.minor),
         "-v", SCRIPT + ":/opt/spin.py:ro", *more, "--rootfs", python.root + ":O",
         "/opt/python", "/opt/spin.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        timeout=60)
    if done.returncode:
        say_skipped("podman starts no container here: " + done.stderr.strip()[-300:])
    ident = done.stdout.strip()
    try:
        wait_until(lambda: "READY" in podman("logs", ident), 20, "the container's program starts")
        yield ident, int(podman("inspect", "-f", "{{.State.Pid}}", ident))
    finally:
        podman("rm", "-f", "-t", "0", ident)


def podman(*arguments):
    return subprocess.run(["podman", "--runtime", "runc", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60).stdout
