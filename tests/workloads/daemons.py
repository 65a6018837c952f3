# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Three daemon threads, each in one wait until the program returns, which is after the seconds of its argument."""
import queue
import sys
import threading
import time

lock, items = threading.Lock(), queue.Queue()


def daemon_sleeps(): time.sleep(60)


def daemon_gets(): items.get()


def daemon_locks(): lock.acquire()


def main_waits(): time.sleep(float(sys.argv[1]))


lock.acquire()
for function in daemon_sleeps, daemon_gets, daemon_locks:
    threading.Thread(target=function, daemon=True).start()
main_waits()
