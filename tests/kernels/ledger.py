#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The verifier's ledger: how many instructions of the samplers each kernel's verifier took.

    ledger.py [PYEBPF [KERNEL...]]      of build/pyebpf, on every kernel of kernels.py that has bpf_loop

The table is the one of bpf/README.md; all kernels take a minute. In a PID namespace of its own the
samplers have code that they leave out elsewhere: every second number. The pairs are `sample`, the same
where waiting is recorded, too, there `visit_thread` and `on_switched` (before 6.16 `on_switch`), and the
largest of the programs for events; last, both with labels, `sample` and `visit_thread`.
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
ANY = None
# What guest/ledger loads, and the largest program of a type in that, or the one after it.
COLUMNS = [("initial", BPF_PROG_TYPE_PERF_EVENT, 0), ("namespace", BPF_PROG_TYPE_PERF_EVENT, 0),
           ("wall", BPF_PROG_TYPE_PERF_EVENT, 0), ("wall.namespace", BPF_PROG_TYPE_PERF_EVENT, 0),
           ("wall", BPF_PROG_TYPE_TRACING, 0), ("wall.namespace", BPF_PROG_TYPE_TRACING, 0),
           ("wall", BPF_PROG_TYPE_TRACING, 1), ("wall.namespace", BPF_PROG_TYPE_TRACING, 1),
           ("events", ANY, 0), ("events.namespace", ANY, 0),
           ("labels", BPF_PROG_TYPE_PERF_EVENT, 0), ("labels", BPF_PROG_TYPE_TRACING, 0)]


def instructions(lines, wanted, rank):
    """verified_insns of such a program, from the fdinfo of all; None: it is not loaded."""
    kind, found = None, []
    for line in lines:
        key, _, value = line.partition(":")
        if key == "prog_type":
            kind = int(value)
        elif wanted in (ANY, kind):
            found.append(int(value))
    return sorted(found, reverse=True)[rank] if rank < len(found) else None


def main():
    pyebpf = sys.argv[1] if len(sys.argv) > 1 else os.path.join(TESTS, "..", "build", "pyebpf")
    names = sys.argv[2:] or [kernel.name for kernel in kernels.KERNELS if kernel.name not in TOO_OLD]
    status = 0
    with tempfile.TemporaryDirectory(prefix="pyebpf-ledger-") as folder:
        initramfs = os.path.join(folder, "initramfs")
        vm.build_initramfs(initramfs, pyebpf, vm.find_python(), kernels.find_busybox())
        for kernel in (kernel for kernel in kernels.KERNELS if kernel.name in names):
            steps, _ = vm.boot(kernels.find_kernel(kernel), kernel.cpu, initramfs, BOOT_SECONDS,
                               "steps=/ledger")
            release = re.match(r"[\d.]+\d", steps["uname"].out[0]).group()
            found = [instructions(steps[name].out, kind, rank) for name, kind, rank in COLUMNS]
            print("%-10s %s" % (release, " ".join(map(str, found))), flush=True)
            if None in found:
                print("\n".join(line for name in steps if name.endswith(".log") for line in steps[name].out))
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
