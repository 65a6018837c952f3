# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Does known things a known number of times, each in a line of its own. READY, GO, the truth, EXIT.

Truth: {"lines": {function: its line}, and by what is done how often, or the sum of the arguments}.
"""
import gc
import json
import mmap
import os
import resource
import sys
import time

PAGES, CALLS, OPENS, COLLECTIONS, NAPS = 3000, 2000, 300, 90, 100


def touch(memory):
    for at in range(0, PAGES * mmap.PAGESIZE, mmap.PAGESIZE):
        memory[at] = 1


def ask():
    for _ in range(CALLS):
        os.getpriority(os.PRIO_PROCESS, 1)


def ask_others():
    for _ in range(CALLS):
        os.getpriority(os.PRIO_PROCESS, 2)


def open_files():
    for _ in range(OPENS):
        os.close(os.open("/dev/null", os.O_RDONLY))


def collect():
    for i in range(COLLECTIONS):
        gc.collect(i % 3)


def nap():
    for _ in range(NAPS):
        time.sleep(0.0005)


def switches():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_nvcsw + usage.ru_nivcsw


def main():
    gc.disable()
    memory = mmap.mmap(-1, PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    sys.stdin.readline()
    touch(memory)
    ask()
    ask_others()
    open_files()
    collect()
    before = switches()
    nap()
    truth = {"switches": switches() - before, "pages": PAGES, "calls": CALLS, "opens": OPENS,
             "collections": COLLECTIONS,
             "lines": {f.__name__: f.__code__.co_firstlineno + 2
                       for f in (touch, ask, ask_others, open_files, collect, nap)}}
    sys.stdout.write(json.dumps(truth) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
