# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Interpreters out of the ordinary: 3.6 stripped, debug, free-threaded, JIT, greenlets, PyPy.

What is not on the machine is fetched or built by --tier=all only, into the cache that
tools/pythons.py has; later runs of --tier=test use it too.
"""
import glob
import json
import os
import re
import shutil
import subprocess

import pytest
import pythons
import truth as judge
from harness import Recorder, Workload, export, frames, record_whole, run

pytestmark = pytest.mark.usefixtures("pyebpf")
HZ = 1000
CHAIN_DEPTH = 20  # of greenlets.py
SITES = ("plain", "nested_classes", "generator_delegated", "name_astral", "finally_after_raise",
         "asyncio_loop", "sorted_key", "thread", "call_over_lines")


# --- What to run ----------------------------------------------------------------------------------


def unpacked(folder, packages, is_full):
    """Debian packages of this release, unpacked below the cache, not installed."""
    root = os.path.join(pythons.cache_dir(), folder)
    if not is_full and not os.path.isdir(root):
        pytest.skip("%s: only --tier=all downloads it" % ", ".join(packages))
    try:
        with pythons.provided_folder(root, 1) as new:
            if new:
                pythons.run(["apt-get", "-q", "download", *packages], "apt-get download", cwd=new)
                for package in glob.glob(os.path.join(glob.escape(new), "*.deb")):
                    pythons.run(["dpkg-deb", "-x", package, new], os.path.basename(package))
    except (pythons.Unavailable, OSError) as e:
        pytest.skip("%s: %s" % (", ".join(packages), e))
    return root


def pytest_generate_tests(metafunc):
    config = metafunc.config
    if "jit_python" in metafunc.fixturenames:
        found = [p for p in config.pythons if p.minor >= 13 and jit_is_available(p)]
        metafunc.parametrize("jit_python", found, ids=[p.name for p in found])
    if "greenlet_python" in metafunc.fixturenames:
        found = [p for p in config.all_pythons if p.via == "direct"]
        if config.getoption("--tier") != "all":
            # Up to 3.12 greenlet swaps a cframe, from 3.13 on there is none.
            found = pythons.of_minors(found, (12, max(p.minor for p in found)))
        metafunc.parametrize("greenlet_python", found, ids=[p.name for p in found])


# --- Judging --------------------------------------------------------------------------------------


def assert_sites_right(workload, tmp_path):
    truth, samples, text = record_whole(workload, tmp_path, HZ)
    known = judge.SiteTruth(truth)
    verdict = known.judge(samples, HZ)
    assert not verdict.wrong, verdict.text()
    assert set(verdict.exact) == set(SITES), verdict.text()
    assert sum(verdict.exact.values()) > 0.8 * HZ * sum(known.site_cpu.values()), verdict.text()
    return text


def assert_not_torn(samples, least):
    """samples: {stack: count} of chains whose outermost function is main()."""
    errors = []
    for stack, count in samples.items():
        names = [frame[0] for frame in stack]
        if "main" in names:
            why = judge.torn((("<module>", "", 0),) + stack[names.index("main"):], 50)
        else:
            why = "no main()" if any(frame[1].startswith("chain_") for frame in stack) else None
        if why:
            errors.append((why, count, stack))
    total = sum(samples.values())
    assert not errors, "%d of %d: %s" % (sum(e[1] for e in errors), total, [
        "%d x %s: %s" % (count, why, judge.show(stack)) for why, count, stack in errors[:5]])
    deep = sum(count for stack, count in samples.items()
               if stack and stack[-1][0] in ("a49", "b49"))
    assert total >= least and deep > 0.5 * total, (total, deep)


def greenlet_error(stack):
    """Why a stack of greenlets.py cannot be, or None."""
    if stack and stack[-1][0] == "<GC>":
        stack = stack[:-1]  # the collector runs on top of a whole stack
    inside = [i for i, frame in enumerate(stack) if re.fullmatch(r"chain_.\.py", frame[1])]
    if stack == (("<outside Python>", "~", 0),):
        return None  # while it switches, a thread has no frame
    if any(frame[1] == "~" for frame in stack):
        return "not whole"
    if not inside or stack[inside[0]][0] == "<module>":
        return None  # in between, or while the chains are made
    if inside != list(range(len(inside))):
        return "a level is missing, or something calls level 0"
    letter = stack[0][0][:1]
    is_leaf = len(inside) == len(stack)
    if len(inside) != CHAIN_DEPTH and not is_leaf:
        return "leaves the chain at level %d" % len(inside)
    for level, (name, file, line) in enumerate(stack[:len(inside)]):
        lines = (2 * level + 2,)
        if is_leaf and level == len(inside) - 1:
            lines += (2 * level + 1,)
        if (name, file) != ("%s%d" % (letter, level), "chain_%s.py" % letter) or line not in lines:
            return "%s (%s:%d) at level %d of chain %s" % (name, file, line, level, letter)
    return None


def is_cut_in_a_switch(stack):
    """Flagged as incomplete, and what is named is of one greenlet. In 3.11 and 3.12 the way to the
    frames leads over a cframe on the C stack: greenlet changes the one a moment after the other."""
    return stack and stack[0][:2] == ("<incomplete>", "~") and \
        len({file for _, file, _ in stack if re.fullmatch(r"chain_.\.py", file)}) < 2


# --- Stripped, debug builds -----------------------------------------------------------------------


def test_3_6_stripped(request, tmp_path):
    """Without .symtab the list of interpreters is where PyInterpreterState_Head() reads it."""
    old = [p for p in request.config.all_pythons if p.minor == 6 and p.linkage == "shared"]
    if not old:
        pytest.skip("NOT TESTED: no shared CPython 3.6 here")
    if not shutil.which("strip"):
        pytest.skip("no strip (package binutils)")
    stripped = str(tmp_path / os.path.basename(old[0].runtime))
    subprocess.run(["strip", "-o", stripped, old[0].runtime], check=True)
    assert not pythons.elf_defines(stripped, ("interp_head",))
    with Workload(old[0], "lines.py", 1, *SITES, env={"LD_PRELOAD": stripped}) as workload:
        with open("/proc/%d/maps" % workload.pid) as maps:
            assert stripped in maps.read()
        assert_sites_right(workload, tmp_path)


def test_debug_build(tmp_path, is_full):
    """Debian's own, of the release that this runs on."""
    version = pythons.os_release("VERSION_ID")
    minor = {"12": 11, "13": 13}.get(version)
    if not minor or not os.path.exists("/usr/bin/python3.%d" % minor):
        pytest.skip("no package with a debug build is known for this system")
    root = unpacked("debug", ["python3.%d-dbg" % minor], is_full)
    python = pythons.Python([os.path.join(root, "usr/bin/python3.%dd" % minor)], "debian")
    subprocess.run(python.command + ["-c", "import sys; sys.gettotalrefcount()"], check=True)
    with Workload(python, "lines.py", 2, *SITES) as workload:
        assert_sites_right(workload, tmp_path)


