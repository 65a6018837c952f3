# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""After a line of input, begins processes that wait: begins.py FUNCTION:COUNT:AT_ONCE:SECONDS... A process says of each of its
waits a line: its PID, the function it waits in, and how long at least, in ns. How a process begins, its function tells.

BEGINS_COMMAND: the command, in JSON, that runs this interpreter."""
import os
import sys
import time


def execs(seconds): time.sleep(seconds)


def execs_briefly(seconds): time.sleep(seconds)


def execs_isolated(seconds): time.sleep(seconds)


def forks(seconds): time.sleep(seconds)


def spawns(seconds): time.sleep(seconds)


def sleeps_first(seconds): time.sleep(seconds)


def sleeps_again(seconds): time.sleep(seconds)


def locks(seconds):
    import threading
    lock = threading.Lock()
    lock.acquire()
    lock.acquire(True, seconds)


def joins(seconds):
    import threading
    thread = threading.Thread(target=measured, args=(sleeps_in_thread, seconds))
    thread.start()
    thread.join()


def sleeps_in_thread(seconds): time.sleep(seconds)


def measured(function, seconds):
    function(seconds)
    os.write(1, b"%d %s %d\n" % (os.getpid(), function.__name__.encode(), seconds * 1e9))


def waits_shortly(seconds):
    """All of a program of 0.3 s."""
    for function in sleeps_first, sleeps_again, locks, joins:
        measured(function, seconds)


def act(name, seconds):
    function = globals()[name]
    if function is waits_shortly:
        function(seconds)
    else:
        measured(function, seconds)


def begin(name, seconds):
    """Returns the process, which has a method wait()."""
    import json
    import multiprocessing
    import subprocess
    if name == "forks" or name == "spawns":
        process = multiprocessing.get_context(name[:-1]).Process(target=act, args=(name, seconds))
        process.wait = process.join
        process.start()
        return process
    options = ["-S", "-E", "-I"] if name == "execs_isolated" else []
    return subprocess.Popen(json.loads(os.environ["BEGINS_COMMAND"]) + options +
                            [os.path.abspath(__file__), "act", name, str(seconds)], stdin=subprocess.DEVNULL)


def main():
    if sys.argv[1] == "act":
        act(sys.argv[2], float(sys.argv[3]))
        return
    os.write(1, b"READY\n")
    sys.stdin.readline()
    for name, count, at_once, seconds in (word.split(":") for word in sys.argv[1:]):
        for first in range(0, int(count), int(at_once)):
            running = [begin(name, float(seconds)) for _ in range(first, min(int(count), first + int(at_once)))]
            for process in running:
                process.wait()


if __name__ == "__main__":
    main()
