# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf dump: stacks and states against what the program itself says of its threads."""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest
from harness import PATIENCE, PYEBPF, Workload, run, wait_until
from spinning import say_skipped
from test_places import cgroup_v2  # noqa: F401; a fixture

pytestmark = pytest.mark.usefixtures("pyebpf")
# Thread.native_id, by which the program tells its threads, is of 3.8.
KEYS = ["tid", "name", "comm", "state", "wait", "wait_seconds", "holds_gil", "waits_for_gil",
        "in_gc", "handles", "is_consistent", "frames"]
MANY = 300  # more than INSPECT_MANY_THREADS of user/inspect/threads.h
NO_BPF = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin",
          "--inh-caps=-bpf,-perfmon,-sys_admin"]
CHAIN = re.compile(r"(left,){0,41}(left_leaf,(work,)?)?$|(right,){0,41}(right_leaf,(work,)?)?$")


def dump(*arguments, code=0):
    done = run("dump", "--json", *arguments)
    assert done.returncode == code, (done.returncode, done.stderr)
    found = json.loads(done.stdout)
    assert found["schema"] == "pyebpf-dump/1"
    return found["processes"]


def without_bpf(pid):
    done = subprocess.run([*NO_BPF, PYEBPF, "dump", "--json", "-p", str(pid)],
                          stdout=subprocess.PIPE, check=True, encoding="utf-8")
    return json.loads(done.stdout)["processes"][0]


def threads_of(pid):
    process, = dump("-p", pid)
    assert process["pid"] == pid and process["error"] is None
    return {thread["tid"]: thread for thread in process["threads"]}, process


def calls(thread):
    return [[frame["name"], frame["file"], frame["line"]] for frame in thread["frames"]]


def settled(pid, waits):
    """Until all wait for what they are to wait for."""
    found = []

    def is_settled():
        found[:] = [threads_of(pid)]
        return sorted(str(t["wait"]) for t in found[0][0].values() if t["tid"] != pid) == \
            sorted(waits)
    wait_until(is_settled, 20, "all threads wait")
    return found[0]


WAITS = ["lock"] * 7 + ["sleep"] * 3 + ["read: socket", "read: pipe", "poll", "wait: process"] + ["lock: file"] * 2


def judge_states(process, truth):
    """A dump of dumped.py states, against what that says of itself."""
    found = {thread["tid"]: thread for thread in process["threads"]}
    by_function = {}
    for tid, wanted in truth.items():
        thread = found[int(tid)]
        by_function[wanted["name"]] = thread
        assert calls(thread) == wanted["frames"], wanted["name"]
        assert (thread["name"], thread["wait"]) == (wanted["name"], wanted["wait"])
        assert thread["state"] == "blocked" and thread["is_consistent"]
        assert list(thread)[:len(KEYS)] == KEYS
        assert not thread["waits_for_gil"] and not thread["in_gc"]
        assert thread["handles"] == ("KeyError" if "handles" in wanted["name"] else None)
    check_locks(by_function, process)
    assert re.match(r"pipe:\[\d+\]$", by_function["it reads_pipe"]["file"])
    for name in ("it waits_for_flock", "it waits_for_lockf"):
        assert by_function[name]["file"].endswith("/it is locked"), by_function[name]
    check_columns(by_function["it handles"]["frames"][-1], int(process["python"].split(".")[1]))


def check_states(python):
    with Workload(python, "dumped.py", "states") as workload:
        _, process = settled(workload.pid, WAITS)
        workload.go()
        judge_states(process, workload.truth()["threads"])
        assert process["python"].startswith("3.%d." % python.minor)


def check_locks(threads, process):
    lock = threads["it waits_for_lock"]["lock"]
    assert (lock["kind"], lock["owner"]) == ("Lock", threads["it holds_lock"]["tid"])
    pair = {threads[name]["tid"] for name in ("it first_to_second", "it second_to_first")}
    assert [set(cycle) for cycle in process["deadlocks"]] == [pair]
    for name in ("it waits_for_event", "it in_generators", "it recurses"):
        assert threads[name]["lock"] is None, name  # a condition's own


