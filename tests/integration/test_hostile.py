# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A target that rewrites its frames, code objects, names and thread list while it is recorded, by
the build with ASan and UBSan: no crash, no hang, and what is recorded beside it is right."""
import glob
import os
import re
import subprocess
import sys
import time
import types

import collapsed
import harness
import pytest
from harness import REPOSITORY, Recorder, WORKLOADS
from spinning import HZ, LEAF, SCRIPT, Spinning, cpu_seconds

sys.path.insert(0, os.path.join(REPOSITORY, "tests", "hostile"))

import commands  # noqa: E402
import trial  # noqa: E402
from attacks import Attack  # noqa: E402

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.hostile]
HOSTILE = os.path.join(WORKLOADS, "hostile.py")
FAST = 4999
REPORTS = re.compile(r"Sanitizer|runtime error|BUG")


def pytest_generate_tests(metafunc):
    """attacked: interpreters whose insides hostile.py knows; one of each way to keep frames."""
    if "attacked" not in metafunc.fixturenames:
        return
    found = [p for p in metafunc.config.all_pythons
             if 11 <= p.minor <= 15 and p.via != "chroot" and not p.free_threaded]
    if metafunc.config.getoption("--tier") != "all":
        found = [p for p in found if p.via == "direct" and p.linkage == "shared"][-1:]
    metafunc.parametrize("attacked", found, ids=[p.name for p in found])


@pytest.fixture
def sanitized(monkeypatch):
    """pyebpf built with sanitizers."""
    path = os.environ.get("PYEBPF_ASAN") or os.path.join(REPOSITORY, "build-asan", "pyebpf")
    if not os.access(path, os.X_OK):
        pytest.skip("no %s: make build-asan, or set PYEBPF_ASAN" % path)
    monkeypatch.setattr(harness, "PYEBPF", os.path.abspath(path))


def leaves(output, folder):
    """{(PID, leaf's name, its line): count}, without parsing all: a frame chain that was made a
    circle gives stacks of 4,096 frames, and they hundreds of megabytes of text."""
    text = str(folder / "hostile.collapsed")
    done = harness.run("export", "-f", "collapsed", "--processes", "-o", text, output)
    assert done.returncode == 0 and not REPORTS.search(done.stderr), done.stderr
    counts = {}
    with open(text, encoding="utf-8", errors="surrogateescape") as f:
        for line in f:
            if line.startswith("# pyebpf-collapsed"):
                continue
            path, _, count = line.rpartition(" ")
            process, leaf = path[:100].partition(";")[0], path.rpartition(";")[2]
            frame = collapsed.parse_frame(leaf)
            key = int(re.search(r"\((\d+)\)", process).group(1)), frame.name, frame.line
            counts[key] = counts.get(key, 0) + int(count)
    os.remove(text)
    return counts


def test_target_that_rewrites_itself(attacked, some_python, sanitized, is_full, tmp_path):
    seconds = 60 if is_full else 6
    output = tmp_path / "hostile.pyebpf"
    with Spinning(*some_python.command, SCRIPT, "120") as bystander, \
            Spinning(*attacked.command, HOSTILE, seconds, int(time.time())) as hostile:
        before = cpu_seconds(bystander.pid)
        with Recorder(output, "-p", "%d,%d" % (hostile.pid, bystander.pid), "-F", FAST) as recorder:
            recorder.wait_attached()
            attached = cpu_seconds(bystander.pid)
            try:
                status = hostile.process.wait(seconds + 30)
            except subprocess.TimeoutExpired:
                pytest.fail("the hostile program hangs: %s" % recorder.text())
            used = cpu_seconds(bystander.pid)
            recorder.finish()
            over = cpu_seconds(bystander.pid)
            text = recorder.text()
        assert status == 0, "hostile.py hit itself: %d" % status
        assert not REPORTS.search(text), text
    counts = leaves(output, tmp_path)
    mine = {key[1:]: count for key, count in counts.items() if key[0] == bystander.pid}
    theirs = sum(count for key, count in counts.items() if key[0] != bystander.pid)
    assert theirs > FAST // 10, (theirs, text)
    assert set(mine) == {LEAF}, mine
    expected = (used - attached) * FAST
    assert 0.95 * expected - 4 * expected ** 0.5 <= mine[LEAF] <= \
        (over - before) * FAST * 1.02 + 100, (mine, expected, text)
    done = harness.run("report", "--tree", output)
    assert done.returncode == 0 and not REPORTS.search(done.stderr), done.stderr


@pytest.mark.full
def test_targets_that_rewrite_themselves_under_all(attacked, some_python, sanitized, tmp_path):
    """The same under -a, several at once, at an ordinary rate."""
    output = tmp_path / "hostile.pyebpf"
    with Spinning(*some_python.command, SCRIPT, "120") as bystander:
        with Recorder(output, "-a", "-F", HZ) as recorder:
            recorder.wait_attached()
            attached = cpu_seconds(bystander.pid)
            attackers = [Spinning(*attacked.command, HOSTILE, 15, seed) for seed in range(3)]
            for attacker in attackers:
                assert attacker.process.wait(60) == 0
                attacker.close()
            used = cpu_seconds(bystander.pid)
            recorder.finish()
            text = recorder.text()
    assert not REPORTS.search(text), text
    got = leaves(output, tmp_path).get((bystander.pid, *LEAF), 0)
    expected = (used - attached) * HZ
    assert got >= 0.95 * expected - 4 * expected ** 0.5, (got, expected, text)


OVERFLOW = """
#include <stdlib.h>
#include "base/apart.h"

static void overflow(void *arg)
{
	char *volatile bytes = malloc(3);

	bytes[(long)arg] = 1;
	free(bytes);
}

int main(void)
{
	pthread_t thread;

	return apart_start(overflow, (void *)3, APART_NO_FILES, -1, &thread) || pthread_join(thread, NULL);
}
"""


def test_report_of_a_reader_fails_a_trial(tmp_path, monkeypatch):
    """The processes that read targets have no stderr, and end where the recorder does not look."""
    class Reads(commands.Command):
        def arguments(self):
            return []

    source, program, user = tmp_path / "overflow.c", tmp_path / "overflow", os.path.join(REPOSITORY, "user")
    source.write_text(OVERFLOW)
    subprocess.run(["cc", "-g", "-D_GNU_SOURCE", "-fsanitize=address", "-I", user, "-o", program, source,
                    *glob.glob(os.path.join(user, "base", "*.c")), "-lpthread", "-lnettle", "-lz"], check=True)
    monkeypatch.setitem(commands.COMMANDS, "reads", Reads)
    tried = trial.Trial(Attack(), "reads", types.SimpleNamespace(folder=tmp_path),
                        {"plain": "", "sanitized": str(program)}, 0)
    command = tried.command_class(tried.scene, tried.program, [0])
    command.start()
    command.process.wait(60)
    tried.judge(command, types.SimpleNamespace(peak_kib=0), 0)
    command.close()
    assert tried.failures[:2] == ["exit code -6", "a sanitizer's report"], tried.failures
    assert "heap-buffer-overflow" in tried.failures[2] and "in overflow" in tried.failures[2], tried.failures
