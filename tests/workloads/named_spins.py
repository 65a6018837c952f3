# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Functions that are named after what they run in. NAMES: of those that ran."""
import time

STEP = 0.003
NAMES = set()
SOURCE = """
def %s():
    begin = clock()
    while clock() - begin < step:
        pass
"""


def spin(name):
    NAMES.add(name)
    scope = {"clock": time.thread_time, "step": STEP}
    exec(SOURCE % name, scope)
    scope[name]()
