# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What comparisons and pages of large recordings take: two of gen_recording, nearly equal."""
import os
import re
import subprocess
import time

import tools

GENERATOR = os.path.join(tools.REPOSITORY, "build", "tests", "gen_recording")
HZ = 10000
ROUNDS = 3


def generate(kind, samples, folder):
    """Paths of two recordings, and how many stacks they have."""
    if not os.path.exists(GENERATOR):
        raise tools.Failed("%s is not built: cmake --build build --target gen_recording" %
                           GENERATOR)
    paths = []
    for name, seconds in (("base", samples * 99 // 100 // HZ), ("current", samples // HZ)):
        paths.append(os.path.join(folder, "%s.pyebpf" % name))
        done = subprocess.run([GENERATOR, kind, str(HZ), str(seconds), paths[-1]], check=True,
                              stdout=subprocess.PIPE, text=True)
    return paths, int(re.search(r"(\d+) stacks", done.stdout).group(1))


def run(command):
    """(wall clock, CPU time, most resident memory) of one run."""
    start = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise tools.Failed("%s: exit status %d" % (" ".join(command[1:]), status >> 8))
    return (time.monotonic() - start, usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss * 1024)


def measure(kind, samples, folder):
    """(number of stacks, {what: (wall clock, CPU time, bytes) of the shortest of ROUNDS})."""
    (base, current), stacks = generate(kind, samples, folder)
    page = os.path.join(folder, "page.html")
    jobs = {"diff": ["diff", base, current], "diff -o page.html": ["diff", base, current, "-o",
                                                                   page],
            "report -o page.html": ["report", "-o", page, current]}
    return stacks, {what: min(run([tools.PYEBPF] + arguments) for _ in range(ROUNDS))
                    for what, arguments in jobs.items()}
