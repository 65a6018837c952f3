#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `pyebpf top` takes of a CPU while it shows 100 processes of two threads each: two compute, of the
others one thread wakes up ten times a second and one once. CPU time of its own process, and with the
kernel's part for it, which it says itself. Nothing is asserted: it prints.

    top.py [--seconds N] [--processes N] [--hz N]
"""
import argparse
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYEBPF = os.path.join(HERE, "..", "..", "build", "pyebpf")
SETTLE_SECONDS = 5
PROGRAM = """
import os, signal, sys, threading, time

def handle(n):
    return sum(i * i for i in range(n))

def wake_up():
    while True: time.sleep(1)

for i in range(int(sys.argv[1])):
    if os.fork(): continue
    while i < 2: handle(1000)
    threading.Thread(target=wake_up, daemon=True).start()
    while True: time.sleep(0.1); handle(200)
print("READY", flush=True)
signal.pause()
"""


class Top:
    def __init__(self, *arguments):
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
            os.execv(PYEBPF, [PYEBPF, "top", *arguments])
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def cpu_seconds(self):
        with open("/proc/%d/stat" % self.pid) as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def read(self, seconds):
        """What is drawn meanwhile."""
        end, drawn = time.monotonic() + seconds, b""
        while (left := end - time.monotonic()) > 0:
            if select.select([self.terminal], [], [], left)[0]:
                drawn += os.read(self.terminal, 65536)
        return drawn.decode("utf-8", "replace")

    def close(self):
        os.kill(self.pid, signal.SIGTERM)
        try:
            while os.read(self.terminal, 65536):
                pass
        except OSError:
            pass  # it has closed it
        os.waitpid(self.pid, 0)


def measure(pid, mode, options):
    top = Top("-p", str(pid), "--mode", mode, "-F", str(options.hz))
    try:
        top.read(SETTLE_SECONDS)
        before, start = top.cpu_seconds(), time.monotonic()
        top.read(options.seconds)
        share = (top.cpu_seconds() - before) / (time.monotonic() - start)
        os.write(top.terminal, b"\x0c")  # draws all anew
        own = re.findall(r"own CPU ([\d.]+)%", top.read(1))
    finally:
        top.close()
    return share, own[-1] if own else "?"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--hz", type=int, default=99)
    options = parser.parse_args()
    workload = subprocess.Popen([sys.executable, "-c", PROGRAM, str(options.processes)],
                                stdout=subprocess.PIPE, start_new_session=True)
    try:
        workload.stdout.readline()
        print("%d processes, %d Hz; of one CPU:" % (options.processes, options.hz))
        for mode in "cpu", "wall":
            share, own = measure(workload.pid, mode, options)
            print("  --mode %-5s %5.2f%%; with the kernel's part, of the last 10 s: %s%%"
                  % (mode, 100 * share, own))
    finally:
        os.killpg(workload.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
