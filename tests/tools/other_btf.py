#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes type information (BTF) of a kernel that does not exist: all of task_struct is 64 bytes further
on.

    other_btf.py FROM TO
"""
import sys

MOVED_BITS = 64 * 8
STRUCT = 4
# Bytes behind the 12 of each type, by kind, and for each of its members (linux/btf.h).
FIXED = {1: 4, 3: 12, 14: 4, 17: 4}
MEMBERS = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}


def number(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def move_members(data, name=b"task_struct"):
    head = number(data, 4)
    at, end = head + number(data, 8), head + number(data, 8) + number(data, 12)
    strings = head + number(data, 16)
    moved = 0
    while at < end:
        info = number(data, at + 4)
        kind, count, named = info >> 24 & 31, info & 0xffff, strings + number(data, at)
        if kind == STRUCT and data[named:named + len(name) + 1] == name + b"\0":
            for member in range(at + 12, at + 12 + 12 * count, 12):
                bits = number(data, member + 8) + MOVED_BITS
                data[member + 8:member + 12] = bits.to_bytes(4, "little")
            moved += 1
        at += 12 + FIXED.get(kind, 0) + MEMBERS.get(kind, 0) * count
    return moved


def main():
    with open(sys.argv[1], "rb") as f:
        data = bytearray(f.read())
    assert move_members(data), "no task_struct in " + sys.argv[1]
    with open(sys.argv[2], "wb") as f:
        f.write(data)


if __name__ == "__main__":
    main()
