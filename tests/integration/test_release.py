# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `make release` leaves: used by other Pythons' pip and in other systems, and made twice."""
import contextlib
import glob
import json
import os
import shutil
import subprocess

import pytest
from harness import REPOSITORY

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("release")]

# Debian's releases by the glibc they have: 2.31, 2.36, 2.41, the newest.
SUITES = ("bullseye", "bookworm", "trixie", "sid")
WORKLOAD = "def hot():\n    n = 0\n    while n < 40000000: n += 1\nhot()\n"


def call(*command, **options):
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, **options)
    assert done.returncode == 0, (command, done.stdout[-3000:])
    return done.stdout


@pytest.fixture(scope="session")
def dist():
    call("make", "-s", "release", cwd=REPOSITORY)
    return os.path.join(REPOSITORY, "dist")


def one(folder, pattern):
    (path,) = glob.glob(os.path.join(folder, pattern))
    return path


def check_use(program, python, folder, *prefix):
    """Records that Python, and reads what it made, with the program at hand in prefix's system."""
    call(*prefix, program, "record", "-o", folder + "/it.pyebpf", "--", *python, "-c", WORKLOAD)
    rows = call(*prefix, program, "report", folder + "/it.pyebpf")
    assert "hot" in rows, rows


def pip_into(python, others, folder):
    """(pip's command, the folder its programs come to be in): of a venv, or for Debian's own Pythons, which
    have no pip, PyPI's newest."""
    if python.via == "direct" and python.source != "system":
        call(*python.command, "-m", "venv", folder)
        return [folder / "bin/python", "-m", "pip", "--disable-pip-version-check"], []
    installers = [other for other in others if other.source == "pyenv"]
    if not installers:
        pytest.skip("no Python here brings pip along")
    call(*installers[-1].command, "-m", "pip", "download", "-q", "--no-deps", "-d", folder / "pip", "pip")
    return ([*python.command, one(folder / "pip", "pip-*.whl") + "/pip", "--disable-pip-version-check"],
            ["--target", folder])


def test_wheel(dist, python, request, tmp_path):
    if python.via == "chroot" or python.minor < 8:
        pytest.skip("by its loader alone" if python.minor >= 8 else "pip is too old for the wheel's tags")
    folder = tmp_path / "installed"
    pip, where = pip_into(python, request.config.all_pythons, folder)
    call(*pip, "install", "--no-index", *where, one(dist, "*.whl"))
    check_use(folder / "bin/pyebpf", [folder / "bin/python"] if not where else python.command, str(tmp_path))
    if not where:
        call(*pip, "uninstall", "-y", "pyebpf")
        assert not os.path.exists(folder / "bin/pyebpf")


def test_nothing_but_itself(dist, tmp_path):
    """A root that holds the program alone: no shell, no library, no /etc."""
    shutil.copy(one(dist, "pyebpf-*-linux-x86_64"), tmp_path / "pyebpf")
    for name in ("proc", "sys", "tmp"):
        (tmp_path / name).mkdir()
    command = ["/usr/bin/python3", "-c", "def hot():\n    while True: pass\nhot()"]
    with mounted(tmp_path), subprocess.Popen(command) as target:
        try:
            inside = "chroot", tmp_path, "/pyebpf"
            assert "can record here" in call(*inside, "doctor")
            call(*inside, "record", "-p", target.pid, "-d", "1s", "-o", "/tmp/it.pyebpf")
            assert "hot" in call(*inside, "dump", "-p", target.pid)
        finally:
            target.kill()
        rows = call(*inside, "report", "/tmp/it.pyebpf")
    assert "hot" in rows, rows


@contextlib.contextmanager
def mounted(root):
    """What the kernel shows of itself."""
    mounts = [("proc", "proc"), ("sysfs", "sys"), ("tracefs", "sys/kernel/tracing")]
    try:
        for kind, at in mounts:
            call("mount", "-t", kind, kind, root / at)
        yield
    finally:
        for _, at in reversed(mounts):
            subprocess.run(["umount", "-l", root / at], check=False)


@pytest.mark.parametrize("suite", SUITES)
def test_other_systems(dist, suite, tmp_path):
    root = tmp_path / suite
    call("debootstrap", "--variant=minbase", "--include=python3-pip", suite, root)
    shutil.copy(one(dist, "pyebpf-*-linux-x86_64"), root / "pyebpf")
    with mounted(root):
        check_use("/pyebpf", ["/usr/bin/python3"], "/tmp", "chroot", root)
        use_wheel(one(dist, "*.whl"), root)


def use_wheel(wheel, root):
    """By the system's own pip."""
    shutil.copy(wheel, root / "tmp")
    name = "/tmp/" + os.path.basename(wheel)
    call("chroot", root, "pip3", "install", "--no-index", "--target", "/opt/wheel", name)
    check_use("/opt/wheel/bin/pyebpf", ["/usr/bin/python3"], "/tmp", "chroot", root)


def test_deb_and_rpm(dist, tmp_path):
    """Packages ask for no library, and have the same files but for where each system looks."""
    assert "Depends" not in call("dpkg-deb", "-f", one(dist, "*.deb"))
    needed = call("rpm", "-qp", "--requires", one(dist, "*.rpm")).split("\n")
    assert not [row for row in needed if row and not row.startswith("rpmlib(")]
    files = set(call("rpm", "-qpl", one(dist, "*.rpm")).split())
    assert {"/usr/bin/pyebpf", "/usr/share/man/man1/pyebpf-record.1",
            "/usr/share/zsh/site-functions/_pyebpf"} <= files
    call("dpkg-deb", "-x", one(dist, "*.deb"), tmp_path)
    assert call(tmp_path / "usr/bin/pyebpf", "--version").startswith("pyebpf ")


def test_what_is_in_it(dist):
    with open(one(dist, "*.cdx.json"), encoding="utf-8") as f:
        bill = json.load(f)
    names = {component["name"] for component in bill["components"]}
    assert {"glibc", "libbpf", "elfutils", "zlib", "libzstd", "cjson", "curl", "openssl"} <= names
    (digest,) = bill["metadata"]["component"]["hashes"]
    program = os.path.basename(one(dist, "pyebpf-*-linux-x86_64"))
    sums = dict(reversed(row.split()) for row in open(os.path.join(dist, "SHA256SUMS")))
    assert sums[program] == digest["content"]
    call("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=dist)


def test_two_builds_are_the_same_bytes(dist, tmp_path):
    call("git", "clone", "-q", REPOSITORY, tmp_path / "elsewhere")
    call("make", "-s", "release", cwd=tmp_path / "elsewhere")
    with open(os.path.join(dist, "SHA256SUMS")) as here, \
            open(tmp_path / "elsewhere/dist/SHA256SUMS") as there:
        assert here.read() == there.read()
