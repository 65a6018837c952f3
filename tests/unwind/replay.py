#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The unwinder over the memory of every CPython found, against what those interpreters say.

Usage: replay.py UNWIND_REPLAY [NAME...]    names as tests/tools/pythons.py lists them

Each interpreter runs stacks.py, which stops in many threads; unwind_replay walks them from outside.
Names, files, first lines, lines and instructions of all frames must be equal. Exit status 1 if one
differs, or if no interpreter was found. Interpreters that would have to be downloaded are used if
they are there already. PYEBPF_TIER: with `check` and `test` one interpreter of each version is replayed, as
the layout of frames does not depend on the linkage.
"""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHONS = os.path.join(HERE, "..", "tools", "pythons.py")
COMPLETE = 0  # enum unwind_status
AMBIGUOUS = 1 << 2  # enum sample_flag
ENTRY = 1 << 3  # enum frame_flag
INTERPRETER = 1 << 6
ENTRIES_SINCE = 11
# Of stacks.py, called by sorted(), by functools.partial() and by functools.reduce().
CALLED_BY_C = {"through_c.<locals>.key", "through_c.<locals>.mapped",
               "through_c.<locals>.mapped.<locals>.<lambda>"}
STRING_BYTES_MAX = 4096
WAIT_S = 60
CUT = "\u2026"
# How time.sleep() waits, by system call number: select, pselect6, clock_nanosleep.
SLEEPS = {"x86_64": {"23", "270", "230"}, "aarch64": {"72", "115"}}[os.uname().machine]


class Wrong(Exception):
    """What the walk found is not what the interpreter says."""


def pythons():
    out = subprocess.run([sys.executable, "-B", PYTHONS, "--json"], stdout=subprocess.PIPE,
                         check=False, text=True).stdout
    found = [json.loads(line) for line in out.splitlines()]
    if os.environ.get("PYEBPF_TIER", "all") == "all":
        return found
    of_version = {}
    for python in found:
        of_version.setdefault((*python["version"], python["free_threaded"], python["debug"]), python)
    return list(of_version.values())


def shown(text):
    """A name as user space shows it: cut as in the kernel, what is no UTF-8 escaped."""
    kind = 1 if max(map(ord, text), default=0) < 0x100 else 2 if max(map(ord, text)) < 0x10000 \
        else 4
    if len(text) * kind > STRING_BYTES_MAX:
        text = text[:STRING_BYTES_MAX // kind] + CUT
    return text.encode("utf-8", "backslashreplace").decode()


def wait_asleep(child, tids):
    """Until all threads wait in the system call of time.sleep()."""
    end = time.monotonic() + WAIT_S
    for tid in tids:
        while True:
            with open("/proc/%d/task/%d/syscall" % (child.pid, tid)) as f:
                if f.read().split()[0] in SLEEPS:
                    break
            if child.poll() is not None or time.monotonic() > end:
                raise Wrong("thread %d did not come to rest" % tid)
            time.sleep(0.001)  # another process's state: nothing to wait on


def check_frame(truth, got, is_leaf):
    name, file, first, line, lasti = truth
    if not got:
        raise Wrong("code object not known, want %s" % name)
    if got[:4] != [shown(name), shown(file), first, line]:
        raise Wrong("got %s (%s:%d) at %d, want %s (%s:%d) at %d"
                    % (*got[:4], shown(name), shown(file), first, line))
    # The leaf told its frames in one call and then made another one.
    if not is_leaf and got[4] != lasti:
        raise Wrong("%s at instruction %d, want %d" % (got[0], got[4], lasti))
    if got[5] & ~ENTRY or got[6]:
        raise Wrong("%s: flags %d, approximate line %s" % (got[0], got[5], got[6]))


def check_entries(names, flags, minor):
    """Whom C called, as far as that is the same in all versions. names, flags: leaf first."""
    for index, (name, flag) in enumerate(zip(names, flags)):
        caller = names[index + 1] if index + 1 < len(names) else None
        if minor < ENTRIES_SINCE or name == caller == "recursion":
            want = 0
        elif caller is None or name in CALLED_BY_C:
            want = ENTRY
        else:
            continue
        if flag & ENTRY != want:
            raise Wrong("frame %d: %s: flags %d" % (index, name, flag))


def check_stack(truth, got, minor):
    # The interpreter's own way into an __init__ (3.13+ _Py_InitCleanup): no traceback shows it.
    frames = [f for f in got["frames"] if f[:2] != ["__init__", "__init__"]]
    if got["status"] != COMPLETE:
        raise Wrong("status %d" % got["status"])
    if len(frames) != len(truth):
        raise Wrong("%d frames %s, want %d %s"
                    % (len(frames), [f and f[:2] for f in frames[:20]], len(truth),
                       [f[0] for f in truth[:20]]))
    for index, pair in enumerate(zip(truth, frames)):
        try:
            check_frame(*pair, is_leaf=index == 0)
        except Wrong as e:
            raise Wrong("frame %d: %s" % (index, e)) from None
    check_entries([frame[0] for frame in truth], [frame[5] for frame in frames], minor)


def take_callers(got, minor):
    """Takes out the callers in the main interpreter, from which another was entered; returns names, leaf first."""
    markers = [i for i, f in enumerate(got["frames"]) if f and f[5] & INTERPRETER]
    if not markers:
        return []
    callers = got["frames"][markers[0] + 1:]
    del got["frames"][markers[0]:]
    if minor >= ENTRIES_SINCE:
        got["frames"][-1][5] |= ENTRY  # told of the marker
    return [f[0] for f in callers]


def check_thread(thread, got, minor):
    callers = take_callers(got, minor)
    if callers and callers != [shown(frame[0]) for frame in thread["outer"]]:
        raise Wrong("called by %s" % callers)
    if "outer" in thread and not callers and not got["flags"] & AMBIGUOUS:
        raise Wrong("callers in the main interpreter are missing")
    if not got["flags"] & AMBIGUOUS:
        check_stack(thread["frames"], got, minor)
        return
    # Up to 3.11 nothing tells which interpreter a thread is in once it has released the GIL.
    if "outer" not in thread:
        check_stack(thread["frames"], got, minor)
        return
    try:
        check_stack(thread["frames"], got, minor)
    except Wrong:
        inner = [f for f in got["frames"] if f]
        outer = [shown(frame[0]) for frame in thread["outer"]]
        if [f[0] for f in inner] != outer:
            raise


def replay(tool, python):
    """Returns how many threads and frames were right; raises Wrong at the first that is not."""
    with open(os.path.join(HERE, "stacks.py"), "rb") as program, \
            subprocess.Popen(python["command"] + ["-B", "-E", "-s", "-"], stdin=program,
                             stdout=subprocess.PIPE, text=True) as child:
        try:
            line = child.stdout.readline()
            if not line:
                raise Wrong("stacks.py ended")
            truth = json.loads(line)
            threads = truth["threads"]
            wait_asleep(child, [t["tid"] for t in threads])
            done = subprocess.run(
                [tool, str(child.pid), str(truth["version"][1])]
                + ["%d:%d" % (t["ident"], t["tid"]) for t in threads],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120)
        finally:
            child.kill()
    stacks = [json.loads(text) for text in done.stdout.decode().splitlines()]
    for thread, got in zip(threads, stacks):
        try:
            check_thread(thread, got, truth["version"][1])
        except Wrong as e:
            raise Wrong("thread %s: %s" % (thread["name"], e)) from None
    if done.returncode:
        names = {str(t["ident"]): t["name"] for t in threads}
        text = done.stderr.decode(errors="replace")
        for ident, name in names.items():
            text = text.replace(ident, name)
        raise Wrong(text.strip()[-2000:])
    if len(stacks) != len(threads):
        raise Wrong("%d stacks of %d threads" % (len(stacks), len(threads)))
    return len(stacks), sum(len(got["frames"]) for got in stacks)


def main():
    tool, wanted = sys.argv[1], sys.argv[2:]
    used = failed = 0
    for python in pythons():
        if wanted and python["name"] not in wanted:
            continue
        used += 1
        try:
            print("%-22s %d threads, %d frames right" % (python["name"], *replay(tool, python)))
        except (Wrong, subprocess.TimeoutExpired) as e:
            failed += 1
            print("%-22s WRONG: %s" % (python["name"], e))
        sys.stdout.flush()
    print("%d interpreters, %d wrong" % (used, failed))
    return 1 if failed or not used else 0


if __name__ == "__main__":
    sys.exit(main())