def check_columns(frame, minor):
    if minor >= 11:
        assert frame["end_line"] == frame["line"] + 1 and frame["column"] == 8
        assert frame["end_column"] == 17
    else:
        assert frame["column"] is None and frame["end_column"] is None


@pytest.mark.few_pythons
def test_states(python):
    check_states(python)


@pytest.mark.full
def test_states_everywhere(python):
    if python.minor >= 8:
        check_states(python)


def test_states_free_threaded(free_threaded):
    check_states(free_threaded)


def judge_chain(thread):
    """One of dumped.py churn, or runs: calls of both chains at once cannot be."""
    names = [frame["name"] for frame in thread["frames"]]
    roots = [i for i, name in enumerate(names) if name in ("churns", "runs")]
    if roots:
        assert CHAIN.match("".join(name + "," for name in names[roots[0] + 1:])), names
    else:  # it begins
        assert "left" not in names and "right" not in names, names


def check_churn(python, dumps, threads=200):
    with Workload(python, "dumped.py", "churn", threads) as workload:
        seen = consistent = 0
        for _ in range(dumps):
            found, _ = threads_of(workload.pid)
            for thread in found.values():
                # One that was moved to another CPU has not been seen there: not "since boot".
                assert (thread["wait_seconds"] or 0) < 4 * PATIENCE, thread
                if not (thread["name"] or "").startswith("churns"):
                    continue
                seen += 1
                if not thread["is_consistent"]:
                    continue
                consistent += 1
                judge_chain(thread)
        print("%d threads in %d dumps, %d consistent" % (seen, dumps, consistent))
        assert seen >= dumps * threads * 0.95 and consistent > 0.9 * seen


def test_threads_at_work(some_python):
    check_churn(some_python, 2, MANY)


@pytest.mark.full
@pytest.mark.parametrize("threads", [200, MANY])
def test_threads_at_work_everywhere(python, threads):
    for _ in range(20 if python.minor >= 8 else 0):
        check_churn(python, 50, threads)


@pytest.mark.full
def test_threads_at_work_free_threaded(free_threaded):
    for _ in range(20):
        check_churn(free_threaded, 50)


@pytest.mark.few_pythons
def test_many_threads(python):
    """The kernel reads them in one pass; what it says is what is read from outside."""
    with Workload(python, "dumped.py", "alike", MANY) as workload:
        found, process = settled(workload.pid, ["lock"] * MANY)
        other = without_bpf(workload.pid)
        assert len(found) == MANY + 1 and all(t["is_consistent"] for t in found.values())
        assert all(0 <= t["wait_seconds"] < 600 for t in found.values())
        for thread in [*found.values(), *other["threads"]]:
            thread["wait_seconds"] = None
        assert process["threads"] == other["threads"]
        if has_task_work():
            assert "threads that stand still by BPF, in one pass; those that run walk themselves" in \
                run("doctor", "-p", workload.pid).stdout


def test_what_stands_still(some_python):
    """Stopped by a signal; then its text."""
    with Workload(some_python, "dumped.py", "alike", 5) as workload:
        settled(workload.pid, ["lock"] * 5)
        before, _ = threads_of(workload.pid)
        os.kill(workload.pid, signal.SIGSTOP)
        wait_until(lambda: all(t["state"] == "stopped" for t in
                               threads_of(workload.pid)[0].values()), 10, "stopped")
        after, _ = threads_of(workload.pid)
        for tid, thread in after.items():
            assert thread["is_consistent"] and thread["wait"] == "stopped"
            assert calls(thread) == calls(before[tid])
        os.kill(workload.pid, signal.SIGCONT)
        settled(workload.pid, ["lock"] * 5)
        done = run("dump", "-p", workload.pid)
        assert done.returncode == 0 and not done.stderr
        assert '"waits_for_event 0"' in done.stdout and " x 5: blocked" in done.stdout
        assert "    def waits_for_event(): never.wait()" in done.stdout
        assert "~~~~~~~~~~^^" in done.stdout  # of 3.11 on
        last = run("dump", "--order=recent-first", "-p", workload.pid).stdout
        alike = last[last.index(" x 5"):]
        assert alike.index("in waits_for_event") > alike.index("in Event.wait")


