#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every output of two builds, for a change that should alter none.

usage: outputs.py OLD_PYEBPF NEW_PYEBPF [--old-files DIR] FILE...

Each FILE is reported, exported and drawn by both, each two neighbours are compared, all are merged;
what differs is shown. Where the builds read different versions of the file format, DIR has the files
of the same names for the old one. Exit status 1 if anything differs.
"""
import argparse
import difflib
import gzip
import os
import pathlib
import subprocess
import sys
import tempfile

ALONE = [
    ["report"],
    ["report", "--lines", "--sort", "total", "--limit", "0"],
    ["report", "--threads", "--tree", "--min-percent", "0"],
    ["report", "--no-fold-imports", "--limit", "0"],
    ["export", "-f", "collapsed"],
    ["export", "-f", "collapsed", "--header", "--threads", "--processes"],
    ["export", "-f", "collapsed", "--no-lines", "--fold-imports"],
    ["export", "-f", "pprof"],
    ["export", "-f", "pprof", "--threads", "--processes"],
    ["export", "-f", "otlp", "--threads", "--processes"],
    ["export", "-f", "json"],
    ["export", "-f", "json", "--no-lines", "--limit", "50"],
    ["export", "-f", "html"],
]
PAIR = [
    ["diff"],
    ["diff", "--force"],
    ["diff", "--force", "--limit", "0", "--group-by", "file"],
    ["diff", "--force", "--gate"],
    ["diff", "--force", "-o", "out.json"],
    ["diff", "--force", "-o", "out.md"],
    ["diff", "--force", "-o", "out.xml"],
    ["diff", "--force", "-o", "out.html"],
]
SHOWN = 20  # lines of a difference


def output(pyebpf, command, files, folder):
    """What it wrote, to its standard streams and to its file, and how it ended."""
    place = {"out" + suffix: os.path.join(folder, "out" + suffix)
             for suffix in (".json", ".md", ".xml", ".html")}
    done = subprocess.run([pyebpf, *(place.get(word, word) for word in command), *files],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env=dict(os.environ, LC_ALL="C.UTF-8", TERM="xterm"))
    made = gzip.decompress(done.stdout) if "pprof" in command and not done.returncode \
        else done.stdout
    for path in place.values():
        if os.path.exists(path):
            made += pathlib.Path(path).read_bytes()
            os.unlink(path)
    return b"exit %d\n" % done.returncode + done.stderr + made


def show(old, new):
    lines = difflib.unified_diff(*(made.decode("utf-8", "replace").splitlines() for made in
                                   (old, new)), "old", "new", lineterm="", n=0)
    for number, line in zip(range(SHOWN), lines):
        print("    " + line[:200])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--old-files", metavar="DIR")
    parser.add_argument("files", nargs="+")
    o = parser.parse_args()
    groups = [(command, [file]) for file in o.files for command in ALONE]
    groups += [(command, pair) for pair in zip(o.files, o.files[1:]) for command in PAIR]
    groups += [(command, o.files) for command in ALONE]
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        for command, files in groups:
            here = [os.path.join(folder, os.path.basename(file)) for file in files]
            made = []
            for build, sources in ((o.old, [os.path.join(o.old_files, os.path.basename(file))
                                            for file in files] if o.old_files else files),
                                   (o.new, files)):
                for source, link in zip(sources, here):
                    pathlib.Path(link).unlink(missing_ok=True)
                    os.symlink(os.path.abspath(source), link)
                made.append(output(build, command, here, folder))
            if made[0] != made[1]:
                differ += 1
                print("differs:", " ".join([*command, *files]))
                show(*made)
    print("%d outputs, %d differ" % (len(groups), differ))
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
