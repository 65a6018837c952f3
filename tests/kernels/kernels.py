#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Provides the kernels to boot: Debian's cloud kernels, below ${XDG_CACHE_HOME:-~/.cache}/pyebpf/kernels.

    kernels.py      provides all of them and prints a line for each

PYEBPF_MACHINE=arm64: those of that architecture, each with the Python and the C library of its suite.
A kernel stays what it was when it was downloaded; remove its folder for a newer one. Signatures are
checked by apt. Nothing is installed.
"""
import collections
import contextlib
import glob
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))

import build_freethreaded  # noqa: E402
import pythons  # noqa: E402
from pythons import Unavailable  # noqa: E402

# suite: of Debian. series: the newest kernel of it; "": the newest of the suite. flavour: which of its
# packages; BUILT: none, built from the suite's source with arm64-64k.config. python: the suite that the
# guest's Python is from, or FREETHREADED; None: that of this machine. by_instructions: its clock may go by
# them (vm.py); 5.10 and 6.1 then hang where they start their second CPU.
Kernel = collections.namedtuple("Kernel", "name suite series cpu flavour python by_instructions",
                                defaults=("cloud-amd64", None, True))

# cmpxchg16b in qemu 7.2 leaves wrong flags, at which 6.12's allocator falls over. Task storage, from
# 7.0 on, and what queues task work, from 7.1 on, allocate by kmalloc_nolock(), which gives nothing
# without it.
WITHOUT_CX16, WITH_CX16 = "max,-cx16", "max"

# Pointer authentication is slow to emulate as it is specified.
ARM64_CPU = "max,pauth-impdef=on"

# A cross-built 3.13t in the root of this suite, which has its libraries.
FREETHREADED, FREETHREADED_MINOR, FREETHREADED_SUITE = "freethreaded", 13, "trixie"
SYSROOT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build-arm64-sysroot", "root")

BUILT = "built"

AMD64 = [
    Kernel("5.10", "bullseye", "5.10", WITHOUT_CX16, by_instructions=False),
    Kernel("6.1", "bookworm", "6.1", WITHOUT_CX16, by_instructions=False),
    Kernel("6.12", "trixie", "6.12", WITHOUT_CX16),
    Kernel("6.16", "trixie-backports", "6.16", WITHOUT_CX16),
    Kernel("6.18", "trixie-backports", "6.18", WITHOUT_CX16),
    Kernel("6.19", "trixie-backports", "6.19", WITHOUT_CX16),
    Kernel("7.0", "trixie-backports", "7.0", WITH_CX16),
    Kernel("backports", "trixie-backports", "", WITH_CX16),
    Kernel("sid", "sid", "", WITH_CX16),
]
ARM64 = [
    Kernel("5.10_arm64", "bullseye", "5.10", ARM64_CPU, "cloud-arm64", "bullseye", False),
    Kernel("6.1_arm64", "bookworm", "6.1", ARM64_CPU, "cloud-arm64", "bookworm"),
    Kernel("6.12_arm64", "trixie", "6.12", ARM64_CPU, "cloud-arm64", "trixie"),
    Kernel("6.12_arm64_16k", "trixie", "6.12", ARM64_CPU, "arm64-16k", "trixie"),
    Kernel("6.12_arm64_64k", "trixie", "6.12", ARM64_CPU, BUILT, "trixie"),
    Kernel("6.12_arm64_3.13t", "trixie", "6.12", ARM64_CPU, "cloud-arm64", FREETHREADED),
    Kernel("6.18_arm64", "trixie-backports", "6.18", ARM64_CPU, "cloud-arm64", "trixie"),
    Kernel("backports_arm64", "trixie-backports", "", ARM64_CPU, "cloud-arm64", "sid"),
]
IS_ARM64 = os.environ.get("PYEBPF_MACHINE") == "arm64"
KERNELS = ARM64 if IS_ARM64 else AMD64
ARCHITECTURE = "arm64" if IS_ARM64 else None  # None: this machine's
REVISION = 1  # raised when what is in a provided folder changes


def cache_dir():
    return os.path.join(os.path.dirname(pythons.cache_dir()), "kernels")


class SuiteApt(pythons.PrivateApt):
    """The private apt, for another suite."""

    def __init__(self, folder, suite):
        super().__init__(folder, ARCHITECTURE)
        sources, = glob.glob(os.path.join(glob.escape(folder), "etc/sources.list.d/*.sources"))
        with open(sources, encoding="utf-8") as f:
            text = re.sub(r"(?m)^Suites:.*$", "Suites: " + suite, f.read())
        with open(sources, "w", encoding="utf-8") as f:
            f.write(text)
        self.environment = dict(os.environ, APT_CONFIG=self.conf, LC_ALL="C")
        self("update", "-o", "APT::Update::Error-Mode=any")

    def releases(self, flavour):
        """The kernels of the suite: "6.1.0-50", "6.12.107+deb13", oldest first."""
        text = pythons.run(["apt-cache", "search", "--names-only", "^linux-image-.*-%s$" % flavour],
                           "apt-cache search", env=self.environment)
        return sorted(re.findall(r"(?m)^linux-image-(\d[\d.+a-z]*(?:-\d+)?)-%s " % flavour, text),
                      key=lambda name: [int(number) for number in re.findall(r"\d+", name)])

    def unpack(self, package):
        """One package, without those it depends on: the folder with its files."""
        folder = tempfile.mkdtemp(prefix=package + "-", dir=self.folder)
        pythons.run(["apt-get", "-q", "download", package], "apt-get download", cwd=folder,
                    env=self.environment)
        archive, = glob.glob(os.path.join(glob.escape(folder), "*.deb"))
        pythons.run(["dpkg-deb", "-x", archive, folder], package)
        return folder


@contextlib.contextmanager
def suite_apt(suite):
    os.makedirs(cache_dir(), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".apt-", dir=cache_dir()) as folder:
        yield SuiteApt(folder, suite)


def find_file(folder, *patterns):
    for pattern in patterns:
        for path in glob.glob(os.path.join(glob.escape(folder), pattern)):
            return path
    return None


def build_kernel(kernel, folder):
    """From source, by a cross compiler: ten minutes on 2 cores."""
    with tempfile.TemporaryDirectory(prefix=".build-", dir=cache_dir()) as place, \
            suite_apt(kernel.suite) as apt:
        package = "linux-source-" + kernel.series
        source = find_file(apt.unpack(package), "usr/src/linux-source-*.tar.xz")
        pythons.say("building Linux %s with arm64-64k.config, ten minutes" % kernel.series)
        pythons.run(["tar", "-xf", source, "-C", place], package)
        tree = os.path.join(place, package)
        make = ["make", "-s", "-j%d" % (os.cpu_count() or 1), "-C", tree, "ARCH=arm64",
                "CROSS_COMPILE=aarch64-linux-gnu-"]
        pythons.run([*make, "allnoconfig", "KCONFIG_ALLCONFIG=" + os.path.join(HERE, "arm64-64k.config")],
                    "make allnoconfig")
        pythons.run([*make, "Image"], "make Image")
        shutil.move(os.path.join(tree, "arch/arm64/boot/Image"), os.path.join(folder, "vmlinuz"))


def download_kernel(kernel, folder):
    if kernel.flavour == BUILT:
        build_kernel(kernel, folder)
        return
    with suite_apt(kernel.suite) as apt:
        found = [release for release in apt.releases(kernel.flavour)
                 if not kernel.series or release.startswith(kernel.series + ".")]
        if not found:
            raise Unavailable("Debian %s has no kernel %s %s"
                              % (kernel.suite, kernel.series, kernel.flavour))
        pythons.say("downloading Linux %s of Debian %s" % (found[-1], kernel.suite))
        image = None
        for name in ("linux-image-%s-%s", "linux-binary-%s-%s"):  # since 7.1
            image = image or find_file(apt.unpack(name % (found[-1], kernel.flavour)),
                                       "boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz")
        if not image:
            raise Unavailable("no vmlinuz in the packages of Linux " + found[-1])
        shutil.move(image, os.path.join(folder, "vmlinuz"))


def download_busybox(folder):
    with suite_apt(pythons.os_release("VERSION_CODENAME") or "stable") as apt:
        program = find_file(apt.unpack("busybox-static"), "bin/busybox", "usr/bin/busybox")
        shutil.move(program, os.path.join(folder, "busybox"))


def download_root(suite, folder):
    """The suite's Python and all it depends on."""
    with suite_apt(suite) as apt:
        pythons.say("downloading Python of Debian %s, %s" % (suite, ARCHITECTURE))
        for package in apt.download(["python3"]):
            pythons.run(["dpkg-deb", "-x", package, folder], os.path.basename(package))
    for name in ("bin", "lib"):  # one folder from bookworm on
        pythons.merge_usr(folder, name)


