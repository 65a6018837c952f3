# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""dump --async: the tasks of event loops, against what the programs say of themselves."""
import json
import os
import re
import subprocess

import pytest

import harness
import packages
import pythons

SMALL = 300  # tasks; the benchmark has 10,000


def dump(pid, *options):
    done = harness.run("dump", "--async", "--json", "-p", str(pid), *options)
    assert done.returncode == 0, done.stderr
    process, = json.loads(done.stdout)["processes"]
    return process


def text(pid):
    done = harness.run("dump", "--async", "-p", str(pid))
    assert done.returncode == 0, done.stderr
    return done.stdout


def workload(python, name, *arguments, package=None):
    env = None
    if package:
        try:
            env = {"PYTHONPATH": packages.folder_of(python, package)}
        except pythons.Unavailable as e:
            pytest.skip("NOT TESTED: %s" % e)
    return harness.Workload(python, name, *arguments, env=env)


def start(python, name, *arguments, package=None):
    work = workload(python, name, *arguments, package=package)
    work.go()
    return work


def chain(task):
    return [[frame["name"], frame["line"]] for frame in task["frames"]]


def differences(truth, process):
    """What is not as the program says: names, coroutines and lines, who waits for whom."""
    tasks = process["tasks"]
    names = {task["id"]: task["name"] for task in tasks}
    found = {task["name"]: task for task in tasks}
    wrong = [("twice", len(tasks), len(found))] if len(tasks) != len(found) else []
    wrong += [("missing", name) for name in truth if name not in found]
    wrong += [("not there", name) for name in found if name not in truth]
    for name, fact in truth.items():
        task = found.get(name)
        if not task:
            continue
        parents = sorted(names[parent] for parent in task["awaited_by"])
        if chain(task) != fact["chain"]:
            wrong.append((name, chain(task), fact["chain"]))
        if parents != sorted(fact["parents"]):
            wrong.append((name, parents, fact["parents"]))
        if task["state"] != "waiting" or not task["coroutine"] or not task["waits_for"] or not task["is_consistent"]:
            wrong.append((name, task["state"], task["waits_for"], task["is_consistent"]))
    return wrong


WAITS = {"sleep": "sleep(3600)", "gather": "gather of 3", "executor": "a thread of an executor",
         "await": "task awaited", "shield": "shield", "future": "Future", "wait": "wait of 2"}
OBJECTS = {"lock": "Lock.acquire", "semaphore": "Semaphore.acquire", "condition": "Condition.wait",
           "event": "Event.wait", "queue.get": "Queue.get", "queue.put": "Queue.put",
           "queue.join": "Queue.join"}


def check_words(process):
    said = {task["name"]: task["waits_for"] for task in process["tasks"]}
    assert {name: said[name] for name in WAITS} == WAITS
    for name, words in OBJECTS.items():
        assert re.fullmatch(words + " of 0x[0-9a-f]+", said[name]), said[name]
    assert re.fullmatch(r"sock_recv, fd \d+", said["sock_recv"])
    assert re.fullmatch(r"data from a stream, fd \d+", said["stream"])


def check_refused(python):
    with harness.Workload(python, "waits.py", "crowd", 1) as work:
        process = dump(work.pid)
        assert process["error"] == "tasks of CPython 3.%d are not known" % python.minor
        assert process["tasks"] == [] and process["threads"]
        assert process["error"] in text(work.pid)


def check_own(python, mode="all"):
    with start(python, "awaits.py", mode) as work:
        truth = work.truth()["tasks"]
        process = dump(work.pid)
    assert differences(truth, process) == []
    check_words(process)
    assert process["error"] is None and process["task_cycles"] == []
    assert {task["tid"] for task in process["tasks"]} == {process["pid"]}


def test_tasks_are_the_programs_own(pyebpf, python):
    if python.minor < 8:
        return check_refused(python)
    check_own(python)


# Of the others the layouts of tasks are not known.
KNOWN_FREE_THREADED = pytest.mark.parametrize("free_threaded", [13], indirect=True, ids=["3.13t"])


@KNOWN_FREE_THREADED
def test_tasks_free_threaded(pyebpf, free_threaded):
    check_own(free_threaded)


