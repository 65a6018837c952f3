# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `make release` leaves: used by other Pythons' pip and in other systems, and made twice."""
import contextlib
import glob
import json
import os
import shutil
import subprocess

import pytest
from containers import PODMAN, podman
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


def program_of(dist, architecture="x86_64"):
    return one(dist, "pyebpf-*-linux-" + architecture)


def wheel_of(dist):
    return one(dist, "*_x86_64.whl")


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
    call(*pip, "install", "--no-index", *where, wheel_of(dist))
    check_use(folder / "bin/pyebpf", [folder / "bin/python"] if not where else python.command, str(tmp_path))
    if not where:
        call(*pip, "uninstall", "-y", "pyebpf")
        assert not os.path.exists(folder / "bin/pyebpf")


def test_nothing_but_itself(dist, tmp_path):
    """A root that holds the program alone: no shell, no library, no /etc."""
    shutil.copy(program_of(dist), tmp_path / "pyebpf")
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
    shutil.copy(program_of(dist), root / "pyebpf")
    with mounted(root):
        check_use("/pyebpf", ["/usr/bin/python3"], "/tmp", "chroot", root)
        use_wheel(wheel_of(dist), root)


def use_wheel(wheel, root):
    """By the system's own pip."""
    shutil.copy(wheel, root / "tmp")
    name = "/tmp/" + os.path.basename(wheel)
    call("chroot", root, "pip3", "install", "--no-index", "--target", "/opt/wheel", name)
    check_use("/opt/wheel/bin/pyebpf", ["/usr/bin/python3"], "/tmp", "chroot", root)


