# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Limits that are reached: of a disk, a file, descriptors, memory. One line says which, a second one what to
do."""
import resource
import subprocess
import sys

import pytest
from harness import Recorder, run

pytestmark = [pytest.mark.usefixtures("pyebpf")]

WORK = "import json\nfor i in range(%d): json.loads(json.dumps({'a': [i] * 20}))\n"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("exhausted") / "x.pyebpf"
    done = run("record", "-F", 4999, "-o", path, "--", sys.executable, "-c", WORK % 12000)
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size > 4096
    return path


@pytest.fixture
def full(tmp_path):
    """A file system of one page."""
    folder = tmp_path / "full"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def commands(recording):
    return {"cat": ["cat", recording, recording, "-o", "o.pyebpf"],
            "import": ["import", recording, "-o", "o.pyebpf"],
            "export": ["export", "-f", "json", recording, "-o", "o.json"],
            "heatmap": ["export", "-f", "heatmap", recording, "-o", "o.heatmap"],
            "page": ["report", recording, "-o", "o.html"]}


NAMES = ["cat", "import", "export", "heatmap", "page"]


@pytest.mark.parametrize("name", NAMES)
def test_a_full_disk(name, recording, full):
    done = run(*commands(recording)[name], cwd=full)
    first, second = done.stderr.splitlines()
    assert done.returncode == 1 and first.endswith(": No space left on device"), done.stderr
    assert second == "try: df -h, then -o FILE on a file system with more space"
    assert not list(full.iterdir())  # nothing is left of it


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_of_file_sizes(name, recording, tmp_path):
    """SIGXFSZ would end the program."""
    done = run(*commands(recording)[name], cwd=tmp_path,
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)))
    first, second = done.stderr.splitlines()
    assert done.returncode == 1 and first.endswith(": File too large"), done.stderr
    assert second == "try: ulimit -f unlimited, then the same again"
    assert not list(tmp_path.iterdir())


def test_a_limit_of_file_sizes_while_it_records(tmp_path):
    output = tmp_path / "x.pyebpf"
    with Recorder(output, "-F", 4999, "--", sys.executable, "-c", WORK % 400000) as recorder:
        recorder.wait_attached()
        resource.prlimit(recorder.process.pid, resource.RLIMIT_FSIZE, (2048, 2048))
        status, said = recorder.process.wait(30), recorder.text().splitlines()
    assert status == 1 and f"pyebpf record: write {output}: File too large" in said, said
    assert "try: ulimit -f unlimited, then the same again" in said, said
    assert not output.exists() or output.stat().st_size <= 2048


def test_a_command_has_the_signal_as_it_was(tmp_path):
    """Of the recorder that is ignored, not of what it starts."""
    done = run("record", "-q", "-o", tmp_path / "x.pyebpf", "--", "perl", "-e",
               "print defined $SIG{XFSZ} && $SIG{XFSZ} eq 'IGNORE' ? 'ignored' : 'default'")
    assert done.stdout == "default", done


def test_too_few_descriptors(tmp_path):
    done = run("record", "-o", tmp_path / "x.pyebpf", "--", "true",
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)))
    first, second = done.stderr.splitlines()
    assert done.returncode == 1 and "Too many open files" in first, done.stderr
    assert second == "try: ulimit -n 1024, then the same again"
