# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Spins below frames that run no bytecode, made as Nuitka makes those of compiled functions.

    pushed.py LIBRARY SECONDS (of CPU time)

LIBRARY: push.c. first() and second() never run: their frames are pushed, at the line of their call.
The calls are main(), first, between(), second, spin(). Truth: {"lines": {function: line}}.
"""
import ctypes
import json
import sys
import time

MINOR = sys.version_info[1]
HEAD = object.__basicsize__
library = ctypes.PyDLL(sys.argv[1])
library.call_below.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p,
                               ctypes.py_object]
library.call_below.restype = ctypes.py_object
api = ctypes.pythonapi
api.PyFrame_New.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object, ctypes.c_void_p]
api.PyFrame_New.restype = ctypes.py_object
api.PyThreadState_Get.restype = ctypes.c_void_p
CALL = ctypes.cast(api.PyObject_CallObject, ctypes.c_void_p)


def first():

    between()


def second():


    spin()


def word(address, kind=ctypes.c_void_p):
    return kind.from_address(address)


def call_below(function, lines, callable_):
    """With a frame of `function` in between, so many lines below its def."""
    line = function.__code__.co_firstlineno + lines
    tstate = api.PyThreadState_Get()
    frame = api.PyFrame_New(tstate, function.__code__, globals(), None)
    at, current, previous = id(frame), tstate + (72 if MINOR > 12 else 24), -1
    if MINOR < 11:  # f_lineno is behind f_lasti
        word(at + {6: 124, 10: 100}.get(MINOR, 108), ctypes.c_int).value = line
    else:
        word(at + HEAD + 24, ctypes.c_int).value = line
        at = word(at + HEAD + 8).value
        word(at + (40 if MINOR == 11 else 48)).value = id(frame)  # without a reference
        previous = 48 if MINOR == 11 else 8
    if MINOR in (11, 12):
        current = word(tstate + 56).value + (8 if MINOR == 11 else 0)
    library.call_below(current, at, previous, CALL, callable_)
    if MINOR > 10:
        word(at + (40 if MINOR == 11 else 48)).value = None


def spin():
    while time.process_time() < end: pass


def between():
    call_below(second, 3, spin)


def main():
    call_below(first, 2, between)


print("READY")
sys.stdout.flush()
sys.stdin.readline()
end = time.process_time() + float(sys.argv[2])
main()
lines = {f.__name__: f.__code__.co_firstlineno + below
         for f, below in ((first, 2), (second, 3), (spin, 1))}
print(json.dumps({"lines": lines}))
sys.stdout.flush()
sys.stdin.readline()
