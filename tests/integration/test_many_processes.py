# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""More processes than the table of processes has rows by default: 16,384."""
import contextlib
import subprocess

import pytest
from harness import run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.alone]

COUNT = 17000
WAITING = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int made = 0;

	for (int i = 0; i < atoi(argv[argc - 1]); i++) {
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
	pause();
}
"""
SPIN = "def work():\n    while True:\n        sum(range(1000))\n\nprint('READY', flush=True)\nwork()\n"


def test_a_python_among_many_processes_is_recorded(some_python, tmp_path):
    (tmp_path / "waiting.c").write_text(WAITING)
    subprocess.run(["cc", "-o", tmp_path / "waiting", tmp_path / "waiting.c"], check=True)
    with contextlib.ExitStack() as stack:
        crowd = stack.enter_context(subprocess.Popen([tmp_path / "waiting", str(COUNT)],
                                                     stdout=subprocess.PIPE, text=True))
        stack.callback(crowd.kill)
        assert int(crowd.stdout.readline()) == COUNT
        python = stack.enter_context(subprocess.Popen([*some_python.command, "-c", SPIN],
                                                      stdout=subprocess.PIPE, text=True))
        stack.callback(python.kill)
        assert python.stdout.readline() == "READY\n"
        done = run("record", "-a", "-d", "2s", "-o", tmp_path / "x.pyebpf")
    assert done.returncode == 0, done.stderr
    text = run("export", "-f", "jsonl", tmp_path / "x.pyebpf").stdout
    assert "work" in text
