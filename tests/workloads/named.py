# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""named.py: threads whose names are known, each in a function of its own.

READY, GO, then {"names": {function: [name, ...]}}: the names that the thread had, one after the
other; "" for the one that the system has for it."""
import _thread
import concurrent.futures
import json
import sys
import threading
import time

SECONDS = 0.12
names = {}


def spin(function, seconds=SECONDS):
    names.setdefault(function, [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end: pass


def by_default(): spin("by_default")
def latin(): spin("latin")
def cyrillic(): spin("cyrillic")
def beyond(): spin("beyond")
def long(): spin("long")
def subclass(): spin("subclass")
def slots(): spin("slots")
def opened(): spin("opened")
def timer(): spin("timer")
def pooled(): spin("pooled")


def renamed_at_once():
    threading.current_thread().name = "named by itself"
    spin("renamed_at_once")


def renamed_later():
    spin("renamed_later", 2 * SECONDS)
    threading.current_thread().name = "the later name"
    spin("renamed_later", 2.4)


def dummy():
    names["dummy"] = [threading.current_thread().name]
    spin("dummy")


def without():
    names["without"] = [""]
    spin("without")


class Subclass(threading.Thread):
    def __init__(self, **options):
        super().__init__(**options)
        for i in range(40):
            setattr(self, "attribute_%d" % i, i)

    def run(self):
        subclass()


class Slots(threading.Thread):
    __slots__ = ("one", "two")


def start(thread):
    thread.start()
    thread.join()


def without_threading(function):
    done = _thread.allocate_lock()
    done.acquire()

    def run():
        try:
            function()
        finally:
            done.release()
    _thread.start_new_thread(run, ())
    done.acquire()


def main():
    later = threading.Thread(target=renamed_later, name="the first name")
    later.start()
    threads = {
        "by_default": threading.Thread(target=by_default),
        "latin": threading.Thread(target=latin, name="caf\u00e9 \u00fcber"),
        "cyrillic": threading.Thread(target=cyrillic, name="\u0440\u0430\u0431\u043e\u0442\u0430-\u2116 7"),
        "beyond": threading.Thread(target=beyond, name="\U0001f40d snake"),
        "long": threading.Thread(target=long, name="0123456789" * 40),
        "subclass": Subclass(name="of a subclass"),
        "slots": Slots(target=slots, name="with slots"),
        "opened": threading.Thread(target=opened, name="with a dict"),
        "timer": threading.Timer(0.01, timer),
    }
    threads["opened"].__dict__["more"] = 1
    for function, thread in threads.items():
        start(thread)
        names[function] = [thread.name]
    start(threading.Thread(target=renamed_at_once, name="before"))
    names["renamed_at_once"] = ["named by itself"]
    with concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="a-pool-of-threads") as pool:
        pool.submit(pooled).result()
    names["pooled"] = ["a-pool-of-threads_0"]
    without_threading(without)
    without_threading(dummy)
    later.join()
    names["renamed_later"] = ["the first name", "the later name"]
    print(json.dumps({"names": names}))
    sys.stdout.flush()


if __name__ == "__main__":
    print("READY")
    sys.stdout.flush()
    sys.stdin.readline()
    main()
    sys.stdin.readline()
