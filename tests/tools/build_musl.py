#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds a CPython 3.13 for musl, the C library of Alpine, for the integration tests: as its packages
are linked, by /lib/ld-musl-x86_64.so.1, and statically.

    build_musl.py           builds both if they are not there: some 10 minutes on 2 cores (package musl-tools)
    build_musl.py --path    prints where they are; exit status 1 if they are not built yet

As build_freethreaded.py, whose source it takes, into ${XDG_CACHE_HOME:-~/.cache}/pyebpf/pythons/musl and
musl-static.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build_freethreaded  # noqa: E402
import pythons  # noqa: E402

REVISION = 1  # raised when what is built changes: an older folder is then made anew
# {folder: what configure is told}.
KINDS = {"musl": {}, "musl-static": {"LDFLAGS": "-static", "LINKFORSHARED": " ", "MODULE_BUILDTYPE": "static"}}
# gcc tells the name of glibc's folders, which are not musl's.
COMPILER = """\
#!/bin/sh
[ "$1" != --print-multiarch ] || exit 0
exec musl-gcc "$@"
"""


def folder(kind):
    return os.path.join(pythons.cache_dir(), kind)


def program(kind):
    return os.path.join(folder(kind), "bin", "python3.%d" % build_freethreaded.MINOR)


def provide(kind):
    """The interpreter's path; builds it first if it is not there."""
    if not shutil.which("musl-gcc"):
        raise pythons.Unavailable("no musl-gcc here (apt-get install musl-tools)")
    with pythons.provided_folder(folder(kind), REVISION) as new:
        if new:
            compiler = os.path.join(new, "musl-cc")
            with open(compiler, "w", encoding="ascii") as f:
                f.write(COMPILER)
            os.chmod(compiler, 0o755)
            build_freethreaded.install(new, folder(kind), [],
                                       dict(KINDS[kind], CC=compiler, PKG_CONFIG="false"))
    return program(kind)


def find(kind):
    """The interpreter as tests/tools/pythons.py describes one, None if it was not built."""
    python = pythons.Python([program(kind)], "built")
    if not os.access(program(kind), os.X_OK) or not python.ask():
        return None
    python.name = "%s-%s" % (python.label(), kind)
    return python


def main():
    if sys.argv[1:] not in ([], ["--path"]):
        sys.exit(__doc__)
    for kind in KINDS:
        try:
            if not sys.argv[1:]:
                provide(kind)
            elif not find(kind):
                return 1
        except (pythons.Unavailable, OSError, subprocess.SubprocessError) as e:
            pythons.say("no CPython for %s: %s" % (kind, e))
            return 1
        print(program(kind))
    return 0


if __name__ == "__main__":
    sys.exit(main())
