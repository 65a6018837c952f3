# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""More processes than the table of processes has rows where it does not grow: 16,384."""
import contextlib
import os
import signal
import subprocess

import chunks
import pytest
from harness import PATIENCE, Recorder, run, wait_until

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.alone]

COUNT = 17000
WAITING = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
/* COUNT [COMMAND...]: which is run by one more child */
int main(int argc, char **argv)
{
	int made = 0;

	for (int i = 0; i < atoi(argv[1]); i++) {
		int pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		made += pid > 0;
	}
	printf("%d\\n", made);
	fflush(stdout);
	if (argc > 2 && !fork()) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	wait(NULL);
}
"""
HZ = 199
SPIN = "def work():\n    while True:\n        sum(range(1000))\n\nprint('READY', flush=True)\nwork()\n"
SECOND = """
import time
def work(end):
    while time.process_time() < end: sum(range(1000))
work(time.process_time() + 1)
"""


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("waiting")
    (folder / "waiting.c").write_text(WAITING)
    subprocess.run(["cc", "-o", folder / "waiting", folder / "waiting.c"], check=True)
    return folder / "waiting"


@contextlib.contextmanager
def crowd(waiting, *command):
    """COUNT processes that wait, and one that runs the command."""
    with subprocess.Popen([waiting, str(COUNT), *command], stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            assert int(process.stdout.readline()) == COUNT
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            wait_until(lambda: not is_group(process.pid), PATIENCE, "all have ended")


def is_group(pid):
    try:
        os.killpg(pid, 0)
    except ProcessLookupError:
        return False
    return True


def work_samples(output):
    text = run("export", "-f", "collapsed", output).stdout
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines() if "work (" in line)


def test_a_python_among_many_processes_is_recorded(some_python, waiting, tmp_path):
    with crowd(waiting), subprocess.Popen([*some_python.command, "-c", SPIN],
                                          stdout=subprocess.PIPE, text=True) as python:
        try:
            assert python.stdout.readline() == "READY\n"
            done = run("record", "-a", "-d", "2s", "-o", tmp_path / "x.pyebpf")
        finally:
            python.kill()
    assert done.returncode == 0, done.stderr
    text = run("export", "-f", "jsonl", tmp_path / "x.pyebpf").stdout
    assert "work" in text


def kernels(slow):
    return pytest.mark.parametrize("kernel", [
        pytest.param(options, id=name, marks=[pytest.mark.full] if name == slow else [])
        for name, options in (("new", ()), ("old", ("--old-kernel",)))])


@kernels(slow="old")
def test_processes_that_come_later(kernel, some_python, waiting, tmp_path):
    """The crowd comes while it records, and a Python after it, of which all is recorded."""
    output = tmp_path / "x.pyebpf"
    with Recorder(output, *kernel, "-a", "-F", HZ) as recorder:
        recorder.wait_attached()
        with crowd(waiting):
            subprocess.run([*some_python.command, "-c", SECOND], check=True)
            recorder.finish()
    assert "warning" not in recorder.text(), recorder.text()
    assert work_samples(output) > 0.8 * HZ


@kernels(slow="new")
def test_children_that_come_later(kernel, some_python, waiting, tmp_path):
    """Their parent is the target, and the last one is a Python. Before Linux 6.1 the table does not grow: the CPU time of
    those that find it full is lost by name, and they are counted."""
    output = tmp_path / "x.pyebpf"
    wait_until(lambda: sum(name.isdigit() for name in os.listdir("/proc")) < 8000, PATIENCE, "others have ended")
    before = "import os\nfor _ in range(3000000): pass\nos.execv(%r, %r)" % (
        str(waiting), [str(waiting), str(COUNT), *some_python.command, "-c", SECOND])
    done = run("record", *kernel, "-F", HZ, "-o", output, "--", *some_python.command, "-c", before)
    assert done.returncode == 0, done.stderr
    found, counters = work_samples(output), chunks.read(output).counters
    if not kernel:
        assert found > 0.8 * HZ and not counters["no_row"] and not counters["rows_refused"], (found, counters)
        return
    assert found == 0 and "table of processes is full: 16384" in done.stderr, (found, done.stderr)
    assert counters["no_row"] > 0.8 * HZ, counters
    assert 0 < counters["rows_refused"] - (COUNT - 16384) < 100, counters