@pytest.mark.parametrize("version, file, word", [
    ("cgroup_v2", "cgroup.freeze", "1"), ("freezer", "freezer.state", "FROZEN")])
def test_frozen(some_python, version, file, word, request):
    if version == "freezer":
        group = "/sys/fs/cgroup/freezer/pyebpf-test-dump"
        if not os.path.isdir(os.path.dirname(group)):
            say_skipped("no freezer of cgroups of version 1")
        os.makedirs(group, exist_ok=True)
    else:
        group = str(request.getfixturevalue(version))
    with Workload(some_python, "dumped.py", "alike", 2) as workload:
        settled(workload.pid, ["lock"] * 2)
        before, _ = threads_of(workload.pid)
        with open(os.path.join(group, "cgroup.procs"), "w") as f:
            f.write(str(workload.pid))
        try:
            with open(os.path.join(group, file), "w") as f:
                f.write(word)
            wait_until(lambda: {t["state"] for t in threads_of(workload.pid)[0].values()} ==
                       {"stopped"}, 10, "frozen")
            after, _ = threads_of(workload.pid)
            for tid, thread in after.items():
                assert thread["is_consistent"] and calls(thread) == calls(before[tid])
            assert ", frozen: " in run("dump", "-p", workload.pid).stdout
        finally:
            with open(os.path.join(group, file), "w") as f:
                f.write("0" if word == "1" else "THAWED")
    if version == "freezer":
        wait_until(lambda: not os.path.isdir(group) or not os.rmdir(group), 10, "it is empty")


def check_gil(threads):
    """What a dump says of the GIL belongs together, at whatever moment it was taken."""
    holders = [t["tid"] for t in threads if t["holds_gil"]]
    assert len(holders) <= 1, threads
    for thread in threads:
        if thread["waits_for_gil"]:
            assert not thread["holds_gil"] and thread["state"] == "blocked", thread
            assert (thread["wait"], thread["wait_seconds"]) == ("GIL", None), thread
            assert thread["lock"]["kind"] == "GIL"
            assert thread["lock"]["owner"] in (None, *holders), threads


@pytest.mark.few_pythons
def test_gil_and_collector(python):
    with Workload(python, "dumped.py", "storm") as workload:
        def is_seen():
            """The program is met at any moment: before its loop, as the GIL changes hands."""
            found, _ = threads_of(workload.pid)
            check_gil(list(found.values()))
            main = found.pop(workload.pid)
            (other,) = found.values()
            if not main["is_consistent"] or main["frames"][-1]["name"] != "wants_gil":
                return False
            assert not main["in_gc"]
            return main["waits_for_gil"] and other["in_gc"] and other["holds_gil"]
        wait_until(is_seen, 60, "one waits for the GIL, the other collects")


def test_main_thread_has_ended(some_python):
    with Workload(some_python, "dumped.py", "leaderless") as workload:
        def is_zombie():
            with open("/proc/%d/stat" % workload.pid) as f:
                return f.read().rpartition(")")[2].split()[0] == "Z"
        wait_until(is_zombie, 10, "the main thread has ended")
        found, _ = threads_of(workload.pid)
        dead = found.pop(workload.pid)
        (left,) = found.values()
        assert dead["state"] == "dead" and not dead["frames"]
        assert left["name"] == "the one that is left" and left["is_consistent"]
        assert calls(left)[-2][0].endswith("wait")


def test_one_that_never_rests(some_python):
    script = "def spins():\n    while True: pass\nspins()"
    with subprocess.Popen([*some_python.command, "-c", script]) as process:
        try:
            def spins():
                names = [f["name"] for f in threads_of(process.pid)[0][process.pid]["frames"]]
                return names == ["<module>", "spins"]
            wait_until(spins, 10, "it spins")
            thread = threads_of(process.pid)[0][process.pid]
            assert thread["state"] in ("running", "runnable") and thread["holds_gil"]
        finally:
            process.kill()


