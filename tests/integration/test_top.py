# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`pyebpf top` as it is seen on a terminal: tmux's."""
import math
import os
import re
import signal
import subprocess

import pytest
from harness import PYEBPF, Workload, run, wait_until
from tmux import PROMPT, Terminal

pytestmark = pytest.mark.usefixtures("pyebpf")
SECONDS = 3


@pytest.fixture
def terminal():
    with Terminal() as t:
        yield t


def top(terminal, *arguments, environment=""):
    terminal.keys("C-l")
    terminal.command(" ".join([environment, PYEBPF, "top", *map(str, arguments)]))


def numbers(screen, function):
    """Of a function's row."""
    for line in screen:
        match = re.match(r"((?: *[\d.]+)+) %s\b" % function, line)
        if match:
            return [float(number) for number in match.group(1).split()]
    raise AssertionError("no %s:\n%s" % (function, "\n".join(screen)))


def assert_share(heavy, light, truth, hz=99):
    """Of 75 and 25 %, as they really were: within 4 sigma, and half a point."""
    want = truth["heavy"] / (truth["heavy"] + truth["light"])
    sigma = math.sqrt(want * (1 - want) / (hz * truth["cpu"]))
    assert abs(heavy / (heavy + light) - want) < 4 * sigma + 0.005, (heavy, light, truth)


def test_what_it_shows_and_saves(terminal, some_python, tmp_path):
    saved = tmp_path / "it's.pyebpf"
    modes = terminal.modes()
    with Workload(some_python, "shares.py", SECONDS, "random") as workload:
        top(terminal, "-p", workload.pid, "--window", "60s")
        terminal.wait_for("no samples|FUNCTION")
        workload.ahead()
        workload.go()
        terminal.wait_for(r"^ +[\d.]+ +[\d.]+ .* heavy  ")
        terminal.resize(40, 10)  # while it goes on
        small = terminal.wait(lambda screen: re.match(r"top .* last ", screen[0]) and
                              re.search("heavy$", "\n".join(screen), re.M) and screen)
        assert all(len(line) <= 40 for line in small) and small[9].startswith("q quit"), small
        terminal.resize(100, 30)
        terminal.wait(lambda screen: screen[29].startswith("q quit"))
        truth = workload.truth()
        terminal.keys("w", "%")  # since the start, in seconds
        terminal.wait_for(r"since the start.*")
        spent = truth["heavy"] + truth["light"]

        def of_both(screen):
            return [numbers(screen, function)[0] for function in ("heavy", "light")]
        heavy, light = of_both(terminal.wait(
            lambda screen: sum(of_both(screen)) > 0.97 * spent - 0.02 and screen))
        assert_share(heavy, light, truth)
        assert heavy + light == pytest.approx(spent, rel=0.05, abs=0.05)
        terminal.keys("2")
        terminal.wait_for(r"^ +[\d.]+ .* %d .* heavy" % workload.pid)
        terminal.keys("f")
        terminal.type("--focus 'light'")
        terminal.keys("Enter", "3")
        terminal.wait(lambda screen: "only: --focus 'light'" in screen and
                      not any("heavy" in line for line in screen))
        terminal.keys("s", "C-u")
        terminal.type(str(saved))
        terminal.keys("Enter")
        terminal.wait_for("^saved: ")
        terminal.keys("q")
        terminal.wait_for("^" + PROMPT + "$")
        workload.exit()
    assert terminal.modes() == modes
    report = run("report", saved)
    assert report.returncode == 0 and "warning" not in report.stderr, report.stderr
    of = {name: float(share) for share, name in re.findall(
        r"^ *([\d.]+)%.* (heavy|light) ", run("report", "--kind", "cpu", saved).stdout, re.M)}
    assert_share(of["heavy"], of["light"], truth)


def test_leaves_the_terminal_as_it_was(terminal, some_python):
    """Stopped, continued, crashed; without colours, on a terminal of 1978."""
    modes = terminal.modes()
    with Workload(some_python, "shares.py", 60, "random") as workload:
        workload.go()
        top(terminal, "-p", workload.pid, environment="TERM=vt100 NO_COLOR=1")
        terminal.wait_for(r"^ .* heavy  ")
        assert not re.search(r"\x1b\[[\d;]*[34][0-8]", "\n".join(terminal.screen("-e")))
        terminal.keys("C-z")
        terminal.wait_for("Stopped")
        assert terminal.modes() == modes
        pid = int(terminal.answer("jobs -p")[0])
        terminal.command("fg")
        terminal.wait_for(r"^q quit")
        os.kill(pid, signal.SIGSEGV)
        terminal.wait_for("Segmentation fault")
        assert terminal.modes() == modes


