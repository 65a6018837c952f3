# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a tracer publishes for readers outside: OTEP 4719 of the process, 4947 of its threads.

    otel_published.py SECONDS LIBRARY [LATE]

LIBRARY: otel_thread.c, compiled. LATE: it all begins after GO only. Whatever runs in a context is in a function that
is named after it: in_<trace id>_<span id>_<route>, in_none. Truth: the names of those that ran.
"""
import ctypes
import json
import mmap
import os
import random
import struct
import sys
import threading
import time

from named_spins import NAMES, spin

SECONDS, LIBRARY = float(sys.argv[1]), sys.argv[2]
IS_LATE = len(sys.argv) > 3
PR_SET_VMA, PR_SET_VMA_ANON_NAME = 0x53564D41, 0
RESOURCE = {"service.name": b"checkout", "service.version": b"\xe2\x82\xac1", "host.cpus": 4, "is.test": True,
            "not a name!": b"x", "wait": b"x"}
KEYS = [b"http.route", b"user", b"not a name!"]
ROUTES = ["orders", "users", "x" * 80]
LIBC = ctypes.CDLL(None, use_errno=True)


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, value):
    if isinstance(value, bool):
        return varint(number << 3) + varint(value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def any_value(value):
    if isinstance(value, list):
        return field(5, b"".join(field(1, any_value(item)) for item in value))
    return field(2 if isinstance(value, bool) else 3 if isinstance(value, int) else 1, value)


def pair(key, value):
    return field(1, key.encode()) + field(2, any_value(value))


MESSAGE = field(1, b"".join(field(1, pair(*item)) for item in RESOURCE.items())) \
    + field(2, pair("threadlocal.schema_version", b"tlsdesc_v1_dev")) \
    + field(2, pair("threadlocal.attribute_key_map", KEYS))


def publish_process():
    """A mapping that is ours alone, as a child's would be."""
    fd = os.memfd_create("OTEL_CTX") if hasattr(os, "memfd_create") else -1
    if fd >= 0:
        os.ftruncate(fd, mmap.PAGESIZE)
    area = mmap.mmap(fd, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | (0 if fd >= 0 else mmap.MAP_ANONYMOUS),
                     prot=mmap.PROT_READ | mmap.PROT_WRITE)
    at = ctypes.addressof(ctypes.c_char.from_buffer(area))
    payload = ctypes.create_string_buffer(MESSAGE)
    area[:32] = b"OTEL_CTX" + struct.pack("=IIQQ", 2, len(MESSAGE), 0, ctypes.addressof(payload))
    area[16:24] = struct.pack("=Q", time.monotonic_ns())
    LIBC.prctl(PR_SET_VMA, ctypes.c_ulong(PR_SET_VMA_ANON_NAME), ctypes.c_ulong(at),
               ctypes.c_ulong(mmap.PAGESIZE), b"OTEL_CTX")
    return area, payload


def load():
    library = ctypes.CDLL(LIBRARY)
    library.publish.argtypes = [ctypes.c_void_p]
    return library.publish


def attribute(key, value):
    return bytes([key, len(value)]) + value


def context(publish, route, is_valid=True):
    trace, span = random.getrandbits(128) | 1, random.getrandbits(64) | 1
    attributes = attribute(0, b"old") + attribute(1, b"") + attribute(2, b"x") + attribute(9, b"x") \
        + attribute(0, route.encode())
    record = ctypes.create_string_buffer(
        trace.to_bytes(16, "big") + span.to_bytes(8, "big") + bytes([is_valid, 1])
        + struct.pack("=H", len(attributes)) + attributes)
    publish(record)
    spin("in_%032x_%016x_%s" % (trace, span, route) if is_valid else "in_none")
    publish(None)


def run(publish):
    end = time.thread_time() + SECONDS / 2
    while time.thread_time() < end:
        spin("in_none")
        for route in ROUTES:
            context(publish, route)
        context(publish, "none", is_valid=False)


def main():
    if not IS_LATE:
        kept, publish = publish_process(), load()
    print("READY", flush=True)
    sys.stdin.readline()
    if IS_LATE:
        kept, publish = publish_process(), load()
    thread = threading.Thread(target=run, args=(publish,))
    thread.start()
    run(publish)
    thread.join()
    print(json.dumps(sorted(NAMES)), flush=True)
    sys.stdin.readline()
    del kept


if __name__ == "__main__":
    main()