def has_task_work():
    with open("/proc/kallsyms") as f:
        return any("bpf_task_work_schedule_resume" in line for line in f)


def check_runs(python, dumps):
    """It never rests, and walks itself: each stack is whole. Then without BPF."""
    with Workload(python, "dumped.py", "runs") as workload:
        workload.ahead()
        workload.go()
        walked = 0

        def is_walked():
            nonlocal walked
            thread = threads_of(workload.pid)[0][workload.pid]
            names = [frame["name"] for frame in thread["frames"]]
            if thread["is_consistent"]:
                assert names[:2] == ["<module>", "runs"], names
                judge_chain(thread)
            if thread["pause_seconds"] is not None:
                assert thread["is_consistent"] and thread["state"] == "running", thread
                assert thread["holds_gil"] != python.free_threaded, thread
                assert thread["pause_seconds"] > 0
                walked += 1
            return walked == dumps
        if has_task_work():
            wait_until(is_walked, 60 + dumps, "it walks itself")
            wait_until(lambda: "\n1 running thread was paused to unwind itself: for " in
                       run("dump", "-p", workload.pid).stdout, 60, "that is told")
        thread, = without_bpf(workload.pid)["threads"]
        assert thread["frames"] and thread["pause_seconds"] is None


@pytest.mark.few_pythons
def test_one_that_runs(python):
    check_runs(python, 1)


@pytest.mark.full
def test_one_that_runs_everywhere(python):
    if python.minor >= 8:
        check_runs(python, 100)


def test_one_that_runs_free_threaded(free_threaded):
    check_runs(free_threaded, 1)


@contextlib.contextmanager
def hog(cpu):
    """Something that wants all of a CPU."""
    with subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]) as process:
        try:
            yield
        finally:
            process.kill()


def test_one_that_waits_for_a_cpu(some_python):
    """It is no more than runnable, whatever it does when it runs, and is seen by the kernel as it is."""
    if not has_task_work():
        return
    cpu = min(os.sched_getaffinity(0))
    with hog(cpu), Workload(some_python, "dumped.py", "runs") as workload:
        os.sched_setaffinity(workload.pid, {cpu})
        os.sched_setscheduler(workload.pid, os.SCHED_IDLE, os.sched_param(0))
        workload.go()

        def is_seen():
            thread = threads_of(workload.pid)[0][workload.pid]
            if thread["is_consistent"]:
                judge_chain(thread)
            return thread["is_consistent"] and thread["state"] == "runnable" and \
                thread["pause_seconds"] is None and thread["frames"][1]["name"] == "runs"
        wait_until(is_seen, 60, "it is read while it waits for a CPU")


def test_many_that_run(free_threaded):
    """All at once, on as many CPUs as there are: none is left out."""
    if not has_task_work():
        return
    with Workload(free_threaded, "dumped.py", "churn", 60) as workload:
        def are_seen():
            threads = [t for t in threads_of(workload.pid)[0].values()
                       if (t["name"] or "").startswith("churns")]
            for thread in threads:
                if thread["is_consistent"]:
                    judge_chain(thread)
            return len(threads) == 60 and all(t["is_consistent"] for t in threads)
        wait_until(are_seen, 60, "all of them are read")


def test_other_pid_namespace(some_python):
    script = "import time, threading\n" \
             "threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\ntime.sleep(99)"
    with subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *some_python.command,
                           "-c", script]) as process:
        try:
            def found():
                all = dump("--children", "-p", process.pid, code=3)
                return [p for p in all if p["error"] is None]
            wait_until(lambda: found() and len(found()[0]["threads"]) == 2, 10, "it is there")
            wait_until(lambda: [t["wait"] for t in found()[0]["threads"]] == ["sleep"] * 2, 10,
                       "both sleep")
            main, other = found()[0]["threads"]
            assert calls(main) == [["<module>", "<string>", 3]] and other["frames"]
            assert main["is_consistent"] and other["is_consistent"]
        finally:
            process.kill()


