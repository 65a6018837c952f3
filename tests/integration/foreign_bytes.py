# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files of other profilers made by hand: what no profiler writes. Each function returns bytes."""
import json
import struct

SPEEDSCOPE = '{"$schema":"https://www.speedscope.app/file-format-schema.json",'


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, content):
    """Of protobuf: bytes or a number."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


# pprof: strings of the caller begin at 3.

def pprof(strings, *parts):
    return (field(1, b"\x08\x01\x10\x02") + b"".join(field(6, s) for s in (b"", b"samples", b"count", *strings)) +
            b"".join(parts))


def pprof_function(number, name):
    return field(5, field(1, number) + field(2, name))


def pprof_location(number, functions):
    return field(4, field(1, number) + b"".join(field(4, field(1, f)) for f in functions))


def pprof_sample(locations, *labels):
    """Innermost first. labels: {field of a label: number}."""
    return field(2, field(1, b"".join(map(varint, locations))) + field(2, b"\x01") + b"".join(
        field(3, b"".join(field(number, value) for number, value in label.items())) for label in labels))


# MOJO, of version 3. A number has six bits and a sign, then seven at a time.

def mojo_number(n):
    out, n = [n & 63], n >> 6
    while n:
        out[-1] |= 128
        out.append(n & 127)
        n >>= 7
    return bytes(out)


def mojo(*events):
    return b"MOJ\x03\x01mode\x00wall\x00\x01interval\x00100\x00" + b"".join(events)


def mojo_stack(pid=1, thread=b"1"):
    return b"\x02" + mojo_number(pid) + b"\0" + thread + b"\0"


def mojo_string(key, text):
    return b"\x0b" + mojo_number(key) + text + b"\0"


def mojo_frame(key, file, name):
    return b"\x03" + b"".join(map(mojo_number, (key, file, name, 1, 0, 0, 0)))


def mojo_reference(key):
    return b"\x05" + mojo_number(key)


MOJO_REPEAT = b"\x0d"
MOJO_TIME = b"\x09\x05"  # five us


# The binary format of CPython 3.15's profiling.sampling.

def tachyon(strings, frames, stream, samples, threads=1, is_zstd=False):
    """frames: (file, name, line), indices of strings. stream: records, packed if is_zstd."""
    texts = b"".join(varint(len(s)) + s for s in strings)
    table = b"".join(varint(file) + varint(name) + varint(2 * line) + b"\0\0\0\xff" for file, name, line in frames)
    string_at = 64 + len(stream)
    frame_at = string_at + len(texts)
    head = struct.pack("<4sIBBBBQQQIQQII", b"HCAT", 1, 3, 15, 2, 0, 0, 1000, samples, threads, string_at, frame_at,
                       int(is_zstd), 0x59)
    size = frame_at + len(table) + 32
    return head + stream + texts + table + struct.pack("<IIQ16s", len(strings), len(frames), size, b"")


def tachyon_record(thread, kind, *numbers):
    """kind 0: repeat, 1: all frames, 3: pop and push; after its time and status."""
    head = struct.pack("<QIB", thread, 0, kind)
    return head + (b"" if kind == 0 else b"\x01\x00") + b"".join(map(varint, numbers))


# speedscope

def speedscope(frames, profiles, exporter=None):
    return (SPEEDSCOPE + ('"exporter":%s,' % json.dumps(exporter) if exporter else "") +
            '"shared":{"frames":[%s]},"profiles":[%s]}' % (",".join(frames), ",".join(profiles))).encode()


def speedscope_sampled(stacks, name="p"):
    return ('{"type":"sampled","name":"%s","unit":"none","startValue":0,"endValue":1,"samples":[%s],"weights":[%s]}' %
            (name, ",".join(stacks), ",".join("1" for _ in stacks)))


def speedscope_evented(events):
    """(opens, frame, time)"""
    return ('{"type":"evented","name":"p","unit":"nanoseconds","startValue":0,"endValue":1,"events":[%s]}' % ",".join(
        '{"type":"%s","frame":%d,"at":%d}' % ("CO"[opens], frame, at) for opens, frame, at in events))
