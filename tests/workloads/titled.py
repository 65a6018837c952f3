# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""titled.py TITLE spins|sleeps: a process whose command line cannot be read at first.

READY, GO, spins in cannot_be_read(), lets its command line be read, and goes on as it is told."""
import ctypes
import mmap
import sys
import time

PR_SET_MM, PR_SET_MM_MAP = 35, 14


class MmMap(ctypes.Structure):
    """struct prctl_mm_map, include/uapi/linux/prctl.h"""
    _fields_ = [(name, ctypes.c_uint64) for name in (
        "start_code", "end_code", "start_data", "end_data", "start_brk", "brk", "start_stack",
        "arg_start", "arg_end", "env_start", "env_end", "auxv")] + [
            ("auxv_size", ctypes.c_uint32), ("exe_fd", ctypes.c_uint32)]


def own_map(libc):
    with open("/proc/self/stat") as f:
        words = [0, 0, 0] + f.read().rpartition(")")[2].split()  # from field 3 on
    fields = {name: int(words[number]) for name, number in (
        ("start_code", 26), ("end_code", 27), ("start_stack", 28), ("start_data", 45),
        ("end_data", 46), ("start_brk", 47), ("env_start", 50), ("env_end", 51))}
    libc.sbrk.restype = ctypes.c_uint64
    return MmMap(brk=libc.sbrk(0), exe_fd=0xffffffff, **fields)


def move_arguments(libc, title):
    memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(title + b"\0")
    new = own_map(libc)
    new.arg_start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    new.arg_end = new.arg_start + len(title) + 1
    if libc.prctl(PR_SET_MM, PR_SET_MM_MAP, ctypes.byref(new), ctypes.c_ulong(ctypes.sizeof(new)),
                  0):
        print("SKIP prctl(PR_SET_MM_MAP): error %d" % ctypes.get_errno())
        sys.stdout.flush()
        sys.exit()
    return memory, new.arg_start


def protect(libc, start, protection):
    assert libc.mprotect(ctypes.c_ulong(start), ctypes.c_ulong(mmap.PAGESIZE), protection) == 0


def spin(seconds):
    end = time.time() + seconds
    while time.time() < end: pass


def cannot_be_read():
    spin(0.2)


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    memory, start = move_arguments(libc, sys.argv[1].encode())
    protect(libc, start, 0)
    print("READY")
    sys.stdout.flush()
    sys.stdin.readline()
    cannot_be_read()
    protect(libc, start, mmap.PROT_READ)
    if sys.argv[2] == "spins":
        spin(0.2)
    print("{}")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
