# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Rewrites what a profiler reads of it, through ctypes, while threads of it run.

    hostile.py SECONDS [SEED]

Two threads recurse and then compute in C with the GIL released, for ever: nobody but a profiler
looks at their frames, so these can be anything. The main thread writes wild and almost right values
into their frames, code objects, names, line tables and thread states, and into the list of threads.
Says READY and its PID; exits with 0 after SECONDS if it has not killed itself. CPython 3.11 to 3.15.
"""
import ctypes
import gc
import hashlib
import os
import random
import struct
import sys
import threading
import time

MINOR = sys.version_info[1]
ARENA_BYTES = 1 << 18
DEPTH = 12
# Offsets as in target/offsets.c; from 3.13 on the interpreter says them: see debug_offsets().
OLD = {
    11: dict(frame=56, cframe=8, next=8, prev=0, interp=16, thread_id=152, native_id=160,
             code=32, previous=48, instr=56, owner=69, threads_head=16,
             filename=112, name=120, qualname=128, linetable=136, firstlineno=72,
             bytes_size=16, bytes_data=32, str_length=16, str_state=32),
    12: dict(frame=56, cframe=0, next=8, prev=0, interp=16, thread_id=136, native_id=144,
             code=0, previous=8, instr=56, owner=70, threads_head=72,
             filename=112, name=120, qualname=128, linetable=136, firstlineno=68,
             bytes_size=16, bytes_data=32, str_length=16, str_state=32),
}
# Where _Py_DebugOffsets has them: target/debug_offsets.c.
TABLE = {
    13: dict(threads_head=72, prev=160, next=168, interp=176, frame=184, thread_id=192,
             native_id=200, previous=232, code=240, instr=248, owner=264, filename=280, name=288,
             qualname=296, linetable=304, firstlineno=312, bytes_data=528, str_state=544,
             str_length=552),
    14: dict(threads_head=72, prev=184, next=192, interp=200, frame=208, thread_id=216,
             native_id=224, previous=256, code=264, instr=272, owner=288, filename=320, name=328,
             qualname=336, linetable=344, firstlineno=352, bytes_data=608, str_state=624,
             str_length=632),
    15: dict(threads_head=72, prev=184, next=192, interp=200, frame=208, thread_id=240,
             native_id=248, previous=320, code=328, instr=336, owner=352, filename=384, name=392,
             qualname=400, linetable=408, firstlineno=416, bytes_data=704, str_state=720,
             str_length=728),
}


def debug_offsets():
    table = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    off = {key: read(table + at) for key, at in TABLE[MINOR].items()}
    return dict(off, cframe=None, bytes_size=16)


def read(address):
    return ctypes.c_uint64.from_address(address).value


def write(address, value, size=8):
    ctypes.memmove(address, struct.pack("<Q", value & (1 << 64) - 1)[:size], size)


def victim_source(number):
    # Names and line tables of their own, so that the standard library's stay whole.
    return ("def victim_%d(depth):\n" % number + "".join("\n    pass" for _ in range(300)) +
            "\n    if depth: return victim_%d(depth - 1)\n"
            "    states.append(get())\n"
            "    hashlib.pbkdf2_hmac('sha256', b'x', b'y', 1 << 30)\n") % number


def start_victims(count):
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    get.argtypes = []
    scope = {"hashlib": hashlib, "states": [], "get": get}
    for number in range(count):
        exec(compile(victim_source(number), "/hostile/victim-%d.py" % number, "exec"), scope)
        threading.Thread(target=scope["victim_%d" % number], args=(DEPTH,), daemon=True).start()
    while len(scope["states"]) < count:
        time.sleep(0.01)
    time.sleep(0.1)  # until they have let go of the GIL
    return scope["states"]


class Field:
    """A place to write to, and what belongs there."""

    def __init__(self, address, size=8):
        self.address, self.size = address, size
        self.value = read(address)

    def restore(self):
        write(self.address, self.value, self.size)


def fields_of(states, off):
    """All that may be written, and the addresses worth pointing to."""
    fields, addresses = [], list(states)
    for state in states:
        fields += [Field(state + off[key]) for key in ("next", "prev", "interp", "thread_id",
                                                       "native_id", "frame")]
        frame = read(state + off["frame"])
        if off["cframe"] is not None:
            fields.append(Field(frame + off["cframe"]))
            frame = read(frame + off["cframe"])
        for _ in range(DEPTH):
            addresses.append(frame)
            fields += [Field(frame + off[key]) for key in ("code", "previous", "instr")]
            fields.append(Field(frame + off["owner"], 1))
            code = read(frame + off["code"]) & ~3
            frame = read(frame + off["previous"])
        addresses.append(code)
        fields.append(Field(code + off["firstlineno"], 4))
        for key in ("filename", "name", "qualname", "linetable"):
            fields.append(Field(code + off[key]))
            addresses.append(read(code + off[key]))
        for key in ("filename", "name", "qualname"):
            text = read(code + off[key])
            fields += [Field(text + off["str_length"]), Field(text + off["str_state"], 4)]
        table = read(code + off["linetable"])
        fields.append(Field(table + off["bytes_size"]))
        fields += [Field(table + off["bytes_data"] + at) for at in range(0, 64, 8)]
    # Only for moments: new threads, of which there are none, would need it.
    fields.append(Field(read(states[0] + off["interp"]) + off["threads_head"]))
    return fields, addresses


def main():
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    gc.disable()
    off = OLD[MINOR] if MINOR in OLD else debug_offsets()
    states = start_victims(2)
    fields, addresses = fields_of(states, off)
    arena = ctypes.create_string_buffer(ARENA_BYTES)
    base = ctypes.addressof(arena)
    chance = random.Random(seed)

    def wild():
        return chance.choice((
            lambda: chance.choice(addresses),
            lambda: chance.choice(addresses) + chance.randrange(-64, 64),
            lambda: base + chance.randrange(ARENA_BYTES) & ~7,
            lambda: base + chance.randrange(ARENA_BYTES),
            lambda: chance.getrandbits(64),
            lambda: 1 << chance.randrange(64),
            lambda: (1 << chance.randrange(64)) - 1,
            lambda: 0xffff888000000000 + chance.getrandbits(30),
            lambda: chance.randrange(4096),
            lambda: -chance.randrange(4096)))()

    print("READY %d" % os.getpid())
    sys.stdout.flush()
    end, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        rounds += 1
        # The arena: frames, code objects and strings that are almost right, chained at random.
        for _ in range(16):
            source, size = chance.choice(addresses[2:]), chance.choice((64, 128, 256))
            ctypes.memmove(base + (chance.randrange(ARENA_BYTES - 512) & ~7), source, size)
        for _ in range(16):
            write(base + (chance.randrange(ARENA_BYTES - 8) & ~7), wild())
        written = chance.sample(fields, chance.choice((1, 1, 2, 4, 16)))
        for field in written:
            write(field.address, wild(), field.size)
        time.sleep(chance.choice((0, 0.0005, 0.002)))
        for field in written:
            field.restore()
        if chance.random() < 0.2:
            time.sleep(0.001)  # a moment of peace, so that names are learnt anew
    print("DONE %d" % rounds)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
