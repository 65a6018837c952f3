#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The verifier's ledger: how many instructions of the samplers each kernel's verifier took.

    ledger.py [PYEBPF [KERNEL...]]      of build/pyebpf, on every kernel of kernels.py that has bpf_loop

The table is the one of bpf/README.md; all kernels take a minute. In a PID namespace of its own the
samplers have code that they leave out elsewhere: every second number. The first pair is of `sample`, the
next of it where waiting is recorded, too, and the last of what samples spans of that.
"""
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
sys.path.insert(0, HERE)

import kernels  # noqa: E402
import vm  # noqa: E402

BOOT_SECONDS = 300  # three on an idle CPU
TOO_OLD = {"5.10"}
BPF_PROG_TYPE_PERF_EVENT = 7
BPF_PROG_TYPE_TRACING = 26
COLUMNS = [("initial", BPF_PROG_TYPE_PERF_EVENT), ("namespace", BPF_PROG_TYPE_PERF_EVENT),
           ("wall", BPF_PROG_TYPE_PERF_EVENT), ("wall.namespace", BPF_PROG_TYPE_PERF_EVENT),
           ("wall", BPF_PROG_TYPE_TRACING), ("wall.namespace", BPF_PROG_TYPE_TRACING)]


def instructions(lines, wanted):
    """verified_insns of the largest program of a type, from the fdinfo of all; None: none is loaded."""
    kind, found = None, []
    for line in lines:
        key, _, value = line.partition(":")
        if key == "prog_type":
            kind = int(value)
        elif kind == wanted:
            found.append(int(value))
    return max(found, default=None)


def main():
    pyebpf = sys.argv[1] if len(sys.argv) > 1 else os.path.join(TESTS, "..", "build", "pyebpf")
    names = sys.argv[2:] or [kernel.name for kernel in kernels.KERNELS if kernel.name not in TOO_OLD]
    status = 0
    with tempfile.TemporaryDirectory(prefix="pyebpf-ledger-") as folder:
        initramfs = os.path.join(folder, "initramfs")
        vm.build_initramfs(initramfs, pyebpf, sys.executable, kernels.find_busybox())
        for kernel in (kernel for kernel in kernels.KERNELS if kernel.name in names):
            steps, _ = vm.boot(kernels.find_kernel(kernel), kernel.cpu, initramfs, BOOT_SECONDS,
                               "steps=/ledger")
            release = re.match(r"[\d.]+\d", steps["uname"].out[0]).group()
            found = [instructions(steps[name].out, kind) for name, kind in COLUMNS]
            print("%-10s %s" % (release, " ".join(map(str, found))), flush=True)
            if None in found:
                print("\n".join(line for name, _ in COLUMNS for line in steps[name + ".log"].out))
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
