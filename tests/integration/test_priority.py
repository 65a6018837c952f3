# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A busy machine: what the recorder needs at once comes before what it records."""
import os
import pathlib
import sys

import pytest
from harness import Recorder, wait_until

pytestmark = pytest.mark.usefixtures("pyebpf")
RAISED = -15


def nice_of(pid):
    """{name of a thread or of a child: nice values} of a process."""
    found = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        pids = [int(task.name), *map(int, (task / "children").read_text().split())]
        for one in pids:
            name = "children" if one != int(task.name) else "threads"
            command = pathlib.Path(f"/proc/{one}/comm").read_text().strip()
            found.setdefault((name, command), set()).add(os.getpriority(os.PRIO_PROCESS, one))
    return found


@pytest.mark.parametrize("nice", (0, 5))
def test_who_looks_comes_first(nice, tmp_path):
    """The thread that empties the ring, the one that asks, and the process that reads; nobody where
    pyebpf was started with another priority. The command has that of its caller."""
    program = "import os, time\nrecorder, end = os.getppid(), time.monotonic() + 60\n" \
              "while os.getppid() == recorder and time.monotonic() < end: time.sleep(0.01)"
    with Recorder(tmp_path / "x.pyebpf", "--", sys.executable, "-c", program,
                  preexec_fn=lambda: os.setpriority(os.PRIO_PROCESS, 0, nice)) as recorder:
        recorder.wait_attached()
        name = os.path.basename(sys.executable)
        due = {("threads", "pyebpf"): RAISED, ("children", "pyebpf-reader"): RAISED, ("children", name): 0}
        if nice:
            due = dict.fromkeys(due, nice)

        def seen():
            return {key: values for key, values in nice_of(recorder.process.pid).items() if key in due}
        wait_until(lambda: seen().keys() == due.keys() and all(due[k] in v for k, v in seen().items()), 10,
                   f"{due}; now {seen()}")
        assert seen()["children", name] == {nice}
