# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads that wait and compute for known times.

    waits.py stretches SECONDS      a thread for each reason to wait, and one that computes
    waits.py mixed COUNT            sleeps of 30, 3 and 0.3 ms in any order, each in its own function
    waits.py crowd THREADS          threads that sleep until the end
    waits.py gil SECONDS spin|c|late    two threads compute; C calls that keep the GIL; late sleepers
    waits.py queue SECONDS          one that sleeps while another process takes its CPU for so long
    waits.py brief THREADS          threads of a few milliseconds, one after the other

Truth: {"stretches": [{"tid", "function", "reason", "wall", "cpu", "delay"}], "lives": {tid: seconds},
"around": {tid: seconds}}: seconds that the thread was in the function, computed in it, and waited for a
CPU after it could have run; from its first line to its last one, and from before its start to after it
was joined. crowd: {"tids"}.
"""
import fcntl
import itertools
import json
import os
import random
import select
import socket
import sys
import tempfile
import threading
import time

clock = time.monotonic
thread_cpu = getattr(  # 3.6 has no thread_time()
    time, "thread_time", None) or (lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))
native_id = getattr(  # nor has 3.7 get_native_id()
    threading, "get_native_id", None) or (lambda: int(os.readlink("/proc/thread-self").rpartition("/")[2]))
NS = 1e9
lives, around, stretches = {}, {}, []


def delay():
    """Seconds that this thread waited in line for a CPU, woken or preempted, where that is to be had."""
    if not os.path.exists("/proc/thread-self/schedstat"):
        return 0
    with open("/proc/thread-self/schedstat") as f:
        return int(f.read().split()[1]) / NS


def measure(function, reason, *arguments):
    waited = delay()  # outside of what is measured: it may take long itself
    wall, cpu = clock(), thread_cpu()
    function(*arguments)
    wall, cpu = clock() - wall, thread_cpu() - cpu
    stretches.append({"tid": native_id(), "function": function.__name__, "reason": reason, "wall": wall,
                      "cpu": cpu, "delay": delay() - waited})


class Thread(threading.Thread):
    """Measures its life, and what it does in it."""

    def __init__(self, function, reason, *arguments):
        threading.Thread.__init__(self, name="of-" + function.__name__)
        self.call = function, reason, arguments

    def run(self):
        began = clock()
        function, reason, arguments = self.call
        measure(function, reason, *arguments)
        self.tid = native_id()
        lives[self.tid] = clock() - began


def run(*threads):
    began = {}
    for thread in threads:
        began[thread] = clock()
        thread.start()
    for thread in threads:
        thread.join()
        around[getattr(thread, "tid", None)] = clock() - began[thread]


def computes(seconds):
    end = thread_cpu() + seconds
    while thread_cpu() < end:
        pass


def sleeps(seconds):
    time.sleep(seconds)


def locks(lock):
    with lock:
        pass


def reads_pipe(fd):
    os.read(fd, 1)


def reads_socket(end):
    end.recv(1)


def polls(end):
    select.select([end], [], [])


def fork_sleeper(seconds):
    child = os.fork()
    if not child:
        time.sleep(seconds)
        os._exit(0)
    return child


def waits_child(child):
    os.waitpid(child, 0)


def fork_locker(seconds, file):
    """A lock of lockf() is a process's."""
    told, tells = os.pipe()
    child = os.fork()
    if not child:
        fcntl.lockf(file, fcntl.LOCK_EX)
        os.write(tells, b"x")
        time.sleep(seconds)
        os._exit(0)
    os.read(told, 1)


def waits_lockf(file):
    fcntl.lockf(file, fcntl.LOCK_EX)


def waits_flock(file):
    fcntl.flock(file, fcntl.LOCK_EX)


def let_go(seconds, lock, held, pipe, ends):
    time.sleep(seconds)
    lock.release()
    held.close()
    os.write(pipe, b"x")
    for end in ends:
        end.send(b"x")


