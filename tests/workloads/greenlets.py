# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Greenlets that switch all the time, each at the end of a call chain of its own.

    greenlets.py CPU_SECONDS PERIOD_US greenlet|gevent FOLDER

Chains a, b, c are 20 deep; every fourth call goes through C (max() with a key), so that several
calls of the interpreter lie on the C stack, which greenlet copies away and back. Function N of a
chain is defined in chain_X.py at line 2 N + 1 and calls the next one at line 2 N + 2; the last one
calls turn(), which spins for PERIOD_US and switches to the next greenlet. Nothing calls level 0: a
greenlet's stack begins there. FOLDER holds greenlet and gevent. Truth: {"cpu", "switches"}.
"""
import json
import sys
import time

sys.path.insert(0, sys.argv[4])
DEPTH = 20
clock = time.perf_counter
ASK_EVERY = 17  # switches, how much CPU time is used: a system call
period = float(sys.argv[2]) / 1e6
switches = 0


def chain(letter, leaf):
    every = {"a": 4, "b": 3, "c": 7}[letter]
    source = ""
    for i in range(DEPTH - 1):
        call = "max((0,), key=%s%d)" if i % every == 2 else "%s%d(0)"
        source += "def %s%d(_):\n    return " % (letter, i) + call % (letter, i + 1) + "\n"
    source += "def %s%d(_):\n    while turn(): pass\n" % (letter, DEPTH - 1)
    namespace = {"turn": leaf}
    exec(compile(source, "chain_%s.py" % letter, "exec"), namespace)
    return namespace[letter + "0"]


def main(seconds):
    global switches
    end = time.process_time() + seconds
    members = []

    def turn():
        global switches
        until = clock() + period
        while clock() < until: pass
        switches += 1
        pause()
        return switches % ASK_EVERY or time.process_time() < end

    if sys.argv[3] == "gevent":
        import gevent
        pause = lambda: gevent.sleep(0)
        members = [gevent.spawn(chain(letter, turn), 0) for letter in "abc"]
        gevent.joinall(members)
    else:
        import greenlet

        def pause():
            alive = [member for member in members if not member.dead]
            here = alive.index(greenlet.getcurrent())
            alive[(here + 1) % len(alive)].switch(0)

        members = [greenlet.greenlet(chain(letter, turn)) for letter in "abc"]
        for member in members:
            while not member.dead:
                member.switch(0)


sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
start = time.process_time()
main(float(sys.argv[1]))
sys.stdout.write(json.dumps({"cpu": time.process_time() - start, "switches": switches}) + "\n")
sys.stdout.flush()
sys.stdin.readline()
