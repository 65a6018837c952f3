# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Grows by much in known lines. READY; for each GO one function, and its name in JSON; EXIT.

    grows.py [MIB]      each function by about so much (16)

Nothing is given back meanwhile: what was taken and what there is more of are the same.
"""
import json
import mmap
import sys

SIZE = int(sys.argv[1] if len(sys.argv) > 1 else 16) << 20
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
MADV_HUGEPAGE = 14


def one_list():
    return [None] * (SIZE // 8)


def one_text():
    return b"x" * SIZE


def many_buffers():
    return [bytearray(5000) for _ in range(SIZE // 5000)]


def private_pages():
    memory = mmap.mmap(-1, SIZE, flags=PRIVATE)
    for at in range(0, SIZE, mmap.PAGESIZE): memory[at] = 1
    return memory


def shared_pages():
    memory = mmap.mmap(-1, SIZE)
    for at in range(0, SIZE, mmap.PAGESIZE): memory[at] = 1
    return memory


def huge_pages():
    memory = mmap.mmap(-1, SIZE + (4 << 20), flags=PRIVATE)
    if hasattr(memory, "madvise"): memory.madvise(MADV_HUGEPAGE)
    for at in range(0, SIZE, mmap.PAGESIZE): memory[at] = 1
    return memory


FUNCTIONS = (one_list, one_text, many_buffers, private_pages, shared_pages, huge_pages)


def main():
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    kept = []
    for function in FUNCTIONS:
        sys.stdin.readline()
        kept.append(function())
        sys.stdout.write(json.dumps(function.__name__) + "\n")
        sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