def build_freethreaded_root(folder):
    """A suite's root, and in it that Python as /usr/bin/python3."""
    if not os.path.isdir(SYSROOT):
        raise Unavailable("no headers and libraries to cross-build a Python with: make arm64")
    shutil.copytree(find_suite_root(FREETHREADED_SUITE), folder, symlinks=True, dirs_exist_ok=True)
    place = os.path.join(folder, "opt/python")
    os.makedirs(place)
    build_freethreaded.install(
        FREETHREADED_MINOR, place, "/opt/python",
        ["--disable-gil", "--disable-ipv6", "--host=aarch64-linux-gnu",
         "--build=" + pythons.run(["gcc", "-dumpmachine"], "gcc").strip(),
         # Of the same source: the build runs its modules.
         "--with-build-python=" + build_freethreaded.provide(FREETHREADED_MINOR),
         "ac_cv_file__dev_ptmx=yes", "ac_cv_file__dev_ptc=no"],
        {"CC": "aarch64-linux-gnu-gcc --sysroot=" + SYSROOT, "CXX": "false",
         "PKG_CONFIG_SYSROOT_DIR": SYSROOT,
         "PKG_CONFIG_LIBDIR": SYSROOT + "/usr/lib/aarch64-linux-gnu/pkgconfig"})
    os.remove(os.path.join(folder, "usr/bin/python3"))
    os.symlink("../../opt/python/bin/python3.%dt" % FREETHREADED_MINOR,
               os.path.join(folder, "usr/bin/python3"))


def provide(name, download):
    folder = os.path.join(cache_dir(), name)
    with pythons.provided_folder(folder, REVISION) as new:
        if new:
            download(new)
    return folder


def find_kernel(kernel):
    """The path of its vmlinuz. Raises Unavailable, OSError."""
    folder = provide(kernel.name, lambda new: download_kernel(kernel, new))
    return os.path.join(folder, "vmlinuz")


def find_busybox():
    name = "busybox" + ("_arm64" if IS_ARM64 else "")
    return os.path.join(provide(name, download_busybox), "busybox")


def find_suite_root(suite):
    return provide("python_%s_%s" % (suite, ARCHITECTURE), lambda new: download_root(suite, new))


def find_root(kernel):
    """The root of another architecture that the guest's Python is in. None: this machine's own."""
    if kernel.python == FREETHREADED:
        return provide("python_freethreaded_" + ARCHITECTURE, build_freethreaded_root)
    return find_suite_root(kernel.python) if kernel.python else None


def main():
    status = 0
    for kernel in KERNELS:
        try:
            print("%-10s %s" % (kernel.name, find_kernel(kernel)))
        except (Unavailable, OSError) as e:
            print("%-10s SKIPPED: %s" % (kernel.name, e))
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
