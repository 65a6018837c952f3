# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/dump.md: two threads each of which wants the lock that the other one has."""
import threading
import time


class Account:
    def __init__(self):
        self.lock = threading.Lock()


def transfer(source, target):
    with source.lock:
        time.sleep(0.2)
        with target.lock:
            pass


a, b = Account(), Account()
clerks = [threading.Thread(target=transfer, args=args, name="clerk-%d" % (i + 1))
          for i, args in enumerate([(a, b), (b, a)])]
for clerk in clerks:
    clerk.start()
for clerk in clerks:
    clerk.join()
