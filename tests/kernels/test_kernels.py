# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Boots each kernel and judges what the steps in guest/steps printed, and those in guest/waiting.

    pytest tests/kernels [-k '[6.1]']

PYEBPF: the program (build/pyebpf). PYEBPF_MACHINE=arm64: kernels of that, and PYEBPF_ARM64 runs there
(build-arm64-static/pyebpf). One test is one kernel and one step.
"""
import base64
import collections
import json
import os
import re
import shutil
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
for folder in (HERE, os.path.join(TESTS, "tools"), os.path.join(TESTS, "integration"),
               os.path.join(TESTS, "bench")):
    sys.path.insert(0, folder)

import collapsed  # noqa: E402
import kernels  # noqa: E402
import recording  # noqa: E402
import test_time  # noqa: E402
import truth as judge  # noqa: E402
import vm  # noqa: E402
from test_dump import judge_chain, judge_states  # noqa: E402

# Of the guest; PYEBPF is also what reads recordings, on this machine.
NAME, BUILD = ("PYEBPF_ARM64", "build-arm64-static") if kernels.IS_ARM64 else ("PYEBPF", "build")
PYEBPF = os.path.abspath(os.environ.get(NAME)
                         or os.path.join(os.path.dirname(TESTS), BUILD, "pyebpf"))
HZ = 199
BOOT_SECONDS = 3600  # of a host that may be busy; alone 150, of arm64 four times that
STEP_SECONDS = 480  # of the guest
START_S = 0.4  # what an emulated CPU takes to start to record, at most
HELD_BY_OTHERS = 0.15  # of waits for the GIL, for those that start and end threads, slowly
EMULATED_LOSS = 0.25  # of the ticks, which come while the slow sampler of an emulated CPU runs
OLD = {"5.10", "5.10_arm64"}  # there `sample_old` takes the ticks
LOOPS_SINCE, TASK_WORK_SINCE = (5, 17), (6, 18)
FRAME = ("name", "file", "line", "end_line", "column", "end_column")  # of guest/dumps.py
DEEP = 200  # calls: each sample describes 64 functions, and at 4 ns an instruction has time for some 250


def tick_counters():
    """The counters of which each tick is in exactly one: TICK_STATS of bpf/events.h."""
    with open(os.path.join(os.path.dirname(TESTS), "bpf", "events.h"), encoding="utf-8") as f:
        text = re.search(r"#define TICK_STATS\(X\)(.*?)#define", f.read(), re.S).group(1)
    return re.findall(r'X\(\w+, "(\w+)"', text)


class Machine:
    """What one kernel's machine printed."""

    def __init__(self, kernel, steps, console):
        self.has_gil = kernel.python != kernels.FREETHREADED
        pages = re.search(r"_(\d+)k$", kernel.name)
        self.page_size = 1024 * int(pages.group(1)) if pages else 4096
        self.steps = steps
        self.console = console
        self.release = re.match(r"[\d.]+\d", self.steps["uname"].out[0]).group()
        self.version = tuple(map(int, self.release.split(".")[:2]))

    def step(self, name):
        assert name in self.steps, "step %s did not run; the console ends in\n%s" % (
            name, "\n".join(self.console.splitlines()[-30:]))
        return self.steps[name]

    def text(self, name):
        step = self.step(name)
        return "%s: status %s\n%s" % (name, step.status, "\n".join(step.out + step.err))

    def truth(self, name):
        """What the workload said of itself: {"cpu": ..., "lines": ..., "pids": ..., "cold": ...}."""
        truth = {"cpu": {}, "lines": {}, "pids": {}, "cold": {}}
        for line in self.step(name).out:
            if line.startswith("{"):
                for key, values in json.loads(line).items():
                    truth[key].update(values)
        return truth

    def samples(self, name):
        """[(pid, frames, count)]"""
        step = self.step(name + ".collapsed")
        assert step.status == 0, self.text(name + ".collapsed")
        stacks = collapsed.parse("\n".join(step.out), tags=True)
        return [(stack.tags[0][2], stack.frames, count) for stack, count in stacks.items()]

    def recording(self, name, folder):
        """As a file of this machine."""
        path = os.path.join(str(folder), name)
        with open(path, "wb") as f:
            f.write(base64.b64decode("".join(self.step(name + ".file").out)))
        return path

    def counters(self, name, folder):
        return recording.counters(self.recording(name, folder))


