#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The verifier's ledger: how many instructions of the sampler each kernel's verifier took.

    ledger.py [PYEBPF [KERNEL...]]      of build/pyebpf, on every kernel of kernels.py that has bpf_loop

The table is the one of bpf/README.md; all kernels take a minute. In a PID namespace of its own the
sampler has code that it leaves out elsewhere: the second number. Then, likewise, the largest of the
programs for events.
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


def sampler_instructions(lines):
    """verified_insns of the perf_event program, from the fdinfo of all programs; None: not loaded."""
    kind = None
    for line in lines:
        key, _, value = line.partition(":")
        if key == "prog_type":
            kind = int(value)
        elif kind == BPF_PROG_TYPE_PERF_EVENT:
            return int(value)
    return None


def most_instructions(lines):
    """verified_insns of the largest program; None: none is loaded."""
    return max((int(line.split()[1]) for line in lines if line.startswith("verified_insns:")),
               default=None)


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
            found = [sampler_instructions(steps[name].out) for name in ("initial", "namespace")]
            found += [most_instructions(steps[name].out) for name in ("events", "events-namespace")]
            print("%-10s %s" % (release, " ".join(map(str, found))), flush=True)
            if None in found:
                print("\n".join(line for name, step in steps.items() if name.endswith(".log")
                                for line in step.out))
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
