# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A benchmark as a gate sees it: run to its end, noisy from run to run.

    benchmark.py SEED NOISE SLICES [FACTOR]

Eight functions of SLICES ms CPU time each; in every run each is off by NOISE (of its
logarithm, normally distributed, chosen by SEED), and step_3 takes FACTOR times as long.
"""
import math
import random
import sys

from burning import cpu

SECONDS = 0.001


def step_0(seconds):
    until = cpu() + seconds
    while cpu() < until: pass


def step_1(seconds):
    until = cpu() + seconds
    while cpu() < until: pass


def step_2(seconds):
    until = cpu() + seconds
    while cpu() < until: pass


def step_3(seconds):
    until = cpu() + seconds
    while cpu() < until: pass


def step_4(seconds):
    until = cpu() + seconds
    while cpu() < until: pass


def step_5(seconds):
    until = cpu() + seconds
    while cpu() < until: pass


def step_6(seconds):
    until = cpu() + seconds
    while cpu() < until: pass


def step_7(seconds):
    until = cpu() + seconds
    while cpu() < until: pass


def main(seed, noise, slices, factor):
    chance = random.Random(seed)
    steps = [(step, SECONDS * math.exp(chance.gauss(0, noise)))
             for step in (step_0, step_1, step_2, step_3, step_4, step_5, step_6, step_7)]
    for _ in range(slices):
        for step, seconds in steps:
            step(seconds * (factor if step is step_3 else 1))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]),
         float(sys.argv[4]) if len(sys.argv) > 4 else 1.0)
