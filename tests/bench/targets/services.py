# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""services.py PROCESSES SERVICES: that many processes of so many services, which parse, match and sort
5 to 25 calls deep for ever; then, for each line N on standard input, N processes that run for about a
millisecond of their own and end, and DONE. One in ten is an interpreter of its own, by exec; the others
are forked.
"""
import contextlib
import json
import os
import random
import re
import sys
import time

BRIEF = "for i in range(100): sum(range(500))"  # about a millisecond
PATTERN = re.compile(r"(\w+)@(\w+)\.(com|org)")


def worker(seed, leader):
    """Ends when the leader has."""
    rnd = random.Random(seed)

    def parse(rows):
        return [json.loads(row) for row in rows]

    def match(rows):
        return [row for row in rows if PATTERN.search(row["mail"])]

    def order(rows):
        return sorted(rows, key=lambda row: (row["price"], row["mail"]))

    def handle(depth, rows):
        if depth:
            return handle(depth - 1, rows)
        return order(match(parse(rows)))

    rows = [json.dumps({"mail": "u%d@example.com" % rnd.randrange(1000), "price": rnd.random()})
            for _ in range(50)]
    while True:
        os.kill(leader, 0)
        handle(rnd.randrange(5, 25), rows)


def brief():
    end = time.perf_counter() + 0.001
    while time.perf_counter() < end:
        sum(range(100))


def start_workers(processes, services, leader):
    """By exec: what a process is started with names its service."""
    source = open("/proc/self/cmdline", "rb").read().split(b"\0")
    code = source[source.index(b"-c") + 1].decode()
    for i in range(processes):
        environment = dict(os.environ, OTEL_SERVICE_NAME="service-%02d" % (i % services))
        os.posix_spawn(sys.executable, [sys.executable, "-c", code, "worker", str(i), str(leader)],
                       environment)


def start_brief(count, at_once=4):
    running = 0
    for i in range(count):
        if running == at_once:
            os.waitpid(-1, 0)
            running -= 1
        if i % 10 == 0:
            os.posix_spawn(sys.executable, [sys.executable, "-I", "-S", "-c", BRIEF], os.environ)
        elif not os.fork():
            brief()
            os._exit(0)
        running += 1
    for _ in range(running):
        os.waitpid(-1, 0)


def main():
    if sys.argv[1] == "worker":
        with contextlib.suppress(ProcessLookupError):
            worker(int(sys.argv[2]), int(sys.argv[3]))
        return
    leader = os.getpid()
    spawner = os.fork()  # of its own: its children are not waited for by those that start others
    if not spawner:
        start_workers(int(sys.argv[1]), int(sys.argv[2]), leader)
        os._exit(0)
    os.waitpid(spawner, 0)
    print("READY", flush=True)
    for line in sys.stdin:
        start_brief(int(line))
        print("DONE", flush=True)


main()
