#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds the free-threaded CPython 3.13, 3.14 and 3.15 that no Debian package has, for the integration
tests.

    build_freethreaded.py [MINOR...]          builds those not there yet: about 8 minutes each on 2 cores
    build_freethreaded.py --path [MINOR...]   prints where they are; exit status 1 if one is not built yet

MINOR is 3.13, or 13; all of them without one. From the upstream tarballs in Debian's sources (3.13 of
trixie, the others of sid), whose signatures apt checks, into a folder each of
${XDG_CACHE_HOME:-~/.cache}/pyebpf/pythons: freethreaded, freethreaded-3.14, freethreaded-3.15. Nothing else
of the system changes; needed are a C compiler and make. Modules whose libraries are not installed (ssl,
sqlite...) are left out.
"""
import argparse
import collections
import glob
import os
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pythons  # noqa: E402

Build = collections.namedtuple("Build", "suite source folder")

BUILDS = {  # by minor
    13: Build("trixie", "python3.13", "freethreaded"),
    14: Build("sid", "python3.14", "freethreaded-3.14"),
    15: Build("sid", "python3.15", "freethreaded-3.15"),
}
REVISION = 1  # raised when what is built changes: an older folder is then made anew


def folder(minor):
    return os.path.join(pythons.cache_dir(), BUILDS[minor].folder)


def program(minor):
    return os.path.join(folder(minor), "bin", "python3.%dt" % minor)


def download(place, minor):
    """The upstream tarball, as a path."""
    apt = pythons.PrivateApt(place)
    uri, keyring = pythons.debian_mirror()
    for sources in glob.glob(os.path.join(glob.escape(apt.folder), "etc/sources.list.d/*")):
        os.remove(sources)
    with open(os.path.join(apt.folder, "etc/sources.list.d/source.sources"), "w") as f:
        f.write("Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n"
                % (uri, BUILDS[minor].suite, keyring))
    apt("update", "-o", "APT::Update::Error-Mode=any")
    pythons.run(["apt-get", "-q", "source", "--download-only", BUILDS[minor].source],
                "apt-get source", cwd=place, env=dict(os.environ, APT_CONFIG=apt.conf, LC_ALL="C"))
    tarball, = glob.glob(os.path.join(glob.escape(place), "*.orig.tar.*[!c]"))
    return tarball


def install(minor, prefix, final, options, environment=None):
    """Builds it with these options of configure into prefix, for the folder that it will be in."""
    jobs = "-j%d" % (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(final)) as place:
        tarball = download(place, minor)
        pythons.say("building %s %s from %s, some minutes"
                    % (BUILDS[minor].source, " ".join(options), os.path.basename(tarball)))
        tree = os.path.join(place, "tree")
        with tarfile.open(tarball) as tar:
            tar.extractall(tree)
        tree, = glob.glob(os.path.join(glob.escape(tree), "*"))
        # Where it will be, not where it is being made: sys.prefix is compiled in.
        pythons.run(["./configure", *options, "--without-ensurepip", "--disable-test-modules",
                     "--prefix", final], "configure", cwd=tree, env=dict(os.environ, **(environment or {})))
        pythons.run(["make", jobs], "make", cwd=tree)
        stage = os.path.join(place, "stage")
        pythons.run(["make", "install", "DESTDIR=" + stage], "make install", cwd=tree)
        for name in os.listdir(stage + final):
            os.rename(os.path.join(stage + final, name), os.path.join(prefix, name))


def provide(minor):
    """The interpreter's path; builds it first if it is not there."""
    with pythons.provided_folder(folder(minor), REVISION) as new:
        if new:
            install(minor, new, folder(minor), ["--disable-gil"])
    return program(minor)


def find(minor):
    """The interpreter as tests/tools/pythons.py describes one, None if it was not built."""
    python = pythons.Python([program(minor)], "built")
    if not os.access(program(minor), os.X_OK) or not python.ask():
        return None
    python.name = python.label()
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--path", action="store_true", help="only print where they are")
    parser.add_argument("minors", nargs="*", metavar="MINOR", help="3.13, or 13 (all)")
    arguments = parser.parse_args()
    try:
        minors = [int(minor.removeprefix("3.")) for minor in arguments.minors] or list(BUILDS)
    except ValueError as e:
        parser.error(str(e))
    for minor in minors:
        if minor not in BUILDS:
            parser.error("no row for CPython 3.%d" % minor)
    status = 0
    for minor in minors:
        try:
            if not arguments.path:
                provide(minor)
        except (pythons.Unavailable, OSError, subprocess.SubprocessError) as e:
            pythons.say("no free-threaded CPython 3.%d: %s" % (minor, e))
        if find(minor):
            print(program(minor), flush=True)
        else:
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
