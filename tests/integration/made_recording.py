# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recordings that no recorder writes, byte by byte. Format: user/store/FORMAT.md."""
import struct

from foreign_bytes import varint

METADATA, FLUSH = 1, 2
INTERVAL_NS = 1000000


def crc_row(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
    return byte


CRC = [crc_row(i) for i in range(256)]


def crc32c(content):
    crc = 0xffffffff
    for byte in content:
        crc = CRC[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def differences(numbers):
    """As zigzag numbers."""
    before, out = 0, []
    for n in numbers:
        out.append((n - before) * 2 if n >= before else (before - n) * 2 - 1)
        before = n
    return out


def column(numbers):
    if len(set(numbers)) == 1:
        return b"\0" + varint(numbers[0])
    planes = (max(numbers).bit_length() + 7) // 8
    return b"\4" + bytes([planes]) + b"".join(bytes(n >> 8 * i & 255 for n in numbers) for i in range(planes))


def section(number, *parts):
    return bytes([number]) + varint(sum(map(len, parts))) + b"".join(parts)


def chunk(kind, content):
    content = bytes([kind]) + varint(len(content)) + content
    return struct.pack("<I", crc32c(content)) + content


def described(fields):
    """Rows that say what their columns are; fields: {id: numbers}."""
    return b"".join([varint(len(fields[min(fields)])), *(varint(field) + column(fields[field]) for field in sorted(fields))])


def recording(strings, functions, threads=None):
    """functions: (name, file, line), the first two as ids of strings, which count from 1. Each has one sample, alone on
    the stack. threads: fields of section 5, a row for the sample of each function; else all are of one thread.
    Without an end: as of a recorder that was killed."""
    count = len(functions)
    of_threads = [count] if not threads else [1] * count
    ids = [0] + [1] * (len(of_threads) - 1)
    names, files, lines = zip(*functions)
    none = column([0] * count)
    interval = varint(INTERVAL_NS)
    return b"\x89PYEBPF\n" + struct.pack("<HH", 2, 0) + chunk(
        METADATA, varint(5) + varint(len(interval)) + interval
    ) + chunk(FLUSH, b"".join([
        section(1, varint(len(strings)), column([len(s) for s in strings]), b"\4\1", *strings),
        section(2, varint(count), none * 3, column(differences(names)), column(differences(files)), column(lines), none),
        # a chain of one row for each, whose parent is the empty stack
        section(3, varint(count), varint(count), none, column(list(range(count))), none, column([8] * count)),
        section(4, varint(1), varint(1), column([7])),
        section(5, described(threads or {2: [7]})),
        section(6, varint(count), varint(0), varint(0), varint(len(of_threads)), column(ids),
                column([samples - 1 for samples in of_threads]), none * 7),
    ]))