# --- Free-threaded --------------------------------------------------------------------------------


def test_free_threaded_lines_and_stacks(free_threaded, tmp_path, is_full):
    with Workload(free_threaded, "lines.py", 30 if is_full else 2) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, HZ)
    sites = judge.SiteTruth(truth)
    # Any `def` of a module may take milliseconds, where this allocator gives memory back.
    verdict = sites.judge(samples, HZ, near_share=0.01)
    assert not verdict.wrong, verdict.text()
    assert sum(verdict.exact.values()) > 0.9 * HZ * sum(sites.site_cpu.values()), verdict.text()
    assert not set(sites.site_cpu) - set(verdict.exact), verdict.text()


def test_free_threaded_threads_are_not_torn(free_threaded, tmp_path, is_full):
    hz, count = 4000, 3
    output = tmp_path / "parallel.pyebpf"
    with Workload(free_threaded, "parallel.py", 30 if is_full else 3, 20, count) as workload:
        with Recorder(output, "-p", workload.pid, "-F", hz) as recorder:
            recorder.wait_attached()
            workload.go()
            truth = workload.truth()
            recorder.finish()
    assert not truth["gil"]
    tagged = export(output, "--threads")
    samples = {}
    by_thread = {}
    for stack, n in tagged.items():
        plain = tuple(map(tuple, stack.frames))
        samples[plain] = samples.get(plain, 0) + n
        by_thread[stack.tags[0][2]] = by_thread.get(stack.tags[0][2], 0) + n
    assert frames(export(output)) == samples
    chains = {stack: n for stack, n in samples.items()
              if any(frame[0] == "main" for frame in stack)}
    assert_not_torn(chains, 0.7 * hz * sum(truth["threads"].values()))
    assert len(truth["threads"]) == count
    for tid, spent in truth["threads"].items():
        expected = spent * hz
        got = by_thread.get(int(tid), 0)
        assert 0.85 * expected - 20 < got <= judge.plausible(1.15 * expected), \
            (tid, truth, by_thread)
    # 200 with a GIL. Right so far, but it takes two CPUs at a time to be a test.
    if truth["handovers"] < 1000:
        pytest.skip("this machine did not run two threads at once: %d handovers a second"
                    % truth["handovers"])


