# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server with a thread a request, each of which lives for less than a period: its shares are those
that it measured itself, and those that py-spy sees beside us."""
import contextlib
import json
import os
import subprocess
import urllib.request

import harness
import packages
import pytest
import pythons
from harness import Recorder, export, frames

pytestmark = pytest.mark.usefixtures("pyebpf")
POINTS = 0.02


@contextlib.contextmanager
def serving(python):
    """Its pid and address."""
    try:
        folder = packages.folder_of(python, "flask")
    except pythons.Unavailable as reason:
        pytest.skip("flask: %s" % reason)
    with subprocess.Popen([*python.command, os.path.join(harness.WORKLOADS, "flask_server.py")],
                          env=packages.environment(folder), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            ready, port = process.stdout.readline().split()
            assert ready == "READY"
            yield process.pid, "http://127.0.0.1:%s" % port
        finally:
            process.kill()


def ask(url):
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def share_of_heavy(samples):
    """(heavy's share of heavy and light, how many samples they have)."""
    count = {name: sum(n for stack, n in samples if name in stack) for name in ("heavy", "light")}
    total = sum(count.values())
    return count["heavy"] / total, total


def names_of_raw(path):
    """Of py-spy's collapsed text."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            stack, _, count = line.rpartition(" ")
            yield {frame.split(" ")[0] for frame in stack.split(";")}, int(count)


def check(python, tmp_path, hz, requests):
    try:
        py_spy = os.path.join(packages.folder_of(python, "py-spy"), "bin", "py-spy")
    except pythons.Unavailable as reason:
        pytest.skip("py-spy: %s" % reason)
    raw, ours = tmp_path / "raw.txt", tmp_path / "x.pyebpf"
    with serving(python) as (pid, url):
        ask(url)
        before = ask(url + "/truth")
        with Recorder(ours, "-p", pid, "-F", hz) as recorder, subprocess.Popen(
                [py_spy, "record", "-f", "raw", "-r", str(min(hz, 250)), "-o", raw, "-p", str(pid),
                 "-d", "3600"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as spy:
            recorder.wait_attached()
            for _ in range(requests):
                ask(url)
            after = ask(url + "/truth")
            spy.send_signal(2)
            said = spy.communicate(timeout=harness.PATIENCE)[0]
            recorder.finish()
    spent = {name: after[name] - before[name] for name in ("heavy", "light")}
    truth = spent["heavy"] / sum(spent.values())
    share, total = share_of_heavy(
        [({name for name, _, _ in stack}, n) for stack, n in frames(export(ours)).items()])
    theirs, their_total = share_of_heavy(list(names_of_raw(raw)))
    text = "truth %.4f of %.2f s; pyebpf %.4f of %d, py-spy %.4f of %d\n%s" % (
        truth, sum(spent.values()), share, total, theirs, their_total, said)
    print(text)
    assert after["requests"] - before["requests"] == requests
    sigma = (truth * (1 - truth)) ** 0.5
    assert abs(total / hz / sum(spent.values()) - 1) < 0.05 + 4 / total ** 0.5, text
    assert abs(share - truth) < POINTS + 4 * sigma / total ** 0.5, text
    assert abs(share - theirs) < POINTS + 4 * sigma * (1 / total + 1 / their_total) ** 0.5, text


@pytest.mark.parametrize("hz", [pytest.param(99, marks=pytest.mark.full), 999])
def test_flask(some_python, hz, is_full, tmp_path):
    check(some_python, tmp_path, hz, 3000 if is_full else 100)
