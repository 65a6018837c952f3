# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HTML pages: their data against what the same recording gives as collapsed stacks, the source
lines they show, and how commands make them."""
import os
import stat
import subprocess
import sys

import pytest
from harness import PYEBPF, export, frames, run
from htmlpage import Page

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.quick]

PROGRAM = """import time

def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        total = sum(range(200))

def main():
    spin(0.4)
    slow = sorted(range(1000), key=lambda n: -n)

main()
"""


def record_program(folder):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    done = run("record", "-F", 997, "-o", folder / "x.pyebpf", "--", sys.executable, program)
    assert done.returncode == 0, done.stderr
    return folder / "x.pyebpf", program


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recording, and the program it is of, as it was."""
    return record_program(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    """The same, for tests that change the program."""
    return record_program(tmp_path_factory.mktemp("spoilt"))


def page_of(recording, tmp_path, *arguments):
    done = run("report", "-o", tmp_path / "page.html", *arguments, recording)
    assert done.returncode == 0, done.stderr
    return Page(tmp_path / "page.html")


def collapsed(recording):
    """As Page.stacks(), from the other exporter."""
    return frames(export(recording, "--fold-imports"))


def test_page_has_the_stacks_of_the_recording(recorded, tmp_path):
    recording, program = recorded
    page = page_of(recording, tmp_path)
    assert page.stacks() == collapsed(recording)
    assert page.facts["runs"][0]["ticks"] == sum(page.stacks().values())
    assert page.facts["runs"][0]["host"] == os.uname().nodename
    assert str(program) in page.facts["title"]
    assert "program.py" not in page.html


def test_several_recordings_are_runs_of_one_page(recorded, tmp_path):
    recording, _ = recorded
    page = page_of(recording, tmp_path, recording)
    assert len(page.facts["runs"]) == 2
    once = collapsed(recording)
    assert page.stacks() == {stack: 2 * count for stack, count in once.items()}


def test_a_page_says_what_is_wrong_with_its_recording(recorded, tmp_path):
    recording, _ = recorded
    notes = page_of(recording, tmp_path).facts["notes"]
    assert not [note for note in notes if "truncated" in note], notes
    cut = tmp_path / "cut.pyebpf"
    cut.write_bytes(recording.read_bytes()[:-12])
    notes = page_of(cut, tmp_path).facts["notes"]
    assert [note for note in notes if "truncated" in note and "cut.pyebpf" in note], notes


def test_source_is_embedded_where_it_is_what_was_recorded(recorded, tmp_path):
    recording, program = recorded
    page = page_of(recording, tmp_path)
    assert page.status[str(program)] == "embedded"
    lines = PROGRAM.splitlines()
    shown = page.source[str(program)]
    assert shown and all(lines[number - 1] == text for number, text in shown.items())
    used = {line for stack in page.stacks() for _, file, line in stack if file == str(program)}
    assert used and used <= set(shown)



@pytest.mark.parametrize("change, status", [
    (lambda program: program.write_text("# another file\n" * 40), "changed"),
    (lambda program: program.unlink(), "missing"),
    (lambda program: (program.unlink(), program.symlink_to("/etc/shadow")), "changed"),
    (lambda program: (program.unlink(), os.mkfifo(program)), "missing"),
], ids=["rewritten", "removed", "a link", "a pipe"])
def test_source_is_not_embedded(change, status, spoilt, tmp_path):
    recording, program = spoilt
    if os.path.lexists(program):
        program.unlink()
    program.write_text(PROGRAM)
    change(program)
    page = page_of(recording, tmp_path)
    assert page.status[str(program)] == status
    assert str(program) not in page.source


def test_source_of_a_recording_that_says_little_is_not_embedded(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("def f():\n    password = 1\n")
    text = tmp_path / "x.collapsed"
    text.write_text(f"f ({secret}:2) 5\n")
    page = page_of(text, tmp_path)
    assert page.status == {str(secret): "unknown"} and not page.source
    assert "block_ns" not in page.facts["runs"][0]  # text has no times


def test_record_writes_a_page(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run("record", "-F", 997, "-o", tmp_path / "x.html", "--", sys.executable, program)
    assert done.returncode == 0, done.stderr
    assert "next: open " in done.stderr
    stacks = Page(tmp_path / "x.html").stacks()
    assert sum(n for stack, n in stacks.items() if stack[-1][0] == "spin") > 200
    assert sorted(os.listdir(tmp_path)) == ["program.py", "x.html"]


def test_diff_page_has_both_sides(recorded, tmp_path):
    recording, _ = recorded
    done = run("diff", recording, recording, "-o", tmp_path / "d.html")
    assert done.returncode == 0, done.stderr
    page = Page(tmp_path / "d.html")
    assert page.facts["kind"] == "diff"
    assert page.stacks(0) == page.stacks(1) == collapsed(recording)
    assert set(page.classes[0]) <= {0, 1}  # nothing changed


def test_diff_page_tells_of_its_sides(recorded, tmp_path):
    """What a report's page says of its recording, a comparison's says of each side's."""
    recording, program = recorded
    done = run("diff", recording, recording, "-o", tmp_path / "d.html")
    assert done.returncode == 0, done.stderr
    alone = page_of(recording, tmp_path).facts["runs"][0]
    told = ("command", "target", "kernel", "version", "host", "ticks", "duration_ns", "interval_ns")
    assert all(alone[key] for key in told) and str(program) in alone["command"], alone
    runs = Page(tmp_path / "d.html").facts["runs"]
    assert [side["side"] for side in runs] == [0, 1]
    for side in runs:
        assert {key: side.get(key) for key in told} == {key: alone[key] for key in told}


def browser(folder):
    """A stand-in for the desktop's; what it is given goes to a pipe, so that one can wait."""
    pipe = folder / "opened"
    os.mkfifo(pipe)
    tool = folder / "xdg-open"
    tool.write_text(f"#!/bin/sh\necho \"$@\" > {pipe}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    return pipe


def test_open_shows_the_page(recorded, tmp_path):
    recording, _ = recorded
    pipe = browser(tmp_path)
    environment = {k: v for k, v in os.environ.items() if k != "SUDO_UID"}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    done = subprocess.run([PYEBPF, "report", "--open", recording], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert pipe.read_text() == f"{tmp_path}/x.html\n"
    assert Page(tmp_path / "x.html").stacks()


def test_open_without_a_browser_tells_the_address(recorded, tmp_path):
    recording, _ = recorded
    environment = dict(os.environ, PATH="/nowhere")
    environment.pop("SUDO_UID", None)
    done = subprocess.run([PYEBPF, "report", "--open", "-o", "y.html", recording], cwd=tmp_path,
                          env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stderr == ("pyebpf: warning: cannot start a browser (xdg-open): open "
                           f"file://{tmp_path}/y.html yourself\n")


@pytest.mark.parametrize("arguments, message", [
    (["report", "-o", "x.svgz"], "--output x.svgz: report writes .html only; for other formats use "
                                 "pyebpf export"),
    (["report", "--open", "-o", "x.pb.gz"], "--open shows pages: --output cannot be x.pb.gz"),
    (["record", "--open", "-a"], "--open needs an HTML output: add -o FILE.html"),
    (["diff", "a", "b", "--open"], "--open needs an HTML output: add -o FILE.html"),
])
def test_usage(arguments, message, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == f"pyebpf {arguments[0]}: {message}"


def test_a_page_without_samples_says_so(tmp_path):
    text = tmp_path / "x.collapsed"
    text.write_text("# pyebpf-collapsed interval_us=1000\n")
    done = run("report", "-o", tmp_path / "x.html", text)
    assert done.returncode == 3
    assert Page(tmp_path / "x.html").stacks() == {}
