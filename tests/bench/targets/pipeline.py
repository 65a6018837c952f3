# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A pipeline of queues, until it is killed: read, parse (twice, which wait for the GIL), write."""
import hashlib
import queue
import threading
import zlib

TEXT = b"one line of many, which a parser takes apart; " * 400


def read(out):
    for number in range(1 << 30):
        out.put((number, zlib.compress(TEXT, 1)))


def parse(work, out):
    while True:
        number, packed = work.get()
        words = zlib.decompress(packed).split()
        out.put((number, {word: len(word) for word in words}))


def write(work):
    while True:
        number, words = work.get()
        hashlib.sha256(repr((number, sorted(words))).encode() * 50).digest()


def main():
    raw, parsed = queue.Queue(16), queue.Queue(16)
    stages = [threading.Thread(target=read, args=(raw,), name="read", daemon=True)]
    stages += [threading.Thread(target=parse, args=(raw, parsed), name="parse-%d" % i, daemon=True)
               for i in range(2)]
    stages += [threading.Thread(target=write, args=(parsed,), name="write", daemon=True)]
    for stage in stages:
        stage.start()
    for stage in stages:
        stage.join()


if __name__ == "__main__":
    main()
