# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Something of its own that a profiler reads lies in a file whose server will not answer.

    unanswered.py FILE WHAT busy|idle [LONG]

WHAT: name, lines (of a code object), items (of a list that is a local variable), type (of that list), arguments (of the
process and its environment, where the kernel reads both for /proc: give it an argument of two pages).
READY, then it computes, or waits, in the function in question for ever.
"""
import ctypes
import mmap
import os
import sys
import time

PAGE = 0x80000  # of the file: never read so far, nor read ahead
MAP_FIXED = 16
ARG_START, ARG_END, ENV_END = 45, 46, 48  # fields of /proc/PID/stat behind the state


def never_present(path, address=None, size=65536):
    """The address of a page of the file that is mapped, instead of what is at address, and not there."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                          ctypes.c_long]
    with open(path, "rb") as f:  # closed: what ends with it open waits for the server
        page = libc.mmap(address, size, mmap.PROT_READ, mmap.MAP_PRIVATE | (MAP_FIXED if address else 0),
                         f.fileno(), PAGE)
    assert page and page != ctypes.c_void_p(-1).value
    return page


def spoil_arguments(path):
    """Spoils the pages that hold nothing but arguments: the program's own stack lies before them."""
    with open("/proc/self/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    start, end = int(fields[ARG_START]) + 4095 & -4096, int(fields[ENV_END]) & -4096
    assert start < int(fields[ARG_END]), "the arguments are too short"
    never_present(path, start, end - start)


def point(start, size, old, new):
    """Each pointer to `old` in an object becomes one to `new`."""
    found = [at for at in range(start, start + size, 8)
             if ctypes.c_uint64.from_address(at).value == old]
    assert found
    for at in found:
        ctypes.c_uint64.from_address(at).value = new


def spoil(code, values, page, what):
    size = sys.getsizeof(code)
    if what == "arguments":
        spoil_arguments(sys.argv[1])
    elif what == "name":
        names = {id(code.co_name), id(getattr(code, "co_qualname", code.co_name))}
        for name in names:
            point(id(code), size, name, page + 64)
    elif what == "lines":
        table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
        point(id(code), size, id(table), page + 4096)
    elif what == "items":
        ctypes.c_uint64.from_address(id(values) + list.__basicsize__ - 16).value = page + 8192
    else:
        ctypes.c_uint64.from_address(id(values) + object.__basicsize__ - 8).value = page + 12288


def work(values, page, what, is_busy):
    spoil(sys._getframe().f_code, values, page, what)  # pylint: disable=protected-access
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    if is_busy:
        sum(range(10 ** 15))
    time.sleep(1000000)


work(list("values"), never_present(sys.argv[1]), sys.argv[2], sys.argv[3] == "busy")
