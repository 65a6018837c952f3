# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A few greenlets that wait, for an image of their memory (tests/inspect/task_image.c): what fuzz targets begin with.

    python -S -E -I few_greenlets.py FOLDER

FOLDER holds greenlet. Most other objects are taken out of the collector's lists, so that the image is small. The
process is to be killed: it prints READY and stays.
"""
import ctypes
import gc
import signal
import sys

sys.path.insert(0, sys.argv[1])
import greenlet  # noqa: E402

FLAGS = 3
LEFT_IN_EACH = 100  # every so many-th of the others


def leaf():
    greenlet.getcurrent().parent.switch()


def low():
    leaf()


def word(address):
    return ctypes.c_uint64.from_address(address)


def unlink(address):
    """Takes an object out of its list: PyGC_Head is {next, prev}, with flags in their low bits."""
    head = address - 16
    following, before = word(head).value & ~FLAGS, word(head + 8).value & ~FLAGS
    word(before).value = word(before).value & FLAGS | following
    word(following + 8).value = word(following + 8).value & FLAGS | before


made = [greenlet.greenlet(function) for function in (low, leaf, low)]
for one in made:
    one.switch()
made.append(greenlet.greenlet(low))
gc.collect()
gc.disable()
kept = {id(one) for one in made}
# Greenlets of the oldest generation: ctypes adds to the youngest one.
others = [id(one) for i, one in enumerate(gc.get_objects(2)) if id(one) not in kept and i % LEFT_IN_EACH]
print("READY")
sys.stdout.flush()
for other in others:
    unlink(other)
signal.pause()
