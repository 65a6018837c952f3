# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf dump --locals: what it shows of local variables against what the program itself says."""
import json
import os
import re
import resource
import shutil
import subprocess

import packages
import py_spy_dump
import pytest
import pythons
from harness import Workload, run

pytestmark = pytest.mark.usefixtures("pyebpf")
HOSTILE_SECONDS = 1.5  # of CPU time, for 100 frames; 0.03 were seen
SHORT_CHARS, FULL_CHARS = 4000, 200000  # of one value


def dump(pid, *arguments):
    """{function: {variable: object}}, by the functions' last names."""
    done = run("dump", "--json", "-p", pid, *(arguments or ["--locals"]))
    assert done.returncode == 0, done.stderr
    process, = json.loads(done.stdout)["processes"]
    return {frame["name"].rpartition(".")[2]: {each["name"]: each for each in frame["locals"]}
            for thread in process["threads"] for frame in thread["frames"]}


def check_values(python):
    with Workload(python, "values.py", ready=False) as workload:
        wanted = workload.truth()["functions"]
        found = dump(workload.pid)
        for function, variables in wanted.items():
            for name, value in variables.items():
                assert (name, found[function][name]["value"]) == (name, value), function
        check_kinds(found)
        assert {"frames", "functions"} == set(found["<module>"])
        check_self(workload.pid, found)


def check_kinds(found):
    def names(function, key):
        return {name for name, local in found[function].items() if local[key]}

    assert names("objects", "is_argument") == {"argument", "rest", "key", "others"}
    assert names("cells", "is_argument") == {"shared", "plain"}
    assert names("free", "is_free") == {"shared", "own", "late"}
    assert found["cells"]["unset"] == {"name": "unset", "type": None, "value": None,
                                       "is_argument": False, "is_free": False}
    types = {name: local["type"] for name, local in found["objects"].items()}
    assert (types["argument"], types["colour"], types["cls"]) == ("int", "Colour", "type")
    assert list(found["objects"])[:4] == ["argument", "key", "rest", "others"]


def check_self(pid, found):
    assert re.fullmatch("<Worker at 0x[0-9a-f]+>", found["work"]["self"]["value"])
    found = dump(pid, "--locals=full", "--self", "--show-secrets")
    assert found["work"]["self"]["value"] == "<Worker jobs=[1] secret='x'>"
    assert found["secrets"]["cookies"]["value"] == "{'a': 'b'}"


def test_values(python):
    check_values(python)


@pytest.mark.full
def test_values_everywhere(any_python):
    check_values(any_python)


def test_values_free_threaded(free_threaded):
    check_values(free_threaded)


def test_text(some_python):
    with Workload(some_python, "values.py", ready=False) as workload:
        workload.truth()
        text = run("dump", "-p", workload.pid, "--locals").stdout
        plain = run("dump", "-p", workload.pid).stdout
    assert "\n      password = <masked str>\n" in text and "s3cret" not in text
    assert "\n      escape = '\\x1b[31m\\x00\\x7f'\n" in text
    assert "unset" not in text and " = " not in plain
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", text)


def check_hostile(python):
    with Workload(python, "values.py", "hostile", ready=False) as workload:
        workload.truth()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        short, full = dump(workload.pid), dump(workload.pid, "--locals=full")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = short["hostile"]
    values = [(local["value"], limit) for variables, limit in ((short, SHORT_CHARS),
                                                               (full, FULL_CHARS))
              for local in variables["hostile"].values() if local["value"]]
    assert all(len(value) <= limit for value, limit in values), max(len(v) for v, _ in values)
    assert {"deep", "family", "pair", "queue"} <= set(found)
    assert found["digits"]["value"] == "<int of 280736 bits>"
    assert found["places"]["value"] == "{<unreadable>}"
    assert found["frame"]["value"] == "<pandas.DataFrame shape=(?, ?) columns=<DataFrame>>"
    assert found["manager"]["value"].startswith("<DataFrame _mgr=<DataFrame at 0x")
    assert found["deep"]["value"] == "[[[[[...+1]]]]]"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < HOSTILE_SECONDS


def test_hostile_objects(some_python):
    check_hostile(some_python)


@pytest.mark.full
def test_hostile_objects_everywhere(any_python):
    check_hostile(any_python)


def check_frames(python):
    if python.via == "chroot":
        pytest.skip("NOT TESTED: packages are not in its root")
    try:
        folder = packages.folder_of(python, "frames")
    except pythons.Unavailable as reason:
        pytest.skip("NOT TESTED: %s" % reason)
    with Workload(python, "frames.py", ready=False, env=packages.environment(folder)) as workload:
        truth = workload.truth()
        found = dump(workload.pid)
    for function, variables in truth["functions"].items():
        for name, value in variables.items():
            assert (name, found[function][name]["value"]) == (name, value), truth["versions"]
    for function, variables in truth["starts"].items():
        for name, start in variables.items():
            value = found[function][name]["value"]
            assert value.startswith(start) and len(value) < SHORT_CHARS, (name, value)


def test_frames(some_python):
    check_frames(some_python)


@pytest.mark.full
def test_frames_everywhere(python):
    check_frames(python)


@pytest.mark.parametrize("arguments, message", [
    (["--self"], "--self and --show-secrets require --locals"),
    (["--show-secrets"], "--self and --show-secrets require --locals"),
    (["--locals=long"], "none, short, full"),
])
def test_usage(arguments, message):
    done = run("dump", "-p", os.getpid(), *arguments)
    assert done.returncode == 2 and message in done.stderr, done.stderr


@pytest.mark.full
def test_py_spy_shows_no_more(some_python):
    """Each variable that py-spy has is here, and each value that is more than a type and address."""
    program = shutil.which("py-spy") or os.path.expanduser("~/.cache/pyebpf/bench-venv/bin/py-spy")
    if not os.path.exists(program):
        pytest.skip("NOT TESTED: py-spy is not installed")
    with Workload(some_python, "values.py", ready=False) as workload:
        workload.truth()
        theirs = json.loads(subprocess.run(
            [program, "dump", "--json", "--locals", "-p", str(workload.pid)],
            stdout=subprocess.PIPE, check=True).stdout)
        ours = dump(workload.pid, "--locals", "--show-secrets")
    count = 0
    for frame in theirs[0]["frames"]:
        variables = ours.get(frame["name"].rpartition(".")[2], {})
        for local in frame["locals"]:
            found = variables[local["name"]]["value"]
            count += 1
            assert found and "<unreadable>" not in found, (frame["name"], local)
            if re.match("<.* at 0x", found) and local["name"] != "disguised":  # to it a float
                assert local["repr"].startswith("<"), (found, local)
    assert count > 100


@pytest.mark.full
@pytest.mark.parametrize("program", py_spy_dump.PROGRAMS)
def test_py_spy_shows_no_more_of_real_programs(some_python, program):
    """All calls are the program's own, and all variables of them; nothing of py-spy's is missing."""
    try:
        found = py_spy_dump.compare(some_python, program, py_spy_dump.find_py_spy())
    except pythons.Unavailable as reason:
        pytest.skip("NOT TESTED: %s" % reason)
    assert not found.missing, found.missing
    assert not found.our_extra and found.calls[0] == found.calls[1], found.cells()
    assert found.variables[0] == found.variables[1] and found.values[1] >= found.values[2]