def spins(samples, function, line, pid=None):
    """How many samples are in that one line of family.py, reached from <module> by main()."""
    return sum(count for found, frames, count in samples
               if pid in (None, found) and frames[-1] == (function, "/family.py", line)
               and [frame.name for frame in frames[:2]] == ["<module>", "main"])


def share(part, whole):
    return "%.1f %%" % (100 * part / whole)


def check_share(samples, function, line):
    total = sum(count for _, _, count in samples)
    right = spins(samples, function, line)
    assert total > 10 and right >= 0.95 * total, samples
    return share(right, total)


def lost_share(counters):
    """Of the ticks that were due while a target ran, those that did not come."""
    return counters["not_delivered"] / max(counters["not_delivered"] + counters["weight"], 1)


def loss(counters):
    """What share of the ticks may be missing: a busy host lets the guest's CPUs stand still, and no tick
    comes."""
    return min(max(EMULATED_LOSS, 1.5 * lost_share(counters)), 1)


def check_cpu(machine, name, function, counters, pid=None):
    """As many samples as the function had CPU time, but for those that the kernel swallowed: (how many
    there are, should be)."""
    truth = machine.truth(name)
    expected = truth["cpu"][function] * HZ
    lost = min(counters["not_delivered"], loss(counters) * expected)
    found = spins(machine.samples(name), function, truth["lines"][function], pid)
    assert found and expected - lost - 0.1 * expected - 10 <= found <= 1.1 * expected + 10, (
        found, expected, counters, machine.text(name))
    return "%d of %.0f" % (found, expected)


def check_counters(machine, name, folder):
    """Each tick is in one counter; each sample that was sent is in the recording. When a period was set is
    known to the length of a call, which waits for the other CPU's turn. One of some ten thousand samples
    meets frames that are just being linked, a generator's for instance, and is told as cut."""
    counters = machine.counters(name, folder)
    said = ", ".join("%s %d" % item for item in counters.items() if item[1])
    assert counters["ticks"] == sum(counters[key] for key in tick_counters()), said
    assert counters["ticks"] <= 1.02 * counters["expected"] + 5, said
    assert counters["weight"] == sum(count for _, _, count in machine.samples(name)), said
    assert counters["ring_full"] == 0 and counters["invalid"] + counters["cut"] <= 1, said
    return counters


@pytest.fixture
def tell(record_property):
    """tell(machine, column, text): a cell of docs/kernels.md (tools/kernel_table.py)."""
    return lambda machine, *cell: record_property("kernel", json.dumps([machine.release, *cell]))


