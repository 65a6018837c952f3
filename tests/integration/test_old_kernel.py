# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ticks by `sample_old`, the program for kernels before 5.17, which runs on newer ones too. What those
kernels make of it is in tests/kernels."""
import os
import shutil
import sys

import pytest
import test_labels as labels
import test_truth as truth
from harness import REPOSITORY, run

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
    assert "no sample has one" not in text, text


def test_types_of_a_file(some_python, tmp_path):
    """The kernel's own, elsewhere: who it is for reads them nowhere else, and has no iterators."""
    own = tmp_path / "own.btf"
    shutil.copyfile(OWN_BTF, own)
    truth.check_lines(some_python, 0.8, tmp_path, "--btf", own)


@pytest.mark.parametrize("name,why", [
    ("other.btf", "describes another kernel than the one that runs"),
    ("text.btf", "no description of types that we can read"),
    ("none.btf", "No such file or directory"),
])
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
