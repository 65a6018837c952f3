# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which of its process's thread states a thread runs: the same in dump, on the CPU and while waiting."""
import json
import os
import re
import subprocess

import pythons
import pytest
from harness import Recorder, Workload, draw, export, run, wait_until
from spinning import say_skipped

pytestmark = pytest.mark.usefixtures("pyebpf")
SOURCE = os.path.join(os.path.dirname(__file__), "..", "workloads", "lend.c")
SHORT = ("-d", "400ms", "-F", 499)  # 200 samples of who computes


def pytest_generate_tests(metafunc):
    """direct: interpreters that run in place, as a library is loaded into them; with_ids: of these those
    that number interpreters; with_stack: those whose thread states lead to the stack of who runs them;
    with_interpreters: of all those with a module for other interpreters. With --tier=test three of each are drawn."""
    for name, minor in (("direct", 6), ("with_ids", 7), ("with_interpreters", 8), ("with_stack", 10)):
        if name in metafunc.fixturenames:
            found = [p for p in metafunc.config.pythons
                     if (p.via == "direct" or name == "with_interpreters") and p.minor >= minor]
            if metafunc.config.draws:
                found = draw(found, 3, metafunc.definition.nodeid)
            metafunc.parametrize(name, found, ids=[p.name for p in found])


@pytest.fixture(scope="session")
def lending(tmp_path_factory):
    if not pythons.cc():
        say_skipped("no C compiler here")
    library = tmp_path_factory.mktemp("lend") / "lend.so"
    subprocess.run([pythons.cc(), "-shared", "-fPIC", "-o", str(library), SOURCE, "-ldl", "-lpthread"],
                   check=True)
    return library


def dumped(pid):
    """{innermost known function: the thread's functions} of all threads, and who is a guess."""
    done = run("dump", "--json", "-p", pid)
    assert done.returncode == 0, done.stderr
    process, = json.loads(done.stdout)["processes"]
    return [[[f["name"] for f in t["frames"]], t] for t in process["threads"]]


def settle(pid, count, *leaves):
    """Until that many threads of Python are in these functions."""
    found = []

    def is_settled():
        found[:] = dumped(pid)
        return len(found) >= count and {calls[-1] for calls, _ in found if calls} >= set(leaves)
    wait_until(is_settled, 20, "threads are in " + ", ".join(leaves))
    return found


def leaves_of(pid, folder, *arguments):
    """{thread: its innermost functions} of a recording."""
    output = os.path.join(str(folder), "thread_states.pyebpf")
    with Recorder(output, "-p", pid, *SHORT, *arguments) as recorder:
        recorder.wait()
    leaves = {}
    for stack in export(output, "--threads"):
        leaves.setdefault(stack.tags, set()).update(frame[0] for frame in stack.frames)
    return leaves


def test_threads_that_a_fork_from_c_left_behind(direct, tmp_path):
    with Workload(direct, "thread_states.py", "forked") as workload:
        child = workload.truth()
        found = settle(child, 2, "main_waits", "work")
        assert not [calls for calls, _ in found if "ghost" in calls]
        assert sorted(t["name"] for _, t in found) == ["MainThread", "work"]
        guesses = {t["name"]: t["is_guess"] for _, t in found}
        assert guesses == {"MainThread": False, "work": direct.minor < 11}
        met = set().union(*leaves_of(child, tmp_path, "--mode", "wall").values())
        assert {"main_waits", "work"} <= met and "ghost" not in met


def named(calls):
    return [name for name in calls if name in ("outer", "middle", "spins", "waits") or name[0] == "<"]


def check_callers(workload, what, folder, is_guess):
    """Checks a thread that does `what` in one interpreter, entered from others; the program prints their ids."""
    ids = workload.truth()
    expected = ["<module>", "outer"]
    for name, number in zip(["middle", what] if len(ids) == 2 else [what], reversed(ids)):
        expected += ["<interpreter %d>" % number, "<module>", name]
    (calls, thread), = settle(workload.pid, 1, what)
    assert named(calls) == expected
    assert thread["is_guess"] == is_guess
    for mode in (["cpu"] if what == "spins" else []) + ["wall"]:
        output = os.path.join(str(folder), mode + ".pyebpf")
        with Recorder(output, "-p", workload.pid, *SHORT, "--mode", mode) as recorder:
            recorder.wait()
        met = {}
        for stack, value in export(output).items():
            if stack.frames[0][0] != "<not sampled>":
                calls = tuple(named([frame[0] for frame in stack.frames])[:len(expected)])
                met[calls] = met.get(calls, 0) + value
        assert met.get(tuple(expected), 0) >= 0.98 * sum(met.values()), met
        by = run("report", "--no-summary", "--by", "interpreter", output).stdout
        assert set(re.findall(r"% .* (\d+|\(none\))$", by, re.M)) - {"(none)"} == {str(ids[0])}, by


def needs_interpreters(python):
    """3.13's module is a library of its own, which a program that has Python in it may not load."""
    names = ("_interpreters", "_xxsubinterpreters")
    if all(subprocess.run(python.command + ["-c", "import " + name], stderr=subprocess.DEVNULL).returncode
           for name in names):
        say_skipped("it has no module for other interpreters")


@pytest.mark.parametrize("what", ["spins", "waits"])
@pytest.mark.parametrize("case", ["interpreter", "nested"])
def test_callers_in_other_interpreters(with_interpreters, case, what, tmp_path):
    needs_interpreters(with_interpreters)
    with Workload(with_interpreters, "thread_states.py", case, what) as workload:
        check_callers(workload, what, tmp_path, what == "waits" and with_interpreters.minor < 10)


def test_callers_of_an_interpreter_that_c_made(with_ids, lending, tmp_path):
    with Workload(with_ids, "thread_states.py", "new", lending, "waits") as workload:
        check_callers(workload, "waits", tmp_path, with_ids.minor < 10)


def test_a_thread_of_another_interpreter(direct, lending):
    with Workload(direct, "thread_states.py", "started", lending) as workload:
        found = settle(workload.pid, 2, "main_waits", "waits")
        assert [t["is_guess"] for _, t in found] == [False, False]


@pytest.mark.parametrize("how", ["python", "c"])
def test_a_state_that_another_thread_made(with_stack, how, lending, tmp_path):
    with Workload(with_stack, "thread_states.py", "lent", lending, how, "spins") as workload:
        found = settle(workload.pid, 2, "main_waits", "spins")
        assert len([calls for calls, _ in found if "spins" in calls]) == 1
        met = leaves_of(workload.pid, tmp_path)
        assert len(met) == 1 and "spins" in set().union(*met.values())
        met = leaves_of(workload.pid, tmp_path, "--mode", "wall")
        assert sorted(len(names & {"spins", "main_waits"}) for names in met.values()) in \
            ([1, 1], [0, 1, 1])


def test_a_state_that_another_thread_made_waits(with_stack, lending, tmp_path):
    with Workload(with_stack, "thread_states.py", "lent", lending, "python", "waits") as workload:
        found = settle(workload.pid, 2, "main_waits", "waits")
        assert len([calls for calls, _ in found if "waits" in calls]) == 1
        met = leaves_of(workload.pid, tmp_path, "--mode", "wall")
        assert sorted(len(names & {"waits", "main_waits"}) for names in met.values()) == [1, 1]
