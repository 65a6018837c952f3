# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Changes its own mappings, so that it looks unlike other Pythons, and spins. Argument: how.

header: makes the first page of the file that holds the interpreter executable
copy: maps that page once more, executable and below all else that is mapped
rewrite: writes over the ELF header in its memory"""
import ctypes
import sys

LOW = 0x10000  # vm.mmap_min_addr
PAGE = 4096
READ, WRITE, EXECUTE = 1, 2, 4
PRIVATE_FIXED = 0x12


def mappings():
    with open("/proc/self/maps") as f:
        for line in f:
            words = line.split()
            if len(words) > 5:
                start, end = (int(word, 16) for word in words[0].split("-"))
                yield start, end, int(words[2], 16), words[5]


def spin_here():
    while True:
        sum(range(1000))


def disguise(how):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    code = ctypes.cast(ctypes.pythonapi.PyRun_SimpleString, ctypes.c_void_p).value
    path = next(m[3] for m in mappings() if m[0] <= code < m[1])
    head = next(m[0] for m in mappings() if m[3] == path and not m[2])
    if how == "copy":
        with open(path, "rb") as f:
            at = libc.mmap(LOW, PAGE, READ | EXECUTE, PRIVATE_FIXED, f.fileno(), 0)
        assert at == LOW, ctypes.get_errno()
        return
    if how == "rewrite":
        assert not libc.mprotect(head, PAGE, READ | WRITE), ctypes.get_errno()
        ctypes.memset(head, 0x7F, 64)
    assert not libc.mprotect(head, PAGE, READ | EXECUTE), ctypes.get_errno()


disguise(sys.argv[1])
print("READY", flush=True)
spin_here()
