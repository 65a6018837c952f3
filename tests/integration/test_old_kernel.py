# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ticks by `sample_old`, the program for kernels before 5.17, which runs on newer ones too. What those
kernels make of it is in tests/kernels."""
import os
import shlex
import shutil
import subprocess
import sys

import pytest
import test_doctor
import test_labels as labels
import test_truth as truth
from harness import PATIENCE, PYEBPF, REPOSITORY, Workload, run, wait_until
from test_agent import Agent
from tmux import Terminal

sys.path.insert(0, os.path.join(REPOSITORY, "tests", "tools"))

import other_btf  # noqa: E402

pytestmark = pytest.mark.usefixtures("pyebpf")
OLD = "--old-kernel"
OWN_BTF = "/sys/kernel/btf/vmlinux"


def test_lines_and_stacks(some_python, tmp_path):
    truth.check_lines(some_python, 0.8, tmp_path, OLD)


@pytest.mark.full
def test_lines_and_stacks_of_all(python, tmp_path):
    truth.check_lines(python, 1.5, tmp_path, OLD)


def test_no_stack_is_torn(some_python, tmp_path, is_full):
    truth.check_torn(some_python, 20, 10000, 100000 if is_full else 2000, tmp_path, OLD)


def test_labels_have_their_shares(some_python, tmp_path):
    told, output, text = labels.record(some_python, tmp_path, OLD, seconds=0.4, variables=20)
    labels.check_shares(labels.working(labels.samples_of(output)), told)
    assert "no sample has this label" not in text, text


@pytest.fixture
def own_types(tmp_path):
    """The kernel's own, elsewhere: who it is for reads them nowhere else, and has no iterators."""
    return shutil.copyfile(OWN_BTF, tmp_path / "own.btf")


@pytest.fixture
def without_types():
    """What a command begins with that is not to see those of the kernel."""
    test_doctor.needs("unshare", "mount")
    if subprocess.run([*test_doctor.PRIVATE_BTF, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no mount namespace of our own")
    return test_doctor.PRIVATE_BTF


def test_types_of_a_file(some_python, tmp_path, own_types):
    truth.check_lines(some_python, 0.8, tmp_path, "--btf", own_types)


def test_doctor_takes_types_of_a_file(some_python, own_types, without_types):
    rows, can_record = test_doctor.machine("--btf", own_types, wrapper=without_types)
    assert can_record and rows["BTF"]["found"] == str(own_types)
    assert rows["bpf_loop"]["found"] == "not used, with --btf"
    with Workload(some_python, "family.py", 20, "idle") as workload:
        workload.go()
        facts, done = test_doctor.explain(workload.pid, "--btf", own_types, wrapper=without_types)
    assert done.returncode == 0, done
    assert facts["test_stack"]["frames"][-1]["name"] == "spin_idle"


def test_doctor_as_on_an_old_kernel():
    rows, can_record = test_doctor.machine(OLD)
    assert can_record and rows["bpf_loop"]["state"] == "limited"
    assert rows["bpf_loop"]["found"] == "not used, with --old-kernel"
    done = test_doctor.doctor("--events", OLD)
    assert done.returncode == 2 and OLD in done.stderr, done


def test_top_takes_types_of_a_file(some_python, own_types, without_types):
    with Terminal() as terminal, Workload(some_python, "family.py", 20, "idle") as workload:
        workload.go()
        terminal.command(shlex.join([*without_types, PYEBPF, "top", "--btf", str(own_types), "-p",
                                     str(workload.pid)]))
        terminal.wait_for(r"^ +[\d.]+ .* spin_idle  ")
        terminal.keys("q")


def test_agent_takes_types_of_a_file(some_python, own_types, without_types, tmp_path):
    agent = Agent(tmp_path, "files", more="btf: %s\n" % own_types)
    agent.prefix = without_types
    with Workload(some_python, "family.py", 60, "idle") as workload:
        workload.go()
        with agent:
            wait_until(lambda: agent.metric("samples_total") > 0, PATIENCE, "it has samples")
            agent.stop()


TYPES_THAT_DO_NOT_FIT = [
    ("other.btf", "describes another kernel than the one that runs"),
    ("text.btf", "no description of types that we can read"),
    ("none.btf", "No such file or directory"),
]


@pytest.mark.parametrize("name,why", TYPES_THAT_DO_NOT_FIT[1:])
def test_doctor_says_what_is_wrong_with_types(name, why, tmp_path):
    file = tmp_path / name
    if name == "text.btf":
        file.write_text("no types\n")
    for options in ((), ("--json",)):
        done = test_doctor.doctor("--btf", file, *options)
        assert done.returncode == 4 and not done.stdout, done
        assert done.stderr == "pyebpf doctor: %s: %s\n" % (file, why)


@pytest.mark.parametrize("name,why", TYPES_THAT_DO_NOT_FIT)
def test_types_that_do_not_fit(name, why, tmp_path):
    file = tmp_path / name
    if name == "text.btf":
        file.write_text("no types\n")
    elif name == "other.btf":
        with open(OWN_BTF, "rb") as f:
            types = bytearray(f.read())
        assert other_btf.move_members(types)
        file.write_bytes(types)
    done = run("record", "--btf", file, "-a", "-d", "1s", "-o", tmp_path / "x.pyebpf")
    lines = done.stderr.splitlines()
    assert done.returncode == 4 and len(lines) == 2 and "%s: %s" % (name, why) in lines[0], done
    assert not (tmp_path / "x.pyebpf").exists()


@pytest.mark.parametrize("arguments", [("--mode", "wall"), ("--mode", "memory"),
                                       ("-e", "page-faults")])
def test_what_takes_more_is_refused(arguments, tmp_path):
    done = run("record", OLD, "-a", "-d", "1s", "-o", tmp_path / "x.pyebpf", *arguments)
    assert done.returncode == 4 and "boot Linux 5.18 or newer" in done.stderr, done
    assert len(done.stderr.splitlines()) == 2 and not list(tmp_path.iterdir()), done
