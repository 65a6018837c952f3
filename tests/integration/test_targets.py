# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which processes, threads and interpreters are recorded, and under which names."""
import json
import os
import re
import subprocess
import time

import pytest
import truth as judge
from harness import PYEBPF, Recorder, Workload, export, frames, leaf_counts, record_whole, run
from htmlpage import Page

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997


def assert_seen(truth, samples, hz=HZ, least=0.85, ignore=()):
    """Each function of the truth has the samples of its CPU time, at its line."""
    counts = leaf_counts(samples)
    for name, spent in truth["cpu"].items():
        if name in ignore:
            continue
        expected = spent * hz
        got = counts.get((name, truth["lines"][name]), 0)
        assert least * expected - 4 * expected ** 0.5 - 2 <= got \
            <= judge.plausible(expected * 1.15), (name, got, expected, counts)


@pytest.mark.few_pythons
@pytest.mark.parametrize("case", [
    ("fork",), ("subprocess",), ("multiprocessing", "fork"), ("multiprocessing", "spawn"),
    ("multiprocessing", "forkserver"), ("threads", 50), ("concurrent", 8), ("subinterpreter",),
], ids=lambda case: "-".join(map(str, case)))
@pytest.mark.quick
@pytest.mark.spread("python", "case")
def test_family(python, case, tmp_path):
    with Workload(python, "family.py", 0.4, *case) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, HZ)
    # Threads of 8 ms each: the first tick of each may find it at its birth.
    assert_seen(truth, samples, least=0.75 if case[0] == "threads" else 0.85)


@pytest.mark.few_pythons
def test_no_children(python, tmp_path):
    with Workload(python, "family.py", 0.3, "fork") as workload:
        truth, samples, _ = record_whole(workload, tmp_path, HZ, "--no-children")
    names = {name for name, _ in leaf_counts(samples)}
    assert "fork_parent" in names and "fork_child" not in names, names
    assert_seen(truth, samples, ignore=("fork_child",))


@pytest.mark.few_pythons
def test_short_lived_children(python, tmp_path):
    """Of the CPU time each child measures in its function (50 ms), >= 99 % has name and line."""
    with Workload(python, "family.py", 1, "short", 10) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, HZ)
    expected = truth["cpu"]["short_child"] * HZ
    got = leaf_counts(samples).get(("short_child", truth["lines"]["short_child"]), 0)
    assert 0.99 * expected - 4 * expected ** 0.5 <= got <= judge.plausible(expected * 1.15), \
        (got, expected, leaf_counts(samples))


def other_python(python, found):
    """Another minor that the same process can exec into."""
    return [p for p in found if p.root == python.root and p.via == python.via != "loader"
            and p.minor != python.minor]


@pytest.mark.few_pythons
def test_exec_into_another_python(request, python, tmp_path, staged):
    others = other_python(python, request.config.all_pythons)
    if not others:
        pytest.skip("no other version to exec into")
    other = others[-1]
    script = staged(other, "family.py")
    output = tmp_path / "exec.pyebpf"
    with Workload(python, "family.py", 0.4, "exec", other.command[-1], script) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            workload.go()
            before = workload.truth()
            workload.expect_ready()
            workload.go()
            after = workload.truth()
            recorder.finish()
    samples = frames(export(output))
    assert_seen(before, samples)
    assert_seen(after, samples)
    assert before["pids"]["before_exec"] == after["pids"]["spin_idle"]


@pytest.mark.few_pythons
def test_several_pids(python, tmp_path):
    output = tmp_path / "several.pyebpf"
    with Workload(python, "family.py", 0.5, "idle") as first, \
            Workload(python, "family.py", 0.5, "fork") as second:
        with Recorder(output, "-p", "%d,%d" % (first.pid, second.pid), "-F", HZ) as recorder:
            recorder.wait_attached()
            for workload in (first, second):
                workload.go()
            truths = [workload.truth() for workload in (first, second)]
            recorder.finish()
        samples = frames(export(output))
        for truth in truths:
            assert_seen(truth, samples)
        tags = export(output, "--processes")
        pids = {ident for stack in tags for kind, _, ident in stack.tags if kind == "process"}
        assert pids == {first.pid, second.pid, truths[1]["pids"]["fork_child"]}
        tagged = export(output, "--threads")
        assert all(stack.tags and stack.tags[0][0] == "thread" for stack in tagged)
        assert sum(tagged.values()) == sum(tags.values()) == sum(samples.values())


