# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fails on functions we do not call, to-dos without an issue number, files without a license line.

usage: banned.py ROOT
"""
import pathlib
import re
import sys

FUNCTIONS = "strcpy strcat sprintf strtok atoi gets alloca system popen".split()
CALL = re.compile(r"\b(" + "|".join(FUNCTIONS) + r")\s*\(")
# Comments, strings and characters of C: none of them calls anything.
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'", re.S)
UNNUMBERED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX)\b(?!\s*\(?#\d+)")
LICENSE = "SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause"
FOLDERS = ["bpf", "user", "assets", "tests", "cmake"]
SUFFIXES = {".c", ".h", ".py", ".js", ".sh", ".cmake", ".css"}
# Not ours to write: recorded inputs, foreign samples.
SKIPPED = {"corpus", "golden", "data", "__pycache__", "node_modules"}


def blank(match):
    """Keeps line numbers."""
    return re.sub(r"[^\n]", " ", match.group())


def violations(path):
    text = path.read_text(errors="replace")
    if LICENSE not in "\n".join(text.split("\n", 3)[:3]):
        yield f"{path}:1: license line missing"
    for number, line in enumerate(text.split("\n"), 1):
        for found in UNNUMBERED.findall(line):
            yield f"{path}:{number}: {found} without an issue number"
    if path.suffix in (".c", ".h"):
        for number, line in enumerate(NOT_CODE.sub(blank, text).split("\n"), 1):
            for found in CALL.findall(line):
                yield f"{path}:{number}: {found}() is banned"


def files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            parts = path.relative_to(root).parts
            if path.suffix in SUFFIXES and path.is_file() and not SKIPPED & set(parts):
                yield path


def main(root):
    found = [line for path in files(root) for line in violations(path)]
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
