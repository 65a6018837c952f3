# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""named.py: threads whose names are known, each in a function of its own.

READY, GO, then {"names": {function: [name, ...]}}, EXIT: the names that the thread had, one after the
other; "" for the one that the system has for it. All threads live until then, so that whoever reads
their names may take its time."""
import _thread
import concurrent.futures
import json
import sys
import threading
import time

SECONDS = 0.06  # of CPU time
thread_cpu = getattr(  # 3.6 has no thread_time()
    time, "thread_time", None) or (lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))
names = {}
spun = {}
over = _thread.allocate_lock()


def spin(function, seconds=SECONDS, clock=thread_cpu):
    names.setdefault(function, [])
    end = clock() + seconds
    while clock() < end: pass


def spin_and_stay(function):
    spin(function)
    spun[function].release()
    with over: pass


def by_default(): spin_and_stay("by_default")
def latin(): spin_and_stay("latin")
def cyrillic(): spin_and_stay("cyrillic")
def beyond(): spin_and_stay("beyond")
def long(): spin_and_stay("long")
def subclass(): spin_and_stay("subclass")
def slots(): spin_and_stay("slots")
def opened(): spin_and_stay("opened")
def timer(): spin_and_stay("timer")
def pooled(): spin_and_stay("pooled")


def renamed_at_once():
    threading.current_thread().name = "named by itself"
    spin_and_stay("renamed_at_once")


def renamed_later():
    spin("renamed_later", 0.24, time.perf_counter)
    threading.current_thread().name = "the later name"
    spin("renamed_later", 2.4, time.perf_counter)


def dummy():
    names["dummy"] = [threading.current_thread().name]
    spin_and_stay("dummy")


def without():
    names["without"] = [""]
    spin_and_stay("without")


class Subclass(threading.Thread):
    def __init__(self, **options):
        super().__init__(**options)
        for i in range(40):
            setattr(self, "attribute_%d" % i, i)

    def run(self):
        subclass()


class Slots(threading.Thread):
    __slots__ = ("one", "two")


def start(function, begin):
    """Until it has spun."""
    spun[function] = _thread.allocate_lock()
    spun[function].acquire()
    begin()
    spun[function].acquire()


def main():
    over.acquire()
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
        start(function, thread.start)
        names[function] = [thread.name]
    start("renamed_at_once", threading.Thread(target=renamed_at_once, name="before").start)
    names["renamed_at_once"] = ["named by itself"]
    pool = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="a-pool-of-threads")
    start("pooled", lambda: pool.submit(pooled))
    names["pooled"] = ["a-pool-of-threads_0"]
    start("without", lambda: _thread.start_new_thread(without, ()))
    start("dummy", lambda: _thread.start_new_thread(dummy, ()))
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
    over.release()
