# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The counters of a .pyebpf file (user/store/FORMAT.md: chunks, flush, section 7)."""
HEAD_BYTES = 12
CHUNK_FLUSH = 2
SECTION_COUNTERS = 7


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def counters(path):
    """{name: value}, the last ones in the file."""
    with open(path, "rb") as f:
        data = f.read()
    found = {}
    at = HEAD_BYTES
    while at + 5 < len(data):
        kind = data[at + 4]
        size, at = varint(data, at + 5)
        if kind == CHUNK_FLUSH:
            found = flush_counters(data[at:at + size]) or found
        at += size
    return found


def flush_counters(data):
    at = 0
    while at < len(data):
        section = data[at]
        size, at = varint(data, at + 1)
        if section == SECTION_COUNTERS:
            found = {}
            count, at = varint(data, at)
            for _ in range(count):
                length, at = varint(data, at)
                name = data[at:at + length].decode()
                found[name], at = varint(data, at + length)
            return found
        at += size
    return {}
