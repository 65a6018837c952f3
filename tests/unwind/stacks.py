# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stops in many threads, each in a stack of another shape, and prints what those stacks are.

One JSON line: {"version", "threads": [{"name", "ident", "tid", "frames"}]}, frames leaf first, each
[name, file, first line, line, f_lasti]; then it sleeps until it is killed. Any CPython
from 3.6 on; imports nothing from this folder.
"""
import ctypes
import functools
import json
import os
import platform
import sys
import threading
import time
import types

SLEEP_S = 3600
RECURSION = 900
THREADS = []
noted = threading.Semaphore(0)


def native_id():
    if hasattr(threading, "get_native_id"):  # 3.8
        return threading.get_native_id()
    return ctypes.CDLL(None).syscall(178 if platform.machine() == "aarch64" else 186)  # gettid


def frames_of(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename,
                       code.co_firstlineno, frame.f_lineno, frame.f_lasti])
        frame = frame.f_back
    return frames


def note(frame):
    thread = threading.current_thread()
    THREADS.append({"name": thread.name, "ident": threading.get_ident(), "tid": native_id(),
                    "frames": frames_of(frame)})
    noted.release()


def stop():
    note(sys._getframe()); time.sleep(SLEEP_S)


# --- Shapes. Each is the target of one thread. ---------------------------------------------------


def leaf_itself():
    note(sys._getframe()); time.sleep(SLEEP_S)


def recursion(depth=RECURSION):
    if depth:
        return 1 + recursion(depth - 1)
    return stop()


def closures():
    cells = []

    def outer():
        def inner(a, *args, **keywords):
            cells.append(a)
            return (lambda: [stop() for _ in (1,)])()
        return inner(1, 2, three=3)
    return outer()


def generators():
    def count(n):
        if n:
            yield from count(n - 1)
        else:
            yield 1
            stop()
            yield 2

    def consume(source):
        for value in source:
            yield value

    for _ in range(20):
        next(count(3))  # warm: the interpreter specialises what runs often
    return sum(x for x in consume(consume(count(12))))


def coroutines():
    class Ready:
        def __await__(self):
            yield from ()
            return 1

    async def inner(depth):
        await Ready()
        if depth:
            return await inner(depth - 1)
        return stop()

    async def outer():
        return await inner(10)

    outer().send(None)


def async_generators():
    async def agen():
        yield 1
        stop()
        yield 2

    async def main():
        async for _ in agen():
            pass

    main().send(None)


class Base:
    def __init__(self, is_last):
        self.is_last = is_last
        if is_last:
            self.method()

    def method(self):
        return self.attribute

    @property
    def attribute(self):
        return Derived.build(3)


class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)


class Derived(Base, metaclass=Meta):
    @classmethod
    def build(cls, n):
        return cls.static(n)

    @staticmethod
    def static(n):
        return Derived(False).missing if n else None

    def __init__(self, is_last):
        super().__init__(is_last)

    def __getattr__(self, name):
        if name != "missing":
            raise AttributeError(name)
        return self[7]

    def __getitem__(self, index):
        return stop()


def make_base(is_last):
    return Base(is_last)


def classes():
    for _ in range(50):
        make_base(False)
    return make_base(True)


def through_c():
    def key(value):
        return functools.partial(mapped, value)() if value == 3 else value

    def mapped(value):
        return list(map(functools.reduce, [lambda a, b: stop()], [[1, 2]]))

    return sorted([1, 2, 3], key=key)


def try_finally():
    try:
        raise ValueError("first")
    except ValueError:
        try:
            raise KeyError("second")
        finally:
            with Context():
                pass


class Context:
    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return stop()


def many_lines():
    return functools.partial(
        run_twice,
        lambda: (
            stop
            (
            )
        ),
    )(
        1,
        *[
            2,
        ]
    )


def run_twice(function, *args):
    result = None

    for _ in args:
        result = (result,
                  function())
    return result


def generated(name, file, lines=0, gap=0):
    """A function of that name, in that file, whose call stands behind many lines."""
    source = "\n" * gap + "def %s(stop, a=1):\n" % name
    source += "    a = a + 1\n" * lines + "\n" * gap + "    return stop()\n"
    scope = {}
    exec(compile(source, file, "exec"), scope)
    return scope[name]


def texts():
    functions = [
        generated("ascii_name", "<string>"),
        generated("na\xefve", "/tmp/caf\xe9.py"),
        generated("\u0432\u044b\u0437\u043e\u0432", "/tmp/\u0444\u0430\u0439\u043b.py"),
        generated("emoji", "/tmp/\U0001f40d/a.py"),
        generated("undecodable", "/tmp/\udc80\udcff.py"),
        generated("long_" + "n" * 5000, "/" + "f" * 6000 + ".py"),
        generated("wide", "/" + "\U0001f40d" * 2000 + ".py"),
    ]
    call = stop
    for function in functions:
        call = functools.partial(function, call)
    return call()


def tables():
    functions = [
        generated("long", "<long>", lines=3000),
        generated("gap", "<gap>", gap=70000),
        generated("both", "<both>", lines=700, gap=300),
        generated("huge", "<huge>", lines=30000),
    ]
    call = stop
    for function in functions:
        call = functools.partial(function, call)
    return call()


def replaced_code():
    """A code object that shares all but its name with another one, as decorators make them."""
    def original():
        return stop()

    code = original.__code__
    if hasattr(code, "replace"):  # 3.8
        code = code.replace(co_name="replaced")
    return types.FunctionType(code, globals())()


def find_interpreters():
    """The module that makes subinterpreters, None where it is missing or does not load."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # 3.13, 3.8
        try:
            return __import__(name)
        except ImportError:
            pass
    return None


interpreters = find_interpreters()
SHAPES = [leaf_itself, recursion, closures, generators, coroutines, async_generators, classes,
          through_c, try_finally, many_lines, texts, tables, replaced_code]


def subinterpreter():
    """In a thread state of its own. It tells its frames through a pipe."""
    reader, writer = os.pipe()
    script = "\n".join([
        "import json, os, sys, time",
        "def told():",
        "    f, frames = sys._getframe(1), []",
        "    while f:",
        "        c = f.f_code",
        "        frames.append([getattr(c, 'co_qualname', c.co_name), c.co_filename,",
        "                       c.co_firstlineno, f.f_lineno, f.f_lasti])",
        "        f = f.f_back",
        "    os.write(%d, json.dumps(frames).encode() + b'\\n')" % writer,
        "def inside(n):",
        "    if n: return inside(n - 1)",
        "    told(); time.sleep(%d)" % SLEEP_S,
        "inside(5)"])
    run = functools.partial(interpreters.run_string, interpreters.create(), script)
    thread = {"name": "subinterpreter", "ident": threading.get_ident(), "tid": native_id(),
              "outer": frames_of(sys._getframe()), "reader": reader}
    THREADS.append(thread)
    noted.release()
    run()


def emit():
    for thread in THREADS:
        if "reader" in thread:
            with os.fdopen(thread.pop("reader")) as reader:
                thread["frames"] = json.loads(reader.readline())
    print(json.dumps({"version": list(sys.version_info[:3]), "threads": THREADS}), flush=True)


sys.setrecursionlimit(10000)
threading.stack_size(16 << 20)
shapes = SHAPES + [subinterpreter] * bool(interpreters)
for shape in shapes:
    threading.Thread(target=shape, name=shape.__name__, daemon=True).start()
for shape in shapes:
    noted.acquire()
note(sys._getframe()); emit(); time.sleep(SLEEP_S)
