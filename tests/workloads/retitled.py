# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""retitled.py LENGTH: gives itself a title as setproctitle does: over its arguments, and its environment behind them.

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


def main():
    title = "served: main[x] --flag ".ljust(int(sys.argv[1]) - 1, "=") + "]"
    start, end = places()
    assert len(title) < end - start
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, title.encode(), len(title))
    ctypes.CDLL(None).prctl(PR_SET_NAME, title.encode())
    print("READY", flush=True)
    sys.stdin.readline()
    end = time.time() + 0.3
    while time.time() < end: pass
    print(json.dumps({"title": title}), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
