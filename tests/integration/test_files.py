# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `record` does to the files that are there: nothing is overwritten, and nothing is left over."""
import collections
import json
import os
import pathlib
import re
import sys

import profilejson
import pytest
from harness import PYEBPF, Recorder, Workload, export, frames, leaf_counts, run
from htmlpage import Page
from made_recording import recording as made

pytestmark = pytest.mark.usefixtures("pyebpf")
SPIN = "import time\nend = time.perf_counter() + 0.4\nwhile time.perf_counter() < end: pass\n"


@pytest.fixture
def spin(tmp_path):
    """A command that spins for 0.4 s, and a recording of it."""
    folder = tmp_path / "program"
    folder.mkdir()
    program = folder / "spin.py"
    program.write_text(SPIN)
    return [sys.executable, "-S", "-E", str(program)]


def record(*arguments, **options):
    return run("record", "-F", 997, *arguments, **options)


def total(path):
    return sum(leaf_counts(frames(export(path))).values())


def test_second_recorder_is_refused_before_its_command_starts(some_python, spin, tmp_path):
    output, mark = tmp_path / "x.pyebpf", tmp_path / "started"
    with Workload(some_python, "family.py", 600, "idle") as workload:
        workload.go()
        with Recorder(output, "-p", workload.pid, "-F", 997) as first:
            first.wait_attached()
            done = record("-o", output, "--", "touch", mark)
            assert done.returncode == 1, done
            assert re.search(r"x\.pyebpf: in use by another pyebpf", done.stderr), done.stderr
            assert not mark.exists()
            first.finish()
    assert total(output) > 0
    assert record("-o", output, "--", *spin).returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["program", "x.pyebpf"]


def test_old_recording_stays_where_there_are_no_samples(some_python, spin, tmp_path):
    output = tmp_path / "x.pyebpf"
    assert record("-o", output, "--", *spin).returncode == 0
    before = output.read_bytes()
    with Workload(some_python, "family.py", 600, "idle") as idle:
        done = record("-o", output, "-p", idle.pid, "-d", "300ms")
    assert done.returncode == 3 and "it still holds the previous recording" in done.stderr, done
    assert output.read_bytes() == before
    done = record("-o", output, "--", "true")
    assert done.returncode == 0 and "it still holds the previous recording" in done.stderr, done
    assert output.read_bytes() == before
    done = record("-o", output, "-p", 4194300)
    assert done.returncode == 3 and output.read_bytes() == before, done


