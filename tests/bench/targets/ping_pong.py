# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ping_pong.py processes|threads CPU: two hand each other a byte through pipes, on that CPU, until
they are killed. READY PID of the second one."""
import ctypes
import os
import sys
import threading

os.sched_setaffinity(0, {int(sys.argv[2])})
PR_SET_PDEATHSIG = 1


def serve(source, sink, read=os.read, write=os.write):
    while True:
        write(sink, read(source, 1))


def second(source, sink):
    if sys.argv[1] == "threads":
        threading.Thread(target=serve, args=(source, sink), daemon=True).start()
        return os.getpid()
    child = os.fork()
    if not child:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 9)
        serve(source, sink)
    return child


(there, to), (here, back) = os.pipe(), os.pipe()
pid = second(there, back)
os.write(to, b"x")
sys.stdout.write("READY %d\n" % pid)
sys.stdout.flush()
serve(here, to)
