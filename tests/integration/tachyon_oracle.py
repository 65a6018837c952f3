# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs in CPython 3.15: what its own profiling.sampling writes and reads.

usage: tachyon_oracle.py write FOLDER COUNT SEED    COUNT random files, N.bin
       tachyon_oracle.py read FILE...               what its reader makes of each, a line of JSON
       tachyon_oracle.py run EXECUTABLE ARGUMENT... python -m profiling.sampling ARGUMENT...
       tachyon_oracle.py large FILE SAMPLES         a program's worth of stacks, SAMPLES samples

read: {"stacks": [[interpreter, tid, [[file, line, name]...] root first, samples]...], "opcodes":
[[name, line, instruction, samples]...] of the leaves that have one}. run: EXECUTABLE is what it
starts targets with.
"""
import collections
import dis
import json
import os
import random
import runpy
import sys

MODES = (-1, 0, 1, 2, 3, 4)


def random_frames(choose, files, names):
    import _remote_debugging as remote
    depth = choose.choice((0, 1, 2, 3, 5, 9, 30) * 5 + (255, 256, 300))
    frames = []
    for level in range(depth):
        special = choose.random()
        if special < 0.05:
            frames.append(remote.FrameInfo(("~", None, choose.choice(("<GC>", "<native>")), None)))
            continue
        line = choose.choice((0, 1, 7, level + 1, 2**31 - 1))
        place = choose.choice((None, (line, line + choose.randrange(3), -1, -1),
                               (line, line, choose.randrange(80), choose.randrange(80, 120))))
        frames.append(remote.FrameInfo((choose.choice(files), place, choose.choice(names),
                                        choose.choice((None, 5, 254)))))
    return frames


def changed(choose, frames, files, names):
    """The next stack of a thread, as real ones go: the same, callees gone or come, another."""
    kind = choose.random()
    if kind < 0.5:
        return frames
    if kind < 0.9:
        return random_frames(choose, files, names)[:4] + frames[choose.randrange(3):]
    return random_frames(choose, files, names)


def write_one(path, choose):
    import _remote_debugging as remote
    files = ["/srv/app.py", "/srv/häß (1).py", "", "x" * 300, "lib;\\n.py",
             "/usr/lib/python3.15/profiling/sampling/_sync_coordinator.py"]
    names = ["main", "f.<locals>.g", "", "naïve", "a;b (c:1)", "#odd", "y" * 200]
    start = choose.choice((0, 1, 123456789012))
    writer = remote.BinaryWriter(path, choose.choice((1, 100, 1000, 10101)), start,
                                 compression=choose.randrange(2), mode=choose.choice(MODES),
                                 capture_features=choose.choice((-1, 0, 31, choose.randrange(32))))
    threads = [(choose.choice((0, 0, 1, 7)), 100 + number, random_frames(choose, files, names))
               for number in range(choose.randrange(1, 6))]
    now = start
    for _ in range(choose.choice((0, 1, 10, 100, 400))):
        now += choose.choice((0, 1, 1000, 1001, 999, 5000000))
        by_interpreter = collections.defaultdict(list)
        for index, (interpreter, tid, frames) in enumerate(threads):
            if choose.random() < 0.3:
                continue
            frames = changed(choose, frames, files, names)
            threads[index] = interpreter, tid, frames
            by_interpreter[interpreter].append(
                remote.ThreadInfo((tid, choose.randrange(64), frames)))
        writer.write_sample([remote.InterpreterInfo(pair) for pair in by_interpreter.items()], now)
    if choose.random() < 0.7:
        writer.set_stats(choose.random() * 10, 1000.0, choose.choice((None, 0.0, 12.5)),
                         choose.choice((None, 0.0, 3.0)))
    writer.finalize()


def write(folder, count, seed):
    for number in range(count):
        write_one(os.path.join(folder, "%d.bin" % number), random.Random(seed * 1000 + number))


class Sums:
    """A collector that keeps everything."""

    def __init__(self):
        self.samples = collections.Counter()
        self.opcodes = collections.Counter()

    def collect(self, stack_frames, timestamps_us=None):
        from profiling.sampling.collector import extract_lineno, filter_internal_frames
        for interpreter in stack_frames:
            for thread in interpreter.threads:
                # Upstream's own collectors leave out what has no frames.
                frames = filter_internal_frames(thread.frame_info)
                if not frames:
                    continue
                key = (interpreter.interpreter_id, thread.thread_id, tuple(
                    (f.filename, max(0, extract_lineno(f.location)), f.funcname)
                    for f in reversed(frames)))
                self.samples[key] += len(timestamps_us)
                self.collect_opcode(key[2][-1], frames[0].opcode, len(timestamps_us))

    def collect_opcode(self, leaf, opcode, count):
        name = "<" if opcode is None else dis._all_opname[opcode]
        if not name.startswith("<"):
            self.opcodes[leaf[2], leaf[1], name] += count


def read(paths):
    from profiling.sampling.binary_reader import BinaryReader
    for path in paths:
        sums = Sums()
        with BinaryReader(path) as reader:
            reader.replay_samples(sums)
        print(json.dumps({
            "stacks": [[*key, count] for key, count in sums.samples.items()],
            "opcodes": [[*key, count] for key, count in sums.opcodes.items()]}))


def large(path, samples):
    import _remote_debugging as remote
    choose = random.Random(1)
    modules = ["/srv/app/module_%d.py" % number for number in range(40)]
    writer = remote.BinaryWriter(path, 1000, 0, compression=1, mode=0, capture_features=0)

    def walk(depth):
        return [remote.FrameInfo((modules[level % 40], (choose.randrange(1, 9) + 10 * level,) * 2 +
                                  (4, 20), "function_%d" % level, None))
                for level in range(depth, 0, -1)]
    frames = walk(30)
    for number in range(samples):
        if number % 2:
            frames = walk(choose.randrange(2, 12)) + frames[-20:]
        writer.write_sample([remote.InterpreterInfo((0, [remote.ThreadInfo((1, 1, frames))]))],
                            number * 1000)
    writer.finalize()


def main(arguments):
    if arguments[0] == "write":
        write(arguments[1], int(arguments[2]), int(arguments[3]))
    elif arguments[0] == "read":
        read(arguments[1:])
    elif arguments[0] == "large":
        large(arguments[1], int(arguments[2]))
    else:
        sys.executable = arguments[1]
        sys.argv = ["profiling.sampling"] + arguments[2:]
        from profiling.sampling import cli
        cli._SYNC_TIMEOUT_SEC = 60  # until its target has started: 5 are few on a busy machine
        runpy.run_module("profiling.sampling", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
