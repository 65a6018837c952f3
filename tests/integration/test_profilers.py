# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How bench/profilers.py judges what the profilers say."""
import os
import sys

import pytest
from harness import REPOSITORY

sys.path.insert(0, os.path.join(REPOSITORY, "tests", "bench"))

import profilers  # noqa: E402
import system_tools  # noqa: E402
from system_tools import Frame  # noqa: E402

OUTER = [Frame("<module>", "<string>", 43), Frame("main", "<string>", 31)]


def chain(letter, count, first=0, shift=0):
    return [Frame("%s%d" % (letter, n), "chain_%s.py" % letter, 2 * n + 2 + shift)
            for n in range(first, first + count)]


@pytest.mark.parametrize("frames,want", [
    pytest.param(OUTER + chain("a", 20), (True, True), id="whole"),
    pytest.param(OUTER, (True, True), id="between two chains"),
    pytest.param(OUTER + chain("a", 3) + chain("a", 1, 3, -1), (True, True), id="one is being entered"),
    pytest.param(OUTER + chain("a", 3, 0, -1), (True, False), id="lines of defs"),
    pytest.param(OUTER + chain("a", 3) + chain("b", 3, 3), (False, True), id="torn"),
    pytest.param(OUTER + chain("a", 3) + chain("a", 3, 4), (False, True), id="one is missing"),
    pytest.param(chain("b", 20), (False, True), id="its beginning is missing"),
    pytest.param([f._replace(line=0) for f in OUTER + chain("a", 20)], (True, False), id="no lines"),
    pytest.param([], (False, False), id="no frame of Python"),
    pytest.param(OUTER[:1], None, id="before or after"),
])
def test_stacks_are_judged(frames, want):
    assert profilers.judge(frames) == want


@pytest.mark.parametrize("text,want", [
    ("a1 (chain_a.py:4)", Frame("a1", "chain_a.py", 4)),
    ("a1 (chain_a.py:~4)", Frame("a1", "chain_a.py", 4)),
    ("<module> (<string>:43)", Frame("<module>", "<string>", 43)),
    ("/x/chain_a.py:a1:4", Frame("a1", "/x/chain_a.py", 4)),
    ("<GC>", Frame("<GC>", "", 0)),
])
def test_frames_are_read(text, want):
    assert system_tools.frame_of(text) == want


def test_otlp_is_read():
    """Those of Python alone, root first, from a time on, by process."""
    def location(function, line, kind):
        return {"lines": [{"functionIndex": function, "line": str(line)}], "attributeIndices": [kind]}

    message = {
        "dictionary": {
            "stringTable": ["", "profile.frame.type", "main", "a0", "x.py"],
            "attributeTable": [{}, {"keyStrindex": 1, "value": {"stringValue": "cpython"}},
                               {"keyStrindex": 1, "value": {"stringValue": "native"}}],
            "functionTable": [{}, {"nameStrindex": 2, "filenameStrindex": 4},
                              {"nameStrindex": 3, "filenameStrindex": 4}],
            "locationTable": [{}, location(1, 7, 1), location(2, 2, 1), {"attributeIndices": [2]}],
            "stackTable": [{}, {"locationIndices": [3, 2, 1]}]},
        "resourceProfiles": [{
            "resource": {"attributes": [{"key": "process.pid", "value": {"intValue": "7"}}]},
            "scopeProfiles": [{"profiles": [{"samples": [
                {"stackIndex": 1, "timestampsUnixNano": ["99", "100", "200"]}]}]}]}]}
    found = system_tools.collections.defaultdict(list)
    system_tools.read_otlp(message, 100, found)
    assert found == {7: [([Frame("main", "x.py", 7), Frame("a0", "x.py", 2)], 2)]}


def test_py_spy_names_children_behind_their_parents():
    text = ('process 7:"python -c a\nb 5"";process 8:"python brief.py";main (b.py:3);f (b.py:1) 12\n')
    assert system_tools.PySpy.process.findall(text) == [("8", "main (b.py:3);f (b.py:1)", "12")]
    assert system_tools.PySpy.process.findall('process 7:"python a.py";main (a.py:1) 3\n') == [
        ("7", "main (a.py:1)", "3")]


def test_rows_of_several_rates_are_said_once():
    rows = ["memory at 19 Hz, MiB", "memory at 99 Hz, MiB", "short-lived processes seen, %"]
    assert profilers.together(rows) == ["memory (19, 99 Hz)", "short-lived processes seen"]