def test_source_that_has_changed(some_python, tmp_path):
    script = tmp_path / "changes.py"
    script.write_text("import time\ntime.sleep(99)\n")
    os.utime(script, (1, 1))
    with subprocess.Popen([*some_python.command, str(script)]) as process:
        try:
            wait_until(lambda: "time.sleep" in run("dump", "-p", process.pid).stdout, 10, "there")
            assert "changed since" not in run("dump", "-p", process.pid).stdout
            os.utime(script, (time.time() + 5, time.time() + 5))
            assert "in <module> (source changed since the process started)" in \
                run("dump", "-p", process.pid).stdout
        finally:
            process.kill()


def test_what_is_no_python():
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            done = run("dump", "-p", process.pid)
            assert done.returncode == 3 and not done.stdout
            assert re.match(r"pyebpf dump: pid \d+: no Python runtime in this process "
                            r"\(mappings: .*sleep\)\ntry: pyebpf doctor -p \d+\n$", done.stderr)
            asked, = dump("-p", process.pid, code=3)
            assert "no Python runtime" in asked["error"] and asked["threads"] == []
        finally:
            process.kill()
            process.wait()
        done = run("dump", "-p", process.pid)
        assert (done.returncode, done.stderr) == \
            (3, "pyebpf dump: pid %d: no such process\n" % process.pid)


def test_permission(some_python, pyebpf):
    with subprocess.Popen([*some_python.command, "-c", "import time; time.sleep(60)"]) as process:
        try:
            done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                   pyebpf, "dump", "-p", str(process.pid)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
            assert done.returncode == 4, done.stderr
            assert "permission denied reading its memory map: needs root or CAP_SYS_PTRACE" in done.stderr
        finally:
            process.kill()


def test_container(some_python, cgroup_v2):  # noqa: F811
    ident = "%064x" % random.getrandbits(256)
    group = os.path.join(cgroup_v2, "docker-%s.scope" % ident)
    os.makedirs(group)
    try:
        with Workload(some_python, "dumped.py", "alike", 1) as workload:
            with open(os.path.join(group, "cgroup.procs"), "w") as f:
                f.write(str(workload.pid))
            process, = dump("--container", ident[:12])
            assert (process["pid"], process["container"]) == (workload.pid, ident)
            assert "(container %s)" % ident[:12] in run("dump", "-p", workload.pid).stdout
        wait_until(lambda: not open(os.path.join(group, "cgroup.procs")).read(), 10, "empty")
    finally:
        os.rmdir(group)
    assert run("dump", "--container", ident[:12]).returncode == 3


def test_deep_stack(some_python):
    script = "import sys, time\nsys.setrecursionlimit(9999)\n" \
             "def f(n):\n    f(n - 1) if n else time.sleep(99)\nf(5000)"
    with subprocess.Popen([*some_python.command, "-c", script]) as process:
        try:
            def sleeps():
                return threads_of(process.pid)[0][process.pid]["wait"] == "sleep"
            wait_until(sleeps, 10, "it sleeps")
            thread = threads_of(process.pid)[0][process.pid]
            assert thread["is_consistent"] and {f["name"] for f in thread["frames"]} == {"f"}
            assert len(thread["frames"]) == 4096
            text = run("dump", "-p", process.pid).stdout
            assert "  [outer frames omitted: stack too deep]\n" in text
            assert "[Previous line repeated 4093 more times]" in text
        finally:
            process.kill()


def test_all(some_python):
    with Workload(some_python, "dumped.py", "alike", 1) as workload:
        assert workload.pid in {p["pid"] for p in dump("-a")}


@pytest.mark.parametrize("arguments, message", [
    ((), "no target: use -p PID, -a or --container ID"),
    (("-p", "1", "-a"), "choose one of -p, -a and --container"),
    (("-a", "--children"), "--children goes with -p"),
    (("1",), "unexpected argument 1: to examine a process, use -p PID"),
])
def test_usage(arguments, message):
    done = run("dump", *arguments)
    assert done.returncode == 2 and message in done.stderr
