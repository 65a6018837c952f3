# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files of other profilers: what we make of them is what their own readers make of them."""
import collections
import json
import os
import stat
import subprocess

import pytest

import collapsed
import harness
import packages
import pythons
from htmlpage import Page

ORACLE = os.path.join(harness.HERE, "tachyon_oracle.py")


@pytest.fixture(scope="session")
def python315(request, tmp_path_factory):
    """(command of a 3.15 with profiling.sampling, executable that targets can be started with)."""
    for python in request.config.all_pythons:
        if python.minor != 15 or python.via == "chroot":
            continue
        done = subprocess.run(python.command + ["-m", "profiling.sampling", "--help"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            starter = tmp_path_factory.mktemp("python") / "python3.15"
            starter.write_text("#!/bin/sh\nexec %s \"$@\"\n" % " ".join(python.command))
            starter.chmod(starter.stat().st_mode | stat.S_IXUSR)
            return python.command, str(starter)
    pytest.skip("no CPython 3.15 with profiling.sampling that runs outside a chroot")


def ask(python315, *arguments):
    done = subprocess.run(python315[0] + [ORACLE, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def as_read_by_cpython(python315, paths):
    """For each file {(interpreter, tid, frames root first): samples}."""
    for line in ask(python315, "read", *paths).splitlines():
        stacks = collections.Counter()
        for interpreter, tid, frames, count in json.loads(line)["stacks"]:
            stacks[interpreter, tid, tuple(
                (name, "~", 0) if file == "~" else (name, file, number)
                for file, number, name in frames)] += count
        yield stacks


def opcodes_as_read_by_cpython(python315, paths):
    """For each file {(function, line, instruction): samples} of the leaves that have one."""
    for line in ask(python315, "read", *paths).splitlines():
        yield collections.Counter({(name, number, instruction): count for
                                   name, number, instruction, count in json.loads(line)["opcodes"]})


def opcodes_as_read_by_us(path, page):
    assert harness.run("report", "--no-fold-imports", "-o", page, path).returncode == 0
    page = Page(page)
    found = collections.Counter()
    for name in set(page.name):
        for (line, instruction), count in page.opcodes_of(name).items():
            found[name, line, instruction] += count if instruction else 0
    return +found


def test_collapsed_text_of_cpython(python315, pyebpf, tmp_path):
    """The same samples as its text and as its binary file; the text has base names only."""
    binary, text = str(tmp_path / "a.bin"), str(tmp_path / "a.txt")
    ask(python315, "run", python315[1], "run", "-a", "-r", "1000", "--binary", "-o", binary,
        os.path.join(harness.WORKLOADS, "sampled.py"), "0.3")
    ask(python315, "run", python315[1], "replay", "--collapsed", "-o", text, binary)
    expected = collections.Counter()
    for (interpreter, tid, frames), count in as_read_by_us(binary).items():
        expected[interpreter, tid, tuple((name, os.path.basename(file), line)
                                         for name, file, line in frames)] += count
    assert sum(expected.values()) > 100
    assert as_read_by_us(text) == expected


def test_raw_text_of_py_spy(some_python, pyebpf, tmp_path):
    try:
        folder = packages.folder_of(some_python, "py-spy")
    except pythons.Unavailable as reason:
        pytest.skip("py-spy: %s" % reason)
    raw = str(tmp_path / "raw.txt")
    done = subprocess.run(
        [os.path.join(folder, "bin", "py-spy"), "record", "-f", "raw", "--threads",
         "--subprocesses", "-r", "200", "-o", raw, "--", *some_python.command,
         os.path.join(harness.WORKLOADS, "sampled.py"), "1"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    with open(raw, encoding="utf-8") as lines:
        expected = sum(int(line.rpartition(" ")[2]) for line in lines)
    text = harness.run("export", "-f", "collapsed", "--threads", "--processes", raw).stdout
    samples = collapsed.parse(text, tags=True)
    assert sum(samples.values()) == expected > 20
    kinds = {tag[0] for stack in samples for tag in stack.tags}
    names = {tag[1] for stack in samples for tag in stack.tags}
    assert kinds == {"process", "thread"}
    # py-spy has no name for a process that it met before its exec
    assert "MainThread" in names, names
    assert "" in names or any("sampled.py" in name for name in names), names
    functions = {(frame.name, frame.file) for stack in samples for frame in stack.frames}
    assert ("main", "sampled.py") in functions and ("leaf", "sampled.py") in functions
    assert harness.run("import", "-F", "200", raw, "-o", str(tmp_path / "a.pyebpf")).returncode == 0
    told = harness.run("report", str(tmp_path / "a.pyebpf")).stdout
    assert "of 5 ms each" in told and "imported from collapsed text" in told


def as_read_by_us(path, *arguments):
    done = harness.run("export", "-f", "collapsed", "--threads", *arguments, path)
    if done.returncode == 3:
        return collections.Counter()
    assert done.returncode == 0, done.stderr
    stacks = collections.Counter()
    for stack, count in collapsed.parse(done.stdout, tags=True).items():
        (_, name, tid), = stack.tags
        interpreter = int(name.replace("interpreter ", "") or 0)
        stacks[interpreter, tid, tuple(map(tuple, stack.frames))] += count
    return stacks


def test_random_files_of_cpython(python315, pyebpf, is_full, tmp_path):
    """Threads, interpreters, odd names, missing lines, deep stacks, raw and compressed."""
    count = 400 if is_full else 12
    ask(python315, "write", tmp_path, count, 7)
    paths = [str(tmp_path / ("%d.bin" % number)) for number in range(count)]
    samples = 0
    for path, expected in zip(paths, as_read_by_cpython(python315, paths)):
        assert as_read_by_us(path) == expected, path
        samples += sum(expected.values())
    assert samples > 50 * count


def test_opcodes_of_cpython(python315, pyebpf, tmp_path):
    """Of random files, and of a real program; then the same as a recording of ours."""
    ask(python315, "write", tmp_path, 10, 11)
    paths = [str(tmp_path / ("%d.bin" % number)) for number in range(10)]
    paths.append(str(tmp_path / "real.bin"))
    ask(python315, "run", python315[1], "run", "-r", "1000", "--opcodes", "--binary", "-o",
        paths[-1], os.path.join(harness.WORKLOADS, "sampled.py"), "0.4")
    samples = []
    for path, expected in zip(paths, opcodes_as_read_by_cpython(python315, paths)):
        samples.append(sum(expected.values()))
        if not expected:
            continue
        assert opcodes_as_read_by_us(path, path + ".html") == expected, path
        ours = path.replace(".bin", ".pyebpf")
        assert harness.run("import", path, "-o", ours).returncode == 0
        assert opcodes_as_read_by_us(ours, path + ".html") == expected, path
    assert samples[-1] > 50 and sum(samples) > samples[-1] + 100, samples


MODES = [["--mode", mode] + more
         for mode in ("wall", "cpu", "gil", "exception")
         for more in ([], ["-a", "--native", "--opcodes", "--compression", "none"])] + [
             ["--blocking", "--no-gc"], ["-a", "--no-gc", "--compression", "zstd"]]


def test_recordings_of_cpython(python315, pyebpf, is_full, tmp_path):
    """Every mode, of a real program; then the same as a recording of ours."""
    modes = MODES if is_full else MODES[1:6:4] + MODES[-1:]
    paths = []
    for number, mode in enumerate(modes):
        paths.append(str(tmp_path / ("mode-%d.bin" % number)))
        ask(python315, "run", python315[1], "run", "-r", "1000", *mode, "--binary", "-o", paths[-1],
            os.path.join(harness.WORKLOADS, "sampled.py"), "0.4")
    for mode, path, expected in zip(modes, paths, as_read_by_cpython(python315, paths)):
        assert sum(expected.values()) > 50 or "exception" in mode, mode
        assert as_read_by_us(path) == expected, mode
        ours = path.replace(".bin", ".pyebpf")
        assert harness.run("import", path, "-o", ours).returncode == 0
        assert as_read_by_us(ours) == expected, mode
        told = harness.run("report", ours).stdout
        name = mode[mode.index("--mode") + 1] if "--mode" in mode else "wall"
        assert "mode       %s, for" % name in told
        assert "at an unknown time, imported from CPython 3.15" in told
        assert "target     unknown" in told
        assert "failed in the sampler" in told or "lost       " in told
