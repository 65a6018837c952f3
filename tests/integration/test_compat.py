# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The numbers of `--compat 3.15` are those of CPython 3.15's own profiling.sampling.

tests/compat/reference.py, run by that Python, writes and compares pairs of recordings with the
real module; compat_dump, from any build that has the tests, compares the same files: every number
of every node must be the same.
"""
import json
import os
import subprocess

import harness
import pytest

REFERENCE = os.path.join(harness.REPOSITORY, "tests", "compat", "reference.py")
BUILDS = [os.path.dirname(harness.PYEBPF), os.path.join(harness.REPOSITORY, "build-asan")]
DUMP = next(filter(os.path.exists, (os.path.join(build, "tests", "compat_dump")
                                    for build in BUILDS)), "compat_dump")
PROBE = "import profiling.sampling.stack_collector as s; s.DiffFlamegraphCollector._sample_weight"
SEED = 315
BUSY = """
def leaf(n):
    return sum(i * i for i in range(n))
def outer(n):
    for _ in range(3):
        leaf(n)
    {extra}
print(flush=True)
while True:
    outer({amount})
    leaf(100)
"""


@pytest.fixture(scope="module")
def reference(pytestconfig):
    """A command that runs reference.py by a CPython 3.15 which has the release's module."""
    for python in pytestconfig.all_pythons:
        if python.minor == 15 and python.via != "chroot" and subprocess.run(
                [*python.command, "-c", PROBE], capture_output=True, check=False).returncode == 0:
            return python.command
    return pytest.skip("needs a CPython 3.15 with profiling.sampling")


def run(command, *arguments):
    subprocess.run([*command, *map(str, arguments)], check=True, timeout=1800,
                   stdout=subprocess.DEVNULL)


def ours(base, current):
    """As reference.py tells it."""
    lines = subprocess.check_output([DUMP, "3.15", str(base), str(current)],
                                    text=True).splitlines()
    scale, elided_count, _ = lines[0].split("\t")
    result = {"scale": float(scale), "elided_count": int(elided_count), "main": [], "elided": []}
    paths = {"main": [], "elided": []}
    for line in lines[1:]:
        view, parent, file, number, name, *values = line.split("\t")
        above = paths[view][int(parent)] if int(parent) >= 0 else []
        paths[view].append([*above, [file, int(number), name]])
        result[view].append([paths[view][-1], *map(float, values)])
    return result


def by_path(rows):
    found = {json.dumps(path): values for path, *values in rows}
    assert len(found) == len(rows)
    return found


def assert_same(base, current, expected_file):
    with open(expected_file, encoding="utf-8") as file:
        expected = json.load(file)
    found = ours(base, current)
    assert (found["scale"], found["elided_count"]) == (expected["scale"], expected["elided_count"])
    for view in ("main", "elided"):
        assert by_path(found[view]) == by_path(expected[view]), view
    return len(expected["main"]), len(expected["elided"])


def test_random_pairs(reference, is_full, tmp_path):
    count = 400 if is_full else 15
    run([*reference, REFERENCE], "make", tmp_path, count, SEED)
    nodes = [assert_same(tmp_path / f"{i}.base.bin", tmp_path / f"{i}.current.bin",
                         tmp_path / f"{i}.json") for i in range(count)]
    assert sum(main for main, _ in nodes) > 10 * count
    assert sum(elided for _, elided in nodes) > count


def record(reference, script, amount, extra):
    """By the module's own command, of a program that runs for ever."""
    out = script.with_suffix(".bin")
    script.write_text(BUSY.format(amount=amount, extra=extra), encoding="utf-8")
    with subprocess.Popen([*reference, script], stdout=subprocess.PIPE) as target:
        try:
            target.stdout.readline()
            run([*reference, "-m", "profiling.sampling"], "attach", "--binary", "-r", "1khz",
                "-d", 1, "-o", out, target.pid)
        finally:
            target.kill()
    return out


def test_real_recordings(reference, tmp_path):
    current = record(reference, tmp_path / "prog.py", 400, "leaf(500)")
    current = current.rename(tmp_path / "current.bin")
    base = record(reference, tmp_path / "prog.py", 200, "pass")
    for pair in ((base, current), (current, base), (base, base)):
        run([*reference, REFERENCE], "tell", *pair, tmp_path / "expected.json")
        main, _ = assert_same(*pair, tmp_path / "expected.json")
        assert main >= 3
