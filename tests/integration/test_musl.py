# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPython with musl, Alpine's C library."""
import build_musl
import pytest
import pythons
import test_dump
import test_labels
import test_time
import truth as judge
from harness import Workload
from test_versions import HZ, record_whole

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.full]


@pytest.fixture
def musl():
    try:
        build_musl.provide()
    except (pythons.Unavailable, OSError) as e:
        pytest.skip("NOT TESTED: no CPython with musl: %s" % e)
    return build_musl.find()


def test_lines(musl, tmp_path):
    with Workload(musl, "lines.py", 3) as workload:
        truth, samples, _ = record_whole(workload, tmp_path, HZ)
    sites = judge.SiteTruth(truth)
    verdict = sites.judge(samples, HZ)
    assert not verdict.wrong, verdict.text()
    assert sum(verdict.exact.values()) > 0.9 * HZ * sum(sites.site_cpu.values()), verdict.text()
    assert not set(sites.site_cpu) - set(verdict.exact), verdict.text()


def test_threads_and_what_they_wait_for(musl, tmp_path):
    test_time.test_stretches(musl, tmp_path)


def test_labels_have_their_shares(musl, tmp_path):
    test_labels.test_labels_have_their_shares(musl, tmp_path, True)


def test_dump_of_known_waits(musl):
    test_dump.check_states(musl)
