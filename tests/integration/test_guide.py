# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`pyebpf guide`: one page, each of whose examples does what it says it does."""
import concurrent.futures
import json
import os
import re
import subprocess

import pytest
from harness import PYEBPF, run

pytestmark = pytest.mark.usefixtures("pyebpf")

# What the examples name. With an argument it is the change.
PROGRAM = """
import json, sys, threading, time
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: json.dumps([1, 2, 3] * 20)
def work():
    spin(0.05 * (int(sys.argv[1]) if len(sys.argv) > 1 else 1))
    time.sleep(0.05)
spin(0.15)  # outside of threads, in json
while True:
    threads = [threading.Thread(target=work, name="worker-%d" % i) for i in range(2)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    if sys.argv[1:] != ["forever"]: break
""".replace("int(sys.argv[1])", "int(sys.argv[1].replace('forever', '1'))")

WRITES = re.compile(r"(?:-o|>) ([\w.]+)")
SIDE_BY_SIDE = 6
EXIT = re.compile(r"# .*\bexit (\d(?:, \d)*(?: or \d)?)$")


def examples():
    """[(command line, the exit codes it may have)] in the order of the page."""
    page = run("guide").stdout
    found = []
    for line in page.splitlines():
        if line.startswith("    "):
            told = EXIT.search(line)
            found.append((line.strip(), set(map(int, re.findall(r"\d", told.group(1)))) if told else {0}))
    return page, found


def run_all(found, folder, environment):
    """[(line, exit codes, how it ended)]. A line waits for those before it that write what it names."""
    writers = {}

    def run_line(line, waits_for):
        concurrent.futures.wait(waits_for)
        return subprocess.run(["bash", "-c", line], cwd=folder, env=environment, check=False,
                              stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8")
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        started = []
        for line, _ in found:
            waits_for = [writers[name] for name in re.findall(r"[\w.]+", line) if name in writers]
            started.append(pool.submit(run_line, line, waits_for))
            writers.update(dict.fromkeys(WRITES.findall(line), started[-1]))
        return [(*example, done.result()) for example, done in zip(found, started)]


def test_each_example_of_the_guide_runs(some_python, tmp_path):
    page, found = examples()
    assert len(page.splitlines()) <= 120 and len(found) > 20
    (tmp_path / "app.py").write_text(PROGRAM)
    (tmp_path / "stacks.txt").write_text("main (app.py:1);spin (app.py:5) 10\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "pyebpf").symlink_to(PYEBPF)
    python = programs / "python3"
    python.write_text("#!/bin/sh\nexec %s \"$@\"\n" % " ".join(some_python.command))
    python.chmod(0o755)
    with subprocess.Popen([*some_python.command, "app.py", "forever"], cwd=tmp_path) as target:
        environment = dict(os.environ, PATH="%s:%s" % (programs, os.environ["PATH"]), PID=str(target.pid))
        try:
            for line, codes, done in run_all(found, tmp_path, environment):
                assert done.returncode in codes, (line, done)
                assert codes == {0} or done.stderr or "gate" in line, line
        finally:
            target.kill()
    for name in tmp_path.glob("*.json"):
        assert json.loads(name.read_text())["schema"].startswith("pyebpf-"), name
    assert {name.name for name in tmp_path.iterdir()} > {"app.html", "ticket.pyebpf", "both.pyebpf", "diff.json"}


def test_guide_names_what_there_is():
    """Options and commands that it tells of are those of the program."""
    page, _ = examples()
    helps = {}
    for command in re.findall(r"^  (\w+) ", run("--help").stdout, re.M):
        helps[command] = run(command, "--help").stdout
    assert {command for line in page.splitlines() for command in re.findall(r"^    pyebpf (\w+)", line)} <= set(helps)
    known = set(re.findall(r"--[\w-]+", " ".join(helps.values())))
    assert set(re.findall(r"--[a-z][\w-]+", page)) - known <= {"--nosuch"}
