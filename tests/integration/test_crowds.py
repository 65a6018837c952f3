# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of short life, begun by the hundred on a machine that has no CPU left for them: they hold up nobody who is
to be identified, and are told from Python themselves."""
import contextlib
import os
import re
import signal
import subprocess
import time

import pytest
from harness import PATIENCE, Recorder, export

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.alone, pytest.mark.full]

HZ = 199
LOOPS = 60
HOG = "#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC / 50); }\n"
SECONDS = 0.2  # of CPU time, of each of the Pythons, its start included
PYTHONS = 3
WORK = """
import time
def begun_in_a_crowd(end):
    while time.process_time() < end: sum(range(1000))
begun_in_a_crowd(%s)
""" % SECONDS
UNKNOWN_MAX = 0.03  # of all ticks of the machine; up to 0.15 where one such program after the other was waited for
FOUND_MIN = 0.4  # of the Pythons' ticks: their start is among them, and that of another interpreter


@contextlib.contextmanager
def crowd(hog):
    loops = [subprocess.Popen(["nice", "-n", "5", "sh", "-c", "while :; do %s; done" % hog], process_group=0)
             for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            os.killpg(loop.pid, signal.SIGKILL)
        for loop in loops:
            loop.wait()


def unknown_ticks(text):
    """Returns the ticks of unidentified processes, by the summary."""
    lost = re.search(r"process not yet identified as Python ([\d,]+)", text)
    return int(lost[1].replace(",", "")) if lost else 0


def test_programs_of_short_life(some_python, tmp_path):
    output = tmp_path / "x.pyebpf"
    subprocess.run(["cc", "-O1", "-xc", "-", "-o", tmp_path / "hog"], input=HOG, text=True, check=True)
    with Recorder(output, "-a", "-F", HZ) as recorder:
        recorder.wait_attached()
        with crowd(tmp_path / "hog"):
            begin = time.monotonic()
            time.sleep(1)
            started = [subprocess.Popen([*some_python.command, "-S", "-E", "-c", WORK]) for _ in range(PYTHONS)]
            for process in started:
                assert process.wait(PATIENCE) == 0
            seconds = time.monotonic() - begin
            recorder.finish()
        text = recorder.text()
    found = sum(count for stack, count in export(output).items()
                if any(frame[0] == "begun_in_a_crowd" for frame in stack.frames))
    assert unknown_ticks(text) < UNKNOWN_MAX * HZ * os.cpu_count() * seconds, text
    assert found > FOUND_MIN * HZ * SECONDS * PYTHONS, (found, text)
