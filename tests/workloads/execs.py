# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""execs.py N: begins itself anew N times, by exec."""
import os
import sys

left = int(sys.argv[1])
if left:
    os.execv(sys.executable, [sys.executable, "-S", "-E", __file__, str(left - 1)])
