# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Interpreters of a process that share a GIL, and those that have their own: who waits is paired with who holds it."""
import collections
import json

import pytest
from harness import Recorder, Workload, draw, run, wait_until

pytestmark = pytest.mark.usefixtures("pyebpf")
SPINS = {"spins_main", "spins_shared", "spins_own"}
NS = 1e9


def pytest_generate_tests(metafunc):
    """with_interpreters: those with a module for other interpreters; of a draw some that know GILs of their own.
    What that module of 3.13 needs a twin that is linked statically does not export."""
    config = metafunc.config
    found = [p for p in config.pythons if p.minor >= 8 and (p.minor, p.source, p.linkage) != (13, "twin", "static")]
    if config.draws:
        name = metafunc.definition.nodeid
        found = [p for is_new in (False, True)
                 for p in draw([p for p in found if (p.minor >= 12) == is_new], 1 + is_new, name)]
    metafunc.parametrize("with_interpreters", found, ids=[p.name for p in found])


def exported(form, output):
    done = run("export", "-f", form, output)
    assert done.returncode == 0, done.stderr
    return done.stdout


def function_of(sample):
    return next((frame[0] for frame in sample["stack"] if frame[0] in SPINS), None)


def check_samples(gils, samples):
    """How long was each GIL waited for while they compute, and that who held it? Returns the sum of the former."""
    gil_of = {function: i for i, functions in enumerate(gils) for function in functions}
    waited, held = collections.Counter(), collections.Counter()
    for s in samples:
        if s["labels"].get("wait") == "GIL":
            waited[gil_of.get(function_of(s))] += s["value"]
        elif s["kind"] == "gil-contention":
            held[gil_of.get(function_of(s))] += s["value"]
    assert sum(held.values()) <= sum(waited.values()), (waited, held)
    for i in range(len(gils)):
        # Threads of other interpreters take the main one's again when they end.
        assert 0.3 * waited[i] < held[i] <= waited[i] + 0.05 * NS, (i, waited, held)
    return sum(waited.values())


def check_pairs(gils, rows, waited):
    gil_of = {function: i for i, functions in enumerate(gils) for function in functions}
    pairs = {(waiter, holder) for waiter, _, holder, _, _, _ in rows if {waiter, holder} <= SPINS}
    assert all(gil_of[waiter] == gil_of[holder] for waiter, holder in pairs), pairs
    # Threads that share one do wait for each other.
    assert {("spins_main", "spins_shared"), ("spins_shared", "spins_main")} & pairs, rows
    assert ("spins_own", "spins_own") in pairs, rows
    assert sum(row[4] for row in rows) <= waited / NS * (1 + 1e-6), (rows, waited)


def test_contention_is_of_one_gil(with_interpreters, tmp_path):
    with Workload(with_interpreters, "gils.py", 0.4) as workload:
        output = tmp_path / "gils.pyebpf"
        with Recorder(output, "-p", workload.pid, "--mode", "wall", "-F", 997) as recorder:
            recorder.wait_attached()
            workload.go()
            gils = workload.truth()
            workload.truth()
            recorder.finish()
    assert len(gils) == (2 if with_interpreters.minor >= 12 else 1)
    waited = check_samples(gils, [json.loads(line) for line in exported("jsonl", output).splitlines()])
    check_pairs(gils, json.loads(exported("json", output))["gil"], waited)


def gils_of_threads(gils):
    """Returns the GIL of each thread; threads not in `gils` take the main interpreter's."""
    found = collections.defaultdict(int)
    found.update((tid, i) for i, functions in enumerate(gils) for tids in functions.values() for tid in tids)
    return found


def check_dump(gils, threads):
    """At most one thread holds each GIL, and waiters wait for that thread. Returns the GILs that have waiters."""
    gil_of = gils_of_threads(gils)
    holders = {gil_of[t["tid"]]: t["tid"] for t in threads if t["holds_gil"]}
    assert len(holders) == sum(t["holds_gil"] for t in threads), threads
    waiters = [t for t in threads if t["waits_for_gil"] and t["lock"]["owner"]]
    assert all(t["lock"]["owner"] == holders[gil_of[t["tid"]]] for t in waiters), threads
    return {gil_of[t["tid"]] for t in waiters}


def test_dump_tells_who_holds_each(with_interpreters):
    with Workload(with_interpreters, "gils.py", 600, 1000000) as workload:
        workload.go()
        gils = workload.truth()
        seen = set()

        def is_seen():
            done = run("dump", "--json", "-p", workload.pid)
            assert done.returncode == 0, done.stderr
            process, = json.loads(done.stdout)["processes"]
            seen.update(check_dump(gils, process["threads"]))
            return set(range(len(gils))) <= seen
        wait_until(is_seen, 60, "who waits for each GIL, and for whom, is told")