def do_stretches(seconds):
    seconds = float(seconds)
    lock, (out, into) = threading.Lock(), os.pipe()
    pairs = [socket.socketpair() for _ in range(2)]
    lock.acquire()
    held, flock, lockf = open(__file__), open(__file__), tempfile.TemporaryFile()
    fcntl.flock(held, fcntl.LOCK_EX)
    fork_locker(seconds, lockf)
    run(Thread(sleeps, "sleep", seconds), Thread(locks, "lock", lock),
        Thread(reads_pipe, "read: pipe", out), Thread(reads_socket, "read: socket", pairs[0][0]),
        Thread(polls, "poll", pairs[1][0]), Thread(waits_child, "wait: process", fork_sleeper(seconds)),
        Thread(waits_flock, "lock: file", flock), Thread(waits_lockf, "lock: file", lockf),
        Thread(let_go, "sleep", seconds, lock, held, into, [pair[1] for pair in pairs]))
    run(Thread(computes, None, seconds))


def naps_30(seconds):
    time.sleep(seconds)


def naps_3(seconds):
    time.sleep(seconds)


def naps_03(seconds):
    time.sleep(seconds)


def do_mixed(count):
    naps = [(naps_30, 0.03)] * int(count) + [(naps_3, 0.003)] * (10 * int(count)) + \
           [(naps_03, 0.0003)] * (50 * int(count))
    random.Random(1).shuffle(naps)
    for nap, seconds in naps:
        measure(nap, "sleep", seconds)


def do_crowd(count):
    asleep, end, tids = threading.Semaphore(0), threading.Event(), [native_id()]

    def sleeper():
        tids.append(native_id())
        asleep.release()
        end.wait()

    crowd = [threading.Thread(target=sleeper) for _ in range(int(count))]
    for thread in crowd:
        thread.start()
    for _ in crowd:
        asleep.acquire()
    tell({"tids": tids})
    sys.stdin.readline()
    end.set()


def spins(end):
    while clock() < end:
        pass


def keeps(end, count):
    while clock() < end:
        sum(itertools.repeat(1, count))  # C, which never looks whether others wait
        time.sleep(0.01)


def comes_late(end):
    while clock() < end:
        time.sleep(0.05)


def calls_of(seconds):
    """How many times C goes round in so long."""
    began = clock()
    sum(itertools.repeat(1, 10 ** 6))
    return int(10 ** 6 * seconds / (clock() - began))


def do_gil(seconds, how):
    end = clock() + float(seconds)
    threads = {"spin": [(spins, end), (spins, end)],
               "c": [(keeps, end, calls_of(0.2)), (keeps, end, calls_of(0.3)), (comes_late, end)],
               "late": [(spins, end), (comes_late, end), (comes_late, end)]}[how]
    run(*(Thread(function, None, *arguments) for function, *arguments in threads))


def do_brief(count):
    def lives_briefly():
        sleeps(0.003)
        computes(0.001)

    for _ in range(int(count)):
        run(Thread(lives_briefly, None))


def is_asleep(tid):
    with open("/proc/%d/stat" % tid) as f:
        return f.read().rpartition(")")[2].split()[0] == "S"


def take_cpu_of(tid, seconds):
    """Once it sleeps, from the time on that this has returned."""
    (out, ready), (go_out, go) = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.write(ready, b"x")
        os.read(go_out, 1)
        while not is_asleep(tid):
            time.sleep(0.001)
        end = clock() + seconds
        while clock() < end:
            pass
        os._exit(0)
    os.close(ready)
    assert os.read(out, 1), "no real-time process may be here: CONFIG_RT_GROUP_SCHED, and no cpu.rt_runtime_us"
    os.write(go, b"x")
    return child


def do_queue(seconds):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    def sleeps_in_vain():
        delay = 0
        while delay < float(seconds) / 4:  # other real-time processes, and the limit of all, stop the child
            child = take_cpu_of(native_id(), float(seconds))
            measure(sleeps, "sleep", float(seconds) / 4)
            os.waitpid(child, 0)
            delay = stretches[-1]["delay"]

    run(Thread(sleeps_in_vain, None))


def tell(truth):
    print(json.dumps(truth), flush=True)


def main(what, *arguments):
    print("READY", flush=True)
    sys.stdin.readline()
    {"stretches": do_stretches, "mixed": do_mixed, "crowd": do_crowd, "gil": do_gil,
     "queue": do_queue, "brief": do_brief}[what](*arguments)
    if what != "crowd":
        tell({"stretches": stretches, "lives": lives, "around": around})
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
