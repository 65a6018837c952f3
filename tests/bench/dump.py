#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long reading all threads of a process takes, beside py-spy: 500 threads of 20 frames that wait,
on one interpreter of each minor, without BPF and with it (loaded before). Nothing is asserted: it prints.
Builds read_threads in build/ first.

    dump.py [--threads N] [--count N] [--py-spy PATH]
"""
import argparse
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
import pythons  # noqa: E402

BUILD = os.path.join(HERE, "..", "..", "build")
PROGRAM = os.path.join(BUILD, "tests", "read_threads")
FIRST_MINOR = 8
WAYS = ("loader", "chroot", "direct")  # the last one that there is
SCRIPT = """
import sys, threading
never, ready = threading.Event(), threading.Barrier(int(sys.argv[1]) + 1)
def down(depth):
    if depth:
        return down(depth - 1)
    ready.wait()
    never.wait()
threading.stack_size(1 << 18)
for i in range(int(sys.argv[1])):
    threading.Thread(target=down, args=(14,), daemon=True).start()
ready.wait()
print("READY", flush=True)
sys.stdin.read()
"""


def py_spy_ms(program, pid, count):
    """Best wall time of whole dumps: it stops the process meanwhile."""
    best = float("inf")
    for _ in range(count):
        begin = time.monotonic()
        subprocess.run([program, "dump", "-p", str(pid)], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        best = min(best, (time.monotonic() - begin) * 1e3)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=500)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--py-spy", default=shutil.which("py-spy"))
    options = parser.parse_args()
    subprocess.run(["cmake", "--build", BUILD, "--target", "read_threads"], check=True,
                   stdout=subprocess.DEVNULL)
    found = {p.minor: p for p in sorted(pythons.find_all(), key=lambda p: WAYS.index(p.via))
             if p.minor >= FIRST_MINOR and not p.free_threaded and not p.debug}
    print("%-27s %8s %8s %10s %8s %8s %8s %12s" % (
        "", "threads", "frames", "consistent", "best ms", "median", "CPU ms", "py-spy ms"))
    for minor in sorted(found):
        with subprocess.Popen([*found[minor].command, "-c", SCRIPT, str(options.threads)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(0.5)
            spy = py_spy_ms(options.py_spy, process.pid, 3) if options.py_spy else float("nan")
            for way in ([], ["bpf"]):
                done = subprocess.run([PROGRAM, str(process.pid), str(options.count), *way],
                                      stdout=subprocess.PIPE, check=True, text=True)
                print("%-27s %8s %8s %10s %8s %8s %8s %12.0f" % (
                    found[minor].name + (", BPF" if way else ""), *done.stdout.split(), spy),
                    flush=True)
            process.kill()


if __name__ == "__main__":
    main()
