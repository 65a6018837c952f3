# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For Nuitka: functions, a generator, a class body and a callback of C, each of which spins.

    compiled_calls SECONDS

Each call's line has a comment with the function that it is in: Nuitka notes the line of a call that may fail."""
import sys
import threading
import time


def spin(until):
    while time.perf_counter() < until:  # spin
        pass


def function(until):

    spin(until)  # function


def generator(until):
    yield None

    yield spin(until)  # generator


def callback(until):

    spin(until)  # callback
    return until


def in_thread(until):

    function(until)  # in_thread


def main():
    share = float(sys.argv[1]) / 4
    now = time.perf_counter()
    function(now + share)
    list(generator(now + 2 * share))
    sorted([now + 3 * share], key=callback)
    thread = threading.Thread(target=in_thread, args=(now + 4 * share,))
    thread.start()
    thread.join()


main()
