# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Dumps a process, and prints each dump as one line of JSON: the lines of serial ports are slow.

    dumps.py rest PID          until all of its threads are blocked: the last dump
    dumps.py pause PID         until a thread has walked itself, or is said to be unable to: all of them
    dumps.py COUNT PID

or until 80 s have passed: on a busy host the guest's CPUs stand still.

A line is {"threads", "deadlocks", "python"} of `pyebpf dump --json`, and "outside": what -vv says is
read from outside for want of BPF. A thread's "frames" are runs of [count, name, file, line, end_line,
column, end_column].
"""
import itertools
import json
import subprocess
import sys
import time

SECONDS = 80
FRAME = ("name", "file", "line", "end_line", "column", "end_column")


def dump(pid):
    done = subprocess.run(["pyebpf", "dump", "-vv", "--json", "-p", pid], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=True, encoding="utf-8")
    process, = json.loads(done.stdout)["processes"]
    for thread in process["threads"]:
        frames = ([frame[key] for key in FRAME] for frame in thread["frames"])
        thread["frames"] = [[len(list(same))] + frame for frame, same in itertools.groupby(frames)]
    return {"threads": process["threads"], "deadlocks": process["deadlocks"],
            "python": process["python"],
            "outside": [line for line in done.stderr.splitlines() if "read from outside" in line]}


def is_enough(until, found):
    if until == "rest":
        return all(thread["state"] == "blocked" for thread in found[-1]["threads"])
    if until == "pause":
        return found[-1]["outside"] or any(t["pause_seconds"] for t in found[-1]["threads"])
    return len(found) == int(until)


def dumps(until, pid):
    end = time.monotonic() + SECONDS
    found = [dump(pid)]
    while not is_enough(until, found) and time.monotonic() < end:
        found.append(dump(pid))
    return found[-1:] if until == "rest" else found


if __name__ == "__main__":
    for each in dumps(*sys.argv[1:]):
        print(json.dumps(each))
