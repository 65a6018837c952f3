# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The chains of chains.py in several threads at once.

    parallel.py SECONDS PERIOD_US THREADS

First two threads wait for each other in loops: with a GIL each handover takes a switch interval, 5
ms. Truth: {"cpu", "threads": {tid: CPU seconds}, "handovers": a second, "gil"}.
"""
import json
import sys
import threading
import time

clock = time.perf_counter
DEPTH = 50
ENOUGH = 20000  # handovers a second


def chain(letter):
    source = "".join("def %s%d(end):\n    %s%d(end)\n" % (letter, i, letter, i + 1)
                     for i in range(DEPTH - 1))
    source += "def %s%d(end):\n    while clock() < end: pass\n" % (letter, DEPTH - 1)
    namespace = {"clock": clock}
    exec(compile(source, "chain_%s.py" % letter, "exec"), namespace)
    return namespace[letter + "0"]


def handovers(seconds):
    turn, count, end = [0], [0], clock() + seconds

    def play(mine):
        while clock() < end:
            if turn[0] == mine:
                count[0] += 1
                turn[0] = 1 - mine

    players = [threading.Thread(target=play, args=(mine,)) for mine in (0, 1)]
    for player in players:
        player.start()
    for player in players:
        player.join()
    return count[0] / seconds


def best_handovers():
    """Of up to ten seconds: two threads may have to wait for a moment with two CPUs."""
    best, end = 0.0, clock() + 10
    while best < ENOUGH and clock() < end:
        best = max(best, handovers(0.05))
    return best


def main(seconds, period, a0, b0):
    last = clock() + seconds
    while clock() < last:
        a0(clock() + period)
        b0(clock() + period)
    threads[threading.get_native_id()] = time.thread_time()


threads = {}
sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
start = time.process_time()
rate = best_handovers()
chains = chain("a"), chain("b")
workers = [threading.Thread(target=main,
                            args=(float(sys.argv[1]), float(sys.argv[2]) / 1e6) + chains)
           for _ in range(int(sys.argv[3]))]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
sys.stdout.write(json.dumps({"cpu": time.process_time() - start, "threads": threads,
                             "handovers": rate,
                             "gil": getattr(sys, "_is_gil_enabled", lambda: True)()}) + "\n")
sys.stdout.flush()
sys.stdin.readline()