def undelivered(counters):
    return "%.0f %%" % (100 * lost_share(counters))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Of each initramfs."""
    if not shutil.which(vm.QEMU):
        pytest.skip("no %s (Debian: make deps-all)" % vm.QEMU)
    assert os.access(PYEBPF, os.X_OK), PYEBPF + " is not built"
    return str(tmp_path_factory.mktemp("vm"))


def boot(kernel, folder, steps):
    try:
        path = kernels.find_kernel(kernel)
        initramfs = vm.find_initramfs(kernel, PYEBPF, folder)
    except (kernels.Unavailable, OSError) as e:
        pytest.skip("no Linux %s: %s" % (kernel.name, e))
    return Machine(kernel, *vm.boot(path, kernel, initramfs, BOOT_SECONDS,
                                    "steps=/%s step_seconds=%d" % (steps, STEP_SECONDS)))


def fixture(wanted, steps="steps"):
    params = [kernel for kernel in kernels.KERNELS if wanted(kernel)]

    @pytest.fixture(scope="module", params=params, ids=[kernel.name for kernel in params])
    def booted(request, folder):
        return boot(request.param, folder, steps)
    return booted


machine = fixture(lambda kernel: True)
waiting = fixture(lambda kernel: kernel.name not in OLD, "waiting")


def test_pages_are_what_they_are_called(machine):
    assert machine.step("page-size").out == [str(machine.page_size)]


def test_doctor(machine):
    step = machine.step("doctor")
    text = "\n".join(step.out)
    assert step.status == 0 and "missing" not in re.findall(r"(?m)^\w+", text), text
    has_task_work = machine.version >= TASK_WORK_SINCE
    assert re.search(r"(?m)^%s +bpf_task_work" % ("ok" if has_task_work else "limited"), text), text
    is_old = machine.version < LOOPS_SINCE
    assert re.search(r"(?m)^%s +bpf_loop" % ("limited" if is_old else "ok"), text), text
    assert machine.step("doctor-pid").status == 0, machine.text("doctor-pid")


def test_dump(machine):
    """Of a process that spins. Where there is task work it can walk itself, if it gets a CPU in time."""
    assert machine.step("dump").status == 0, machine.text("dump")
    process, = json.loads("\n".join(machine.step("dump").out))["processes"]
    thread = process["threads"][0]
    assert "spin_idle" in [frame["name"] for frame in thread["frames"]], thread
    way = next(line for line in machine.step("doctor-pid").out if re.match("dump +", line))
    has_task_work = machine.version >= TASK_WORK_SINCE
    assert ("walk themselves, by BPF" in way) == has_task_work, way
    assert thread["is_consistent"] if thread["pause_seconds"] is not None else True, thread
    assert has_task_work or thread["pause_seconds"] is None, thread


def dumped(machine, name):
    """What guest/dumps.py printed, with frames as `dump --json` has them."""
    step = machine.step("dump-" + name)
    assert step.status == 0, machine.text("dump-" + name)
    found = [json.loads(line) for line in step.out]
    for thread in (thread for dump in found for thread in dump["threads"]):
        thread["frames"] = [dict(zip(FRAME, frame)) for count, *frame in thread["frames"]
                            for _ in range(count)]
    return found


def test_dump_of_known_waits(machine):
    process, = dumped(machine, "states")
    truth = next(json.loads(line) for line in machine.step("dump-truth").out if line.startswith("{"))
    judge_states(process, truth["threads"])


def test_dump_of_many_threads(machine):
    """By the kernel in one pass where it has task work, else from outside, which is said."""
    process, = dumped(machine, "alike")
    assert bool(process["outside"]) == (machine.version < TASK_WORK_SINCE), process["outside"]
    waiting = [t for t in process["threads"] if (t["name"] or "").startswith("waits_for_event")]
    assert len(waiting) == 300 and all(t["is_consistent"] for t in process["threads"])
    assert len({json.dumps([t["wait"], t["frames"]]) for t in waiting}) == 1, waiting
    assert waiting[0]["wait"] == "lock" and waiting[0]["frames"][-1]["name"].endswith("wait")


@pytest.mark.parametrize("name", ["churn", "runs"])
def test_dump_of_threads_at_work(machine, name):
    """No stack mixes the two chains. One that never rests walks itself where there is task work, if it
    gets a CPU in time."""
    threads = [thread for dump in dumped(machine, name) for thread in dump["threads"]]
    whole = [thread for thread in threads if thread["is_consistent"]]
    for thread in whole:
        judge_chain(thread)
    walked = [thread for thread in threads if thread["pause_seconds"] is not None]
    assert machine.version >= TASK_WORK_SINCE or not walked, walked
    assert all(thread["is_consistent"] and thread["state"] == "running" for thread in walked), walked
    if name == "churn":
        # Without a GIL all of them run: from outside hardly one stands still.
        assert len(threads) >= 20 and len(whole) > (0.5 if machine.has_gil or walked else 0) * len(threads)


@pytest.mark.parametrize("name", ["pid", "all", "cgroup"])
def test_running_process(machine, name, tmp_path, tell):
    assert machine.step(name).status == 0, machine.text(name)
    right = check_share(machine.samples(name), "spin_idle",
                        machine.truth("exec")["lines"]["spin_idle"])
    counters = check_counters(machine, name, tmp_path)
    tell(machine, "right line", right)
    tell(machine, "not delivered", undelivered(counters))


@pytest.mark.parametrize("name", ["command", "namespace"])
def test_command(machine, name, tmp_path, tell):
    assert machine.step(name).status == 7, machine.text(name)
    counters = check_counters(machine, name, tmp_path)
    tell(machine, "command", check_cpu(machine, name, "before_exit", counters))


def test_fork(machine, tmp_path, tell):
    assert machine.step("fork").status == 0, machine.text("fork")
    counters = check_counters(machine, "fork", tmp_path)
    pids = machine.truth("fork")["pids"]
    assert pids["fork_parent"] != pids["fork_child"]
    for function in ("fork_parent", "fork_child"):
        tell(machine, "fork", check_cpu(machine, "fork", function, counters, pids[function]))


def test_exec(machine, tmp_path, tell):
    assert machine.step("exec").status == 0, machine.text("exec")
    counters = check_counters(machine, "exec", tmp_path)
    pids = machine.truth("exec")["pids"]
    assert pids["before_exec"] == pids["spin_idle"]
    for function in ("before_exec", "spin_idle"):
        tell(machine, "exec", check_cpu(machine, "exec", function, counters, pids[function]))


def test_short_lived(machine, tmp_path, tell):
    """Six children, one after the other, that spin for 50 ms each."""
    assert machine.step("short").status == 0, machine.text("short")
    counters = check_counters(machine, "short", tmp_path)
    tell(machine, "short-lived", check_cpu(machine, "short", "short_child", counters))
    tell(machine, "not delivered", undelivered(counters))


def torn(machine, name, depth):
    """{depth: samples} of chains.py. No stack mixes the two chains, or lacks a call; those with names that
    no sample has brought yet, as each has 64 at most, are not judged."""
    assert machine.step(name).status == 0, machine.text(name)
    depths = collections.Counter()
    for _, frames, count in machine.samples(name):
        stack = [(frame.name, frame.file.lstrip("/"), frame.line) for frame in frames]
        is_named = all(name != "<unknown>" for name, _, _ in stack)
        if is_named and len(stack) > 1 and stack[1][0] == "main":  # else it starts or ends
            assert not judge.torn(stack, depth), stack
            depths[len(stack) - 2] += count
    return depths


def test_no_stack_is_torn(machine, tmp_path, tell):
    depths = torn(machine, "torn", 50)
    total = sum(depths.values())
    assert total > 50 and depths[50] > 0.2 * total, depths
    check_counters(machine, "torn", tmp_path)
    tell(machine, "torn", "0 of %d" % total)


def test_deep_stacks(machine, tmp_path, tell):
    depths = torn(machine, "deep", DEEP)
    assert depths[DEEP] > 0, depths
    check_counters(machine, "deep", tmp_path)
    tell(machine, "deep", "%d of %d" % (depths[DEEP], sum(depths.values())))


def test_task_work(machine, tmp_path, tell):
    """Names in pages that are not present: with task work the thread reads them in; without, user space
    does, for the next sample."""
    assert machine.step("cold").status == 0, machine.text("cold")
    c = check_counters(machine, "cold", tmp_path)
    cold = machine.truth("cold")["cold"]
    if machine.version >= TASK_WORK_SINCE:
        assert c["task_work"] >= 0.9 * len(cold) and c["task_work_recorded"] >= 0.9 * len(cold), c
        assert not c["fault"] and not c["page"], c
    else:
        assert not c["task_work"] and not c["task_work_recorded"] and c["page"] >= 0.9 * len(cold), c
    samples = machine.samples("cold")
    found = {begin: sum(count for _, frames, count in samples if frames[-1].name.startswith(begin))
             for begin in cold}
    # Ticks that the kernel swallowed may have been all of one function's. And where user space reads the
    # names it may be late for the first one, as it looks at the interpreter then: that is counted, too.
    lacking = sum(max(0.5 * HZ * seconds - 10 - found[begin], 0) for begin, seconds in cold.items())
    assert lacking <= c["not_delivered"] + c["unnamed"] <= 0.2 * c["weight"], (found, c)
    tell(machine, "cold pages", "by the thread" if machine.version >= TASK_WORK_SINCE else
         "%d cut, %d read in for the next one" % (c["fault"], c["page"]))


def waited(machine, name, folder, teller=None):
    """(truth, samples, path) of waits.py, which is judged as on this machine."""
    assert machine.step(name).status == 0, machine.text(name)
    truth = next(json.loads(line) for line in machine.step(teller or name).out if line.startswith("{"))
    path = machine.recording(name, folder)
    return truth, test_time.read(path), path


def test_waits(waiting, tmp_path, tell):
    truth, samples, _ = waited(waiting, "stretches", tmp_path)
    assert len(truth["stretches"]) == test_time.STRETCHES, truth
    for stretch in truth["stretches"]:
        test_time.check_stretch(samples, stretch, waiting.text("stretches"))
    test_time.check_lives(samples, truth)
    tell(waiting, "waits", "%d of %d" % (test_time.STRETCHES, test_time.STRETCHES))


def test_waits_of_any_length(waiting, tmp_path):
    truth, samples, _ = waited(waiting, "mixed", tmp_path)
    test_time.check_mixed(samples, truth, waiting.text("mixed"))


def test_waits_for_the_gil(waiting, tmp_path):
    truth, samples, _ = waited(waiting, "late", tmp_path)
    if not waiting.has_gil:
        assert not [s for s in samples if s["kind"] == "gil-contention" or test_time.reason(s) == "GIL"]
        return
    test_time.check_contention("late", truth, samples, HELD_BY_OTHERS, of_delay=2)


def test_waits_from_start_to_end(waiting, tmp_path):
    truth, _, path = waited(waiting, "crowd", tmp_path, "truth")
    test_time.check_whole(path, truth["tids"], START_S)


def refused(machine, name, *words):
    step = machine.step(name)
    assert step.status == 4 and not step.out, machine.text(name)
    assert len(step.err) <= 2 and all(word in step.err[0] for word in words), machine.text(name)


def test_modes_that_need_more(machine, record_property, tell):
    if machine.version >= LOOPS_SINCE:
        assert machine.step("page-faults").status == 3, machine.text("page-faults")  # no Python runs
        return
    refused(machine, "wall", "waiting cannot be recorded", "boot Linux")
    refused(machine, "page-faults", "events cannot be recorded", "boot Linux")
    tell(machine, "waits", "refused")
    # A row of docs/faults.md (tools/fault_table.py).
    step = machine.step("wall")
    record_property("refusal", json.dumps(["`--mode wall` on Linux 5.10", step.status, step.err]))


def test_without_btf(machine):
    refused(machine, "no-btf", "/sys/kernel/btf/vmlinux", "--btf FILE")


def test_btf_of_a_file(machine, tmp_path, tell):
    assert machine.step("btf").status == 7, machine.text("btf")
    counters = check_counters(machine, "btf", tmp_path)
    tell(machine, "--btf FILE", check_cpu(machine, "btf", "before_exit", counters))
    refused(machine, "other-btf", "other.btf: describes another kernel")


def test_lockdown(machine):
    refused(machine, "lockdown", "lockdown", "confidentiality")
    assert machine.step("lockdown-doctor").status == 4, machine.text("lockdown-doctor")
    assert re.search(r"(?m)^missing +lockdown", "\n".join(machine.step("lockdown-doctor").out))
