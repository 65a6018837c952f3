# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Recorded stacks, lines and shares against what the workloads say of themselves."""
import pytest
import truth as judge
from harness import Recorder, Workload, export, frames, leaf_counts, record_whole

pytestmark = pytest.mark.usefixtures("pyebpf")


def check_lines(python, seconds, tmp_path, *arguments):
    hz = 1000
    with Workload(python, "lines.py", seconds) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, hz, *arguments)
    sites = judge.SiteTruth(truth)
    verdict = sites.judge(samples, hz)
    assert not verdict.wrong, verdict.text()
    assert sum(verdict.exact.values()) > 0.9 * hz * sum(sites.site_cpu.values()), verdict.text()
    # Of 20 ticks that are due not one comes in two runs of a thousand million.
    unseen = [name for name, spent in sites.site_cpu.items()
              if not verdict.exact[name] and spent * hz > 20]
    assert not unseen, "never seen: %s\n  %s" % (unseen, verdict.text())
    errors = sites.share_errors(verdict)
    assert not errors, errors


@pytest.mark.quick
def test_lines_and_stacks(python, tmp_path, is_full):
    check_lines(python, 30 if is_full else 1.5, tmp_path)


@pytest.mark.few_pythons
@pytest.mark.parametrize("pattern", ["random", "lockstep"])
def test_shares(python, pattern, tmp_path, is_full):
    with Workload(python, "shares.py", 20 if is_full else 1, pattern) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, 997)
    counts = {"heavy": 0, "light": 0}
    for stack, count in samples.items():
        if stack and stack[-1][0] in counts:
            counts[stack[-1][0]] += count
    total = sum(counts.values())
    expected = truth["heavy"] / (truth["heavy"] + truth["light"])
    assert total > 0.9 * 997 * truth["cpu"], (counts, truth)
    assert judge.share_error(counts["heavy"], total, expected) <= 0, (counts, truth)


def check_torn(python, period_us, hz, wanted, tmp_path, *arguments):
    samples = {}
    seconds = wanted / hz * 1.1
    for _ in range(4):  # a rate that is not reached takes longer, but not for ever
        output = tmp_path / "torn.pyebpf"
        with Workload(python, "chains.py", 600, period_us) as workload:
            workload.ahead()
            workload.go()
            with Recorder(output, "-p", workload.pid, "-F", hz,
                          "-d", "%.2fs" % seconds, *arguments) as recorder:
                assert recorder.wait() == 0, recorder.text()
        for stack, count in frames(export(output)).items():
            samples[stack] = samples.get(stack, 0) + count
        total = sum(samples.values())
        if total >= wanted:
            break
        seconds = min((wanted - total) / max(total / seconds, 1.0) * 1.2 + 0.2, 300)
    errors = [(judge.torn(stack, 50), count, stack) for stack, count in samples.items()
              if judge.torn(stack, 50)]
    assert not errors, "%d of %d: %s" % (sum(e[1] for e in errors), total, [
        "%d x %s: %s" % (count, why, judge.show(stack)) for why, count, stack in errors[:5]])
    assert total >= wanted, "only %d samples" % total
    deep = sum(count for stack, count in samples.items() if len(stack) == 52)
    assert deep > 0.2 * total, "only %d of %d stacks are whole" % (deep, total)


@pytest.mark.quick
@pytest.mark.few_pythons(4)
def test_torn_stacks(python, tmp_path, is_full):
    check_torn(python, 20, 10000, 100000 if is_full else 2000, tmp_path)


@pytest.mark.few_pythons
@pytest.mark.parametrize("period_us,hz", [(200, 10000), (10000, 10000), (20, 1000), (200, 1000),
                                          (10000, 1000)])
@pytest.mark.spread("python", "period_us,hz")
def test_torn_stacks_at_other_paces(python, period_us, hz, tmp_path, is_full):
    check_torn(python, period_us, hz, 100000 if is_full else hz // 4, tmp_path)


@pytest.mark.few_pythons
@pytest.mark.parametrize("kind", ["hashlib", "zlib", "sleep"])
@pytest.mark.spread("python", "kind")
def test_gil_free_code_shows_its_caller(python, kind, tmp_path, is_full):
    hz = 997
    with Workload(python, "gilfree.py", 10 if is_full else 0.8, kind) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, hz)
    counts = leaf_counts(samples)
    total = sum(counts.values())
    right = sum(counts.get(tuple(leaf), 0) for leaf in truth["leaf"])
    assert right >= 0.98 * total, (right, total, counts)
    # Not 1: a virtual machine that is away for several ticks delivers one of them.
    assert right >= 0.80 * hz * sum(truth["threads"].values()), (right, truth)
    if kind == "sleep":
        # Much of the sleeper's time is in the scheduler, where no tick falls: it has fewer samples
        # than its time says. Neither may have samples of the other.
        for name, line in truth["leaf"]:
            expected = hz * truth["threads"][name]
            assert counts.get((name, line), 0) <= judge.plausible(expected * 1.05), (counts, truth)


@pytest.mark.few_pythons
@pytest.mark.parametrize("kind", ["lines", "names", "same"])
@pytest.mark.spread("python", "kind")
def test_code_made_again_at_the_same_address(python, kind, tmp_path, is_full):
    made = 20000 if is_full else 450
    with Workload(python, "churn.py", made / 600, kind, made) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, 4000)
    errors = [(judge.churn_error(stack, kind), count, stack) for stack, count in samples.items()
              if judge.churn_error(stack, kind)]
    inside = sum(count for stack, count in samples.items()
                 if stack and stack[-1][:1] != ("<module>",) and stack[-1][1] == "churn.py")
    assert not errors, "%d of %d (%d functions, %d just where another was): %s" % (
        sum(e[1] for e in errors), inside, truth["made"], truth["reused"],
        ["%d x %s: %s" % (count, why, judge.show(stack)) for why, count, stack in errors[:5]])
    assert inside > made, "only %d samples in %d functions" % (inside, made)


def test_every_way_to_run_it(any_python, tmp_path):
    """Each linkage, chroot and loader: stacks, lines and counts of a few sites."""
    sites = ("plain", "nested_classes", "generator_delegated", "name_astral", "finally_after_raise",
             "asyncio_loop", "sorted_key", "thread", "call_over_lines")
    with Workload(any_python, "lines.py", 0.4, *sites) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, 1000)
    known = judge.SiteTruth(truth)
    verdict = known.judge(samples, 1000)
    assert not verdict.wrong, verdict.text()
    assert set(verdict.exact) == set(sites), verdict.text()
    assert sum(verdict.exact.values()) > 0.8 * 1000 * sum(known.site_cpu.values()), verdict.text()
