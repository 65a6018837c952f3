# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `make release` leaves: used by other Pythons' pip and in other systems, and made twice."""
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


def test_wheel(dist, python, tmp_path):
    if python.via != "direct" or python.minor < 8:
        pytest.skip("a Python without pip")
    call(*python.command, "-m", "venv", tmp_path / "venv")
    pip = [tmp_path / "venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
    call(*pip, "install", "--no-index", one(dist, "*.whl"))
    check_use(tmp_path / "venv/bin/pyebpf", [tmp_path / "venv/bin/python"], str(tmp_path))
    call(*pip, "uninstall", "-y", "pyebpf")
    assert not os.path.exists(tmp_path / "venv/bin/pyebpf")


@pytest.mark.parametrize("suite", SUITES)
def test_other_systems(dist, suite, tmp_path):
    root = tmp_path / suite
    call("debootstrap", "--variant=minbase", "--include=python3-minimal", suite, root)
    shutil.copy(one(dist, "pyebpf-*-linux-x86_64"), root / "pyebpf")
    mounts = [("proc", "proc"), ("sysfs", "sys"), ("tracefs", "sys/kernel/tracing")]
    try:
        for kind, at in mounts:
            call("mount", "-t", kind, kind, root / at)
        check_use("/pyebpf", ["/usr/bin/python3"], "/tmp", "chroot", root)
    finally:
        for _, at in reversed(mounts):
            subprocess.run(["umount", "-l", root / at], check=False)


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
