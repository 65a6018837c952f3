# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program that says of each of its functions how long its threads were in it.

    program.py LIFE ACT     says READY, and begins when its standard input says GO
    program.py act ACT      begins at once: what spawned and executed processes run

LIFE: how the process that acts comes and goes, a function of LIVES. ACT: what it does, a function of ACTS. Each call
of a measured function is a line of JSON on standard output: pid, name, lines (of the function), wall and cpu (seconds
of the thread), and of some bytes (allocated), calls (of getppid), handles (an exception), free (of the GIL),
suspended (a coroutine), route (the context variable's value). PROGRAM_SPIN: seconds of CPU time
of the functions that PROGRAM_SPINS names; others compute for a third of them. PROGRAM_COMMAND: the interpreter's
command, as JSON.
"""
import asyncio
import atexit
import dis
import functools
import json
import operator
import os
import signal
import subprocess
import sys
import threading
import time
import zlib

try:
    import contextvars
    ROUTE = contextvars.ContextVar("ROUTE")
except ImportError:  # 3.6
    ROUTE = None

SPIN = float(os.environ["PROGRAM_SPIN"])
SPINS = os.environ["PROGRAM_SPINS"].split()
NAP = 0.06
NAPS = 4
BYTES = 24 << 20
CALLS = 3000


CPU_CLOCK = functools.partial(time.clock_gettime, time.CLOCK_THREAD_CPUTIME_ID)
CALL = operator.methodcaller("__call__")


def measured(function, **facts):
    """Calls it, and says so. The clocks are read beside the call in C: this thread does not wait for the GIL in
    between."""
    cpu, wall, _, wall_then, cpu_then = map(CALL, (CPU_CLOCK, time.monotonic, function, time.monotonic, CPU_CLOCK))
    say(function, wall_then - wall, cpu_then - cpu, facts)


def say(function, wall, cpu, facts):
    lines = [line for _, line in dis.findlinestarts(function.__code__) if line]
    lines.append(function.__code__.co_firstlineno)  # of a frame that has not begun
    line = dict(facts, pid=os.getpid(), name=function.__name__, lines=sorted(set(lines)), wall=wall, cpu=cpu)
    os.write(1, (json.dumps(line) + "\n").encode())


# --- What is measured -----------------------------------------------------------------------------


def spin_of(name):
    return SPIN if name in SPINS else SPIN / 3


def computes():
    end = CPU_CLOCK() + spin_of("computes")
    while CPU_CLOCK() < end:
        pass


def computes_longer():
    end = CPU_CLOCK() + 2 * spin_of("computes_longer")
    while CPU_CLOCK() < end:
        pass


def sums():
    """Without the GIL."""
    block = bytes(1 << 20)
    end = CPU_CLOCK() + spin_of("sums")
    while CPU_CLOCK() < end:
        zlib.crc32(block)


def handles():
    try:
        raise ValueError
    except ValueError:
        end = CPU_CLOCK() + spin_of("handles")
        while CPU_CLOCK() < end:
            pass


def sleeps():
    for _ in range(NAPS):
        time.sleep(NAP)


def locks():
    lock = threading.Lock()
    lock.acquire()
    for _ in range(NAPS):
        lock.acquire(True, NAP)


def allocates():
    return bytearray(b"x") * BYTES


def calls():
    for _ in range(CALLS):
        os.getppid()


async def suspended_short():
    await asyncio.sleep(1)


async def suspended_long():
    for _ in range(2):
        await asyncio.sleep(1)


async def measured_task(function):
    wall = time.monotonic()
    await function()
    say(function, time.monotonic() - wall, 0, {"suspended": True})


# --- Acts -----------------------------------------------------------------------------------------


def act_all():
    measured(computes)
    measured(sleeps)
    measured(computes_longer)
    measured(sums, free=True)
    measured(locks)
    measured(handles, handles=True)
    measured(allocates, bytes=BYTES)
    measured(calls, calls=CALLS)


def act_routes():
    ROUTE.set("checkout")
    measured(computes, route="checkout")
    ROUTE.set("search")
    measured(computes_longer, route="search")


async def gathered():
    await asyncio.gather(measured_task(suspended_short), measured_task(suspended_long))


def act_tasks():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(gathered())
    loop.close()


ACTS = {"all": act_all, "routes": act_routes, "tasks": act_tasks}


# --- Lives ----------------------------------------------------------------------------------------


def live_here(act):
    act()


def in_child(run):
    """Forks, runs it there, and waits for its end."""
    pid = os.fork()
    if not pid:
        run()
        os._exit(0)
    os.waitpid(pid, 0)


def live_fork(act):
    act()
    in_child(act)


def command_of_act():
    return json.loads(os.environ["PROGRAM_COMMAND"]) + [os.path.abspath(__file__), "act", sys.argv[2]]


def live_spawn(act):
    for child in [subprocess.Popen(command_of_act(), stdin=subprocess.DEVNULL) for _ in range(2)]:
        child.wait()


def execute_act():
    command = command_of_act()
    os.execvp(command[0], command)


def live_exec(act):
    act()
    execute_act()


def live_exec_of_thread(act):
    """The process goes on as the thread that executes; all others end."""
    def act_and_exec():
        act()
        execute_act()

    thread = threading.Thread(target=act_and_exec)
    thread.start()
    thread.join()


def live_exec_of_child(act):
    def act_and_exec():
        act()
        execute_act()

    in_child(act_and_exec)


def live_exec_of_shell(act):
    """The shell executes the interpreter again; until then the process runs no Python."""
    act()
    os.execv("/bin/sh", ["sh", "-c", 'sleep 0.1; exec "$@"', "sh", *command_of_act()])


def live_fork_of_thread(act):
    thread = threading.Thread(target=in_child, args=(act,))
    thread.start()
    act()
    thread.join()


def live_grandchild(act):
    """A grandchild, whose parent acts, too."""
    def both():
        in_child(act)
        act()

    in_child(both)


def live_threads(act):
    threads = [threading.Thread(target=act) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def live_exit(act):
    atexit.register(act)


def live_killed(act):
    act()
    os.kill(os.getpid(), signal.SIGKILL)


def live_stopped(act):
    """A child stops it again and again while it acts."""
    pid = os.fork()
    if not pid:
        for _ in range(4):
            time.sleep(0.1)
            os.kill(os.getppid(), signal.SIGSTOP)
            time.sleep(0.1)
            os.kill(os.getppid(), signal.SIGCONT)
        os._exit(0)
    act()
    os.waitpid(pid, 0)


def live_daemonised(act):
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    act()


def live_prefork(act):
    workers = []
    for _ in range(3):
        pid = os.fork()
        if not pid:
            act()
            os._exit(0)
        workers.append(pid)
    for pid in workers:
        os.waitpid(pid, 0)


def live_greenlets(act):
    import greenlet
    greenlet.greenlet(act).switch()
    act()


def live_uvloop(act):
    import uvloop

    async def main():
        act()
    loop = uvloop.new_event_loop()
    loop.run_until_complete(main())
    loop.close()


LIVES = {name[len("live_"):]: value for name, value in list(globals().items()) if name.startswith("live_")}


def main():
    life, act = sys.argv[1:3]
    if life == "act":
        live_here(ACTS[act])
        return
    os.write(1, b"READY\n")
    sys.stdin.readline()
    LIVES[life](ACTS[act])


main()
