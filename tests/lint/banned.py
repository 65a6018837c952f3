# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fails on functions we do not call, files opened where that is not allowed, to-dos without an issue
number, files without a license line.

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
# Who opens files by themselves, and which. A path that a target, or the writer of a recording, chose
# goes through base/file.h (regular files only) or target/rights.h (with the target's rights).
OPENS = re.compile(r"(?<![\w>.])(open|openat|fopen|freopen|opendir|creat)\s*\(|\b(SYS_openat2?)\b")
OPENERS = {
    "user/agent/files.c": "output.directory of the configuration",
    "user/agent/pods.c": "directories of /var/log/pods",
    "user/agent/spool.c": "the spool directory of the configuration",
    "user/base/clock.c": "/proc/self/timens_offsets",
    "user/base/file.c": "what the caller names; checks the type before it opens for reading",
    "user/base/apart.c": "/dev/null",
    "user/base/folder.c": "output directories that the user names",
    "user/base/partial.c": "directories that folder.c has made",
    "user/cmd/launch.c": "/dev/null",
    "user/cmd/memory_limit.c": "/proc/self/statm",
    "user/collect/tracefs.c": "below tracefs",
    "user/export/source_text.c": "the directory of --source-root; below it O_PATH first",
    "user/inspect/files.c": "/proc/PID/net",
    "user/inspect/thread_files.c": "/proc/PID/task/TID",
    "user/store/writer.c": "recordings that the user names",
    "user/target/cgroup.c": "the cgroup file system",
    "user/target/cgroup_mount.c": "the cgroup file system",
    "user/target/cgroup_namespace.c": "the cgroup file system",
    "user/target/maps.c": "/proc/PID/maps",
    "user/target/owner.c": "/proc/PID/ns",
    "user/target/pid_namespace.c": "/proc/PID/ns",
    "user/target/pod.c": "directories of /var/log/pods",
    "user/target/proc.c": "/proc; files of mappings by O_PATH, the type checked first",
    "user/target/rights.c": "O_PATH, with the target's rights checked",
}
FOLDERS = ["bpf", "user", "assets", "tests", "cmake"]
SUFFIXES = {".c", ".h", ".py", ".js", ".sh", ".cmake", ".css"}
# Not ours to write: recorded inputs, foreign samples.
SKIPPED = {"corpus", "golden", "data", "__pycache__", "node_modules"}


def blank(match):
    """Keeps line numbers."""
    return re.sub(r"[^\n]", " ", match.group())


def violations(path, name):
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
            if name.startswith("user/") and name not in OPENERS and OPENS.search(line):
                yield (f"{path}:{number}: opens a file: use base/file.h or target/rights.h, or say in "
                       "OPENERS which files these are")


def files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            parts = path.relative_to(root).parts
            if path.suffix in SUFFIXES and path.is_file() and not SKIPPED & set(parts):
                yield path


def main(root):
    found = [line for path in files(root)
             for line in violations(path, path.relative_to(root).as_posix())]
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
