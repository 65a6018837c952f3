# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`pyebpf cat`: what is made of files together or of a part is what is made of the file that cat wrote."""
import json
import shutil
import subprocess

import chunks
import profilejson
import pytest
from harness import PYEBPF, export, make_recording, run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.quick]

# One whose times lie on no grid, kinds of several units, GIL, waits; pids of one are those of another.
MADE = {"golden": "golden_recording", "kinds": "kinds_recording", "waits": "waits_recording"}

SELECTIONS = [(name, selection.split()) for name, selections in (
    ("waits", ["", "--time-range 300ms..700ms", "--time-range ..0.1s", "--kind off-cpu", "--kind memory", "--thread late",
               "--ignore wait*", "--no-idle", "--merge module", "--process nosuch"]),
    ("golden", ["--time-range 30ms..90ms", "--hide main", "--process 412", "--fold-imports"]),
    ("kinds", ["--kind off-cpu", "--label route=/pay", "--focus main", "--time-range 0.2s.."]),
) for selection in selections]
# Whose waits are of whom: with the others gone nobody is left who held the GIL.
TELLS_GIL = ["--time-range", "--fold-imports"]


@pytest.fixture(scope="module")
def made(request, tmp_path_factory):
    request.getfixturevalue("pyebpf")
    folder = tmp_path_factory.mktemp("cat")
    files = {name: make_recording(maker, folder / (name + ".pyebpf")) for name, maker in MADE.items()}
    text = files["text"] = folder / "x.collapsed"
    text.write_text("# pyebpf-collapsed interval_us=1000\nmain (a.py:1);wait (a.py:2) 7\n")
    return files


def cat(*arguments):
    done = run("cat", *arguments)
    assert done.returncode == 0, done
    return done


def written(form, *arguments):
    done = run("export", "-q", "-f", form, *arguments)
    assert done.returncode in (0, 3), done
    return done.stdout


def summary(path):
    """As `report` tells it, all of it."""
    done = run("report", *path)
    assert done.returncode == 0, done
    return done.stdout


@pytest.mark.parametrize("names", [["golden"], ["kinds"], ["waits"], ["kinds", "kinds", "golden"], ["text", "golden"],
                                   ["kinds", "waits"]], ids="+".join)
def test_together_is_what_the_files_are(names, made, tmp_path):
    files, together = [made[name] for name in names], tmp_path / "c.pyebpf"
    cat(*files, "-o", together)
    kind = ["--kind", "wall"] if names == ["kinds", "waits"] else []
    assert written("json", *kind, *files) == written("json", *kind, together)
    assert written("jsonl", *kind, *files) == written("jsonl", *kind, together)
    assert summary([*kind, *files]) == summary([*kind, together])
    apart = [chunks.read(path) for path in files if path.suffix == ".pyebpf"]
    again = tmp_path / "d.pyebpf"
    cat(together, "-o", again)
    assert written("jsonl", together) == written("jsonl", again)
    assert chunks.read(again).samples == sum(one.samples for one in apart) + names.count("text")
    assert [p.name for p in tmp_path.iterdir() if p.suffix != ".pyebpf"] == []


def compared(text, *left_out):
    """With functions that are equal in time in one order; not which part it is of what."""
    data = json.loads(text)
    for recording in data["recordings"]:
        del recording["part"]
    for key in left_out:
        del data[key]
    data["functions"].sort(key=json.dumps)
    return data


def without_versions(data):
    """Processes that were left out are not in the part, nor are their versions."""
    for recording in data["recordings"]:
        del recording["python"]
    return data


@pytest.mark.parametrize("name,selection", SELECTIONS, ids=lambda part: part if isinstance(part, str) else " ".join(part))
def test_selected_before_is_selected_after(name, selection, made, tmp_path):
    recording, part, copy = made[name], tmp_path / "p.pyebpf", tmp_path / "c.pyebpf"
    cat(recording, "-o", copy)
    want = written("json", *selection, recording)
    assert written("json", *selection, copy) == want
    assert written("jsonl", *selection, copy) == written("jsonl", *selection, recording)
    done = run("cat", *selection, recording, "-o", part)
    if not want:
        assert done.returncode == 3 and "samples matches" in done.stderr and not part.exists(), done
        return
    assert done.returncode == 0, done
    kind = selection if "--kind" in selection else []
    left_out = [] if not selection or selection[0] in TELLS_GIL else ["gil"]
    got, want = (compared(text, *left_out) for text in (written("json", *kind, part), want))
    if "--process" in selection:
        got, want = without_versions(got), without_versions(want)
    assert got == want
    assert written("jsonl", part) == written("jsonl", *selection, recording)
    told = [line for line in summary([*kind, part]).splitlines() if line.startswith("part ")]
    assert len(told) == (1 if selection and selection != ["--fold-imports"] else 0), told


