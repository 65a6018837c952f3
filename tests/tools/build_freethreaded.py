#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds the free-threaded CPython 3.13 that no Debian package has, for the integration tests.

    build_freethreaded.py           builds it if it is not there: about 8 minutes on 2 cores
    build_freethreaded.py --path    prints where it is; exit status 1 if it is not built yet

From the upstream tarball in Debian trixie's sources, whose signatures apt checks, into
${XDG_CACHE_HOME:-~/.cache}/pyebpf/pythons/freethreaded. Nothing else of the system changes; needed
are a C compiler and make. Modules whose libraries are not installed (ssl, sqlite...) are left out.
"""
import glob
import os
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pythons  # noqa: E402

SUITE, SOURCE, MINOR = "trixie", "python3.13", 13
REVISION = 1  # raised when what is built changes: an older folder is then made anew


def folder():
    return os.path.join(pythons.cache_dir(), "freethreaded")


def program():
    return os.path.join(folder(), "bin", "python3.%dt" % MINOR)


def download(place):
    """The upstream tarball, as a path."""
    apt = pythons.PrivateApt(place)
    uri, keyring = pythons.debian_mirror()
    for sources in glob.glob(os.path.join(glob.escape(apt.folder), "etc/sources.list.d/*")):
        os.remove(sources)
    with open(os.path.join(apt.folder, "etc/sources.list.d/source.sources"), "w") as f:
        f.write("Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n"
                % (uri, SUITE, keyring))
    apt("update", "-o", "APT::Update::Error-Mode=any")
    pythons.run(["apt-get", "-q", "source", "--download-only", SOURCE], "apt-get source", cwd=place,
                env=dict(os.environ, APT_CONFIG=apt.conf, LC_ALL="C"))
    tarball, = glob.glob(os.path.join(glob.escape(place), "*.orig.tar.*[!c]"))
    return tarball


def build(prefix):
    install(prefix, folder(), ["--disable-gil"])


def install(prefix, final, options, environment=None):
    """Builds it with these options of configure into prefix, for the folder that it will be in."""
    jobs = "-j%d" % (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(dir=os.path.dirname(final)) as place:
        tarball = download(place)
        pythons.say("building %s %s from %s, some minutes"
                    % (SOURCE, " ".join(options), os.path.basename(tarball)))
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


def provide():
    """The interpreter's path; builds it first if it is not there."""
    with pythons.provided_folder(folder(), REVISION) as new:
        if new:
            build(new)
    return program()


def find():
    """The interpreter as tests/tools/pythons.py describes one, None if it was not built."""
    python = pythons.Python([program()], "built")
    if not os.access(program(), os.X_OK) or not python.ask():
        return None
    python.name = python.label()
    return python


def main():
    if sys.argv[1:] == ["--path"]:
        if not find():
            return 1
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        try:
            provide()
        except (pythons.Unavailable, OSError, subprocess.SubprocessError) as e:
            pythons.say("no free-threaded CPython 3.%d: %s" % (MINOR, e))
            return 1
    print(program())
    return 0


if __name__ == "__main__":
    sys.exit(main())