def test_whole_system(request, tmp_path):
    """-a sees every version at once, those there before and those that come later."""
    found = request.config.pythons
    output = tmp_path / "all.pyebpf"
    early = [Workload(p, "family.py", 0.3, "idle") for p in found[::2]]
    late = []
    try:
        with Recorder(output, "-a", "-F", HZ) as recorder:
            recorder.wait_attached()
            late = [Workload(p, "family.py", 0.3, "idle") for p in found[1::2]]
            truths = []
            for workload in early + late:
                workload.go()
                truths.append(workload.truth())
            recorder.finish()
        by_pid = {}
        for stack, count in export(output, "--processes").items():
            pid = next(ident for kind, _, ident in stack.tags if kind == "process")
            plain = tuple(map(tuple, stack.frames))
            by_pid.setdefault(pid, {})[plain] = count
        for workload, truth in zip(early + late, truths):
            assert_seen(truth, by_pid.get(workload.pid, {}))
    finally:
        for workload in early + late:
            workload.close()


def command_lines(page):
    """{pid: {command line, ...}} of a page's processes."""
    found = {}
    for process in Page(page).facts["processes"]:
        found.setdefault(process["pid"], set()).add(process.get("command_line", ""))
    return found


@pytest.mark.few_pythons(1)
def test_whole_system_has_the_command_lines_of_processes_met_in_exec(python, tmp_path):
    """At this rate one in five has its first tick before its arguments are in place."""
    output = tmp_path / "exec.html"
    with open("/proc/self/cmdline") as f:
        ours = f.read().strip("\0").replace("\0", " ")
    started = {}
    with Recorder(output, "-a", "-F", 20000) as recorder:
        recorder.wait_attached()
        for number in range(20):
            child = subprocess.Popen([*python.command, "-S", "-c", "pass", "number", str(number)])
            started[child.pid] = number
            assert child.wait() == 0
        recorder.finish()
    found = {pid: lines for pid, lines in command_lines(output).items() if pid in started}
    assert len(found) > len(started) / 2
    late = 0
    for pid, lines in found.items():
        lines.discard(ours)  # between fork and exec
        # chroot, which is gone by the time that anyone can ask; and now and then, on a busy machine, a child.
        late += python.via == "direct" and "" in lines
        lines.discard("")
        assert all(line.endswith("-S -c pass number %d" % started[pid]) for line in lines), lines
    assert late <= len(started) / 10, found


@pytest.mark.parametrize("afterwards", ["spins", "sleeps"])
def test_command_line_that_cannot_be_read_at_first(afterwards, some_python, tmp_path):
    """By the kernel at a later sample, or from /proc if there is none."""
    output = tmp_path / "titled.html"
    with Workload(some_python, "titled.py", "worker: idle, so far", afterwards) as workload:
        with Recorder(output, "-a", "-F", HZ) as recorder:
            recorder.wait_attached()
            workload.go()
            workload.truth()
            recorder.finish()
    assert command_lines(output)[workload.pid] == {"worker: idle, so far"}


@pytest.mark.parametrize("when", ["early", "late", "late-alone"])
@pytest.mark.parametrize("length", [40, 400], ids=["within the arguments", "longer than they were"])
def test_a_title_is_whole(length, when, some_python, tmp_path):
    """The kernel's name of a process has its first 15 characters. A title that comes late is that of all samples."""
    output = tmp_path / "retitled.pyebpf"
    with Workload(some_python, "retitled.py", length, when, env={"PADDING": 400 * "."}) as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            workload.go()
            title = workload.truth()["title"]
            recorder.finish()
    said = run("report", "--by", "process", output).stdout
    assert re.findall(r"ms  (.*) \(%d\)$" % workload.pid, said, re.M) == [title], said
    samples = run("export", "-f", "jsonl", "-o", "-", output).stdout.splitlines()
    assert {json.loads(sample)["process"] for sample in samples} == {title}
    assert run("report", "-o", tmp_path / "page.html", output).returncode == 0
    assert command_lines(tmp_path / "page.html") == {workload.pid: {title}}