def test_a_part_has_nothing_of_the_rest(made, tmp_path):
    part = tmp_path / "p.pyebpf"
    cat("--focus", "wait", made["kinds"], "-o", part)
    assert {kind["name"] for kind in json.loads(written("json", part))["kinds"]} == {"off-cpu"}
    done = run("report", part)
    assert done.returncode == 3 and "select one with --kind: off-cpu" in done.stderr, done
    assert run("report", "--kind", "off-cpu", part).returncode == 0
    cat("--process", "500", made["golden"], "-o", part)
    threads = json.loads(written("json", part))["threads"]
    assert threads and {thread["pid"] for thread in threads} == {500}
    assert json.loads(written("json", made["golden"]))["lost"] == json.loads(written("json", part))["lost"]


def test_parts_of_the_time_are_the_whole(made, tmp_path):
    parts = []
    for number, cut in enumerate(("..0.4s", "0.4s..0.41s", "0.41s..")):
        parts.append(tmp_path / ("%d.pyebpf" % number))
        cat("--time-range", cut, made["waits"], "-o", parts[-1])
    together = tmp_path / "c.pyebpf"
    cat(*parts, "-o", together)
    whole, pieces = (json.loads(written("json", path)) for path in (made["waits"], together))
    assert [kind["total"] for kind in pieces["kinds"]] == [kind["total"] for kind in whole["kinds"]]
    assert sorted(pieces["functions"], key=json.dumps) == sorted(whole["functions"], key=json.dumps)
    assert len(pieces["recordings"]) == 3


def test_recordings_stay_runs(made, tmp_path):
    together, output = tmp_path / "c.pyebpf", tmp_path / "d.json"
    cat(made["golden"], made["golden"], "-o", together)
    assert run("diff", together, made["golden"], "-o", output).returncode == 0
    assert json.loads(output.read_text())["base"]["runs"] == 2


def test_one_killed_is_taken_and_one_damaged_refused(made, tmp_path):
    whole = made["golden"].read_bytes()
    cut, damaged, output = (tmp_path / name for name in ("cut.pyebpf", "damaged.pyebpf", "c.pyebpf"))
    cut.write_bytes(whole[:-20])
    damaged.write_bytes(whole[:-60] + bytes([whole[-60] ^ 1]) + whole[-59:])
    done = cat(cut, "-o", output)
    assert "truncated at byte" in done.stderr, done
    assert export(output) == export(cut)
    assert written("json", cut) == written("json", output)
    before = output.read_bytes()
    done = run("cat", made["golden"], damaged, "-o", output)
    assert done.returncode == 1 and "damaged.pyebpf" in done.stderr and "byte" in done.stderr, done
    assert done.stderr.splitlines()[-1].startswith("try: "), done
    assert output.read_bytes() == before and sorted(p.name for p in tmp_path.iterdir()) == [
        "c.pyebpf", "cut.pyebpf", "damaged.pyebpf"]


def test_in_place_and_through_a_pipe(made, tmp_path):
    output = tmp_path / "x.pyebpf"
    shutil.copy(made["golden"], output)
    want = written("json", output)
    cat(output, "-o", output)
    assert written("json", output) == want
    piped = subprocess.run([PYEBPF, "cat", output, "-o", "-"], stdout=subprocess.PIPE, check=True)
    output.write_bytes(piped.stdout)
    assert written("json", output) == want


def test_sums_have_no_times(made, tmp_path):
    done = run("cat", "--time-range", "1s..", made["text"], "-o", tmp_path / "x.pyebpf")
    assert done.returncode == 1 and "no times" in done.stderr and not list(tmp_path.iterdir()), done
    assert profilejson.export(PYEBPF, made["text"]).data["recordings"][0]["part"] is None
