# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A thread without any Python beside one that runs Python: as those of BLAS, gRPC, databases.

    native.py SECONDS

The native thread counts down in machine code; python() spins for as much CPU time as it takes. Truth: {"cpu": CPU
seconds of both, "python": of the thread in python()}.
"""
import ctypes
import json
import mmap
import platform
import sys
import time

thread_cpu = getattr(  # 3.6 has no thread_time()
    time, "thread_time", None) or (lambda: time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID))
CODE = {  # count in the first argument: down to 0, then return 0
    "x86_64": b"\x48\xff\xcf\x75\xfb\x31\xc0\xc3",
    "aarch64": b"\x00\x04\x00\xf1\xe1\xff\xff\x54\xc0\x03\x5f\xd6",
}


def python(end):
    while thread_cpu() < end: pass


def start_native(code, count):
    libc = ctypes.CDLL(None)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    thread = ctypes.c_ulong()
    if libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(address),
                           ctypes.c_void_p(count)):
        raise OSError("pthread_create")
    return libc, thread


def rate(code):
    """Steps of the countdown a second."""
    call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
        ctypes.addressof(ctypes.c_char.from_buffer(code)))
    before = thread_cpu()
    call(20000000)
    return 20000000 / (thread_cpu() - before)


def main():
    seconds = float(sys.argv[1])
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(CODE[platform.machine()])
    count = int(rate(code) * seconds)
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    sys.stdin.readline()
    whole, own = time.process_time(), thread_cpu()
    libc, thread = start_native(code, count)
    python(own + seconds)
    own = thread_cpu() - own
    libc.pthread_join(thread, None)
    sys.stdout.write(json.dumps({"cpu": time.process_time() - whole, "python": own}) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