def test_deb_and_rpm(dist, tmp_path):
    """Packages ask for no library, and have the same files but for where each system looks."""
    for deb, rpm in (("*_amd64.deb", "*.x86_64.rpm"), ("*_arm64.deb", "*.aarch64.rpm")):
        assert "Depends" not in call("dpkg-deb", "-f", one(dist, deb))
        needed = call("rpm", "-qp", "--requires", one(dist, rpm)).split("\n")
        assert not [row for row in needed if row and not row.startswith("rpmlib(")]
        files = set(call("rpm", "-qpl", one(dist, rpm)).split())
        assert {"/usr/bin/pyebpf", "/usr/share/man/man1/pyebpf-record.1",
                "/usr/share/zsh/site-functions/_pyebpf",
                "/usr/share/doc/pyebpf/copyrights/glibc"} <= files
    call("dpkg-deb", "-x", one(dist, "*_amd64.deb"), tmp_path)
    assert call(tmp_path / "usr/bin/pyebpf", "--version").startswith("pyebpf ")


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_what_is_in_it(dist, architecture):
    program = program_of(dist, architecture)
    with open(program + ".cdx.json", encoding="utf-8") as f:
        bill = json.load(f)
    names = {component["name"] for component in bill["components"]}
    assert {"glibc", "libbpf", "elfutils", "zlib", "libzstd", "cjson", "curl", "openssl"} <= names
    (digest,) = bill["metadata"]["component"]["hashes"]
    sums = dict(reversed(row.split()) for row in open(os.path.join(dist, "SHA256SUMS")))
    assert sums[os.path.basename(program)] == digest["content"]
    files = call("tar", "-tf", program + ".tar.xz").split()
    assert names == {os.path.basename(path) for path in files if "/copyrights/" in path} - {""}
    call("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=dist)


def test_arm64(dist):
    """By an emulator of programs, which knows no BPF: what needs none. On kernels: tests/kernels."""
    program = program_of(dist, "aarch64")
    version = call(program_of(dist), "--version")
    assert call("qemu-aarch64", program, "--version") == version
    assert "record" in call("qemu-aarch64", program, "--help")
    with pytest.raises(OSError, match="Exec format error"):
        subprocess.run([program, "--version"], check=False)


def test_image(dist, tmp_path):
    """As podman and skopeo see it."""
    archive = one(dist, "*.oci.tar")
    version = call(program_of(dist), "--version").split()[1]
    for architecture, machine in (("amd64", "x86_64"), ("arm64", "aarch64")):
        image = call("podman", "pull", "-q", "--arch", architecture,
                     "oci-archive:%s:pyebpf:%s" % (archive, version)).split()[-1]
        try:
            about = json.loads(call("podman", "image", "inspect", image))[0]
            assert about["Architecture"] == architecture, about
            assert about["Config"]["Entrypoint"] == ["/usr/bin/pyebpf"], about
            assert about["Labels"]["org.opencontainers.image.version"] == version
            if machine == os.uname().machine:
                assert call(*PODMAN, image, "--version") == "pyebpf %s\n" % version
            with mounted_image(image) as root:
                with open(root + "/usr/bin/pyebpf", "rb") as inside, \
                        open(program_of(dist, machine), "rb") as outside:
                    assert inside.read() == outside.read()
                assert os.path.exists(root + "/usr/share/doc/pyebpf/copyrights/glibc")
        finally:
            podman("rmi", "-f", image)
    call("skopeo", "copy", "-q", "--all", "oci-archive:%s:pyebpf:%s" % (archive, version),
         "dir:%s" % (tmp_path / "all"))
    with open(tmp_path / "all/manifest.json", encoding="utf-8") as f:
        assert len(json.load(f)["manifests"]) == 2


@contextlib.contextmanager
def mounted_image(image):
    root = call("podman", "image", "mount", image).strip()
    try:
        yield root
    finally:
        call("podman", "image", "unmount", image)


def cut_short(path, folder):
    """A download that ended in its middle."""
    copy = os.path.join(folder, os.path.basename(path))
    shutil.copy(path, copy)
    os.truncate(copy, os.path.getsize(path) // 2)
    return copy


@pytest.mark.parametrize("pattern, command", [
    ("*x86_64.tar.xz", ("tar", "-tf")), ("*.whl", ("python3", "-m", "zipfile", "-t")),
    ("*.deb", ("dpkg-deb", "--fsys-tarfile")), ("*.rpm", ("rpm", "-K", "--nosignature")),
    ("*.oci.tar", ("skopeo", "inspect", "oci-archive:"))])
def test_cut_short(dist, tmp_path, pattern, command):
    """What people unpack it with refuses it."""
    copy = cut_short(sorted(glob.glob(os.path.join(dist, pattern)))[-1], tmp_path)
    words = [*command[:-1], command[-1] + copy] if command[-1].endswith(":") else [*command, copy]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    assert done.returncode != 0, words


def test_install(dist, tmp_path):
    """From a folder, and by curl as `URL/install.sh | sh -s -- URL`."""
    version = call(program_of(dist), "--version")
    for number, url in enumerate((dist, "file://" + dist)):
        folder = tmp_path / str(number) / "bin"
        script = call("curl", "-fsSL", "file://%s/install.sh" % dist)
        done = subprocess.run(["sh", "-s", "--", url, str(folder)], input=script, text=True,
                              stdout=subprocess.PIPE, check=True)
        assert done.stdout == "{0}/pyebpf: {1}next: {0}/pyebpf doctor\n".format(folder, version)
        assert os.listdir(folder) == ["pyebpf"] and call(folder / "pyebpf", "--version") == version


def test_install_refuses(dist, tmp_path):
    """A line and what to do, and nothing is installed."""
    copy, bin_folder = tmp_path / "dist", tmp_path / "bin"
    shutil.copytree(dist, copy)
    os.truncate(program_of(copy), 1 << 20)
    bin_folder.mkdir()
    for name, machine in (("i686", "Linux i686"), ("Darwin", "Darwin arm64")):
        (bin_folder / name).mkdir()
        fake = bin_folder / name / "uname"
        fake.write_text("#!/bin/sh\nset -- $1 %s\n[ $1 = -s ] && echo $2 || echo $3\n" % machine)
        fake.chmod(0o755)
    cases = [(2, "cut short, or changed", copy, ""), (2, "SHA256SUMS", "file:///nowhere", ""),
             (4, "no program for i686", dist, "i686"), (4, "pyebpf is for Linux", dist, "Darwin")]
    for status, words, url, machine in cases:
        path = "%s:%s" % (bin_folder / machine, os.environ["PATH"])
        done = subprocess.run(["sh", os.path.join(dist, "install.sh"), url, tmp_path / "to"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False, env=dict(os.environ, PATH=path))
        said, advice = done.stderr.splitlines()
        assert done.returncode == status and words in said and advice.startswith("try: "), done
        assert not done.stdout and not (tmp_path / "to").exists()


PUBLISH = os.path.join(REPOSITORY, "deploy/release/publish.sh")


def test_publish_says_what_it_would_run(dist):
    told = call("sh", PUBLISH, "--dry-run", dist, "github", "pypi", "image=registry.example/team/pyebpf")
    release, wheels, image = told.splitlines()
    version = call(program_of(dist), "--version").split()[1]
    assert release.startswith("gh release create v%s " % version), told
    assert release.count(dist) == len(os.listdir(dist)) and wheels.count(".whl") == 2, told
    assert image.endswith(" docker://registry.example/team/pyebpf:" + version), told


def test_publish_refuses_what_is_not_whole(dist, tmp_path):
    """Nothing is handed on: not what was changed, nor files of a commit without their tag."""
    bin_folder, copy, log = tmp_path / "bin", tmp_path / "dist", tmp_path / "log"
    bin_folder.mkdir()
    for tool in ("gh", "twine", "skopeo"):
        (bin_folder / tool).write_text("#!/bin/sh\necho $0 >>%s\n" % log)
        (bin_folder / tool).chmod(0o755)
    path = {"PATH": "%s:%s" % (bin_folder, os.environ["PATH"])}
    shutil.copytree(dist, copy)
    script = ["sh", PUBLISH, copy, "github", "pypi"]
    for said in ("no tag", "not what release.sh left there"):
        done = subprocess.run(script, stderr=subprocess.PIPE, text=True, env=dict(os.environ, **path),
                              check=False)
        assert done.returncode == 1 and said in done.stderr and "try: " in done.stderr, done.stderr
        os.truncate(wheel_of(copy), 1000)
    assert not log.exists()


def test_two_builds_are_the_same_bytes(dist, tmp_path):
    call("git", "clone", "-q", REPOSITORY, tmp_path / "elsewhere")
    call("make", "-s", "release", cwd=tmp_path / "elsewhere")
    with open(os.path.join(dist, "SHA256SUMS")) as here, \
            open(tmp_path / "elsewhere/dist/SHA256SUMS") as there:
        assert here.read() == there.read()