SCRIPT = """import os, sys, threading
print('all over the screen', sys.stdin.isatty())
open(sys.argv[1], 'w').write(str(os.getpid()))
lock = threading.Lock()
lock.acquire()

def stuck():
    lock.acquire()

def loop():
    while True: pass

thread = threading.Thread(target=stuck)
thread.daemon = True
thread.start()
loop()
"""


def test_a_command_has_no_terminal_and_ends_with_it(terminal, some_python, tmp_path):
    """And a wait that has not ended is shown."""
    script = tmp_path / "loud.py"
    script.write_text(SCRIPT)
    top(terminal, "--window 2s", "--", *some_python.command, script, tmp_path / "pid")
    screen = terminal.wait(lambda screen: any(" loop" in line for line in screen) and
                           any(" stuck" in line for line in screen) and
                           numbers(screen, "stuck")[2] > 90 and screen)
    assert numbers(screen, "stuck")[0] == 0 and numbers(screen, "loop")[0] > 0, screen
    assert not any("all over" in line for line in screen), screen
    pid = int((tmp_path / "pid").read_text())
    terminal.keys("q")
    terminal.wait_for("^" + PROMPT + "$")
    wait_until(lambda: not os.path.exists("/proc/%d" % pid), 5, "the command ends")


@pytest.mark.parametrize("environment, message", [
    ({}, "standard input is not a terminal"),
    ({"TERM": "nonsense"}, "TERM=nonsense: unknown terminal type (no terminfo entry)"),
    ({"TERM": "dumb"}, "TERM=dumb: a terminal that cannot move its cursor"),
], ids=["no terminal", "unknown", "dumb"])
def test_says_where_it_cannot_draw(environment, message):
    command = [PYEBPF, "top", "-a"]
    if environment:
        command = ["script", "-qec", " ".join(command), "/dev/null"]
    done = subprocess.run(command, env=dict(os.environ, **environment), timeout=30,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    text = done.stdout.decode()
    assert "pyebpf top: " + message in text and "try: pyebpf record" in text, text
    assert done.returncode == 2


def test_tasks_by_name(terminal, some_python):
    """With --async alone; the parked ones wait all the time: so many, one as long as another."""
    with Workload(some_python, "tasked.py", "parked", 1000, 10) as workload:
        top(terminal, "-p", workload.pid)
        terminal.wait_for("no samples|FUNCTION")
        terminal.keys("4")
        terminal.wait_for("tasks: only with top --async")
        terminal.keys("q")
        terminal.wait_for("^" + PROMPT + "$")
        top(terminal, "-p", workload.pid, "--async", "--window", "60s")
        terminal.wait_for("no samples|FUNCTION")
        terminal.keys("4", "%", ">")

        def rows(screen):
            return {name: float(wait) for wait, name in re.findall(
                r"^ +[\d.]+ +([\d.]+) +[\d.]+ (worker_for_ever|child|park_all) ", "\n".join(screen), re.M)}
        found = rows(terminal.wait(lambda screen: len(rows(screen)) == 3 and screen))
        assert found["worker_for_ever"] == pytest.approx(8 * found["park_all"], rel=0.05, abs=0.1)
        assert found["child"] == pytest.approx(4 * found["park_all"], rel=0.05, abs=0.1)
        terminal.keys("/")
        terminal.type("child")
        terminal.keys("Enter", "Enter")
        terminal.wait_for("only: task child$(.|\n)*FUNCTION(.|\n)* sleep  asyncio/tasks.py")
        terminal.keys("/")
        terminal.type("sleep")
        terminal.keys("Enter", "Enter")
        terminal.wait_for("HOTTEST STACK.*\n +worker_for_ever .*\n +gathers .*\n +child .*\n +in_sleep .*\n +sleep ")
        terminal.keys("Escape", "Escape")
        terminal.wait(lambda screen: len(rows(screen)) == 3)
        terminal.keys("q")
        terminal.wait_for("^" + PROMPT + "$")
