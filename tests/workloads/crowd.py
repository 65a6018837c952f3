# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Very many threads, processes, forks and execs. READY, GO, the truth, EXIT.

    crowd.py SECONDS CASE COUNT

  threads    COUNT threads, all there at READY; each sleeps and spins in turn in light()
  processes  the same with processes
  forks      forks COUNT children that end at once, then spins in after()
  execs      the same, and each executes true(1)

Truth: {"cpu": {function: CPU seconds in it}, "lines": {function: line}}.
"""
import json
import os
import struct
import sys
import threading
import time

clock = time.perf_counter
thread_cpu = getattr(time, "thread_time", time.process_time)
SPIN = 0.002


def light(end):
    while clock() < end: pass


def after(end):
    while clock() < end: pass


def spend(function, seconds):
    before = thread_cpu()
    function(clock() + seconds)
    return thread_cpu() - before


def turns(number, count, until):
    """CPU time of one of COUNT that take turns, so that few want a CPU at a time."""
    spent = 0.0
    time.sleep(SPIN * number)
    while clock() < until:
        spent += spend(light, SPIN)
        time.sleep(SPIN * count)
    return spent


def case_threads(seconds, count):
    threading.stack_size(64 << 10)
    go, spent = threading.Event(), []

    def run(number):
        go.wait()
        spent.append(turns(number, count, clock() + seconds))

    threads = [threading.Thread(target=run, args=(number,), daemon=True)
               for number in range(count)]
    for thread in threads:
        thread.start()

    def finish():
        go.set()
        for thread in threads:
            thread.join()
        return {"light": sum(spent)}

    return finish


def case_processes(seconds, count):
    go_reading, go_writing = os.pipe()
    reading, writing = os.pipe()
    for number in range(count):
        if os.fork() == 0:
            os.close(go_writing)
            os.read(go_reading, 1)
            os.write(writing, struct.pack("d", turns(number, count, clock() + seconds)))
            os._exit(0)
    os.close(writing)

    def finish():
        os.close(go_writing)
        spent = 0.0
        with os.fdopen(reading, "rb") as f:
            for _ in range(count):
                spent += struct.unpack("d", f.read(8))[0]
        for _ in range(count):
            os.wait()
        return {"light": spent}

    return finish


def storm(seconds, count, is_exec):
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            if is_exec:
                os.execv("/bin/true", ["true"])
            os._exit(0)
        os.waitpid(pid, 0)
    return {"after": spend(after, seconds)}


def case_forks(seconds, count):
    return lambda: storm(seconds, count, False)


def case_execs(seconds, count):
    return lambda: storm(seconds, count, True)


def main():
    finish = globals()["case_" + sys.argv[2]](float(sys.argv[1]), int(sys.argv[3]))
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    sys.stdin.readline()
    cpu = finish()
    sys.stdout.write(json.dumps({"cpu": cpu, "lines": {
        function.__name__: function.__code__.co_firstlineno + 1
        for function in (light, after)}}) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
