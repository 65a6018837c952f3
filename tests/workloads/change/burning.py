# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPU time as the measure of work: what a function burns is exact on any machine."""
import time

cpu = time.thread_time


def burn_ms(ms):
    """Seconds for a spin of that length."""
    return ms / 1000.0
