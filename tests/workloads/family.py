# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes, threads and interpreters that come, go and turn into each other.

    family.py SECONDS CASE [ARGUMENT...]

  idle [SHARE]            spins in one function, spin_idle(), for this share of each 20 ms (else all the time)
  fork                    forks without exec; parent and child spin in functions of their own
  exec PYTHON SCRIPT      spins in before_exec(), then becomes `PYTHON SCRIPT SECONDS idle`
  subprocess              starts itself as a child (case idle), spins meanwhile
  multiprocessing METHOD  a child by "fork", "spawn" or "forkserver" that spins in mp_child()
  threads COUNT           COUNT threads, one after the other, each spins in short_lived()
  concurrent COUNT        COUNT threads at once, thread N spins in thread_NN()
  short COUNT             COUNT children, one after the other, each spins 50 ms in short_child()
  subinterpreter          spins in another interpreter of the same thread, from run_other()
  exit STATUS             spins, prints the truth, exits with this status without waiting
  signal NUMBER           the same, then kills itself with this signal

Every spin is one line. Truth: {"cpu": {function: CPU seconds}, "lines": {function: line},
"pids": {function: pid}}; what a child knows, it sends to its parent.
"""
import json
import os
import subprocess
import sys
import threading
import time

clock = time.perf_counter
thread_cpu = getattr(  # 3.6 has no thread_time()
    time, "thread_time", None) or (lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))
TRUTH = {"cpu": {}, "lines": {}, "pids": {}}


def spend(function, seconds):
    """Runs function(end) and adds what it cost to the truth."""
    name = function.__name__
    before = thread_cpu()
    function(clock() + seconds)
    TRUTH["cpu"][name] = TRUTH["cpu"].get(name, 0.0) + thread_cpu() - before
    TRUTH["lines"][name] = function.__code__.co_firstlineno + 1
    TRUTH["pids"][name] = os.getpid()


def add(truth):
    for key, values in truth.items():
        for name, number in values.items():
            TRUTH[key][name] = number + (TRUTH[key].get(name, 0) if key == "cpu" else 0)


def spin_idle(end, busy=0, rest=0):  # spins in C where it rests: no other line has a sample
    while clock() < end and not (busy and any(map((clock() + busy).__le__, iter(clock, None))) and time.sleep(rest)): pass


def fork_parent(end):
    while clock() < end: pass


def fork_child(end):
    while clock() < end: pass


def before_exec(end):
    while clock() < end: pass


def parent_of_subprocess(end):
    while clock() < end: pass


def parent_of_mp(end):
    while clock() < end: pass


def mp_child(end):
    while clock() < end: pass


def short_lived(end):
    while clock() < end: pass


def short_child(end):
    while clock() < end: pass


def before_exit(end):
    while clock() < end: pass


def case_idle(seconds, share=None):
    if not share:
        spend(spin_idle, seconds)
    else:
        spin_idle(clock() + seconds, 0.02 * float(share), 0.02 * (1 - float(share)))


def case_fork(seconds):
    spend(fork_parent, seconds / 4)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        TRUTH["cpu"].clear()
        spend(fork_child, seconds)
        os.write(writing, json.dumps(TRUTH).encode())
        os._exit(0)
    os.close(writing)
    spend(fork_parent, seconds)
    with os.fdopen(reading) as f:
        child = json.load(f)
    os.waitpid(pid, 0)
    for key in child:
        TRUTH[key]["fork_child"] = child[key]["fork_child"]


def case_exec(seconds, python, script):
    spend(before_exec, seconds)
    tell()
    os.execv(python, [python, script, str(seconds), "idle"])


def run_child(seconds, case):
    child = subprocess.Popen([sys.executable, sys.argv[0], str(seconds), case],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    return child


def finish_child(child):
    out = child.communicate(b"GO\nEXIT\n")[0].splitlines()
    add(json.loads(out[1].decode()))


def case_subprocess(seconds):
    child = run_child(seconds, "idle")
    child.stdin.write(b"GO\n")
    child.stdin.flush()
    spend(parent_of_subprocess, seconds)
    finish_child(child)


def case_short_child(seconds):
    spend(short_child, seconds)


def case_short(seconds, count):
    for _ in range(int(count)):
        finish_child(run_child(0.05, "short_child"))


def mp_main(seconds, pipe):
    spend(mp_child, seconds)
    pipe.send(TRUTH)


def case_multiprocessing(seconds, method):
    import multiprocessing
    context = multiprocessing.get_context(method)
    reading, writing = context.Pipe(False)
    child = context.Process(target=mp_main, args=(seconds, writing))
    child.start()
    spend(parent_of_mp, seconds)
    add(reading.recv())
    child.join()


def case_threads(seconds, count):
    for _ in range(int(count)):
        t = threading.Thread(target=spend, args=(short_lived, seconds / int(count)))
        t.start()
        t.join()


def case_concurrent(seconds, count):
    threads = []
    for i in range(int(count)):
        namespace = {"clock": clock}
        exec(compile("\n" * i + "def thread_%02d(end):\n    while clock() < end: pass\n" % i,
                     sys.argv[0], "exec"), namespace)
        threads.append(threading.Thread(target=spend,
                                        args=(namespace["thread_%02d" % i], seconds)))
    for t in threads:
        t.start()
    for t in threads:
        t.join()


OTHER = """
import json, os, time
clock = time.perf_counter
def in_other(end):
    while clock() < end: pass
before = time.process_time()
in_other(clock() + %r)
os.write(%d, json.dumps({"cpu": {"in_other": time.process_time() - before},
                         "lines": {"in_other": 5}, "pids": {"in_other": os.getpid()}}).encode())
"""


def interpreters():
    """(create, run) of whatever module this version has for it."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = __import__(name)
        except ImportError:
            continue
        return module.create, getattr(module, "exec", None) or module.run_string
    return None, None


def run_other(run, interpreter, text):
    run(interpreter, text)


def main_spin(end):
    while clock() < end: pass


def case_subinterpreter(seconds):
    create, run = interpreters()
    if not create:
        sys.stdout.write("SKIP no module for it\n")
        sys.stdout.flush()
        sys.exit(0)
    other = create()
    for _ in range(2):
        reading, writing = os.pipe()
        spend(main_spin, seconds / 4)
        run_other(run, other, OTHER % (seconds / 2, writing))
        os.close(writing)
        with os.fdopen(reading) as f:
            add(json.load(f))


def tell():
    sys.stdout.write(json.dumps(TRUTH) + "\n")
    sys.stdout.flush()


def case_exit(seconds, status):
    spend(before_exit, seconds)
    tell()
    os._exit(int(status))


def case_signal(seconds, number):
    spend(before_exit, seconds)
    tell()
    os.kill(os.getpid(), int(number))


def main():
    seconds, case = float(sys.argv[1]), sys.argv[2]
    if case not in ("exit", "signal"):
        sys.stdout.write("READY\n")
        sys.stdout.flush()
        sys.stdin.readline()
    globals()["case_" + case](seconds, *sys.argv[3:])
    tell()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
