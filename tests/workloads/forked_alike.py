# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Children forked from one program, whose code objects lie at the same addresses.

    forked_alike.py own KIND SECONDS        four children, each of which makes a function of its own first; in KIND they
                                            differ: name, file, line, or late_line, which is far behind in the line table.
                                            Truth: {pid: [name, file, line that runs]}
    forked_alike.py shared CHILDREN FUNCTIONS SECONDS
                                            all functions are the parent's, each stack has 30 of them. Truth: {"cpu": s}
"""
import json
import os
import random
import resource
import sys
import time

clock = time.perf_counter
CHILDREN, DEPTH = 4, 30


def own(kind, i):
    """(name, file, source, line that runs)."""
    name = "spin_" + ("abcd"[i] if kind == "name" else "x")
    file = "/srv/app/module_%s.py" % ("abcd"[i] if kind == "file" else "x")
    moved = kind in ("line", "late_line")
    lines = ["def %s(until):" % name, "    x = 0"]
    lines += ["    if x: x = x + 1"] * (100 if kind == "late_line" else 0)
    lines += [""] * (i + 1 if moved else 0) + ["    while clock() < until: x = x + 1"]
    line = len(lines)
    lines += [""] * (CHILDREN - i if moved else 0) + ["    return x"]
    return name, file, "\n".join(lines), line


def run_own(kind, seconds):
    truth = {}
    for i in range(CHILDREN):
        pid = os.fork()
        name, file, source, line = own(kind, i)
        if not pid:
            space = {"clock": time.process_time}
            exec(compile(source, file, "exec"), space)
            space[name](time.process_time() + seconds)
            os._exit(0)
        truth[pid] = [name, file, line]
    for pid in truth:
        os.waitpid(pid, 0)
    return truth


def spin():
    until = clock() + 0.0005
    while clock() < until:
        pass


def run_shared(children, count, seconds):
    source = "".join("def function_%05d_of_many(depth, functions, draw):\n"
                     "    if depth == 0: return spin()\n"
                     "    return functions[draw() %% %d](depth - 1, functions, draw)\n" % (i, count) for i in range(count))
    space = {"spin": spin}
    exec(compile(source, "/srv/app/many.py", "exec"), space)
    functions = [space["function_%05d_of_many" % i] for i in range(count)]
    pids = [os.fork() for i in range(children) if os.getpid() == PARENT]
    if os.getpid() != PARENT:
        seed = random.Random(os.getpid())
        until = clock() + seconds
        while clock() < until:
            functions[seed.getrandbits(30) % count](DEPTH, functions, lambda: seed.getrandbits(30))
        os._exit(0)
    for pid in pids:
        os.waitpid(pid, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu": used.ru_utime + used.ru_stime}


PARENT = os.getpid()
sys.stdout.write("READY\n")
sys.stdout.flush()
sys.stdin.readline()
if sys.argv[1] == "own":
    TRUTH = run_own(sys.argv[2], float(sys.argv[3]))
else:
    TRUTH = run_shared(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
sys.stdout.write(json.dumps(TRUTH) + "\n")
sys.stdout.flush()
sys.stdin.readline()
