# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads with a thread state that is not simply the one that they made. Runs until it is killed.

  forked           a child that was forked from C: the state of a thread that is not there stays, and
                   the next thread gets its stack. Tells the child's pid
  interpreter      waits in another interpreter of the same thread
  lent LIB HOW DO  one thread runs a state that the main thread made, by lend.c: HOW python or c
                   (whose thread it is), DO spins or waits. Tells nothing
"""
import ctypes
import json
import os
import sys
import threading
import time

CODE = """
import time
def spins():
    while True: sum(range(100))
def waits():
    time.sleep(600)
%s()
"""


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def ghost():
    time.sleep(600)


def work():
    time.sleep(600)


def main_waits():
    time.sleep(600)


def start(function, *arguments):
    threading.Thread(target=function, name=function.__name__, args=arguments, daemon=True).start()


def case_forked():
    start(ghost)
    time.sleep(0.3)
    child = ctypes.PyDLL(None).fork()
    if child:
        say("READY")
        say(json.dumps(child))
        os.waitpid(child, 0)
    else:
        start(work)
        main_waits()


def case_interpreter():
    try:
        import _interpreters as module
    except ImportError:
        import _xxsubinterpreters as module
    say("READY")
    outer(getattr(module, "exec", None) or module.run_string, module.create())


def outer(run, interpreter):
    run(interpreter, CODE % "waits")


def borrow(function, state, code):
    function(state, code)


def case_lent(library, how, what):
    api = ctypes.pythonapi
    for name in ("PyInterpreterState_Head", "PyThreadState_New"):
        getattr(api, name).restype = ctypes.c_void_p
    api.PyThreadState_New.argtypes = [ctypes.c_void_p]
    lend = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    function = lend.run_lent if how == "python" else lend.run_lent_in_c
    function.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    state = api.PyThreadState_New(api.PyInterpreterState_Head())
    start(borrow, function, state, (CODE % what).encode())
    time.sleep(0.2)
    say("READY")
    main_waits()


globals()["case_" + sys.argv[1]](*sys.argv[2:])
