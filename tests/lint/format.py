# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fails where clang-format 14 would change a C file. Other versions format differently: exit 77.

usage: format.py [--fix] ROOT
"""
import pathlib
import shutil
import subprocess
import sys

VERSION = "14."
SKIPPED = 77  # ctest: SKIP_RETURN_CODE


def find_tool():
    for name in ("clang-format-14", "clang-format"):
        tool = shutil.which(name)
        if tool and f"version {VERSION}" in subprocess.check_output([tool, "--version"], text=True):
            return tool
    return None


def files(root):
    return sorted(str(path) for folder in ("bpf", "user", "tests")
                  for path in (root / folder).rglob("*.[ch]") if "corpus" not in path.parts)


def main(arguments):
    fix = "--fix" in arguments
    root = pathlib.Path(arguments[-1])
    tool = find_tool()
    if not tool:
        print(f"SKIPPED: needs clang-format {VERSION}x")
        return SKIPPED
    how = ["-i"] if fix else ["--dry-run", "-Werror"]
    paths = files(root)
    if not paths:
        return f"{root}: no C files"
    return subprocess.call([tool, "--style=file", *how, *paths])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
