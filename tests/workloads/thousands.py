# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Very many threads that wait, and the first one, the last of the list of thread states, which computes.

    thousands.py SECONDS COUNT

Truth: CPU seconds in oldest_of_all(), at least SECONDS. Then it computes on in it, for a minute at most.
"""
import json
import sys
import threading
import time

clock = getattr(time, "thread_time", time.process_time)


def wait_for_good(event):
    event.wait()


def oldest_of_all(end):
    begin = clock()
    while clock() < end: pass
    return clock() - begin


def main():
    count, event = int(sys.argv[2]), threading.Event()
    threading.stack_size(64 << 10)
    for _ in range(count):
        threading.Thread(target=wait_for_good, args=(event,), daemon=True).start()
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    sys.stdin.readline()
    spent = oldest_of_all(clock() + float(sys.argv[1]))
    sys.stdout.write(json.dumps(spent) + "\n")
    sys.stdout.flush()
    oldest_of_all(clock() + 60)


if __name__ == "__main__":
    main()
