#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes the tables of docs/scale.md about the memory of BPF maps and the timers of idle CPUs, by the number of CPUs.

    scale_table.py [CPUS...]        of build/pyebpf, three to ten minutes

A machine is booted for each number (tests/kernels, Linux 6.18). The kernel makes the maps for all CPUs, and says how much
memory they take (record -vv). Larger machines are computed from the last two, as each further CPU takes the same.
"""
import os
import re
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
PAGE = TESTS.parent / "docs" / "scale.md"
sys.path[:0] = [str(TESTS / "kernels"), str(TESTS / "tools")]

import kernels  # noqa: E402
import sections  # noqa: E402
import vm  # noqa: E402

TITLE = "Memory of BPF maps"
CPUS = [2, 16, 32]
COMPUTED = [64, 256, 1024]
MODES = ["cpu", "wall"]
GROWTH = 1 << 20  # bytes, from the first column to the last one: what has a row of its own
RECORDINGS = {"idle": "without pyebpf", "ticks": "`record -p PID`", "ticks--cpus 0": "`record -p PID --cpus 0`"}
SECONDS = 4  # in which guest/scale counts
BOOT_SECONDS = 1800  # of a host that may be busy
MEMORY = """By simulation: virtual machines of 2, 16 and 32 CPUs; larger ones are computed from the last two. MiB, as Linux 6.18 accounts
for them (`record -vv`). The ring buffer (8 MiB, `--ring`) is in each sum. `tests/tools/scale_table.py` wrote this table.

"""
TIMERS = "Timers of idle CPUs"
TIMERS_TEXT = """A timer event on each online CPU makes the ticks, whoever runs there: an event of the target's own would not see its first period,
and so no process or thread of short life. So idle CPUs wake up for ticks, also for `record -p` of one process. A tick in a process
that is not recorded takes 0.3 us in BPF, and 17 to 22 us in all on a virtual machine, most of which is the timer itself: 0.2 % of
a CPU at 99 Hz, 1.7 % at 999 Hz.

Where the targets are bound to CPUs (`taskset`, a cpuset, a static CPU manager), `--cpus` has ticks on those alone; others do not
wake up. Shares are as they are without it (`tests/integration/test_bias.py`). CPU time elsewhere is in no sample, and is
told as lost, `on a CPU that --cpus leaves out`.

`record -p PID` of a process that sleeps, at 99 Hz, in the same virtual machines: local timer interrupts of each CPU a second.

"""


def interrupts(step, cpus):
    """Of each CPU a second."""
    before, after = [sum(map(int, re.findall(r"\b\d+\b", line))) for line in step.out]
    return (after - before) / cpus / SECONDS


def measure(kernel, initramfs, cpus):
    """({mode: {map: bytes}}, [interrupts of idle CPUs without a recording, with one, and with one of a CPU])"""
    steps, _ = vm.boot(kernels.find_kernel(kernel), kernel, initramfs, BOOT_SECONDS,
                       "steps=/scale", cpus)
    assert steps["possible"].out == ["0-%d" % (cpus - 1)], steps["possible"]
    sizes = {mode: {name: int(size) for name, size in
                    re.findall(r"map (\S+): \d+ entries, (\d+) bytes", "\n".join(steps[mode].err))}
             for mode in MODES}
    return sizes, [interrupts(steps[name], cpus) for name in RECORDINGS]


def compute(found, cpus):
    """The same of a larger machine."""
    less, more = sorted(found)[-2:]
    return {mode: {name: size + (size - found[less][mode][name]) * (cpus - more) // (more - less)
                   for name, size in found[more][mode].items()} for mode in MODES}


def mib(size):
    return "%.1f" % (size / (1 << 20))


def table(found):
    """Its rows: totals, then the maps that grow with the number of CPUs."""
    first, last = found[min(found)], found[max(found)]
    rows = [("all, `--mode %s`" % mode, mode, list(last[mode])) for mode in MODES]
    for mode in MODES:
        growing = sorted(name for name in last[mode] if last[mode][name] > first[mode][name] + GROWTH)
        rows += [("`%s`, `--mode %s`" % (name, mode), mode, [name]) for name in growing]
    lines = ["| possible CPUs | %s |" % " | ".join("{:,}".format(cpus) for cpus in sorted(found)),
             "|---|%s" % ("---:|" * len(found))]
    for words, mode, names in rows:
        lines.append("| %s | %s |" % (words, " | ".join(
            mib(sum(found[cpus][mode][name] for name in names)) for cpus in sorted(found))))
    return "\n".join(lines) + "\n"


def timers(found):
    return "".join("| %s |\n" % " | ".join(cells) for cells in [
        ["CPUs", *map(str, found)], ["---", *["---:"] * len(found)],
        *[[words, *["%.0f" % rates[i] for _, rates in found.values()]]
          for i, words in enumerate(RECORDINGS.values())]])


def main():
    pyebpf = os.environ.get("PYEBPF", str(TESTS.parent / "build" / "pyebpf"))
    kernel = next(k for k in kernels.KERNELS if k.name == "6.18")
    with tempfile.TemporaryDirectory(prefix="pyebpf-scale-") as folder:
        initramfs = vm.find_initramfs(kernel, pyebpf, folder)
        found = {cpus: measure(kernel, initramfs, cpus) for cpus in map(int, sys.argv[1:] or CPUS)}
    sizes = {cpus: measured[0] for cpus, measured in found.items()}
    sizes = {**sizes, **{cpus: compute(sizes, cpus) for cpus in COMPUTED}}
    sections.put(PAGE, TITLE, MEMORY + table(sizes))
    sections.put(PAGE, TIMERS, TIMERS_TEXT + timers(found))


if __name__ == "__main__":
    main()