@pytest.mark.parametrize("name", ["x.html", "x.txt", "x.pb.gz"])
@pytest.mark.parametrize("how", ["no samples", "no process", "no command", "no Python"])
def test_other_formats_leave_nothing_behind(some_python, name, how, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    target = {"no process": ("-p", 4194300), "no command": ("--", "/nonexistent"),
              "no Python": ("--", "true")}.get(how)
    with Workload(some_python, "family.py", 600, "idle") as idle:
        done = record("-o", folder / name, *(target or ("-p", idle.pid, "-d", "300ms")))
    assert done.returncode == {"no command": 1, "no Python": 0}.get(how, 3), done
    assert os.listdir(folder) == [], done


@pytest.mark.parametrize("name", ["prof.png", "prof.yaml", "important.py", "x.pyebpf.bak", "a/b.tar.gz"])
def test_unknown_suffix_is_a_usage_error(name, spin, tmp_path):
    done = record("-o", name, "--", *spin, cwd=tmp_path)
    assert done.returncode == 2 and os.path.basename(name) in done.stderr, done
    for known in (".pyebpf", ".html", ".collapsed", ".pb.gz", ".otlp", ".json"):
        assert known in done.stderr, done.stderr
    assert os.listdir(tmp_path) == ["program"]


def test_what_is_no_recording_is_not_overwritten(spin, tmp_path):
    (tmp_path / "Makefile").write_text("all:\n")
    done = record("-o", "Makefile", "--", *spin, cwd=tmp_path)
    assert done.returncode == 1 and "Makefile already exists and is not a recording: not overwritten" \
        in done.stderr, done
    assert (tmp_path / "Makefile").read_text() == "all:\n"


def test_several_outputs(spin, tmp_path):
    outputs = ["a.pyebpf", "a.html", "a.collapsed"]
    done = record(*[word for name in outputs for word in ("-o", name)], "--", *spin, cwd=tmp_path)
    assert done.returncode == 0, done
    assert sorted(os.listdir(tmp_path)) == sorted(outputs + ["program"])
    assert frames(export(tmp_path / "a.pyebpf")) == frames(export(tmp_path / "a.collapsed"))
    done = record("-o", "b.html", "-o", "b.pb.gz", "--", *spin, cwd=tmp_path)
    assert done.returncode == 0, done
    assert {"b.html", "b.pb.gz"} == {n for n in os.listdir(tmp_path) if n.startswith("b")}


@pytest.mark.parametrize("outputs", [("a.pyebpf", "b.pyebpf"), ("a.html", "a.html"), ("a.html", "")])
def test_outputs_that_exclude_each_other(outputs, spin, tmp_path):
    done = record(*[word for name in outputs for word in ("-o", name)], "--", *spin, cwd=tmp_path)
    assert done.returncode == 2 and os.listdir(tmp_path) == ["program"], done


def test_files_belong_to_who_called_sudo(spin, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    env = dict(os.environ, SUDO_UID="1234", SUDO_GID="2345")
    for names in (("x.pyebpf",), ("y.pyebpf", "y.html")):
        done = record(*[word for name in names for word in ("-o", folder / name)], "--", *spin,
                      env=env)
        assert done.returncode == 0, done
        for name in names:
            found = os.stat(folder / name)
            assert (found.st_uid, found.st_gid) == (1234, 2345), name
    # Replaced by a new one: that is theirs as well.
    os.chown(folder / "x.pyebpf", 0, 0)
    assert record("-o", folder / "x.pyebpf", "--", *spin, env=env).returncode == 0
    assert os.stat(folder / "x.pyebpf").st_uid == 1234


def test_symbolic_links_are_not_followed(spin, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    for name in ("x.pyebpf", "x.html"):
        os.symlink(victim, tmp_path / name)
    done = record("-o", tmp_path / "x.pyebpf", "--", *spin)
    assert done.returncode == 1 and "is a symbolic link: name the file it points to" in done.stderr, done
    done = record("-o", tmp_path / "x.html", "--", *spin)
    assert done.returncode == 1 and "is a symbolic link: name the file it points to" in done.stderr, done
    assert victim.read_text() == "precious\n" and os.stat(victim).st_uid == os.getuid()


def test_files_of_development_versions_are_refused_by_name():
    """Format 1.3: no released pyebpf has written it."""
    old = pathlib.Path(__file__).resolve().parent.parent / "golden" / "format-1.3.pyebpf"
    done = run("report", old)
    assert done.returncode == 1 and "development version of pyebpf (format 1.3)" in done.stderr, done
    assert not done.stdout


STRINGS = [b"f", b"/app.py", b"one", b"two"]
# Rows of two threads, or of one whose name changed; field 4 is when it began.
SAME_TID = {2: [9, 9], 3: [3, 4]}


@pytest.mark.parametrize("starts, count", [(None, 1), ([5, 5], 1), ([5, 6], 2), ([0, 6], 1)])
def test_a_thread_is_its_tid_and_its_start(starts, count, tmp_path):
    """Without field 4 the start is unknown, and may be any: a TID is one thread. So it stays in a copy and in two
    files together."""
    threads = {**SAME_TID, **({} if starts is None else {4: starts})}
    paths = [tmp_path / "x.pyebpf", tmp_path / "copy.pyebpf", tmp_path / "both.pyebpf"]
    paths[0].write_bytes(made(STRINGS, [(1, 2, 1), (1, 2, 2)], threads))
    for target, sources in (paths[1], paths[:1]), (paths[2], paths[:2]):
        done = run("cat", *sources, "-o", target)
        assert done.returncode == 0, done.stderr
    for path in paths:
        done = run("report", path)
        assert done.returncode == 0, done.stderr
        assert re.search(r"1 process, (\d+) thread", done.stdout)[1] == str(count), (path, done.stdout)


def test_several_recordings_in_one_file_stay_apart(spin, tmp_path):
    """Samples, facts and counters are each run's own, in the file and in what is made of it."""
    runs = [tmp_path / name for name in ("a.pyebpf", "b.pyebpf", "c.pyebpf")]
    for number, path in enumerate(runs, 1):
        done = record("-o", tmp_path / "raw.pyebpf", "--", *spin)
        assert done.returncode == 0, done.stderr
        done = run("import", tmp_path / "raw.pyebpf", "--work", number, "-o", path)
        assert done.returncode == 0, done.stderr
    together = tmp_path / "all.pyebpf"
    done = run("import", *runs, "-o", together)
    assert done.returncode == 0, done.stderr
    assert export(together) == sum(map(export, runs), collections.Counter())
    alone = [profilejson.export(PYEBPF, path).data for path in runs]
    merged = profilejson.export(PYEBPF, together)
    assert merged.data["recordings"] == [data["recordings"][0] for data in alone]
    assert [facts["work"] for facts in merged.data["recordings"]] == [1, 2, 3]
    assert merged.data["lost"] == dict(sum((collections.Counter(data["lost"]) for data in alone),
                                           collections.Counter()))
    page, apart = tmp_path / "all.html", tmp_path / "apart.html"
    for output, files in (page, [together]), (apart, runs):
        assert run("report", "-o", output, *files).returncode == 0
    wanted = Page(apart).facts["runs"]
    for number, facts in enumerate(wanted, 1):
        facts["file"] = str(together) + (" (%d)" % number if number > 1 else "")
    found = Page(page).facts["runs"]
    for facts in wanted + found:  # how the time is divided: of one file by its longest recording
        del facts["blocks"], facts["block_ns"]
    assert found == wanted, [{k: (a.get(k), b.get(k)) for k in {*a, *b} if a.get(k) != b.get(k)}
                             for a, b in zip(found, wanted)]
    assert run("diff", together, runs[0], "-o", tmp_path / "d.json").returncode in (0, 1)
    data = json.loads((tmp_path / "d.json").read_text())
    assert data["base"]["runs"] == 3 and data["base"]["work"] == 6


def test_intervals_within_a_file_are_compared_as_those_of_files(tmp_path):
    """Samples of another length are told of whether their recordings are in one file or in two."""
    texts = []
    for name, interval in ("a.collapsed", 1000), ("b.collapsed", 2000), ("c.collapsed", 1000):
        texts.append(tmp_path / name)
        texts[-1].write_text("# pyebpf-collapsed interval_us=%d\nmain (a.py:1) 3\n" % interval)
    together = tmp_path / "all.pyebpf"
    assert run("import", *texts, "-o", together).returncode == 0
    said = "%s: samples are of 2 ms each, but are counted like those of the first file (of 1 ms each)"
    for files, name in ([together], "%s (2)" % together), (texts, texts[1]), \
            ([texts[0], together], "%s (2)" % together):
        warnings = [line for line in run("report", *files).stderr.splitlines() if "counted" in line]
        assert len(warnings) == 1 and warnings[0].endswith(said % name), (files, warnings)
