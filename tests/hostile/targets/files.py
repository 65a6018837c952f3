# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Maps files that are not what they seem, and changes them: files.py sparse|fifo|truncated FOLDER SEED.

  sparse     executable mappings of ELF files of 1 TiB, of which nearly nothing is there
  fifo       code objects whose source files are a FIFO, a device and a directory
  truncated  copies of an ELF file that are cut, made longer and overwritten while they are mapped
READY and its PID. It computes, and sleeps a little, for ever.
"""
import mmap
import os
import random
import struct
import sys
import time

SOURCE = "def f():\n    sum(range(2000))\n"
ELF_HEAD = b"\x7fELF\x02\x01\x01" + bytes(9)
COUNT = 32


def map_executable(path):
    with open(path, "rb") as f:
        return mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)


def elf(size):
    """A header that says that section and symbol tables fill the file."""
    return ELF_HEAD + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, size // 2, 0, 64, 56, 1, 64, 65535, 3) + \
        struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, size, size, 4096)


def sparse(folder, _):
    for number in range(COUNT):
        path = os.path.join(folder, "libpython3.%d.so" % number)
        with open(path, "wb") as f:
            f.write(elf(1 << 40))
            f.truncate(1 << 40)
        KEPT.append(map_executable(path))
    return lambda: None


def fifo(folder, _):
    os.mkfifo(os.path.join(folder, "fifo.py"))
    os.mkfifo(os.path.join(folder, "libpython3.11.so"))
    functions = []
    for name in (os.path.join(folder, "fifo.py"), "/dev/zero", "/dev/watchdog", "/", "/proc/kmsg", folder):
        scope = {}
        exec(compile(SOURCE, name, "exec"), scope)
        functions.append(scope["f"])
    return lambda: [function() for function in functions]


def truncated(folder, chance):
    with open(sys.executable, "rb") as f:
        content = f.read(1 << 20)
    paths = [os.path.join(folder, "libpython3.%d.so" % number) for number in range(COUNT)]
    for path in paths:
        with open(path, "wb") as f:
            f.write(content)
        KEPT.append(map_executable(path))

    def change():
        path = chance.choice(paths)
        with open(path, "r+b") as f:
            f.truncate(chance.choice((0, 1, 63, 64, 4095, 4096, 65536, len(content))))
            f.write(content[:chance.choice((0, 64, 4096, len(content)))])
            f.seek(chance.randrange(512))
            f.write(bytes(chance.getrandbits(8) for _ in range(chance.randrange(64))))
    return change


KEPT = []  # mappings


def main():
    what, folder, seed = sys.argv[1:]
    work = {"sparse": sparse, "fifo": fifo, "truncated": truncated}[what](folder, random.Random(int(seed)))
    print("READY %d" % os.getpid())
    sys.stdout.flush()
    while True:
        work()
        sum(range(20000))
        time.sleep(0.001)


if __name__ == "__main__":
    main()
