# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Rewrites memory of its own that a profiler reads, from a thread without the GIL. CPython 3.6 to 3.15.

    scribbles.py LIBRARY SEED WHAT[,WHAT]

WHAT: frames, code, strings, lines, threads, tasks, labels, values, runtime, elf. Victims compute in C for
ever, so only a profiler reads what is rewritten. READY and its PID once scribble.c's thread runs.
"""
import asyncio
import ctypes
import gc
import os
import sys
import threading
import time

try:
    import contextvars
except ImportError:  # 3.6
    contextvars = None

MINOR = sys.version_info[1]
FRAME_BYTES = 120  # of an interpreter's frame: its head, some locals
THREAD_STATE_BYTES = 128  # of all versions: longer
DEBUG_OFFSETS_BYTES = 768  # of _Py_DebugOffsets, which the interpreter itself does not read
MAPPED_BYTES = 4096  # ELF header and program headers
GC_HEAD_BYTES = {6: 32, 7: 24}.get(MINOR, 16)  # counted by sys.getsizeof()
PROT_READ, PROT_WRITE = 1, 2
WORD = ctypes.sizeof(ctypes.c_void_p)
FRAME_OF_FRAME_OBJECT = 3 * WORD  # PyFrameObject.f_frame, 3.11 and newer
LIBC = ctypes.CDLL(None, use_errno=True)
SCRIBBLE = ctypes.CDLL(sys.argv[1])  # its functions run without the GIL
VICTIM = """
def victim_{0}(depth, values):
    {1}
    if depth:
        return victim_{0}(depth - 1, values)
    begin()
    compute()
"""


def word_at(address):
    return ctypes.c_uint64.from_address(address).value


class Victims:
    """Threads that will compute for ever, and what belongs to them."""

    def __init__(self, count):
        self.codes, self.frames, self.states, self.values, self.contexts = [], [], [], [], []
        self.begun = threading.Semaphore(0)
        for number in range(count):
            self.start(number)
        for _ in range(count):
            self.begun.acquire()
        time.sleep(0.2)  # they have let go of the GIL

    def begin(self):
        get = ctypes.pythonapi.PyThreadState_Get
        get.restype, get.argtypes = ctypes.c_void_p, []
        self.states.append(get())
        frame = sys._getframe(1)  # pylint: disable=protected-access
        while frame:
            self.frames.append(frame)
            frame = frame.f_back
        if contextvars:
            self.contexts.append(contextvars.copy_context())
        self.begun.release()

    def start(self, number):
        name = "hostile-%d.py" % number
        scope = {"compute": SCRIBBLE.compute, "begin": self.begin}
        exec(compile(VICTIM.format(number, "\n    ".join(["pass"] * 200)), name, "exec"), scope)
        function = scope["victim_%d" % number]
        values = [["text %d" % number, 1.5, {"key": ("tuple", 2 ** 80)}], {"a": [b"bytes"], "b": {3, 4}}]
        self.codes.append(function.__code__)
        self.values += values

        def run():
            if contextvars:
                ROUTE.set("/route/%d" % number)
            function(12, values)
        threading.Thread(target=run, name="hostile %d" % number, daemon=True).start()


if contextvars:
    ROUTE = contextvars.ContextVar("route")


class Tasks:
    """An event loop whose tasks wait for ever, as their loop's thread computes for ever."""

    def __init__(self):
        self.tasks = []
        self.begun = threading.Event()
        threading.Thread(target=self.run, name="loop", daemon=True).start()
        self.begun.wait()
        time.sleep(0.2)

    def run(self):
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(self.main())

    async def leaf(self):
        await asyncio.get_event_loop().create_future()

    async def parent(self):
        await asyncio.gather(*[self.spawn(self.leaf()) for _ in range(3)])

    def spawn(self, coroutine):
        self.tasks.append(asyncio.ensure_future(coroutine))
        return self.tasks[-1]

    async def main(self):
        for _ in range(3):
            self.spawn(self.parent())
        await asyncio.sleep(0.05)
        self.begun.set()
        SCRIBBLE.compute()


def whole(thing):
    """An object without the head of the garbage collector."""
    head = GC_HEAD_BYTES if gc.is_tracked(thing) else 0
    return id(thing), (sys.getsizeof(thing) - head) & ~7


def frame_regions(frames):
    for frame in frames:
        if MINOR >= 11:
            yield word_at(id(frame) + FRAME_OF_FRAME_OBJECT), FRAME_BYTES
        yield whole(frame) if MINOR < 11 else (id(frame), 56)


def task_regions(tasks):
    for task in tasks:
        yield whole(task)
        coroutine = getattr(task, "_coro", None)
        waiter = getattr(task, "_fut_waiter", None)
        for thing in (coroutine, waiter, getattr(coroutine, "cr_code", None)):
            if thing is not None:
                yield whole(thing)


def label_regions(contexts):
    for context in contexts:
        yield id(context), 48
        yield word_at(id(context) + 3 * WORD) or id(context), 48  # ctx_vars, a HAMT
    if contextvars:
        yield id(ROUTE), 48


def runtime_regions():
    """Debug offsets, which only others read; older runtimes have none."""
    if MINOR >= 13:
        yield ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")), DEBUG_OFFSETS_BYTES


def elf_regions():
    """ELF and program headers of what is mapped, made writable: private pages."""
    with open("/proc/self/maps") as f:
        lines = f.readlines()
    for line in lines:
        span, _, offset = line.split()[:3]
        start = int(span.partition("-")[0], 16)
        is_python = "python" in line.rpartition("/")[2]
        if is_python and int(offset, 16) == 0 and ctypes.string_at(start, 4) == b"\x7fELF":
            if LIBC.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(MAPPED_BYTES), PROT_READ | PROT_WRITE) == 0:
                yield start, 1024


def texts_of(code):
    return {id(text): text for text in (code.co_name, code.co_filename, getattr(code, "co_qualname", ""))
            if text}.values()


def regions_of(kinds, victims, tasks):
    tables = [code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab for code in victims.codes]
    found = {
        "frames": lambda: frame_regions(victims.frames),
        "code": lambda: [whole(code) for code in victims.codes],
        "strings": lambda: [whole(text) for code in victims.codes for text in texts_of(code)],
        "lines": lambda: [whole(table) for table in tables],
        "threads": lambda: [(state, THREAD_STATE_BYTES) for state in victims.states],
        "tasks": lambda: task_regions(tasks.tasks),
        "labels": lambda: label_regions(victims.contexts),
        "values": lambda: [whole(value) for value in victims.values],
        "runtime": runtime_regions,
        "elf": elf_regions,
    }
    return [region for kind in kinds for region in found[kind]()]


def allocate():
    """Memory and the GIL, for modes that record these."""
    while True:
        list(range(20000))
        time.sleep(0.002)


def main():
    seed, kinds = int(sys.argv[2]), sys.argv[3].split(",")
    gc.disable()
    victims, tasks = Victims(2), Tasks()
    regions = regions_of(kinds, victims, tasks)
    flat = (ctypes.c_uint64 * max(2 * len(regions), 1))(*[number for region in regions for number in region])
    if regions and SCRIBBLE.scribble_start(flat, ctypes.c_uint64(len(regions)), ctypes.c_uint64(seed)):
        sys.exit("no thread")
    print("READY %d" % os.getpid())
    sys.stdout.flush()
    threading.Thread(target=allocate, daemon=True).start()
    allocate()


if __name__ == "__main__":
    main()