@pytest.mark.full
@KNOWN_FREE_THREADED
@pytest.mark.parametrize("mode", ["python", "debug"])
def test_tasks_free_threaded_of_all_makes(pyebpf, free_threaded, mode):
    check_own(free_threaded, mode)


@pytest.mark.full
@KNOWN_FREE_THREADED
def test_a_task_that_blocks_its_loop_free_threaded(pyebpf, free_threaded):
    check_blocked(free_threaded)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["all", "python", "debug"])
def test_tasks_of_all_makes(pyebpf, any_python, mode):
    if any_python.minor < 8:
        return
    with start(any_python, "awaits.py", mode, 1000) as work:
        truth = work.truth()["tasks"]
        process = dump(work.pid)
    assert differences(truth, process) == []
    if mode == "debug":
        made = next(task for task in process["tasks"] if task["name"] == "gather-0")["created"]
        assert "gather_parent" in [frame["name"].split(".")[-1] for frame in made]


@pytest.mark.full
@pytest.mark.parametrize("script, mode", [("awaits.py", "uvloop"), ("awaits.py", "anyio"),
                                          ("nurseries.py", "rest")])
def test_tasks_of_other_libraries(pyebpf, any_python, script, mode):
    if any_python.minor < 8 or any_python.via != "direct" or any_python.source == "twin":
        return  # no pip there
    with start(any_python, script, mode, package="async") as work:
        truth = work.truth()["tasks"]
        process = dump(work.pid)
    assert differences(truth, process) == []


@pytest.mark.full
@pytest.mark.parametrize("tasks", ["rest", "first", "later", "deep"])
def test_coroutines_of_cython(pyebpf, any_python, tmp_path, tasks):
    """The line where Cython's coroutine waits is unknown. A running one below a coroutine of Python has no frame."""
    if any_python.minor < 8 or any_python.via != "direct" or any_python.source == "twin":
        return  # no pip there
    try:
        packages.compiled(any_python, os.path.join(harness.WORKLOADS, "compiled.pyx"), str(tmp_path))
    except pythons.Unavailable as e:
        pytest.skip("NOT TESTED: %s" % e)
    with start(any_python, "compiled_awaits.py", tmp_path, tasks) as work:
        truth = work.truth()
        found = {task["name"]: task["frames"] for task in dump(work.pid)["tasks"] if task["name"] in truth}
    assert {name: [frame["name"].split(".")[-1] for frame in frames] for name, frames in found.items()} == truth
    for frames in found.values():
        assert [frame["line"] is None for frame in frames] == [frame["file"].endswith(".pyx") for frame in frames]


@pytest.mark.few_pythons
def test_a_cycle_is_named(pyebpf, python):
    if python.minor < 8:
        return
    with start(python, "awaits.py", "cycle") as work:
        truth = work.truth()["tasks"]
        process = dump(work.pid)
        said = text(work.pid)
    assert differences(truth, process) == []
    names = {task["id"]: task["name"] for task in process["tasks"]}
    cycle, = process["task_cycles"]
    first = [names[task] for task in cycle].index("cycle-0")
    assert [names[task] for task in cycle[first:] + cycle[:first]] == [
        "cycle-0", "cycle-1", "cycle-2"]
    assert re.search(r"^cycle: cycle-(\d) waits for cycle-\d waits for cycle-\d "
                     r"waits for cycle-\1$", said, re.M), said


def check_blocked(python):
    with start(python, "awaits.py", "blocked") as work:
        tid = work.truth()["tid"]
        harness.wait_until(lambda: is_asleep(work.pid, tid), 10, "the loop's thread waits")
        process = dump(work.pid)
        said = text(work.pid)
    tasks = {task["name"]: task for task in process["tasks"]}
    names = [frame["name"].split(".")[-1] for frame in tasks["blocker"]["frames"]]
    assert names[:3] == ["blocker", "inner", "hold"] and names[-1] == "wait"
    assert tasks["blocker"]["state"] == "running" and tasks["blocker"]["waits_for"] is None
    assert tasks["ready"]["waits_for"] == tasks["new"]["waits_for"] == "its turn"
    assert tasks["other"]["waits_for"] == "sleep(3600)"
    if process["threads"][0]["tid"] == process["pid"]:
        assert {task["tid"] for task in tasks.values()} == {tid}
    assert re.search(r"^\S+ blocker: running$", said, re.M), said