# --- JIT ------------------------------------------------------------------------------------------


def jit_is_available(python):
    done = subprocess.run(python.command + ["-c", "import sys; print(sys._jit.is_available())"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() == "True"


def marked_share(output, name):
    """Share of the function's lines that report marks as approximate."""
    done = run("report", "--lines", "--no-summary", "-n", "0", output)
    rows = re.findall(r"^\s*([\d.]+)%.*\s(\S+)\s+\S*hot\.py:(~?)\d+$", done.stdout, re.M)
    marked = total = 0.0
    for percent, function, mark in rows:
        if function == name:
            total += float(percent)
            marked += float(percent) if mark else 0
    assert total, done.stdout + done.stderr
    return marked / total


@pytest.mark.parametrize("is_on", [True, False], ids=["on", "off"])
@pytest.mark.spread("jit_python", "is_on")
def test_jit_lines_are_marked(jit_python, is_on, tmp_path):
    output = tmp_path / "jit.pyebpf"
    with Workload(jit_python, "hot.py", 1.5, env={"PYTHON_JIT": "01"[is_on]}) as workload:
        with Recorder(output, "-p", workload.pid, "-F", 2000) as recorder:
            recorder.wait_attached()
            workload.go()
            workload.truth()
            recorder.finish()
        done = run("doctor", "-p", workload.pid)
    assert bool(re.search(r"^JIT .*PYTHON_JIT", done.stdout, re.M)) == is_on, done.stdout
    for name, least in (("plain", 0.9), ("key", 0.7), ("calling", 0.8)):
        share = marked_share(output, name)
        assert share >= least if is_on else share == 0, (name, share)


# --- Greenlets ------------------------------------------------------------------------------------


def greenlet_folder(python):
    """greenlet and gevent from PyPI, by the interpreter's own pip."""
    folder = os.path.join(pythons.cache_dir(), "greenlet", "%d.%d.%d" % python.version)
    if subprocess.run(python.command + ["-m", "pip", "--version"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("%s has no pip" % python.name)
    try:
        with pythons.provided_folder(folder, 1) as new:
            if new:
                pythons.run(python.command + [
                    "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-cache-dir",
                    "--only-binary", ":all:", "--target", new, "greenlet", "gevent"], "pip")
    except (pythons.Unavailable, OSError) as e:
        pytest.skip("greenlet for %s: %s" % (python.name, e))
    return folder


@pytest.mark.parametrize("period_us", [0, 20])
@pytest.mark.parametrize("kind", ["greenlet", "gevent"])
@pytest.mark.spread("greenlet_python", "kind")
def test_greenlets_keep_their_stacks(greenlet_python, kind, period_us, tmp_path, is_full):
    folder = greenlet_folder(greenlet_python)
    hz = 7919  # a round of switches may take 100 us: not in step with it
    with Workload(greenlet_python, "greenlets.py", 20 if is_full else 0.5, period_us, kind,
                  folder) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, hz)
    total = sum(samples.values())
    cut = sum(count for stack, count in samples.items() if is_cut_in_a_switch(stack))
    assert cut <= (1 + total // 5000 if greenlet_python.minor in (11, 12) else 0), (cut, total)
    errors = [(greenlet_error(stack), count, stack) for stack, count in samples.items()
              if greenlet_error(stack) and not is_cut_in_a_switch(stack)]
    assert not errors, "%d of %d, %d switches: %s" % (
        sum(e[1] for e in errors), total, truth["switches"],
        ["%d x %s: %s" % (count, why, judge.show(stack)) for why, count, stack in errors[:5]])
    assert total > 0.7 * hz * truth["cpu"], (total, truth)
    for letter in "abc":
        whole = sum(count for stack, count in samples.items()
                    if len(stack) >= CHAIN_DEPTH and stack[0][0] == letter + "0")
        assert whole > 0.1 * total, (letter, whole, total)


def parked(tasks):
    """Returns dump's greenlets in the form of parked.py, without gevent's own calls."""
    return sorted([task["tid"], task["name"].split()[0],
                   [[frame["name"].split(".")[-1], frame["line"]] for frame in task["frames"]
                    if "/gevent/" not in frame["file"]]] for task in tasks)


def test_greenlets_that_wait_are_listed(greenlet_python, is_full):
    folder = greenlet_folder(greenlet_python)
    with Workload(greenlet_python, "parked.py", folder, 300000 if is_full else 10000) as workload:
        workload.go()
        truth = workload.truth()
        process, = json.loads(run("dump", "--async", "--json", "-p", str(workload.pid)).stdout)["processes"]
        text = run("dump", "--async", "-p", str(workload.pid)).stdout
    # The thread of gevent's hub waits itself, in joinall().
    threads = [task for task in process["tasks"] if task["frames"][0]["name"].endswith("_bootstrap")]
    assert [task["frames"][-1]["name"] for task in threads] == ["run_hub"]
    assert parked(task for task in process["tasks"] if task not in threads) == truth["tasks"]
    assert process["greenlets_without_frames"] == truth["frameless"] and process["tasks_unreadable"] == 0
    assert {task["waits_for"] for task in process["tasks"] if task["name"].startswith("Greenlet ")} == {"sleep(3600)"}
    assert "1 greenlet without a Python frame: not shown" in text


GREENLET = tuple(("a%d" % i, "chain_a.py", 2 * i + 2) for i in range(CHAIN_DEPTH))
TURN = (("main.<locals>.turn", "greenlets.py", 45),)


@pytest.mark.parametrize("name,stack,is_wrong", [
    ("whole", GREENLET + TURN, False),
    ("at its leaf", GREENLET, False),
    ("between", (("<module>", "greenlets.py", 71),), False),
    ("mixed", (("b0", "chain_b.py", 2),) + GREENLET[1:] + TURN, True),
    ("has a caller", (("<module>", "greenlets.py", 71),) + GREENLET + TURN, True),
    ("cut at the root", GREENLET[3:] + TURN, True),
    ("a level is missing", GREENLET[:7] + GREENLET[8:] + TURN, True),
    ("wrong line", GREENLET[:7] + (("a7", "chain_a.py", 20),) + GREENLET[8:] + TURN, True),
    ("incomplete", (("<incomplete>", "~", 0),) + GREENLET + TURN, True),
], ids=lambda value: value if isinstance(value, str) else None)
def test_impossible_greenlets_are_recognised(name, stack, is_wrong):
    assert bool(greenlet_error(stack)) == is_wrong, name


@pytest.mark.parametrize("name,stack,is_cut", [
    ("nothing named", (("<incomplete>", "~", 0), ("<unknown>", "~", 0)), True),
    ("leaf end of one", (("<incomplete>", "~", 0),) + GREENLET[7:], True),
    ("mixed", (("<incomplete>", "~", 0), ("b0", "chain_b.py", 2)) + GREENLET[7:], False),
    ("unnamed in the middle", GREENLET[:7] + (("<unknown>", "~", 0),) + GREENLET[8:], False),
    ("empty", (), False),
], ids=lambda value: value if isinstance(value, str) else None)
def test_greenlets_cut_in_a_switch_are_recognised(name, stack, is_cut):
    assert bool(is_cut_in_a_switch(stack)) == is_cut, name


# --- Others ---------------------------------------------------------------------------------------


def test_pypy_is_refused_by_name(tmp_path, is_full):
    program = shutil.which("pypy3")
    env = {}
    if not program:
        root = unpacked("pypy", ["pypy3", "pypy3-lib", "libgdbm6", "libncursesw6", "libtinfo6",
                                 "libffi8"], is_full)
        program = os.path.join(root, "usr/bin/pypy3")
        libraries = {os.path.dirname(path) for path in
                     glob.glob(os.path.join(glob.escape(root), "**/*.so*"), recursive=True)}
        env = {"LD_LIBRARY_PATH": ":".join(sorted(libraries))}
    with subprocess.Popen([program, "-c", "print('up', flush=True); input()"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=dict(os.environ, **env)) as process:
        try:
            assert process.stdout.readline() == b"up\n"
            done = run("record", "-p", process.pid, "-d", "1s", "-o", tmp_path / "x.pyebpf")
        finally:
            process.kill()
    assert done.returncode == 3, done.stderr
    first = done.stderr.splitlines()[0]
    assert "pid %d: " % process.pid in first and "PyPy is not supported" in first, done.stderr
    assert not os.path.exists(str(tmp_path / "x.pyebpf"))
