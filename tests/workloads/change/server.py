# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A busy server that does the same for ever: what two recordings of it show is noise.

    server.py steady|bursty SECONDS

Real work of many kinds (text, numbers, JSON, sorting, regular expressions). steady: a kind at
random for each request (in turn would be a period, and samples may be in step with that); bursty:
one kind for a while (exponential, 20 ms on average), then another.
"""
import hashlib
import json
import random
import re
import sys
import time
import zlib

WORDS = [hashlib.md5(b"%d" % i).hexdigest()[:3 + i % 9] for i in range(400)]
TEXT = " ".join(WORDS)
WORD = re.compile(r"([a-f]+)([0-9]+)")


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def numbers(rnd):
    return fibonacci(9 + rnd.randrange(3))


def tokens(rnd):
    return [match.group(1) for match in WORD.finditer(TEXT)]


def count_words(rnd):
    counts = {}
    for word in WORDS:
        counts[word[0]] = counts.get(word[0], 0) + 1
    return counts


def as_json(rnd):
    return json.loads(json.dumps({word: [i, i / 7.0] for i, word in enumerate(WORDS[:120])}))


def length_of(word):
    return len(word)


def ordered(rnd):
    return sorted(WORDS, key=length_of)


def checksums(rnd):
    return [zlib.crc32(word.encode()) for word in WORDS]


class Matrix(object):
    def __init__(self, rows):
        self.rows = rows

    def row_times(self, row, other):
        return [sum(a * b for a, b in zip(row, column)) for column in zip(*other.rows)]

    def times(self, other):
        return Matrix([self.row_times(row, other) for row in self.rows])


def matrices(rnd):
    m = Matrix([[i * j % 7 for i in range(8)] for j in range(8)])
    return m.times(m)


def sieve(rnd):
    flags = [True] * 900
    for i in range(2, 30):
        if flags[i]:
            for j in range(i * i, 900, i):
                flags[j] = False
    return flags


KINDS = (numbers, tokens, count_words, as_json, ordered, checksums, matrices, sieve)


def request(kind, rnd):
    return kind(rnd)


def serve_steady(end, rnd):
    while time.perf_counter() < end:
        request(rnd.choice(KINDS), rnd)


def serve_bursts(end, rnd):
    while time.perf_counter() < end:
        kind = rnd.choice(KINDS)
        until = time.perf_counter() + rnd.expovariate(1 / 0.020)
        while time.perf_counter() < until:
            request(kind, rnd)


def main():
    rnd = random.Random()
    print("READY")
    sys.stdout.flush()
    sys.stdin.readline()
    end = time.perf_counter() + float(sys.argv[2])
    (serve_steady if sys.argv[1] == "steady" else serve_bursts)(end, rnd)


if __name__ == "__main__":
    main()
