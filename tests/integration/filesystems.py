# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""File systems on which stat() tells other numbers of a file than /proc/PID/maps, mounted for a test."""
import contextlib
import os
import shutil
import subprocess

from spinning import say_skipped


@contextlib.contextmanager
def mounted(at, *words):
    """`mount WORDS AT`, until the end of the block. What cannot be mounted here skips the test."""
    done = subprocess.run(["mount", *map(str, words), str(at)], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        say_skipped("no %s here: %s" % (words[1], done.stderr.strip()))
    try:
        yield str(at)
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


@contextlib.contextmanager
def overlay(lower, folder, at=None):
    """A writable layer above `lower`, mounted at `at` or below `folder`, which a tmpfs covers for its parts."""
    with mounted(folder, "-t", "tmpfs", "tmpfs"):
        upper, work, merged = (os.path.join(str(folder), name) for name in ("upper", "work", "merged"))
        for name in (upper, work, merged):
            os.mkdir(name)
        layers = "lowerdir=%s,upperdir=%s,workdir=%s" % (lower, upper, work)
        with mounted(at or merged, "-t", "overlay", "overlay", "-o", layers) as place:
            yield place


@contextlib.contextmanager
def btrfs(image, at):
    """A subvolume of a new btrfs, mounted at `at`: a subvolume has a device number of its own."""
    program = shutil.which("mkfs.btrfs", path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not program:
        say_skipped("no btrfs here: no mkfs.btrfs")
    with open(image, "wb") as f:
        f.truncate(128 << 20)
    subprocess.run([program, "-q", str(image)], check=True, stdout=subprocess.DEVNULL)
    with mounted(at, "-t", "btrfs", "-o", "loop", image):
        sub = os.path.join(str(at), "sub")
        subprocess.run(["btrfs", "-q", "subvolume", "create", sub], check=True)
        yield sub
