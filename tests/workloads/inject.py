# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Has names full of escapes of terminals, C1, bidi controls, HTML, newlines, and what means something to shells,
JSON and YAML, everywhere a profiler looks: functions, files and their text, modules, threads, the process, tasks, labels,
variables.

    inject.py SECONDS FOLDER [ARGUMENT]...

Writes a source file with such a name into FOLDER. Says READY, and ends itself. CPython 3.8 and newer.
"""
import asyncio
import contextvars
import ctypes
import os
import sys
import threading
import time

BAD = ("\x1b]0;PWNED\x07\x1b[31mR\x9b31m\u202eevil\u2066\u200b\u2028\ufeff</script><script>alert(1)</script>"
       "<img src=x onerror=alert(1)>\r\nFAKE LINE 100%\t'\"`$(id)&\\x;|{}\ud800\ufffe")
WHOLE = BAD.replace("\ud800", "")
LONG = 100000
libc = ctypes.CDLL(None)
route = contextvars.ContextVar("route")
source = os.path.join(sys.argv[2], "s\x1b]0;PWNED\x07\u202e.py")
SOURCE = """# {0}
import time
def f(n):
    e = time.time() + n
    while time.time() < e:
        for i in range(10000): pass  # {0}
""".format("\x1b]0;PWNED\x07\x9b31m\u202e\u2028\ufeff</script>\ufffe")


class Failure(Exception):
    pass


class Holder:
    pass


Failure.__name__ = Failure.__qualname__ = Failure.__module__ = WHOLE
Holder.__name__ = Holder.__qualname__ = WHOLE
holder = Holder()
holder.__dict__[BAD] = BAD
Waiting = type("Waiting" + WHOLE, (asyncio.Future,), {})


def make(name, qualname, file):
    scope = {}
    exec(compile(SOURCE, file, "exec"), scope)
    words = {"co_name": name, "co_filename": file}
    if sys.version_info >= (3, 11):
        words["co_qualname"] = qualname
    f = scope["f"]
    f.__code__ = f.__code__.replace(**words)
    return f


def set_name(name):
    libc.prctl(15, ctypes.c_char_p(name), 0, 0, 0)  # PR_SET_NAME


def run_bad(seconds):
    set_name(b"\x1b[31mX\x9b\n<b>'\"")
    locals()[BAD] = BAD
    route.set(BAD)
    text, thing, table = BAD, holder, {BAD: BAD}
    make(BAD, BAD, BAD)(seconds)


def run_long(seconds):
    route.set("x" * LONG)
    make("n\x1b[2J", "q" + "A" * LONG, "/x/" + "B" * LONG + "\x1b[2J.py")(seconds)


def run_empty(seconds):
    make("", "", "")(seconds)


def run_separators(seconds):
    try:
        raise Failure(BAD)
    except Failure:
        make(";", "a;b c", "a b 12;c:1")(seconds)


def run_source(seconds):
    make("in_source", "in_source", source)(seconds)


async def wait_long(seconds):
    await asyncio.sleep(seconds)


async def wait_bad():
    await Waiting()


async def run_tasks(seconds):
    tasks = [asyncio.ensure_future(coroutine) for coroutine in (wait_long(seconds), wait_long(seconds), wait_bad())]
    tasks[0].set_name(BAD)
    tasks[1].set_name("z" * LONG)
    route.set(BAD)
    compute = make(BAD, BAD, BAD)
    end = time.time() + seconds
    while time.time() < end:
        compute(0.05)
        await asyncio.sleep(0.01)


def run_loop(seconds):
    asyncio.run(run_tasks(seconds))


def main():
    seconds = float(sys.argv[1])
    set_name(b"P\x1b[31mR\x9b\n<b>'")
    with open(source, "w", encoding="utf-8") as file:
        file.write(SOURCE)
    runs = ((run_bad, BAD), (run_long, "y" * LONG), (run_empty, ""), (run_separators, ";"), (run_source, WHOLE),
            (run_loop, BAD))
    for run, name in runs:
        thread = threading.Thread(target=run, args=(seconds,))
        thread.daemon = True
        thread.name = name
        thread.start()
    time.sleep(0.3)
    print("READY")
    sys.stdout.flush()
    time.sleep(seconds)
    os._exit(0)


if __name__ == "__main__":
    main()
