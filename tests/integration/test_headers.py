# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""kernels/headers.py says what fits a kernel of which there is a header alone, and what does not."""
import os
import re
import subprocess
import sys

import pytest
from harness import PATIENCE, PYEBPF, REPOSITORY

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("pyebpf")]
HEADERS = os.path.join(REPOSITORY, "tests", "kernels", "headers.py")
BPFTOOL_PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
# Of later kernels, and of earlier ones (vmlinux/README.md).
NOT_EVERYWHERE = {"bpf_task_work.__opaque", "thread_info.cpu", "bpf_local_storage_map.bpf_ma",
                  "mm_struct.mm_rb", "vm_area_struct.vm_rb", "task_struct.__state",
                  "task_struct.bpf_storage"}


@pytest.fixture(scope="module")
def own_header(tmp_path_factory):
    done = subprocess.run(["bpftool", "btf", "dump", "file", "/sys/kernel/btf/vmlinux", "format", "c"],
                          env=dict(os.environ, PATH=BPFTOOL_PATH), stdout=subprocess.PIPE, check=True)
    path = tmp_path_factory.mktemp("headers") / "own.h"
    path.write_bytes(done.stdout)
    return path


def judge(header):
    """(its exit code, what it says, the members that it says are absent)"""
    done = subprocess.run([sys.executable, "-B", HEADERS, header, PYEBPF], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=PATIENCE, check=False)
    absent = re.search(r" members; absent: (.*)", done.stdout)
    assert absent, done
    return done, set(absent.group(1).split(", ")) - {"none"}


def test_own_types_fit(own_header):
    done, absent = judge(own_header)
    assert done.returncode == 0 and absent <= NOT_EVERYWHERE, done
    assert re.search(r"(?m)^sample_old +[\d,]+ instructions verified$", done.stdout), done
    assert done.stdout.endswith("types of the kernel that runs\n"), done


@pytest.mark.parametrize("member", ["task_struct.start_boottime", "file.f_inode"])
def test_a_member_that_is_needed_and_absent(member, own_header, tmp_path):
    struct, name = member.split(".")
    header = tmp_path / "other.h"
    header.write_text(re.sub(r"\b%s\b" % name, "another_name", own_header.read_text()))
    done, absent = judge(header)
    assert done.returncode == 1 and member in absent, done
    assert "REFUSED: needs struct %s.%s" % (struct, name) in done.stdout, done


def test_types_of_another_kernel(own_header, tmp_path):
    """A task is larger than it is here, so that all of its members but the first are elsewhere."""
    header = tmp_path / "other.h"
    text, count = re.subn(r"(?m)^struct task_struct \{\n.*\n", r"\g<0>\tlong more[8];\n", own_header.read_text())
    assert count == 1
    header.write_text(text)
    done, _ = judge(header)
    assert done.returncode == 0 and done.stdout.endswith("types of another kernel\n"), done
