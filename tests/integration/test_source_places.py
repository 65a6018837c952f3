# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sources on overlayfs, on btrfs and on bind mounts of a container: shown to who could read them, and to nobody
else. stat() tells device numbers there that /proc/PID/maps does not have."""
import contextlib
import os
import pathlib
import shutil
import sys
import tempfile

import pytest
from filesystems import btrfs, overlay
from harness import run
from htmlpage import Page
from test_sources import THIEF, Place, Target, shown_everywhere

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.few_pythons]


@contextlib.contextmanager
def folder_in(root):
    """A new directory that everybody may enter: (as we see it, as the interpreter does)."""
    root = root or ""
    made = tempfile.mkdtemp(prefix="pyebpf-test-", dir=root + "/tmp")
    os.chmod(made, 0o711)
    try:
        yield made, made[len(root):]
    finally:
        shutil.rmtree(made)


@contextlib.contextmanager
def on_overlay(root, folder):
    """Files of the lower layer of an overlay have another device number than its directories."""
    with folder_in(root) as (here, seen):
        place = Place(root, parent=seen)
        with overlay(here, folder, at=here):
            assert os.stat(place.here).st_dev != os.stat(place.here / "public/mine.py").st_dev
            yield place


@contextlib.contextmanager
def on_overlay_copied_up(root, folder):
    with on_overlay(root, folder) as place:
        for path in (*place.here.rglob("*.py"), place.here / "private"):
            path.chmod(path.stat().st_mode)
        assert os.listdir(folder / "upper")
        yield place


@contextlib.contextmanager
def on_btrfs(root, folder):
    with folder_in(root) as (here, seen), btrfs(folder / "image", here) as sub:
        assert os.stat(here).st_dev != os.stat(sub).st_dev
        yield Place(root, parent=seen + "/sub")


@contextlib.contextmanager
def on_overlay_over_btrfs(root, folder):
    (folder / "layers").mkdir()
    with on_btrfs(root, folder) as place, overlay(place.here, folder / "layers", at=place.here):
        yield place


PLACES = [on_overlay, on_overlay_copied_up, on_btrfs, on_overlay_over_btrfs]


@pytest.mark.spread("make", "python")
@pytest.mark.parametrize("make", PLACES)
def test_on_a_file_system(make, python, tmp_path):
    """Checks both files of one place: a file that the target may read is shown, one that it may not is not."""
    for name in ("mounts", "public", "private"):
        (tmp_path / name).mkdir()
    with make(python.root, tmp_path / "mounts") as place:
        with place.thief(python, "public/mine.py") as target:
            shown = shown_everywhere(target.pid, tmp_path / "public", *place.source_root())
        with place.thief(python, "private/settings.py") as target:
            hidden = shown_everywhere(target.pid, tmp_path / "private", *place.source_root())
    shown.pop("dump in JSON")  # it has no source text
    if place.root:
        shown.pop("record's page")  # it is not told where the root is
        for name in ("report's page", "comparison", "heatmap"):
            hidden.pop(name)  # a root is taken at its word
    assert not [name for name, text in shown.items() if "mine = 1" not in text]
    assert not [name for name, text in hidden.items() if "xyzzy" in text]


# Runs argv[5:] with a root of its own, an overlay as containers have it, with a directory of the host bound into it.
CONTAINER = """import ctypes, os, subprocess, sys
lower, parts, bound, at = sys.argv[1:5]
libc = ctypes.CDLL(None, use_errno=True)
def run(*words):
    subprocess.run(words, check=True)
def must(result):
    if result:
        raise OSError(ctypes.get_errno(), "pivot_root")
run("mount", "-t", "tmpfs", "tmpfs", parts)
upper, work, merged = (parts + "/" + name for name in ("upper", "work", "merged"))
for name in (upper, work, merged):
    os.mkdir(name)
run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", merged)
for name in (merged + at, merged + "/proc"):
    os.makedirs(name, exist_ok=True)
run("mount", "--bind", bound, merged + at)
run("mount", "-t", "proc", "proc", merged + "/proc")
os.chdir(merged)
must(libc.syscall({"x86_64": 155, "aarch64": 41}[os.uname().machine], b".", b"."))
must(libc.umount2(b".", 2))  # the host's root, which lies above the new one
os.chdir("/")
os.execvp(sys.argv[5], sys.argv[5:])
"""


class Container:
    """The command that runs a program in it. Files are bound to where the host has others of the same names."""

    def __init__(self, python, folder):
        self.python = python
        self.source_root = folder / "root"
        self.bound = self.source_root / "app"
        (folder / "parts").mkdir(mode=0o700)
        self.source_root.mkdir(mode=0o700)
        self.bound.mkdir()
        (self.bound / "public").mkdir()
        (self.bound / "private").mkdir(mode=0o700)
        for path, text in (("public/theirs.py", "theirs = 2\n"), ("private/theirs.py", "password = 'xyzzy'\n")):
            (self.bound / path).write_text(text * 12)
        (self.bound / "public/thief.py").write_text(THIEF)
        (self.bound / "public").chmod(0o755)
        self.parts = folder / "parts"

    def thief(self, at, name):
        inside = self.python.command[2:] if self.python.root else self.python.command
        return Target("unshare", "-m", sys.executable, "-c", CONTAINER, self.python.root or "/", self.parts,
                      self.bound, at, *inside, f"{at}/public/thief.py", f"{at}/{name}", 12)


@pytest.fixture
def host_folder():
    """The container has other files than the host at the same paths."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="pyebpf-test-", dir="/tmp"))
    path.chmod(0o711)
    for name in ("public", "private"):
        (path / name).mkdir()
        (path / name / "theirs.py").write_text("hosts = 3\n" * 12)
    yield path
    shutil.rmtree(path)


def test_a_bind_mount_of_a_container(python, host_folder, tmp_path):
    """The target's own root decides who may read, not where the host keeps the directory."""
    container = Container(python, tmp_path)
    shown = {}
    for name in ("public", "private"):
        (tmp_path / name).mkdir()
        with container.thief(str(host_folder), name + "/theirs.py") as target:
            shown[name] = shown_everywhere(target.pid, tmp_path / name)
    texts = {(name, what): text for name in shown for what, text in shown[name].items()}
    assert not [where for where, text in texts.items() if "hosts = 3" in text or "xyzzy" in text]
    assert {where for where, text in texts.items() if "theirs = 2" in text} == {("public", "dump")}
    below = tmp_path / "below"
    os.makedirs(str(below) + str(host_folder))
    shutil.copytree(container.bound, str(below) + str(host_folder), dirs_exist_ok=True)
    done = run("report", "-o", tmp_path / "p.html", "--source-root", below, tmp_path / "public/x.pyebpf")
    assert done.returncode == 0, done.stderr
    assert "theirs = 2" in str(Page(tmp_path / "p.html").source)
