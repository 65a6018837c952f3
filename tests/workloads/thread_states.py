# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads with a thread state that is not simply the one that they made. Runs until it is killed.

  forked           a child that was forked from C: the state of a thread that is not there stays, and
                   the next thread gets its stack. Tells the child's pid
  interpreter DO   DO in another interpreter of the same thread, which calls it. Tells its id
  nested DO        the same from that one, in a third. Tells both ids, the innermost first
  new LIB DO       the same in an interpreter that C made, by lend.c. Tells its id
  started LIB      a thread waits in an interpreter that C made, each thread has one state, as in mod_wsgi. Tells
                   nothing
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

STARTED = """
import threading, time
def waits():
    time.sleep(600)
threading.Thread(target=waits).start()
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


INTERPRETERS = """
try:
    import _interpreters as module
except ImportError:
    import _xxsubinterpreters as module
run = getattr(module, "exec", None) or module.run_string
"""

NESTED = """
def middle():
    run(module.create(), %r)
middle()
"""


def case_interpreter(what):
    exec(INTERPRETERS, globals())
    inner = module.create()
    say("READY")
    say(json.dumps([int(inner)]))
    outer(inner, CODE % what)


def case_nested(what):
    exec(INTERPRETERS, globals())
    inner = module.create()
    say("READY")
    say(json.dumps([int(inner) + 1, int(inner)]))
    outer(inner, INTERPRETERS + NESTED % (CODE % what))


def outer(interpreter, code):
    run(interpreter, code)


def case_new(library, what):
    global run
    lend = ctypes.PyDLL(library, mode=ctypes.RTLD_GLOBAL)

    def run(_, code):
        lend.run_in_new_interpreter(code.encode())
    say("READY")
    say(json.dumps([1]))
    outer(None, CODE % what)


def case_started(library):
    lend = ctypes.PyDLL(library, mode=ctypes.RTLD_GLOBAL)
    lend.start_in_new_interpreter(STARTED.encode())
    say("READY")
    main_waits()


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
