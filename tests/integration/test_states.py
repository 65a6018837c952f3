# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who handles an exception, collects garbage, runs C, holds the GIL: shares against the CPU time that
a program spent so by its own clock."""
import collections
import json

import chunks
import pytest
from harness import Workload, record_to, run
from spinning import Spinning
from truth import share_error

pytestmark = pytest.mark.usefixtures("pyebpf")

HZ = 1999
HANDLING = {"handler", "below_handler", "exceptional_finally", "generator_in_handler",
            "generator_below_handler"}
IN_C = {"sort", "checksum", "sort_by_key"}
NOT_OF_THE_GIL = 0.03  # of the time of who releases it: around the calls

# function: counts of its samples; callbacks: below C that Python called
Phase = collections.namedtuple("Phase", "all handling collecting native callbacks flagged")


def samples_of(recording):
    done = run("export", "-f", "jsonl", recording)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def by_phase(samples, names):
    found = {name: Phase(*[0] * len(Phase._fields)) for name in names}
    for sample in samples:
        frames = [frame[0] for frame in sample["stack"]]
        name = next((frame for frame in frames if frame in found), None)
        if name:
            facts = (True, sample["labels"].get("handles-exception") == "yes", frames[-1] == "<GC>",
                     frames[-1] == "<native>", frames[-2:] == ["<native>", "key"],
                     "gil" in sample["flags"])
            found[name] = Phase(*map(sum, zip(found[name], facts)))
    return found


def record(python, folder, *arguments, kind="phases", seconds=0.6):
    """({function: CPU seconds}, {function: Phase}, recording, summary)."""
    output = folder / "states.pyebpf"
    with Workload(python, "states.py", seconds, kind) as workload:
        truth, text = record_to(output, workload, HZ, *arguments)
    return truth, by_phase(samples_of(output), truth), output, text


def check_share(truth, phases, marked, field):
    """Each function's share of all samples that are marked so is its share of the CPU time, and of
    the others none is."""
    total, cpu = sum(phase.all for phase in phases.values()), sum(truth.values())
    for name, phase in phases.items():
        count = getattr(phase, field)
        expected = truth[name] / cpu if name in marked else 0
        assert share_error(count, total, expected) <= 0, (field, name, expected, phase, total)


@pytest.mark.few_pythons
@pytest.mark.quick
def test_states_have_their_shares(python, tmp_path, is_full):
    truth, phases, _, text = record(python, tmp_path, "--native", seconds=5 if is_full else 0.6)
    has_native = python.minor >= 11
    has_c_calls = has_native and not (python.free_threaded and python.minor == 13)
    check_share(truth, phases, HANDLING if python.minor >= 7 else (), "handling")
    check_share(truth, phases, ("collect",) if python.minor >= 7 else (), "collecting")
    if has_c_calls:
        check_native(truth, phases)
    else:
        check_share(truth, phases, (), "native")
    assert (phases["sort_by_key"].callbacks > 0) == has_native
    assert ("--native needs CPython 3.11" in text) == (not has_native), text


def test_trampolines_are_not_taken_for_c(python, tmp_path):
    """-X perf: an evaluator of its own is between all frames."""
    if python.minor < 12:
        return
    output = tmp_path / "perf.pyebpf"
    with Workload(python, "states.py", 0.4, "phases", command=[*python.command, "-X", "perf"]) as workload:
        record_to(output, workload, HZ, "--native")
    stacks = [[frame[0] for frame in sample["stack"]] for sample in samples_of(output)]
    assert len(stacks) > HZ / 10
    assert [stack for stack in stacks if "<native>" in stack[:-1]] == []


def check_native(truth, phases):
    callbacks = phases["sort_by_key"].callbacks
    counted = dict(phases, sort_by_key=phases["sort_by_key"]._replace(
        native=phases["sort_by_key"].native + callbacks))
    check_share(truth, counted, IN_C, "native")
    assert callbacks < phases["sort_by_key"].all


@pytest.mark.full
def test_states_have_their_shares_free_threaded(free_threaded, tmp_path, is_full):
    test_states_have_their_shares(free_threaded, tmp_path, is_full)


@pytest.mark.full
def test_mode_gil_keeps_attached_threads_free_threaded(free_threaded, tmp_path, is_full):
    text = check_mode_gil(free_threaded, tmp_path, is_full)
    assert "--mode gil keeps the samples of attached threads" in text


def test_markers_are_left_out(some_python, tmp_path):
    _, phases, _, _ = record(some_python, tmp_path, "--no-gc", seconds=0.15)
    assert not sum(phase.collecting + phase.native + phase.callbacks for phase in phases.values())
    assert phases["collect"].all


def check_account(recording):
    counters = chunks.read(recording).counters
    samples = sum(1 for _ in samples_of(recording))
    assert counters["not_asked"] > 0 and counters["recorded"] + counters["task_work_recorded"] == samples
    assert counters["task_work"] == sum(counters["task_work_" + end] for end in (
        "recorded", "not_asked", "ring_full", "failed", "pending"))
    return counters


@pytest.mark.few_pythons(4)
@pytest.mark.spread("python", "who")
@pytest.mark.parametrize("who", ["both", "child"])
def test_handling_after_fork(python, who, tmp_path, staged):
    """None's page is not yet in the child's memory: what cannot be read is no exception."""
    output = tmp_path / "x.pyebpf"
    done = run("record", "-F", 499, "-o", output, "--", *python.command, staged(python, "forked_handler.py"), who)
    assert done.returncode == 0, done.stderr
    phases = by_phase(samples_of(output), ["handles", "computes"])
    edge = 2 * (1 + (who == "both"))  # samples: where one of them begins or ends
    assert min(phase.all for phase in phases.values()) > 30, phases
    if python.minor > 6:  # which has no chain of handlers
        assert phases["handles"].handling >= phases["handles"].all - edge, phases
    assert phases["computes"].handling == 0, phases


def test_mode_exception_says_what_it_needs(python, tmp_path):
    """The process has no samples, and the recording does not know it."""
    with Spinning(*python.command, "-c", "print('READY 0', flush=True)\nwhile True: pass") as target:
        done = run("record", "--mode", "exception", "-p", target.pid, "-F", 999, "-d", "500ms", "-o", tmp_path / "x.pyebpf")
    assert done.returncode == 3 and "excluded by --mode" in done.stderr, done.stderr
    words = "CPython %s: --mode exception needs CPython 3.7: nothing will be recorded" % ".".join(map(str, python.version))
    assert (words in done.stderr) == (python.minor < 7), done.stderr


def test_mode_exception_keeps_who_handles_one(some_python, tmp_path):
    truth, phases, recording, _ = record(some_python, tmp_path, "--mode", "exception")
    seen, cpu = sum(phase.all for phase in phases.values()), sum(truth[name] for name in HANDLING)
    for name, phase in phases.items():
        expected = truth[name] / cpu if name in HANDLING else 0
        assert share_error(phase.all, seen, expected) <= 0, (name, expected, phase, seen)
    counters = check_account(recording)
    ticks = seen + counters["not_asked"] + counters["task_work_not_asked"]
    assert share_error(seen, ticks, cpu / sum(truth.values())) <= 0.02  # its start and its end


def check_mode_gil(python, tmp_path, is_full):
    """record's summary."""
    truth, phases, recording, text = record(python, tmp_path, "--mode", "gil", kind="threads",
                                            seconds=3 if is_full else 0.5)
    assert all(phase.flagged == phase.all for phase in phases.values()), phases
    for name in ("holder", "keeper"):
        expected = truth[name] * HZ
        assert abs(phases[name].all - expected) <= 4 * expected ** 0.5 + 0.03 * expected, (truth, phases)
    assert phases["releaser"].all <= NOT_OF_THE_GIL * truth["releaser"] * HZ + 4, (truth, phases)
    check_account(recording)
    return text


@pytest.mark.few_pythons
def test_mode_gil_keeps_who_holds_it(python, tmp_path, is_full):
    check_mode_gil(python, tmp_path, is_full)


def test_modes_that_make_no_sense():
    for mode, words in (("gill", "'gill' is not one of:"), ("cpu,gil", "do not combine them"), ("", "is not one of")):
        done = run("record", "--mode", mode, "-p", 1)
        assert done.returncode == 2 and words in done.stderr, done.stderr
