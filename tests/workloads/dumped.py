# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads whose stacks and waits are known.

    dumped.py states         a thread for each of STATES. READY, GO, then {"threads": {tid: {"name",
                             "wait", "frames": [[name, file, line], ...] root first}}}, EXIT
    dumped.py churn THREADS  threads that go down two chains of calls in turn, for ever. READY
    dumped.py runs           the same two chains, on the main thread, without a pause. READY, GO
    dumped.py alike THREADS  threads that wait for one event. READY
    dumped.py storm          a thread that collects garbage again and again; the main one wants the GIL.
                             READY
    dumped.py leaderless     one thread that waits; the main thread has ended. READY
"""
import fcntl
import gc
import json
import os
import select
import shutil
import socket
import sys
import tempfile
import threading
import time

DEPTH = 40
LONG = 600
never, all_are_there = threading.Event(), threading.Event()
held, first, second = threading.Lock(), threading.RLock(), threading.RLock()
has_held = threading.Event()
both = threading.Barrier(2)


def holds_lock():
    with held:
        has_held.set()
        time.sleep(LONG)


def waits_for_lock():
    has_held.wait()
    with held: pass


def locks(mine, other):
    with mine:
        both.wait()
        with other: pass


def first_to_second(): locks(first, second)
def second_to_first(): locks(second, first)
def reads_socket(): PAIR[0].recv(1)
def reads_pipe(): os.read(PIPE[0], 1)
def polls(): select.select([PAIR[0]], [], [])
def sleeps(): time.sleep(LONG)
def waits_for_process(): os.waitpid(CHILD, 0)
def waits_for_flock(): fcntl.flock(FILES[1], fcntl.LOCK_EX)
def waits_for_lockf(): fcntl.lockf(FILES[1], fcntl.LOCK_EX)
def waits_for_event(): never.wait()


def handles():
    try:
        raise KeyError("why")
    except KeyError:
        time.sleep(
            LONG)


def in_generators():
    def inner():
        yield never.wait()

    def outer():
        for x in inner():
            yield x
    return [y for y in outer()]


def recurses(depth=300):
    return recurses(depth - 1) if depth else never.wait()


class Made:
    def __init__(self, is_last):
        if is_last: never.wait()


def makes():
    """From 3.13 on the interpreter has a frame of its own below the __init__ of a call that is hot."""
    for i in range(1000):
        Made(i == 999)


STATES = {holds_lock: "sleep", waits_for_lock: "lock", first_to_second: "lock",
          second_to_first: "lock", reads_socket: "read: socket", reads_pipe: "read: pipe",
          polls: "poll", sleeps: "sleep", waits_for_process: "wait: process",
          waits_for_flock: "lock: file", waits_for_lockf: "lock: file", waits_for_event: "lock", handles: "sleep", in_generators: "lock", recurses: "lock",
          makes: "lock"}


def frames_of(frame):
    found = []
    while frame:
        code = frame.f_code
        found.append([getattr(code, "co_qualname", code.co_name), code.co_filename,
                      frame.f_lineno])
        frame = frame.f_back
    return found[::-1]


def fork_that_ends_with_us():
    """And that has the locks of a file."""
    ends, ours = os.pipe()
    has_locks, tells = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        fcntl.lockf(FILES[0], fcntl.LOCK_EX)
        fcntl.flock(FILES[0], fcntl.LOCK_EX)
        os.write(tells, b"x")
        os.read(ends, 1)
        os._exit(0)
    os.read(has_locks, 1)
    FILES[0].close()
    return child


def states():
    global PAIR, PIPE, CHILD, FILES
    PAIR, PIPE = socket.socketpair(), os.pipe()
    path = os.path.join(tempfile.mkdtemp(), "it is locked")
    FILES = open(path, "w"), open(path, "w")
    CHILD = fork_that_ends_with_us()
    threads = {}
    for function in STATES:
        threads[function] = threading.Thread(target=function, name="it " + function.__name__,
                                             daemon=True)
        threads[function].start()
    print("READY", flush=True)
    sys.stdin.readline()
    now = sys._current_frames()
    print(json.dumps({"threads": {thread.native_id: {
        "name": thread.name, "wait": STATES[function], "frames": frames_of(now[thread.ident])}
        for function, thread in threads.items()}}), flush=True)
    shutil.rmtree(os.path.dirname(path))
    sys.stdin.readline()


def work(turns):
    x = 0
    for i in range(turns):
        x += i * i
    if turns % 7 == 0:
        time.sleep(0.0002)
    return x


def left(depth, turns):
    if depth:
        return left(depth - 1, turns)
    return left_leaf(turns)


def right(depth, turns):
    if depth:
        return right(depth - 1, turns)
    return right_leaf(turns)


def left_leaf(turns): return work(turns)
def right_leaf(turns): return work(turns)


def churns(seed):
    turns = seed
    while True:
        turns = (turns * 5 + 3) % 97
        left(DEPTH, turns)
        right(DEPTH, turns)


def churns_then(seed):
    all_are_there.wait()  # it takes long to start one beside hundreds that run
    churns(seed)


def runs():
    print("READY", flush=True)
    sys.stdin.readline()
    while True:
        left(DEPTH, 5)
        right(DEPTH, 5)


def many(function, count):
    for i in range(count):
        threading.Thread(target=churns_then if function is churns else function,
                         args=(i,) if function is churns else (), daemon=True,
                         name="%s %d" % (function.__name__, i)).start()
    all_are_there.set()
    print("READY", flush=True)
    sys.stdin.readline()


class Node:
    def __init__(self):
        self.me = self


def collects():
    while True:
        gc.collect()


def wants_gil():
    x = 0
    while True:
        x += 1


def storm():
    global KEPT
    KEPT = [Node() for _ in range(300000)]
    threading.Thread(target=collects, name="it collects", daemon=True).start()
    print("READY", flush=True)
    wants_gil()


def leaderless():
    threading.Thread(target=waits_for_event, name="the one that is left").start()
    print("READY", flush=True)
    import ctypes  # not every interpreter has it
    ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)  # exit


if __name__ == "__main__":
    if sys.argv[1] == "states":
        states()
    elif sys.argv[1] == "storm":
        storm()
    elif sys.argv[1] == "leaderless":
        leaderless()
    elif sys.argv[1] == "runs":
        runs()
    else:
        many({"churn": churns, "alike": waits_for_event}[sys.argv[1]], int(sys.argv[2]))
    os._exit(0)
