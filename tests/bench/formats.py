#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What each export format takes of a large recording: CPU time, most memory, bytes written.

usage: formats.py [--samples N] [--stacks mixed|cyclic] [--beside] [--markdown] [FORMAT...]

mixed: nearly every sample is a stack of its own; cyclic: the same million samples again and again,
as a program that runs long has them. Recordings are made by gen_recording.
--beside: CPython 3.15's `profiling.sampling replay` and we, by turns, of one file in its binary format,
which its own writer made (tests/integration/tachyon_oracle.py large); the formats that both have.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
import large  # noqa: E402
import pythons  # noqa: E402
import tools  # noqa: E402

FORMATS = ("collapsed", "pprof", "otlp", "pstats", "json", "jsonl", "script", "speedscope", "gecko",
           "perfetto", "svg", "heatmap", "html")
# By the option of CPython's replay. Its jsonl has sums of frames, ours each sample.
REPLAYS = {"pstats": "--pstats", "collapsed": "--collapsed", "gecko": "--gecko",
           "heatmap": "--heatmap", "jsonl": "--jsonl", "html": "--flamegraph"}
ORACLE = os.path.join(os.path.dirname(HERE), "integration", "tachyon_oracle.py")
MIB = 1 << 20


def take_bytes(path):
    """How many a file or a folder has; it is gone then."""
    size = os.path.getsize(path) if os.path.isfile(path) else \
        sum(entry.stat().st_size for entry in os.scandir(path))
    subprocess.run(["rm", "-rf", path], check=True)
    return size


def generate(kind, samples, folder):
    """A recording's path, and how many stacks it has."""
    path = os.path.join(folder, "large.pyebpf")
    done = subprocess.run([large.GENERATOR, kind, str(large.HZ), str(samples // large.HZ), path],
                          check=True, stdout=subprocess.PIPE, text=True)
    return path, int(re.search(r"(\d+) stacks", done.stdout).group(1))


def measure(recording, name, folder):
    """(CPU time in s, most memory and bytes written in MiB) of one export."""
    made = os.path.join(folder, "made." + name)
    _, cpu, memory = large.run([tools.PYEBPF, "export", "-q", "-f", name, "-o", made, recording])
    return cpu, memory / MIB, take_bytes(made) / MIB


def replay(python, recording, name, folder):
    """The same of CPython's."""
    made = os.path.join(folder, "replayed." + name)
    _, cpu, memory = large.run([*python.command, "-m", "profiling.sampling", "replay",
                                REPLAYS[name], "-o", made, recording])
    return cpu, memory / MIB, take_bytes(made) / MIB


def of_one_file(o, folder):
    """A title and rows, for --beside."""
    python = tools.find_sampling(pythons.find_all())
    if not python:
        sys.exit("no CPython 3.15 with profiling.sampling")
    recording = os.path.join(folder, "large.bin")
    large.run([*python.command, ORACLE, "large", recording, str(o.samples)])
    title = "%s samples, %.1f MiB, CPython %d.%d.%d" % (
        format(o.samples, ","), os.path.getsize(recording) / MIB, *python.version)
    return title, ((name, (*measure(recording, name, folder),
                           *replay(python, recording, name, folder))) for name in o.formats or REPLAYS)


def of_ours(o, folder):
    recording, stacks = generate(o.stacks, o.samples, folder)
    return ("%s samples, %s stacks" % (format(o.samples, ","), format(stacks, ",")),
            ((name, measure(recording, name, folder)) for name in o.formats or FORMATS))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--samples", type=int, default=1000000)
    parser.add_argument("--stacks", choices=("mixed", "cyclic"), default="mixed")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("formats", nargs="*")
    o = parser.parse_args()
    heads = ["CPU time, s", "most memory, MiB", "written, MiB"]
    if o.beside:
        heads += ["CPython: " + head for head in heads]
    with tempfile.TemporaryDirectory() as folder:
        title, rows = (of_one_file if o.beside else of_ours)(o, folder)
        print(title)
        if o.markdown:
            print("| format | %s |\n|---|%s" % (" | ".join(heads), "---:|" * len(heads)))
        for name, figures in rows:
            cells = ["%.1f" % f if i % 3 != 1 else "%.0f" % f for i, f in enumerate(figures)]
            if o.markdown:
                print("| `%s` | %s |" % (name, " | ".join(cells)), flush=True)
            else:
                print("%-11s" % name, "".join("%7s s %6s MiB %9s MiB" % tuple(cells[i:i + 3])
                                              for i in range(0, len(cells), 3)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
