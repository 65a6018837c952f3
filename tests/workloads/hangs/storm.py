# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/dump.md: a thread that collects garbage all the time."""
import gc
import threading

kept = [[i] for i in range(300000)]


def handle_requests():
    while True:
        gc.collect()


threading.Thread(target=handle_requests, name="requests").start()
while True:
    pass