@pytest.mark.few_pythons
def test_a_task_that_blocks_its_loop(pyebpf, python):
    if python.minor < 8:
        return
    check_blocked(python)


def is_asleep(pid, tid):
    with open("/proc/%d/task/%d/stat" % (pid, tid)) as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "S"


@pytest.mark.few_pythons
@pytest.mark.parametrize("options", [[], ["--locals"]], ids=["by itself", "from outside"])
def test_a_task_that_computes(pyebpf, python, options):
    """It shows all its calls, whoever reads them: with --locals nothing is read by BPF."""
    if python.minor < 8:
        return
    with start(python, "awaits.py", "computing") as work:
        work.truth()
        tasks = {task["name"]: task for task in dump(work.pid, *options)["tasks"]}
    computer, other = tasks["computer"], tasks["other"]
    assert [frame["name"].split(".")[-1] for frame in computer["frames"]] == ["computer", "inner", "compute", "spin"]
    assert computer["state"] == "running" and computer["waits_for"] is None
    assert other["state"] == "waiting" and other["waits_for"] == "sleep(3600)"


@pytest.mark.full
def test_a_loop_that_does_not_rest(pyebpf, python):
    """What is said to be of one moment is a chain that the program can have."""
    possible = re.compile(r"(churn|(two( low)*|one( low)*|low( low)*)( sleep( __sleep0)?)?)?")
    consistent = 0
    if python.minor < 8:
        return
    with start(python, "awaits.py", "churn") as work:
        work.truth()
        for _ in range(100):
            for task in dump(work.pid)["tasks"]:
                names = " ".join(frame["name"].split(".")[-1] for frame in task["frames"])
                if task["is_consistent"]:
                    assert possible.fullmatch(names), names
                    consistent += 1
                else:
                    assert task["state"] in ("waiting", "running")
        assert consistent or re.search("running while it was read|event loop was running", text(work.pid))


def test_alike_tasks_are_one_entry(pyebpf, some_python):
    with start(some_python, "awaits.py", "many", SMALL) as work:
        count = work.truth()["tasks"]
        assert len(dump(work.pid)["tasks"]) == count
        lines = text(work.pid).splitlines()
    assert sum("and 17 more alike: waits for sleep(3600)" in line for line in lines) == SMALL / 20
    assert len(lines) < count


def test_a_program_without_tasks(pyebpf, some_python):
    with harness.Workload(some_python, "waits.py", "crowd", 1) as work:
        assert dump(work.pid)["tasks"] == []
        assert "no tasks: " in text(work.pid)


# --- against CPython's own ------------------------------------------------------------------------


def edges_of_pstree(lines):
    """(who waits, for whom): the tasks above each other in the tree."""
    above, edges = [], set()
    for line in lines:
        branch = re.match(r"([│ ]*)[├└]── (\(T\))? *(.*)", line)
        if not branch:
            continue
        depth, name = len(branch[1]), branch[3]
        above = [(d, n) for d, n in above if d < depth]
        if branch[2]:
            edges.add((above[-1][1] if above else None, name))
            above.append((depth, name))
    return edges


# What it does not know of: as_completed() notes nowhere who waits.
NOT_IN_PSTREE = {"as_completed-0", "as_completed-1"}


@pytest.mark.full
def test_as_cpythons_own_tree(pyebpf, any_python):
    if any_python.minor < 14 or any_python.via == "chroot":
        pytest.skip("python -m asyncio pstree is of 3.14 and later")
    with start(any_python, "awaits.py", "all") as work:
        work.truth()
        done = subprocess.run([*any_python.command, "-m", "asyncio", "pstree", str(work.pid)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
        tasks = dump(work.pid)["tasks"]
    names = {task["id"]: task["name"] for task in tasks}
    ours = {(names[parent], task["name"]) for task in tasks for parent in task["awaited_by"]}
    ours |= {(None, task["name"]) for task in tasks if not task["awaited_by"]}
    theirs = edges_of_pstree(done.stdout.splitlines())
    assert {edge for edge in ours if edge[1] not in NOT_IN_PSTREE} == {
        edge for edge in theirs if edge[1] not in NOT_IN_PSTREE}
