# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `make install` and `make deb` make of a build: files, man pages, completions, a package."""
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest
import pythons
from harness import PYEBPF, REPOSITORY, run

BUILD = os.path.dirname(PYEBPF)
pytestmark = pytest.mark.xdist_group("package")  # one folder of a build


def call(*command, **options):
    """Output of a command that must succeed in silence on stderr."""
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    assert done.returncode == 0 and not done.stderr, (command, done.stdout[-2000:], done.stderr)
    return done.stdout


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip("no " + ", ".join(missing))


def commands():
    return re.findall(r"^  (\w+) ", run("--help").stdout, re.M)


@pytest.fixture(scope="session")
def build():
    """A build folder whose man pages and completions are made, without building anything else."""
    needs("cmake")
    if not os.path.exists(os.path.join(BUILD, "CMakeCache.txt")):
        pytest.skip("%s is not a build folder" % BUILD)
    subprocess.run(["cmake", "--build", BUILD, "--target", "pyebpf_share"], check=True,
                   stdout=subprocess.DEVNULL)
    return BUILD


@pytest.fixture(scope="session")
def installed(build, tmp_path_factory):
    """Installed to PREFIX /opt/pyebpf below a DESTDIR: the folder of the prefix."""
    root = tmp_path_factory.mktemp("destdir")
    call("cmake", "--install", build, "--prefix", "/opt/pyebpf",
         env=dict(os.environ, DESTDIR=str(root)))
    assert os.listdir(root) == ["opt"]
    return root / "opt/pyebpf"


def test_install_puts_everything_in_its_place(installed):
    found = {os.path.relpath(os.path.join(folder, name), installed)
             for folder, _, names in os.walk(installed) for name in names}
    pages = {"share/man/man1/pyebpf-%s.1" % name for name in commands()}
    assert len(pages) > 4
    assert found == pages | {
        "bin/pyebpf", "share/man/man1/pyebpf.1",
        "share/bash-completion/completions/pyebpf", "share/zsh/site-functions/_pyebpf",
        "share/fish/vendor_completions.d/pyebpf.fish",
        "lib/systemd/system/pyebpf-agent.service"} | {
            "share/doc/pyebpf/" + name for name in (
                "README.md", "CHANGELOG.md", "LICENSE", "agent.yaml", "diff.md", "fleet.md",
                "kubernetes.md", "troubleshooting.md",
                "LICENSES/GPL-2.0-only.txt", "LICENSES/BSD-2-Clause.txt")}
    assert call(installed / "bin/pyebpf", "--version") == run("--version").stdout


def test_zsh_of_debian_looks_elsewhere(build, tmp_path):
    call("cmake", "--install", build, "--prefix", "/usr",
         env=dict(os.environ, DESTDIR=str(tmp_path)))
    want = "vendor-completions" if os.path.exists("/etc/debian_version") else "site-functions"
    assert os.listdir(tmp_path / "usr/share/zsh") == [want]


def test_man_pages_have_no_warnings(installed):
    needs("groff", "man")
    for name in sorted(os.listdir(installed / "share/man/man1")):
        page = installed / "share/man/man1" / name
        assert "NAME" in call("groff", "-ww", "-man", "-Tutf8", "-P-cbou", page), name
        text = call("man", "--warnings", "-l", page, env=dict(os.environ, MANPAGER="cat"))
        assert "EXIT STATUS" in text, name
    summary = re.search(r"^  record +(.*)$", run("--help").stdout, re.M).group(1)
    text = call("man", "-M", installed / "share/man", "pyebpf-record",
                env=dict(os.environ, MANPAGER="cat", MANWIDTH="200"))
    assert re.search(r"pyebpf-record - " + re.escape(summary), text), text


# What each shell offers for `pyebpf do`, once it has read our file.
COMPLETIONS = {
    "bash": ("share/bash-completion/completions/pyebpf",
             'source "$0"; COMP_WORDS=(pyebpf do); COMP_CWORD=1; '
             'spec=$(complete -p pyebpf); [[ $spec =~ -F\\ ([^ ]+) ]]; ${BASH_REMATCH[1]}; '
             'printf "%s\\n" "${COMPREPLY[@]}"'),
    "zsh": ("share/zsh/site-functions/_pyebpf",
            'fpath=("${0:h}" $fpath); autoload -Uz compinit; compinit -u -D; '
            '[[ $_comps[pyebpf] == _pyebpf ]] && autoload +X _pyebpf && print doctor'),
    "fish": ("share/fish/vendor_completions.d/pyebpf.fish",
             'source $argv[1]; complete -C "pyebpf do" | string split -f1 \\t'),
}


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_completions_are_read_by_their_shell(shell, installed, tmp_path):
    needs(shell)
    name, script = COMPLETIONS[shell]
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    environment = dict(os.environ, HOME=str(tmp_path), TERM="dumb")
    text = call(shell, *options, "-c", script, installed / name, env=environment)
    assert text.split() == ["doctor"], text


# --- The package ----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def deb(build, tmp_path_factory):
    needs("cpack", "dpkg-shlibdeps", "dpkg-deb")
    with open(os.path.join(build, "CMakeCache.txt")) as f:
        if re.search(r"^PYEBPF_SANITIZE:STRING=.+", f.read(), re.M):
            pytest.skip("a build with sanitizers is not packaged")
    folder = tmp_path_factory.mktemp("deb")
    subprocess.run(["cpack", "-G", "DEB", "--config", os.path.join(build, "CPackConfig.cmake"),
                    "-B", folder], cwd=build, check=True, stdout=subprocess.DEVNULL)
    packages = [name for name in os.listdir(folder) if name.endswith(".deb")]
    assert len(packages) == 1, packages
    return folder / packages[0]


