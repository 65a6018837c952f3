#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Builds a CPython 3.13 for musl, the C library of Alpine, for the integration tests: linked by
/lib/ld-musl-x86_64.so.1, as Alpine's is.

    build_musl.py           builds it if it is not there: about 8 minutes on 2 cores (package musl-tools)
    build_musl.py --path    prints where it is; exit status 1 if it is not built yet

As build_freethreaded.py, whose source it takes, into ${XDG_CACHE_HOME:-~/.cache}/pyebpf/pythons/musl.
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import build_freethreaded  # noqa: E402
import pythons  # noqa: E402

MINOR = 13
REVISION = 1  # raised when what is built changes: an older folder is then made anew
# gcc tells the name of glibc's folders, which are not musl's.
COMPILER = """\
#!/bin/sh
[ "$1" != --print-multiarch ] || exit 0
exec musl-gcc "$@"
"""


def folder():
    return os.path.join(pythons.cache_dir(), "musl")


def program():
    return os.path.join(folder(), "bin", "python3.%d" % MINOR)


def provide():
    """The interpreter's path; builds it first if it is not there."""
    if not shutil.which("musl-gcc"):
        raise pythons.Unavailable("no musl-gcc here (apt-get install musl-tools)")
    with pythons.provided_folder(folder(), REVISION) as new:
        if new:
            compiler = os.path.join(new, "musl-cc")
            with open(compiler, "w", encoding="ascii") as f:
                f.write(COMPILER)
            os.chmod(compiler, 0o755)
            # pkg-config knows glibc's libraries alone.
            build_freethreaded.install(MINOR, new, folder(), [], {"CC": compiler, "PKG_CONFIG": "false"})
    return program()


def find():
    """The interpreter as tests/tools/pythons.py describes one, None if it was not built."""
    python = pythons.Python([program()], "built")
    if not os.access(program(), os.X_OK) or not python.ask():
        return None
    python.name = python.label() + "-musl"
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
            pythons.say("no CPython with musl: %s" % e)
            return 1
    print(program())
    return 0


if __name__ == "__main__":
    sys.exit(main())
