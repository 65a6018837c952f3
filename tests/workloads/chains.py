# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two 50-deep call chains a0..a49 and b0..b49, entered alternately: torn stacks show themselves.

    chains.py SECONDS PERIOD_US [DEPTH [warm]]

Every PERIOD_US the thread leaves one chain and enters the other. A stack that mixes a* and b*,
skips a level, or lacks <module> and main, cannot happen. Function N of a chain is defined in
chain_a.py or chain_b.py at line 2 N + 1 and calls the next one at line 2 N + 2; the last one spins
there; with "warm" it does so until GO, too. Truth: {"cpu", "rounds", "depth"}.
"""
import json
import sys
import time

clock = time.perf_counter


def chain(letter, depth):
    source = "".join("def %s%d(end):\n    %s%d(end)\n" % (letter, i, letter, i + 1)
                     for i in range(depth - 1))
    source += "def %s%d(end):\n    while clock() < end: pass\n" % (letter, depth - 1)
    namespace = {"clock": clock}
    exec(compile(source, "chain_%s.py" % letter, "exec"), namespace)
    return namespace[letter + "0"]


def main(seconds, period, a0, b0):
    rounds = 0
    last = clock() + seconds
    while clock() < last:
        a0(clock() + period)
        b0(clock() + period)
        rounds += 1
    return rounds


depth = int(sys.argv[3]) if sys.argv[3:] else 50
chains = chain("a", depth), chain("b", depth)
sys.stdout.write("READY\n")
sys.stdout.flush()
if sys.argv[4:]:
    import select
    while not select.select([sys.stdin], [], [], 0)[0]:
        main(0.01, float(sys.argv[2]) / 1e6, *chains)
sys.stdin.readline()
start = time.process_time()
rounds = main(float(sys.argv[1]), float(sys.argv[2]) / 1e6, *chains)
sys.stdout.write(json.dumps({"cpu": time.process_time() - start, "rounds": rounds,
                             "depth": depth}) + "\n")
sys.stdout.flush()
sys.stdin.readline()
