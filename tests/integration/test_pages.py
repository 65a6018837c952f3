# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pages that are missing when a sample is taken: the kernel was told to swap them out meanwhile."""
import ctypes
import json
import os
import shutil
import subprocess

import pytest
from harness import Recorder, Workload, export, frames, run, stage, unstage, wait_until
from spinning import cpu_seconds, say_skipped
from test_robust import assert_accounted, complete, figures

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997
DEPTH = 400  # frames of a known stack: over 32 KiB of it, in several pages
MADV_PAGEOUT = 21  # include/uapi/asm-generic/mman-common.h, Linux 5.4
SYS_PIDFD_OPEN, SYS_PROCESS_MADVISE = 434, 440  # the same on all architectures
SWAP_BYTES = 256 << 20

libc = ctypes.CDLL(None, use_errno=True)


class Range(ctypes.Structure):
    _fields_ = [("start", ctypes.c_size_t), ("bytes", ctypes.c_size_t)]


@pytest.fixture(scope="module")
def swap(tmp_path_factory):
    """Somewhere to swap to, for as long as these tests run."""
    path = str(tmp_path_factory.mktemp("swap") / "swap")
    if not shutil.which("mkswap") or not shutil.which("swapon"):
        say_skipped("no mkswap, swapon here")
    with open(path, "wb") as f:
        os.fchmod(f.fileno(), 0o600)
        os.posix_fallocate(f.fileno(), 0, SWAP_BYTES)
    for command in (["mkswap", path], ["swapon", path]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            os.unlink(path)
            say_skipped("no memory can be swapped out here: " + done.stdout.strip()[-200:])
    yield
    subprocess.run(["swapoff", path], check=True)
    os.unlink(path)


def private_memory(pid):
    """Its heap and anonymous mappings, where frames, code objects and names are; not its C stack."""
    with open("/proc/%d/maps" % pid) as f:
        for line in f:
            words = line.split()
            if words[1] == "rw-p" and (len(words) == 5 or words[5] == "[heap]"):
                start, end = (int(word, 16) for word in words[0].split("-"))
                yield Range(start, end - start)


def swapped_bytes(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmSwap"))


def page_out(pid):
    """Bytes of the process that are on the swap afterwards."""
    fd = libc.syscall(SYS_PIDFD_OPEN, pid, 0)
    assert fd >= 0, os.strerror(ctypes.get_errno())
    try:
        for one in private_memory(pid):
            libc.syscall(SYS_PROCESS_MADVISE, fd, ctypes.byref(one), ctypes.c_size_t(1),
                         MADV_PAGEOUT, 0)
    finally:
        os.close(fd)
    return swapped_bytes(pid)


ROUNDS = 8
ROUND_SECONDS = 0.1  # of the target's CPU time


def record_paged_out(python, output, *arguments):
    """(counters, {stack: samples}) while what the stack is made of is swapped out again and again."""
    with Workload(python, "pages.py", 600, DEPTH) as workload:
        workload.go()
        with Recorder(output, "-p", workload.pid, "-F", HZ, *arguments) as recorder:
            recorder.wait_attached()
            os.setpriority(os.PRIO_PROCESS, recorder.process.pid, -10)
            most = 0
            for _ in range(ROUNDS):
                most = max(most, page_out(workload.pid))
                end = cpu_seconds(workload.pid) + ROUND_SECONDS
                wait_until(lambda: cpu_seconds(workload.pid) > end, 60, "a round")
            recorder.finish()
    assert most > 1 << 20, "%d bytes swapped out" % most
    return assert_accounted(output), frames(export(output))


def fits(names, truth):
    """Frames whose code object was missing are unknown."""
    return len(names) == len(truth) and all(name in (true, "<unknown>")
                                            for name, true in zip(names, truth))


def split(stacks):
    """Samples with the whole stack; samples with its leaf end only, behind a marker."""
    truth = ["<module>", "main"] + ["down"] * (DEPTH + 1) + ["work"]
    whole = cut = 0
    for stack, count in stacks.items():
        names = [name for name, _, _ in stack]
        if names[0] in ("<incomplete>", "<truncated>"):
            assert fits(names[1:], truth[len(truth) - len(names) + 1:]), (names[:3], names[-3:])
            cut += count
        else:
            assert fits(names, truth), (len(names), names[:3], names[-3:])
            whole += count
    return whole, cut


COLD, COLD_SECONDS = 20, 0.05


@pytest.mark.few_pythons
def test_names_in_cold_pages(python, tmp_path):
    """Pages that are mapped and in no page table: no swap needed. cold.py says how."""
    if python.minor < 8:
        say_skipped("code objects of %s cannot be given another name" % python.name)
    output = tmp_path / "x.pyebpf"
    done = run("record", "-F", HZ, "-o", output, "--", *python.command,
               stage(python, "cold.py", str(tmp_path)), COLD, COLD_SECONDS)
    unstage(python, str(tmp_path))
    assert done.returncode == 0, done
    truth = json.loads(done.stdout.splitlines()[0])["cold"]
    c, stacks = assert_accounted(output), frames(export(output))
    if c["task_work"]:
        assert c["task_work_recorded"] >= 0.5 * COLD and not c["fault"] and not c["page"], c
    else:
        assert c["page"] >= 0.5 * COLD, c
    for begin, seconds in truth.items():
        found = sum(count for stack, count in stacks.items() if stack[-1][0].startswith(begin))
        assert found > 0.5 * HZ * seconds, (begin, found, c)


def test_the_thread_reads_them_in(some_python, swap, tmp_path, fault):
    """With task work: every stack is whole."""
    output = tmp_path / "x.pyebpf"
    c, stacks = record_paged_out(some_python, output)
    if not c["task_work"] and (c["fault"] or c["thread_state_fault"] or c["code_fault"]):
        say_skipped("this kernel has no task work (Linux 6.18)")
    whole, cut = split(stacks)
    assert c["task_work"] >= ROUNDS / 2 and c["task_work_recorded"] >= ROUNDS / 2, c
    assert not c["fault"] and not c["page"] and not c["thread_state_fault"], c
    assert cut == c["late"] <= 2, (cut, c)  # a virtual CPU may be taken away in the midst of a walk
    assert whole + cut == c["weight"], (whole, c)
    fault("a stack of %d frames swapped out %d times" % (DEPTH, ROUNDS),
          "the thread reads its pages in on its way back to user code", 0, complete(output),
          "%d of %d samples whole; %s" % (whole, whole + cut, figures(c)))


def test_user_space_reads_them_in(some_python, swap, tmp_path, fault):
    """Without: what is missing is flagged, counted, asked for, and there for the next sample."""
    output = tmp_path / "x.pyebpf"
    c, stacks = record_paged_out(some_python, output, "--no-task-work")
    whole, cut = split(stacks)
    assert not c["task_work"] and not c["task_work_recorded"] and not c["task_work_joined"], c
    assert c["page"] >= ROUNDS, c
    assert c["fault"] + c["code_fault"] + c["thread_state_fault"] >= ROUNDS, c
    assert cut == c["fault"] + c["late"], (cut, c)
    # More than there were before the first round: read in, though the recorder waits for a CPU.
    assert whole > HZ * ROUND_SECONDS, (whole, cut, c)
    fault("the same, `--no-task-work` (as before Linux 6.18)",
          "cuts the sample there, counts it, reads the page for the next one", 0, complete(output),
          "%d of %d samples whole, %d cut, %d without a thread state, %d pages asked for; %s" % (
              whole, whole + cut, cut, c["thread_state_fault"], c["page"], figures(c)))
