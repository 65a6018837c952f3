# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures: every interpreter, the program, the tier.

    pytest tests/integration [--tier=check|test|all] [--pythons=NAME,...]

PYEBPF: the program (build/pyebpf). PYEBPF_PYTHONS: more interpreters (tools/pythons.py).
PYEBPF_SEED: decides which interpreters the tests draw (tests/run.py sets the commit).
"""
import functools
import json
import os
import resource
import signal
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "truth"))
sys.path.insert(0, HERE)

import build_freethreaded  # noqa: E402
import harness  # noqa: E402
import pythons  # noqa: E402
import spinning  # noqa: E402

# Keeps the modules that pytest has compiled: compiling takes most of a collection, which every stage
# repeats. Below build/, so that the sources' folders stay as they are.
sys.pycache_prefix = os.path.join(harness.REPOSITORY, "build", "pycache")
sys.dont_write_bytecode = False

# One for each way to keep frames and line tables: a list of objects with an lnotab (to 3.10), the
# data stack with a cframe (3.11, 3.12), without one (3.13, 3.14), with _Py_DebugOffsets of 3.15.
FEW = (8, 11, 13, 15)
MARKERS = (
    "few_pythons(count=2): with --tier=test on so many interpreters, drawn from one of each kind, not "
    "on one of each minor: for what depends little on it",
    "spread(A, B): not each A with each B but with --tier=all: each of both is met; parameters",
    "full: with --tier=all only: takes long, or what make deps does not install",
    "quick: with --tier=check too",
    "threads: also by the build with TSan",
    "alone: not beside other tests: it counts what they do too",
    "hostile: by the build with ASan and UBSan",
    "xdist_group(name): tests that may not run side by side",
)


def pytest_addoption(parser):
    parser.addoption("--tier", choices=("check", "test", "all"), default="test",
                     help="check: what is marked quick; test: what is not marked full; all: every "
                     "way to run every interpreter, full counts")
    parser.addoption("--pythons", default="", help="only these interpreters, by name prefix")


def one_a_minor(found):
    """One interpreter for each minor, not all of one linkage, and the system's own."""
    chosen = {}
    for python in found:
        rank = ({"direct": 0, "chroot": 1, "loader": 2}[python.via],
                python.source in ("twin", "system"), python.linkage != "static")
        if python.minor not in chosen or rank < chosen[python.minor][0]:
            chosen[python.minor] = rank, python
    return [p for p in found
            if p is chosen[p.minor][1] or (p.source == "system" and p.linkage == "static")]


def pytest_configure(config):
    # A shell's background commands ignore it, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    found = [p for p in pythons.find_all()
             if p.minor in pythons.MINORS and not p.free_threaded and not p.debug]
    wanted = [name for name in config.getoption("--pythons").split(",") if name]
    if wanted:
        found = [p for p in found if p.name.startswith(tuple(wanted))]
    config.all_pythons = found
    tier = "all" if wanted else config.getoption("--tier")
    config.draws = tier == "test"
    config.pythons = found if tier == "all" else one_a_minor(found)
    config.few_pythons = found if tier == "all" else pythons.of_minors(config.pythons, FEW)
    config.other_pythons = found if tier == "all" else [p for p in found if p not in config.pythons]
    if tier == "check":
        config.pythons = config.few_pythons
        config.few_pythons = pythons.of_minors(config.pythons, FEW[::3])


def spread_out(items):
    """What the marker `spread` leaves out of the square of A and B: all but a diagonal, round and
    round the shorter side."""
    squares = {}
    for item in items:
        marker = item.get_closest_marker("spread")
        if not marker:
            continue
        sides, square = squares.setdefault(item.function, (({}, {}), []))
        values = (str([item.callspec.params[name] for name in names.split(",")])
                  for names in marker.args)
        square.append((item, [side.setdefault(value, len(side))
                              for side, value in zip(sides, values)]))
    for sides, square in squares.values():
        shorter = min(map(len, sides))
        yield from (item for item, (a, b) in square if a % shorter != b % shorter)


def pytest_collection_modifyitems(config, items):
    """What is not of the tier is not skipped: it is no part of it."""
    tier = config.getoption("--tier")

    def is_of_tier(item):
        if item.get_closest_marker("full"):
            return tier == "all"
        return tier != "check" or item.get_closest_marker("quick")

    chosen = set(item for item in items if is_of_tier(item))
    if tier != "all":
        chosen -= set(spread_out([item for item in items if item in chosen]))
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def pytest_report_header(config):
    return ["pyebpf: " + harness.PYEBPF, "PYEBPF_SEED: " + harness.SEED,
            "interpreters: " + (", ".join(p.name for p in config.pythons) or "NONE FOUND")]


def pytest_terminal_summary(terminalreporter, config):
    terminalreporter.write_line("interpreters used: " + ", ".join(p.name for p in config.pythons))
    missing = set(pythons.MINORS) - {p.minor for p in config.all_pythons}
    if missing and not config.getoption("--pythons"):
        terminalreporter.write_line("NOT TESTED, no such interpreter: " + ", ".join(
            "CPython 3.%d" % minor for minor in sorted(missing)), red=True, bold=True)


