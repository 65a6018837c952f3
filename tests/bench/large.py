# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What comparisons and pages of large recordings take: two of gen_recording, nearly equal."""
import os
import re
import subprocess
import time

import tools

HZ = 10000
ROUNDS = 3


def generate(kind, samples, folder, build):
    """Paths of two recordings, and how many stacks they have."""
    generator = os.path.join(build, "tests", "gen_recording")
    if not os.path.exists(generator):
        raise tools.Failed("%s is not built: cmake --build build --target gen_recording" %
                           generator)
    paths = []
    for name, seconds in (("base", samples * 99 // 100 // HZ), ("current", samples // HZ)):
        paths.append(os.path.join(folder, "%s.pyebpf" % name))
        done = subprocess.run([generator, kind, str(HZ), str(seconds), paths[-1]], check=True,
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


def jobs(build, base, current, folder):
    """{what: command}, of the program in that build folder."""
    page = os.path.join(folder, "page.html")
    rows = {"diff": ["diff", base, current], "diff -o page.html": ["diff", base, current, "-o", page],
            "report -o page.html": ["report", "-o", page, current]}
    return {what: [os.path.join(build, "pyebpf")] + arguments for what, arguments in rows.items()}


def measure(kind, samples, folder):
    """(number of stacks, {what: (wall clock, CPU time, bytes) of the shortest of ROUNDS})."""
    build = os.path.dirname(tools.PYEBPF)
    (base, current), stacks = generate(kind, samples, folder, build)
    return stacks, {what: min(run(command) for _ in range(ROUNDS))
                    for what, command in jobs(build, base, current, folder).items()}
