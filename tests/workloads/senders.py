# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""SENDERS threads stay in one system call each, a send() that a slow reader wakes every 50 ms; WORKERS threads
sleep, for 20 ms at a time, for SECONDS.

Truth, at the end: {"waited": seconds that the workers slept, all together}.
"""
import json
import os
import signal
import socket
import sys
import threading
import time

READ_BYTES = 32768
MESSAGE = bytes(64 << 20)


def read_slowly(ends):
    while True:
        for end in ends:
            try:
                end.recv(READ_BYTES)
            except OSError:
                pass
        time.sleep(0.05)


def sends(end):
    try:
        end.sendall(MESSAGE)
    except OSError:
        pass


def works(until, waited):
    while time.monotonic() < until:
        begin = time.monotonic()
        time.sleep(0.02)
        waited.append(time.monotonic() - begin)


def main(senders, workers, seconds):
    threading.stack_size(128 * 1024)
    pairs = [socket.socketpair() for _ in range(senders)]
    reader = os.fork()
    if not reader:
        for ours, theirs in pairs:
            ours.close()
            theirs.setblocking(False)
        signal.alarm(120)
        read_slowly([theirs for _, theirs in pairs])
    print("READY", flush=True)
    sys.stdin.readline()
    waited, until = [], time.monotonic() + seconds
    for ours, _ in pairs:
        threading.Thread(target=sends, args=(ours,), daemon=True).start()
    threads = [threading.Thread(target=works, args=(until, waited)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.kill(reader, signal.SIGKILL)
    print(json.dumps({"waited": sum(waited)}), flush=True)
    sys.stdin.readline()
    os._exit(0)


main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
