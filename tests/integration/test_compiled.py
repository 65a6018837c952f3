# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Functions that run no bytecode and have frames all the same: those that Nuitka has compiled."""
import json
import os
import re
import shutil
import subprocess

import packages
import pytest
import pythons
from harness import WORKLOADS, Recorder, Workload, export, frames, record_whole, run, wait_until
from spinning import say_skipped

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 997
PROGRAM = os.path.join(WORKLOADS, "compiled_calls.py")


def pytest_generate_tests(metafunc):
    """with_headers: interpreters that Nuitka compiles for."""
    if "with_headers" in metafunc.fixturenames:
        found = [p for p in metafunc.config.all_pythons if p.source == "pyenv" and p.minor >= 8]
        metafunc.parametrize("with_headers", found, ids=[p.name for p in found])


@pytest.fixture(scope="module")
def pushing(tmp_path_factory):
    if not pythons.cc():
        say_skipped("no C compiler here")
    library = tmp_path_factory.mktemp("push") / "push.so"
    subprocess.run([pythons.cc(), "-shared", "-fPIC", "-o", str(library),
                    os.path.join(WORKLOADS, "push.c")], check=True)
    return str(library)


@pytest.fixture
def placed(pushing):
    """place(python): the library's path as the interpreter sees it."""
    copies = []

    def place(python):
        if not python.root:
            return pushing
        name = "push-%d.so" % os.getpid()
        copies.append(os.path.join(python.root, "tmp", name))
        shutil.copy(pushing, copies[-1])
        return "/tmp/" + name

    yield place
    for copy in copies:
        os.unlink(copy)


def calls(stack):
    return [(frame[0], frame[2]) for frame in stack if frame[0] in ("first", "second", "spin")]


def test_frames_without_bytecode_have_their_own_line(python, placed, tmp_path):
    with Workload(python, "pushed.py", placed(python), 0.3) as workload:
        truth, samples, text = record_whole(workload, tmp_path, HZ)
        workload.exit()
    want = list(truth["lines"].items())
    right = sum(count for stack, count in samples.items() if calls(stack) == want)
    total = sum(samples.values())
    assert total >= 50 and right >= 0.95 * total, (want, samples, text)
    assert not any("<incomplete>" in frame[0] for stack in samples for frame in stack), samples


def test_dump_shows_frames_without_bytecode(python, placed):
    with Workload(python, "pushed.py", placed(python), 30) as workload:
        workload.go()
        want = ["first", "between", "second", "spin"]
        found = []

        def is_there():
            done = run("dump", "--json", "--locals", "-p", workload.pid)
            assert done.returncode == 0, done.stderr
            thread, = json.loads(done.stdout)["processes"][0]["threads"]
            found[:] = [f for f in thread["frames"] if f["name"] in want]
            return [f["name"] for f in found] == want
        wait_until(is_there, 20, "all calls are shown")
        text = run("dump", "--locals", "-p", workload.pid).stdout
    source = open(os.path.join(WORKLOADS, "pushed.py")).read().splitlines()
    for frame, called in zip(found, ("between()", None, "spin()")):
        if called:
            assert source[frame["line"] - 1].strip() == called, frame
            assert "locals" not in frame, frame
    assert text.count("[local variables: not readable in compiled code]") == 2, text


# --- Nuitka itself --------------------------------------------------------------------------------


def compiled(python, folder):
    """compiled_calls as a program of its own."""
    try:
        where = packages.folder_of(python, "nuitka")
    except pythons.Unavailable as e:
        say_skipped(str(e))
    done = subprocess.run(
        [*python.command, "-m", "nuitka", "--output-dir=" + str(folder), PROGRAM],
        env=packages.environment(where), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    return os.path.join(str(folder), "compiled_calls.bin")


def noted_lines():
    """{function: the line that it notes}."""
    return {match.group(1): number
            for number, line in enumerate(open(PROGRAM), 1)
            for match in [re.search(r"# (\w+)$", line)] if match}


@pytest.mark.full
def test_program_of_nuitka(with_headers, tmp_path):
    program, lines = compiled(with_headers, tmp_path), noted_lines()
    output = tmp_path / "whole.pyebpf"
    with Recorder(output, "-F", HZ, "--", program, 4) as recorder:
        assert recorder.wait() == 0, recorder.text()
    samples = frames(export(output))
    spinning = {stack: count for stack, count in samples.items()
                if stack and stack[-1][0] == "spin"}
    total = sum(spinning.values())
    assert total >= 100, (samples, recorder.text())
    met = set()
    for stack in spinning:
        for name, _, line, *_ in stack:
            met.add(name)
            if name in lines:
                assert line == lines[name], (stack, lines)
    assert met >= {"<module>", "main", *lines}, (met, recorder.text())
    begun = {stack[0][0] for stack in spinning}
    assert begun <= {"<module>", "Thread._bootstrap", "_bootstrap"}, (begun, samples)
    assert not any("<incomplete>" in frame[0] for stack in samples for frame in stack), samples
