# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Has names that break whoever prints them as they are: names.py. READY and its PID.

Escapes of terminals, C1, bidi controls, markup, line ends, quotes, a surrogate, very long ones: as names of
functions, files, threads, the process, a class, variables, tasks and labels.
"""
import asyncio
import ctypes
import os
import sys
import threading
import time

BAD = ("\x1b]0;owned\x07\x1b[31mR\x9b31m\u202eevil\u2066\u200b\u2028</script><img src=x onerror=alert(1)>\r\n"
       "line two 100%s%n\t'\"`$(id)&\\x;|{}\ud800\ufffe")
NAMES = [BAD, "A" * 100000, "\x1b[2J", ";", "a;b c 12", "", "\0", "/../../etc/shadow", "\U0010ffff" * 300]
SOURCE = "def f():\n    while True:\n        sum(range(1000))\n        nap(0.001)\n"
PR_SET_NAME = 15


class Odd(Exception):
    pass


Odd.__name__ = Odd.__qualname__ = BAD.replace("\ud800", "")


def function_called(name):
    scope = {"nap": time.sleep}
    exec(compile(SOURCE, "x.py", "exec"), scope)
    function = scope["f"]
    code = function.__code__
    if hasattr(code, "replace"):
        words = {"co_name": name, "co_filename": "/x/" + name}
        if hasattr(code, "co_qualname"):
            words["co_qualname"] = name * 2
        function.__code__ = code.replace(**words)
    return function


def run(name, function):
    locals()[name] = name
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_NAME, ctypes.c_char_p(name.encode("utf-8", "surrogatepass")[:15]), 0, 0, 0)
    try:
        raise Odd(name)
    except Odd:
        function()


async def tasks():
    for name in NAMES:
        task = asyncio.ensure_future(asyncio.sleep(1000000))
        if hasattr(task, "set_name"):
            task.set_name(name)
    while True:
        sum(range(100000))
        await asyncio.sleep(0.01)


def main():
    for name in NAMES:
        threading.Thread(target=run, name=name, args=(name, function_called(name)), daemon=True).start()
    print("READY %d" % os.getpid())
    sys.stdout.flush()
    asyncio.new_event_loop().run_until_complete(tasks())


if __name__ == "__main__":
    main()
