# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A deep stack that nobody touches. READY, GO, the truth, EXIT.

    pages.py SECONDS DEPTH

Calls down() DEPTH times, each in a frame of its own, and then, in work(), one function of C that
reads none of the interpreter's memory for SECONDS. Truth: {"depth": DEPTH, "calls": how often
work() called it}.
"""
import hashlib
import json
import sys
import time


def work(end):
    calls = 0
    while time.perf_counter() < end:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 100000)
        calls += 1
    return calls


def down(depth, end):
    if depth:
        return down(depth - 1, end)
    return work(end)


def main():
    seconds, depth = float(sys.argv[1]), int(sys.argv[2])
    sys.setrecursionlimit(depth + 100)
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    sys.stdin.readline()
    calls = down(depth, time.perf_counter() + seconds)
    sys.stdout.write(json.dumps({"depth": depth, "calls": calls}) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
