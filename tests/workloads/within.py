# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs another workload inside something: its protocol stays its own.

    within.py fork|spawn|forkserver SCRIPT [ARGUMENT...]         a child by multiprocessing
    within.py greenlet|gevent FOLDER SCRIPT [ARGUMENT...]        one; FOLDER holds the package
"""
import multiprocessing
import os
import runpy
import sys


def run(arguments):
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


def child(arguments):
    sys.stdin = os.fdopen(0)  # multiprocessing gives it /dev/null
    run(arguments)


def main():
    kind, arguments = sys.argv[1], sys.argv[2:]
    if kind in ("greenlet", "gevent"):
        sys.path.insert(0, arguments.pop(0))
        if kind == "greenlet":
            import greenlet
            greenlet.greenlet(run).switch(arguments)
        else:
            import gevent
            gevent.spawn(run, arguments).get()
    else:
        process = multiprocessing.get_context(kind).Process(target=child, args=(arguments,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