@pytest.mark.alone
@pytest.mark.few_pythons
def test_whole_system_names_short_lived_processes(python, tmp_path):
    output = tmp_path / "short.pyebpf"
    with Recorder(output, "-a", "-F", HZ) as recorder:
        recorder.wait_attached()
        with Workload(python, "family.py", 1, "short", 6) as workload:
            workload.go()
            truth = workload.truth()
        recorder.finish()
    expected = truth["cpu"]["short_child"] * HZ
    got = leaf_counts(frames(export(output))).get(("short_child", truth["lines"]["short_child"]), 0)
    assert 0.99 * expected - 4 * expected ** 0.5 <= got <= judge.plausible(expected * 1.15), \
        (got, expected)


@pytest.mark.quick
@pytest.mark.parametrize("case,status", [(("exit", 0), 0), (("exit", 7), 7), (("signal", 9), 137),
                                         (("signal", 15), 143)],
                         ids=["exit-0", "exit-7", "killed", "terminated"])
def test_command_keeps_its_status(some_python, case, status, tmp_path, staged):
    output = tmp_path / "command.pyebpf"
    script = staged(some_python, "family.py")
    with Recorder(output, "-F", HZ, "--", *some_python.command, script, "0.4", *case) as recorder:
        assert recorder.wait() == status, recorder.text()
    truth = json.loads(next(line for line in recorder.text().splitlines() if line[:1] == "{"))
    assert_seen(truth, frames(export(output)))


def test_command_without_python_is_warned_about(tmp_path):
    output = tmp_path / "none.pyebpf"
    with Recorder(output, "--", "sh", "-c", "exit 3") as recorder:
        assert recorder.wait() == 3, recorder.text()
        assert "sh: no samples: " in recorder.text()


def test_command_not_found(tmp_path):
    with Recorder(tmp_path / "x.pyebpf", "--", "/nonexistent/program") as recorder:
        status = recorder.wait()
        text = recorder.text()
    assert status in (1, 127), text
    assert "/nonexistent/program" in text
    assert not os.path.exists(recorder.output)


