# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Functions whose names are in pages that are not present: by construction, on any kernel. CPython 3.8
and newer.

    cold.py FUNCTIONS SECONDS

Calls FUNCTIONS functions, one after the other, each until it had SECONDS of CPU time. The name of each is
a string of its own mapping, which is replaced by a shared one of a file with the same content: so its
pages are mapped, and in no page table until somebody touches them. Truth: {"cold": {NAME: SECONDS}}, by
the first characters of the names.
"""
import ctypes
import json
import mmap
import os
import sys
import time

NAME_BYTES = 1 << 18  # malloc() maps what is larger than 128 KiB by itself
MAP_FIXED = 0x10      # include/uapi/asm-generic/mman-common.h

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]


def name_of(function):
    """Where it is: a reference to it, let go, would touch it."""
    return id(getattr(function.__code__, "co_qualname", function.__code__.co_name))


def make_cold(address):
    """Nobody else has anything in these pages, so nothing is written there meanwhile."""
    start = address & -mmap.PAGESIZE
    size = NAME_BYTES & -mmap.PAGESIZE
    fd = os.memfd_create("cold")
    with open(fd, "wb") as f:
        f.write((ctypes.c_char * size).from_address(start))
        f.flush()
        got = libc.mmap(start, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | MAP_FIXED,
                        fd, 0)
    if got != start:
        sys.exit("mmap: " + os.strerror(ctypes.get_errno()))


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def make_function(name):
    code = spin.__code__.replace(co_name=name)
    if hasattr(code, "co_qualname"):
        code = code.replace(co_qualname=name)
    return type(spin)(code, globals())


def main():
    count, seconds = int(sys.argv[1]), float(sys.argv[2])
    begins = ["cold_%d_" % n for n in range(count)]
    functions = [make_function(begin + "x" * NAME_BYTES) for begin in begins]
    names = [name_of(function) for function in functions]
    truth = {}
    for begin, function, name in zip(begins, functions, names):
        make_cold(name)
        before = time.process_time()
        function(seconds)
        truth[begin] = time.process_time() - before
    print(json.dumps({"cold": truth}))


if __name__ == "__main__":
    main()