def test_package_says_what_it_is(deb):
    version = run("--version").stdout.split()[1]
    assert re.match(r"pyebpf_%s_\w+\.deb$" % re.escape(version), deb.name)
    depends = call("dpkg-deb", "-f", deb, "Depends")
    for library in ("libbpf1", "libc6", "libncursesw6", "libtinfo6", "libzstd1"):
        assert re.search(r"\b%s \(>= " % library, depends), depends
    for library in ("libcurl", "libmicrohttpd"):  # that the agent loads
        assert re.search(r"\b%s\d+" % library, depends), depends
    assert call("dpkg-deb", "-f", deb, "Version").strip() == version


def test_package_holds_what_install_installs(deb, installed):
    listing = call("dpkg-deb", "-c", deb).splitlines()
    rows = [line.split(None, 5) for line in listing]
    assert {row[1] for row in rows} == {"root/root"}
    assert all(re.match(r"drwxr-xr-x|-rw[x-]r-[x-]r-[x-]", row[0]) for row in rows), listing
    found = {row[5][2:] for row in rows if not row[0].startswith("d")}
    assert {"usr/share/doc/pyebpf/copyright", "usr/share/doc/pyebpf/changelog.gz"} <= found
    for folder, _, names in os.walk(installed):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), installed)
            path = path.replace("zsh/site-functions", "zsh/vendor-completions")
            assert "usr/" + re.sub(r"(/man1/.*)", r"\1.gz", path) in found


def test_package_quotes_its_licenses(deb, tmp_path):
    call("dpkg-deb", "-x", deb, tmp_path)
    said = (tmp_path / "usr/share/doc/pyebpf/copyright").read_text()
    with open(os.path.join(REPOSITORY, "LICENSES/BSD-2-Clause.txt")) as f:
        holder, _, bsd = f.read().partition("\n\n")
    assert re.search(r"^Copyright: \d{4} %s$" % re.escape(holder.replace("Copyright (c) ", "")),
                     said, re.M)
    quoted = said.partition("License: BSD-2-clause\n")[2].rpartition("\n")[0]
    assert re.sub(r"^ \.?", "", quoted, flags=re.M).strip() == bsd.strip()
    assert "/usr/share/common-licenses/GPL-2" in said


@pytest.mark.full
def test_package_is_clean_for_lintian(deb):
    needs("lintian")
    text = call("lintian", "--allow-root", "--fail-on", "none", "--tag-display-limit", "0", deb)
    assert not text, text


IN_CHROOT = r"""
set -eu
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive sh -eu -c "$2"
"""

TRY_IT = r"""
pyebpf --version
pyebpf doctor
cat > /tmp/shop.py <<'END'
import time
def sell(end):
    while time.perf_counter() < end: pass
def open_shop():
    sell(time.perf_counter() + 60)
open_shop()
END
python3 /tmp/shop.py & shop=$!
sleep 0.5
pyebpf doctor -p $shop
pyebpf record -p $shop -d 1s -F 199 -o /tmp/shop.pyebpf
kill $shop
pyebpf report --no-summary /tmp/shop.pyebpf
pyebpf export -f collapsed -o - /tmp/shop.pyebpf
apt-get remove -y pyebpf >/dev/null
test ! -e /usr/bin/pyebpf
"""


def in_chroot(root, script, timeout):
    """Runs it with mounts of its own, which go with it. Its output, errors included."""
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", IN_CHROOT, "sh",
                           str(root), script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@pytest.fixture
def bookworm(tmp_path):
    """A fresh Debian 12, with the package sources of the mirror."""
    needs("debootstrap", "unshare", "chroot")
    try:
        mirror, _ = pythons.debian_mirror()
    except pythons.Unavailable as reason:
        pytest.skip("NOT TESTED: %s" % reason)
    try:
        urllib.request.urlopen(mirror.rstrip("/") + "/dists/bookworm/Release", timeout=20).close()
    except (urllib.error.URLError, OSError) as error:
        pytest.skip("NOT TESTED, no Debian mirror at %s: %s" % (mirror, error))
    root = tmp_path / "bookworm"
    done = subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(root), mirror],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:]
    yield root
    shutil.rmtree(root)


@pytest.mark.full
def test_package_installs_and_records_on_a_fresh_debian(pyebpf, deb, bookworm):
    shutil.copy(deb, bookworm / "tmp/pyebpf.deb")
    in_chroot(bookworm, "apt-get update -q && apt-get install -y -q --no-install-recommends "
                        "/tmp/pyebpf.deb python3-minimal", 900)
    text = in_chroot(bookworm, TRY_IT, 120)
    print(text)
    assert run("--version").stdout in text and "pyebpf can record here." in text
    assert re.search(r"program +/usr/bin/python3", text)
    assert re.search(r"test stack +ok: ", text)
    match = re.search(r"^<module> .*;open_shop .*;sell \(/tmp/shop.py:3\) (\d+)$", text, re.M)
    assert match and int(match.group(1)) > 40, text
