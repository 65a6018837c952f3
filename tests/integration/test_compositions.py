# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compositions of what a recording is of, drawn by the seed: seconds and counts of each function are those that the
program says of itself, and what is missing is lost by name (tests/truth)."""
import json
import os

import compositions
import pytest
from harness import SEED
from judge import Judge
from test_places import cgroup_v2  # noqa: F401

pytestmark = pytest.mark.usefixtures("pyebpf")
COUNTS = {"test": 20, "all": 2000}  # else PYEBPF_COMPOSITIONS, as make compositions says


def pytest_generate_tests(metafunc):
    found = [p for p in metafunc.config.all_pythons if p.via != "loader"]
    count = int(os.environ.get("PYEBPF_COMPOSITIONS") or COUNTS.get(metafunc.config.getoption("--tier"), 0))
    drawn = {"%d-%s" % numbered: numbered[1] for numbered in enumerate(compositions.draw(count, SEED, found))}
    kept = {"kept-" + str(composition): composition for composition in compositions.kept(SEED, found) if count}
    metafunc.parametrize("composition", [*kept.values(), *drawn.values()], ids=[*kept, *drawn])


def test_composition(composition, tmp_path, is_full, cgroup_v2, record_property):  # noqa: F811
    output = tmp_path / "x.pyebpf"
    outcome = compositions.Scene(composition, output, cgroup_v2, 0.3 if is_full else 0.12).run()
    assert outcome.said, outcome.text

    def is_target(pid):
        return composition.target != "no-children" or pid in outcome.pids

    judge = Judge(compositions.MODES[composition.mode], compositions.HZ, outcome.said, is_target, output,
                  outcome.text)
    errors = judge.errors()
    record_property("composition", json.dumps({**composition.facts(), **judge.facts(), "errors": errors[:1]}))
    assert not errors, "\n".join([str(len(errors)), *errors[:12], outcome.text])
