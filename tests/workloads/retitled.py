# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""retitled.py LENGTH [late|late-alone]: gives itself a title as setproctitle does: over its arguments, and its environment
behind them; "late": after half of what it computes; "late-alone": without the kernel's name, as servers in C do.

READY, GO, spins, {"title"}, EXIT."""
import ctypes
import json
import sys
import time

PR_SET_NAME = 15


def places():
    with open("/proc/self/stat") as f:
        words = [0, 0, 0] + f.read().rpartition(")")[2].split()  # from field 3 on
    return [int(words[number]) for number in (48, 51)]  # arg_start, env_end


def write_title(title, sets_name):
    start, end = places()
    assert len(title) < end - start
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, title.encode(), len(title))
    if sets_name:
        ctypes.CDLL(None).prctl(PR_SET_NAME, title.encode())


def spin(seconds):
    end = time.time() + seconds
    while time.time() < end: pass


def main():
    when = sys.argv[2] if len(sys.argv) > 2 else "early"
    title = "served: main[x] --flag ".ljust(int(sys.argv[1]) - 1, "=") + "]"
    if when == "early":
        write_title(title, True)
    print("READY", flush=True)
    sys.stdin.readline()
    if when != "early":
        spin(0.2)
        write_title(title, when == "late")
    spin(0.3)
    print(json.dumps({"title": title}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