def pytest_sessionstart(session):
    if not session.config.pythons:
        pytest.exit("not one CPython found: set PYEBPF_PYTHONS to the interpreters to use", 1)


def pytest_generate_tests(metafunc):
    few = metafunc.definition.get_closest_marker("few_pythons")
    config = metafunc.config
    found = {"python": config.few_pythons if few else config.pythons, "any_python": config.other_pythons}
    if config.draws:
        name = metafunc.definition.nodeid
        if few:
            found["python"] = harness.draw(found["python"], *few.args or (2,), name)
        found["any_python"] = harness.draw(found["any_python"], (len(found["any_python"]) + 1) // 2, name)
    for fixture, pythons_of_it in found.items():
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, pythons_of_it, ids=[p.name for p in pythons_of_it])
    chosen = any(mark.args[0] == "free_threaded" for mark in metafunc.definition.iter_markers("parametrize"))
    if "free_threaded" in metafunc.fixturenames and not chosen:
        metafunc.parametrize("free_threaded", free_threaded_minors(config), indirect=True, ids="3.{}t".format)


def free_threaded_minors(config):
    """All are built for --tier=all; else those that are there, or the one that is said to be missing."""
    known = list(build_freethreaded.BUILDS)
    if config.getoption("--tier") == "all":
        return known
    return [minor for minor in known if build_freethreaded.find(minor)] or known[:1]


@pytest.fixture
def is_full(request):
    return request.config.getoption("--tier") == "all"


@pytest.fixture(scope="session")
def pyebpf():
    if not os.access(harness.PYEBPF, os.X_OK):
        pytest.fail("%s is not there: build it, or set PYEBPF" % harness.PYEBPF)
    if os.geteuid() != 0:
        pytest.skip("pyebpf records as root only")
    return harness.PYEBPF


@pytest.fixture(scope="session")
def some_python(request):
    """One interpreter that runs without chroot or loader, for what does not depend on it."""
    direct = [p for p in request.config.all_pythons if p.via == "direct"]
    if not direct:
        pytest.skip("no interpreter that runs in place")
    return max(direct, key=lambda p: p.version)


@functools.cache  # what could not be had is not asked for once more by each test
def find_free_threaded(minor, may_build):
    """(interpreter, None), or (None, why there is none)."""
    why = "tests/tools/build_freethreaded.py builds it in some minutes, as --tier=all does"
    if may_build:
        try:
            build_freethreaded.provide(minor)
        except (pythons.Unavailable, OSError) as e:
            why = str(e).split("; ", maxsplit=1)[0]  # apt has one for each file
    python = build_freethreaded.find(minor)
    return python, None if python else why


@pytest.fixture
def free_threaded(request, is_full):
    """CPython without the GIL, of each minor that has such a build."""
    python, why = find_free_threaded(request.param, is_full)
    if not python:
        pytest.skip("NOT TESTED: no free-threaded CPython 3.%d: %s" % (request.param, why))
    return python


@pytest.fixture
def rooted(request):
    """Interpreters of a root of their own, by rising version, one a minor."""
    found = {p.minor: p for p in request.config.all_pythons
             if p.via == "chroot" and p.linkage == "static"}
    if len(found) < 2:
        spinning.say_skipped("no two interpreters with a root of their own "
                             "(Debian sid could not be had)")
    return [found[minor] for minor in sorted(found)]


@pytest.fixture
def staged(tmp_path):
    """stage() for scripts that outlive their Workload, or have none."""
    used = []

    def stage(python, name):
        folder = tempfile.mkdtemp(dir=str(tmp_path))  # its name is used in the interpreter's root
        used.append((python, folder))
        return harness.stage(python, name, folder)

    yield stage
    for python, folder in used:
        harness.unstage(python, folder)


@pytest.fixture
def fault(record_property):
    """fault(what, does, status, file, figures): a row of docs/faults.md, tools/fault_table.py."""
    def row(*cells):
        assert len(cells) == 5, cells
        record_property("fault", json.dumps([str(cell) for cell in cells]))
    return row


@pytest.fixture
def refusal(record_property, tmp_path):
    """refusal(what, done): a row of what docs/faults.md says of wrong input, of a run that ended."""
    def row(what, done):
        said = done.stderr.replace(str(tmp_path) + "/", "").splitlines()
        record_property("refusal", json.dumps([what, done.returncode, said]))
    return row


def cpu_seconds():
    """CPU time of this process and of those of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    item.cpu_before = cpu_seconds()
    yield


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    """The report of each test has its CPU time, for tests/run.py."""
    if call.when == "teardown":
        item.user_properties.append(("cpu", "%.3f" % (cpu_seconds() - item.cpu_before)))


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    outcome = yield
    if outcome.excinfo and isinstance(outcome.excinfo[1], harness.Skipped):
        pytest.skip(str(outcome.excinfo[1]))