@pytest.mark.quick
@pytest.mark.few_pythons
def test_ends_with_its_last_target(python, tmp_path):
    output = tmp_path / "ends.pyebpf"
    with Workload(python, "family.py", 0.3, "idle") as workload:
        with Recorder(output, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            workload.go()
            truth = workload.truth()
            workload.exit()
            assert recorder.wait() == 0, recorder.text()
    assert_seen(truth, frames(export(output)))


LEAVES = ("import os, time\ninput()\nbegun, begins = os.pipe()\nif os.fork():\n    os.read(begun, 1)\n    os._exit(0)\n"
          "if os.fork():\n    os._exit(0)\nos.write(begins, b'1')\n"
          "def left_behind():\n    end = time.process_time() + 0.5\n    while time.process_time() < end: pass\n"
          "left_behind()\n")


def left_behind(recording):
    return sum(count for stack, count in frames(export(recording)).items() if "left_behind" in [f[0] for f in stack])


@pytest.mark.few_pythons
def test_children_of_a_process_that_has_ended(python, tmp_path):
    """A daemon: the process of -p ends at once, its grandchild is recorded to the end."""
    output = tmp_path / "x.pyebpf"
    with subprocess.Popen([*python.command, "-c", LEAVES], stdin=subprocess.PIPE) as process, \
            Recorder(output, "-p", process.pid, "-F", 997) as recorder:
        recorder.wait_attached()
        process.communicate(b"\n")
        assert recorder.wait() == 0, recorder.text()
        assert "pid %d has ended; pid " % process.pid in recorder.text()
    assert left_behind(output) > 0.9 * 0.5 * 997, recorder.text()


def test_command_that_leaves_a_process_behind(some_python, tmp_path):
    """The recording ends with the command, and says who goes on."""
    output = tmp_path / "x.pyebpf"
    done = subprocess.run([PYEBPF, "record", "-o", output, "--", *some_python.command, "-c", LEAVES], input="\n",
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and "goes on and is not recorded any more" in done.stderr, done.stderr


def test_command_that_leaves_a_process_behind_at_once(some_python, tmp_path):
    """The COMMAND ends before anything was seen of the process that goes on."""
    shell = 'exec "$0" "$@" <&- 2>&- &'
    done = subprocess.run([PYEBPF, "record", "-o", tmp_path / "x.pyebpf", "--", "sh", "-c", shell, *some_python.command,
                           "-S", "-c", "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0 and "goes on and is not recorded any more" in done.stderr, done.stderr


def test_process_whose_first_thread_has_ended(some_python, tmp_path):
    """Its /proc/PID has no mappings, no memory and no files any more."""
    with Workload(some_python, "leaves.py", "stays") as workload:
        truth, samples, _ = record_whole(workload, tmp_path, HZ)
        text = subprocess.run([PYEBPF, "doctor", "-p", str(workload.pid)], text=True,
                              stdout=subprocess.PIPE).stdout
    got = sum(count for stack, count in samples.items() if "spins" in {f[0] for f in stack})
    assert got > 0.75 * truth["cpu"]["spins"] * HZ, samples
    assert "thread states" in text, text


def start_with_pid(pid, start):
    """start() until what it started has this PID; None if the kernel will not have it."""
    for _ in range(200):  # others start processes meanwhile
        try:
            with open("/proc/sys/kernel/ns_last_pid", "w") as f:
                f.write(str(pid - 1))
        except OSError:
            return None
        workload = start()
        if workload.pid == pid:
            return workload
        workload.close()
    return None


@pytest.mark.alone
def test_pid_reused_by_another_version(request, tmp_path):
    """Under -a: a new process with an old one's PID gets its own layout and names."""
    direct = [p for p in request.config.all_pythons if p.via == "direct"]
    old, new = direct[0], direct[-1]
    output = tmp_path / "reuse.pyebpf"
    with Recorder(output, "-a", "-F", HZ) as recorder:
        recorder.wait_attached()
        with Workload(old, "family.py", 0.3, "idle") as first:
            first.go()
            old_truth = first.truth()
            first.exit()
        second = start_with_pid(first.pid,
                                lambda: Workload(new, "shares.py", 0.5, "random", ready=False))
        if not second:
            pytest.skip("the kernel does not hand out a chosen PID")
        with second:
            second.expect_ready()
            second.go()
            new_truth = second.truth()
        recorder.finish()
    samples = {}
    for stack, count in export(output, "--processes").items():
        if ("process", first.pid) in [(kind, ident) for kind, _, ident in stack.tags]:
            plain = tuple(map(tuple, stack.frames))
            samples[plain] = samples.get(plain, 0) + count
    assert_seen(old_truth, samples)
    counts = leaf_counts(samples)
    for name in ("heavy", "light"):
        got = sum(count for (leaf, _), count in counts.items() if leaf == name)
        assert got > 0.8 * HZ * new_truth[name] - 20, (name, got, new_truth, counts)


@pytest.mark.alone
def test_pid_reused_is_not_the_target(some_python, tmp_path):
    """-p follows a process, not a number: the next owner of the PID is not recorded."""
    output = tmp_path / "reuse.pyebpf"
    with Workload(some_python, "family.py", 0.3, "idle") as keeps, \
            Workload(some_python, "family.py", 0.3, "idle") as first:
        with Recorder(output, "-p", "%d,%d" % (keeps.pid, first.pid), "-F", HZ) as recorder:
            recorder.wait_attached()
            first.go()
            old_truth = first.truth()
            first.exit()
            second = start_with_pid(
                first.pid, lambda: Workload(some_python, "shares.py", 0.4, "random", ready=False))
            if not second:
                pytest.skip("the kernel does not hand out a chosen PID")
            with second:
                second.expect_ready()
                second.go()
                second.truth()
            keeps.go()
            truth = keeps.truth()
            recorder.finish()
    counts = leaf_counts(frames(export(output)))
    assert not {"heavy", "light"} & {name for name, _ in counts}, counts
    truth["cpu"]["spin_idle"] += old_truth["cpu"]["spin_idle"]
    assert_seen(truth, frames(export(output)))


@pytest.mark.few_pythons
def test_target_is_never_stopped(python, tmp_path):
    """No ptrace, no SIGSTOP: the target's state is never T or t and it has no tracer."""
    output = tmp_path / "state.pyebpf"
    seen = set()
    with Workload(python, "family.py", 0.6, "idle") as workload:
        with Recorder(output, "-p", workload.pid, "-F", 10000) as recorder:
            recorder.wait_attached()
            workload.go()
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                with open("/proc/%d/status" % workload.pid) as f:
                    status = dict(line.split(":", 1) for line in f)
                seen.add((status["State"].split()[0], status["TracerPid"].strip()))
            workload.truth()
            recorder.finish()
    assert {state for state, _ in seen} <= {"R", "S", "D"} and {t for _, t in seen} == {"0"}, seen
