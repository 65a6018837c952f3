#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What each export format takes of a large recording: CPU time, most memory, bytes written.

usage: formats.py [--samples N] [--stacks mixed|cyclic] [--markdown] [FORMAT...]

mixed: nearly every sample is a stack of its own; cyclic: the same million samples again and again,
as a program that runs long has them. Recordings are made by gen_recording.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

import large
import tools

FORMATS = ("collapsed", "pprof", "otlp", "pstats", "json", "jsonl", "script", "speedscope", "gecko",
           "perfetto", "svg", "heatmap", "html")
MIB = 1 << 20


def bytes_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(entry.stat().st_size for entry in os.scandir(path))


def generate(kind, samples, folder):
    """A recording's path, and how many stacks it has."""
    path = os.path.join(folder, "large.pyebpf")
    done = subprocess.run([large.GENERATOR, kind, str(large.HZ), str(samples // large.HZ), path],
                          check=True, stdout=subprocess.PIPE, text=True)
    return path, int(re.search(r"(\d+) stacks", done.stdout).group(1))


def measure(recording, name, folder):
    """(CPU time, most memory, bytes written) of one export."""
    made = os.path.join(folder, "made." + name)
    _, cpu, memory = large.run([tools.PYEBPF, "export", "-q", "-f", name, "-o", made, recording])
    size = bytes_of(made)
    subprocess.run(["rm", "-rf", made], check=True)
    return cpu, memory, size


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=1000000)
    parser.add_argument("--stacks", choices=("mixed", "cyclic"), default="mixed")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("formats", nargs="*", default=FORMATS)
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        recording, stacks = generate(o.stacks, o.samples, folder)
        print("%s samples, %s stacks" % (format(o.samples, ","), format(stacks, ",")))
        row = "| `%s` | %.1f | %.0f | %.1f |" if o.markdown else "%-11s %7.1f s %6.0f MiB %9.1f MiB"
        if o.markdown:
            print("| format | CPU time, s | most memory, MiB | written, MiB |\n|---|---:|---:|---:|")
        for name in o.formats:
            cpu, memory, size = measure(recording, name, folder)
            print(row % (name, cpu, memory / MIB, size / MIB), flush=True)


if __name__ == "__main__":
    sys.exit(main())
