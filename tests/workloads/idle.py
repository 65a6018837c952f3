# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that wait for work in all ways of the standard library, and some that wait in their work.

Prints, as waits_recording reads them, "NAME STACK" of each thread: idle ones are called idle-WHAT, as
profile/idle.c calls them, others busy. No thread has more than 5 seconds to get there.
"""
import asyncio
import concurrent.futures
import http.server
import multiprocessing.pool
import queue
import socket
import sys
import threading
import time

FOUND = {}  # thread ident -> name
DONE = threading.Event()


def tell(name):
    FOUND[threading.get_ident()] = name


def named(name, target, *arguments):
    def run():
        tell(name)
        target(*arguments)
    return run


class Worker(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)

    def run(self):
        tell("idle-worker of a queue")
        JOBS.get()


def loop():
    tell("idle-worker of a queue")
    JOBS.get()


def flush():
    tell("idle-timer")
    DONE.wait()


def ask():
    tell("busy")
    answer()


def answer():
    queue.Queue().get()


def nap():
    tell("busy")
    time.sleep(60)


def accept():
    tell("idle-server")
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(1)
    server.accept()


def serve():
    tell("idle-server")
    http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler).serve_forever()


async def forever():
    await asyncio.sleep(3600)


def run_loop():
    tell("idle-event loop")
    asyncio.new_event_loop().run_until_complete(forever())


JOBS = queue.Queue()


def start():
    """Threads that stay."""
    for target in (loop, flush, ask, nap, accept, serve, run_loop):
        threading.Thread(target=target, daemon=True).start()
    Worker().start()
    timer = threading.Timer(3600, print)
    timer.daemon = True
    timer.start()
    FOUND[timer.ident] = "idle-timer"
    pool = concurrent.futures.ThreadPoolExecutor(2)
    list(pool.map(lambda _: tell("idle-pool worker"), range(2)))
    pool.submit(nap)
    try:
        own = multiprocessing.pool.ThreadPool(1)
    except OSError:  # semaphores need a /dev/shm
        return pool, None
    own.apply(tell, ("idle-pool worker",))
    for handler in (own._worker_handler, own._task_handler, own._result_handler):
        FOUND[handler.ident] = "idle-pool manager"
    return pool, own


def stack_of(frame):
    frames = []
    while frame:
        code = frame.f_code
        frames.append("%s:%s" % (code.co_filename, getattr(code, "co_qualname", code.co_name)))
        frame = frame.f_back
    return ";".join(reversed(frames))


def settled(before):
    """Do all threads stand where they stood?"""
    now = {ident: stack_of(frame) for ident, frame in sys._current_frames().items()
           if ident in FOUND}
    return now, now == before and len(now) == len(FOUND)


KEPT, stacks, same = start(), None, 0
END = time.monotonic() + 5
while same < 3 and time.monotonic() < END:
    time.sleep(0.02)
    stacks, is_same = settled(stacks)
    same = same + 1 if is_same else 0
for ident, stack in stacks.items():
    print("%s\t%s;<lock>" % (FOUND[ident], stack))
sys.stdout.flush()
__import__("os")._exit(0)
