# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`pyebpf diff` on real recordings of programs whose changes are known."""
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import diffjson
import pytest
from harness import PYEBPF, REPOSITORY, WORKLOADS, ahead, export, frames, one_ahead, run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("diff")]
CHANGE = os.path.join(WORKLOADS, "change")
GATE_SCRIPT = os.path.join(REPOSITORY, "deploy", "ci", "pyebpf-gate.sh")
HZ = 1999


# What else runs on the machine is noise: programs come before it where a CPU is left for the recorder,
# and the recorder, which mostly waits, before both: what it meets too late is lost.
ALONE = ("chrt", "--rr", "1") if os.cpu_count() > 1 else ()


def go_ahead():
    if os.cpu_count() > 1:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))


def record(output, *command, hz=HZ, arguments=(), **options):
    with one_ahead():
        done = run("record", "-F", hz, "-o", output, *arguments, "--", *ALONE, *command,
                   timeout=240, preexec_fn=go_ahead, **options)
    assert done.returncode == 0, done.stderr
    return done


def lost_percent(path):
    told = re.search(r"^lost .*\(([\d.]+)%\)", run("report", path).stdout, re.M)
    return float(told.group(1)) if told else 0


def record_undisturbed(path, *command, **options):
    """As record(), anew where others kept the recorder from the CPU: what lost much is refused."""
    for _ in range(8):
        record(path, *command, **options)
        if lost_percent(path) < 2:
            return
    raise AssertionError("%s: still loses %g %%" % (path, lost_percent(path)))


def compare(folder, *arguments):
    """(CompletedProcess, the checked document) of a comparison."""
    path = os.path.join(str(folder), "diff.json")
    done = run("diff", *arguments, "-o", path, timeout=240)
    assert done.returncode in (0, 5, 6), done.stderr
    return done, diffjson.load(path)


@pytest.fixture(scope="module")
def shop(some_python, tmp_path_factory, request):
    """Recordings of the shop before and after its change: {"before": [path...], ...}."""
    folder = tmp_path_factory.mktemp("shop")
    is_full = request.config.getoption("--tier") == "all"
    found = {"before": [], "after": []}
    for i in range(5 if is_full else 1):
        for version in found:
            path = str(folder / ("%s-%d.pyebpf" % (version, i)))
            record_undisturbed(path, *some_python.command, os.path.join(CHANGE, "shop.py"),
                               version, 250)
            found[version].append(path)
    return found


def sides(recordings):
    base, current = recordings["before"], recordings["after"]
    return [base[0], *current] + [word for path in base[1:] for word in ("--baseline", path)]


RENAME = ("--rename", "old_home.py=new_home.py")


@pytest.mark.parametrize("mode", [(), ("--work", "250,250"), ("--normalize", "share")],
                         ids=["absolute", "work", "share"])
def test_every_change_is_classed_rightly(mode, shop, tmp_path):
    _, found = compare(tmp_path, *sides(shop), *RENAME, *mode)
    assert found["normalize"] == (mode[-1] if mode[:1] == ("--normalize",) else
                                  "work" if mode else "absolute")
    functions = {f["name"]: f for f in found["functions"] if f["file"].startswith(CHANGE)}
    assert functions["render"]["class"].startswith("slower")
    assert functions["parse"]["class"].startswith("faster")
    assert functions["audit"]["class"] == "new" and functions["legacy_tax"]["class"] == "removed"
    assert functions["slugify"]["renamed_from"] == [
        "slugify", os.path.join(CHANGE, "old_home.py")]
    coloured = {f["name"] for f in found["functions"]
                if f["class"] not in diffjson.GREY or f["self_class"] not in diffjson.GREY}
    assert coloured == {"render", "parse", "audit", "legacy_tax"}, found["functions"]
    # in shares the others are what the centre is: what is said of these two does not change
    for name, truth in (("render", 1.3), ("parse", 0.5)):
        f = functions[name]
        assert f["low"] <= truth <= f["high"], f
    wrapped = {p.match for p in found["paths"]
               if found["frames"][p.frame][0].split(".")[-1] == "wrapper" and
               found["frames"][p.frame][1].endswith("shop.py")}
    assert wrapped == {"inserted"}
    price = [p for p in found["paths"] if found["frames"][p.frame][0] == "price"]
    assert len(price) == 1 and price[0].match == "exact" and price[0].class_ in diffjson.GREY


def test_without_the_rename_the_moved_one_is_new_and_removed(shop, tmp_path):
    _, found = compare(tmp_path, *sides(shop))
    moved = {f["class"]: os.path.basename(f["file"]) for f in found["functions"]
             if f["name"] == "slugify"}
    assert moved == {"new": "new_home.py", "removed": "old_home.py"}


def test_sums_are_those_of_export(shop, tmp_path):
    """Every path of current, by our own reader of collapsed text."""
    base, current = shop["before"][0], shop["after"][0]
    _, found = compare(tmp_path, base, current)
    for path, own, whole in ((current, "self", "value"), (base, "baseline", "baseline_total")):
        leaves = {}
        for stack, count in frames(export(path, "--fold-imports")).items():
            key = (stack[-1][0], os.path.basename(stack[-1][1]))
            leaves[key] = leaves.get(key, 0) + count
        got = {}
        for f in found["functions"]:
            key = (f["name"], os.path.basename(f["file"]) or "~")
            got[key] = got.get(key, 0) + f[own] / (1 if own == "self" else found["scale"])
        assert {k: round(v) for k, v in got.items() if round(v)} == leaves


def test_terminal_tells_the_changes(shop):
    done = run("diff", *sides(shop), *RENAME)
    assert done.returncode == 0, done.stderr
    sections = re.split(r"\n\n", done.stdout)
    by_title = {s.split(" ")[0].rstrip(","): s for s in sections[1:]}
    assert re.search(r"^  render .*\+\d+%.*(certain|likely) +shop\.py:\d+$", by_title["slower"],
                     re.M), done.stdout
    assert re.search(r"^  parse .*-[45]\d%.*certain", by_title["faster"], re.M), done.stdout
    assert "audit" in by_title["new"] and "legacy_tax" in by_title["removed"]
    assert done.stdout.splitlines()[-1].startswith("next: pyebpf diff %s" % shop["before"][0])
    assert "\x1b" not in done.stdout


def test_all_outputs_at_once(shop, tmp_path):
    files = [str(tmp_path / name) for name in ("x.json", "x.md", "x.xml")]
    done = run("diff", *sides(shop), *RENAME, *[w for f in files for w in ("-o", f)])
    assert done.returncode == 0 and "render" in done.stdout, done
    markdown = open(files[1]).read()
    headline = r"### <code>render</code> [\d.]+ ms -> [\d.]+ ms, \+\d+%"
    assert markdown.startswith("<!-- pyebpf-diff -->\n")
    assert re.search(headline, markdown), markdown
    assert "<code>parse</code>" in markdown
    check_junit(files[2])


def test_format_to_standard_output(shop):
    done = run("diff", *sides(shop), "-f", "json")
    assert done.returncode == 0 and done.stdout.startswith('{"schema":"pyebpf-diff/1"')


def check_junit(path):
    """What the usual schema of JUnit reports demands; returns the test cases by name."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    suite, = root
    assert suite.tag == "testsuite"
    assert {"name", "package", "id", "hostname", "timestamp", "tests", "failures", "errors",
            "skipped", "time"} == set(suite.attrib)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
    assert [e.tag for e in suite if e.tag != "testcase"] == ["properties", "system-out",
                                                           "system-err"]
    assert suite[0].tag == "properties" and suite[-1].tag == "system-err"
    cases = suite.findall("testcase")
    assert len(cases) == int(suite.get("tests"))
    for kind, count in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert len(suite.findall("testcase/" + kind)) == int(suite.get(count))
    for case in cases:
        assert {"name", "classname", "time"} == set(case.attrib) and float(case.get("time")) >= 0
        assert len(case) <= 1 and all(e.get("type") or e.tag == "skipped" for e in case)
    return {case.get("name"): case for case in cases}


def test_the_environment_is_recorded_and_compared(some_python, tmp_path):
    """Two hash seeds and two allocators, on one machine: told first, and beside the verdict."""
    found = []
    for seed, allocator in (("0", "malloc"), ("1", "pymalloc")):
        found.append(str(tmp_path / (seed + ".pyebpf")))
        record_undisturbed(found[-1], *some_python.command, os.path.join(CHANGE, "shop.py"),
                           "before", 20,
                           env=dict(os.environ, PYTHONHASHSEED=seed, PYTHONMALLOC=allocator))
    done, document = compare(tmp_path, *found, "--gate")
    assert done.stdout.startswith("differs   hash seed: 0 -> 1; allocator: malloc -> pymalloc\n")
    assert document["notes"][:2] == ["different environments: hash seed: 0 -> 1",
                                     "different environments: allocator: malloc -> pymalloc"]
    base, current = (document[side]["environment"] for side in ("base", "current"))
    assert base["cpu_model"] == current["cpu_model"] and base["kernel"] == os.uname().release
    assert (base["hash_seed"], current["allocator"]) == ("0", "pymalloc")
    assert base["python"] == document["base"]["python"] and base["cpus"] == str(os.cpu_count())
    assert document["gate"]["is_elsewhere"] and ", different environments: " in done.stdout
    strict = run("diff", *found, "--gate", "--strict-environment", "-q")
    assert strict.returncode == 6
    _, same = compare(tmp_path, found[0], found[0])
    assert not any("environments" in note for note in same["notes"])


# --- record --diff --------------------------------------------------------------------------------

def test_record_and_compare_in_one_go(some_python, shop, tmp_path):
    output = tmp_path / "x.pyebpf"
    done = run("record", "--diff", shop["before"][0], "--diff-output", tmp_path / "x.json", "-o",
               output, "--", *some_python.command, os.path.join(CHANGE, "shop.py"), "after", 100,
               timeout=240)
    assert done.returncode == 0, done.stderr
    found = diffjson.load(str(tmp_path / "x.json"))
    assert found["current"]["files"] == [str(output)]
    assert found["current"]["interval_us"] == found["base"]["interval_us"]  # the rate of BASE
    assert re.search(r"^  parse .*-\d\d%", done.stderr, re.M), done.stderr
    assert sum(export(output).values()) == found["current"]["samples"]


def test_a_refused_comparison_keeps_the_recording(some_python, shop, tmp_path):
    output = tmp_path / "x.pyebpf"
    command = [*some_python.command, os.path.join(CHANGE, "shop.py"), "after", 10]
    done = run("record", "-F", 499, "--diff", shop["before"][0], "-o", output, "--", *command,
               timeout=240)
    assert done.returncode == 0, done.stderr  # the command's own
    assert "not comparable: " in done.stderr and "the recording was saved as" in done.stderr, done.stderr
    assert export(output)


# --- --group-by -----------------------------------------------------------------------------------


def record_tests(folder):
    """Two recordings of a whole run of pytest."""
    found = []
    for version in ("before", "after"):
        found.append(str(folder / (version + ".pyebpf")))
        record_undisturbed(found[-1], sys.executable, "-B", "-m", "pytest", "-q", "-p",
                           "no:cacheprovider", os.path.join(CHANGE, "test_shop.py"),
                           env=dict(os.environ, SHOP=version))
    return found


def check_groups(runs, tmp_path):
    done, found = compare(tmp_path, *runs, "--group-by", "test_*")
    groups = {g["name"].split(".")[-1]: g for g in found["groups"]}
    assert set(groups) == {"test_parse", "test_render", "test_total", "test_shipping",
                           "test_audit", "test_tax"}
    assert groups["test_parse"]["class"].startswith("slower")
    assert groups["test_parse"]["low"] <= 1.6 <= groups["test_parse"]["high"]
    assert groups["test_render"]["class"].startswith("faster")
    assert (groups["test_audit"]["class"], groups["test_tax"]["class"]) == ("new", "removed")
    assert {groups[n]["class"] for n in ("test_total", "test_shipping")} <= diffjson.GREY
    # nothing of pytest itself, and what is left out is said
    assert not any("pytest" in file for _, file, _ in found["frames"])
    assert any("selected of" in note for note in found["notes"])
    assert re.search(r"^  test_parse .*\+\d\d%.*(certain|likely)", done.stdout, re.M), done.stdout


def test_one_comparison_for_each_test(tmp_path):
    """What it says is right 95 times of 100, and it says six things: not wrong three times in a row."""
    for last in (False, False, True):
        try:
            check_groups(record_tests(tmp_path), tmp_path)
            break
        except AssertionError:
            if last:
                raise


def test_markers_have_the_file_that_cpython_gives_them(tmp_path):
    text = tmp_path / "x.collapsed"
    text.write_text("main (app.py:1);<GC> 3\nmain (app.py:1);work (app.py:2) 5\n")
    done = run("diff", "--compat", "3.15", text, text, "-o", tmp_path / "x.json")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "x.json").read_text())
    assert {name: file for name, file, _ in found["frames"]}.get("<GC>") == "~", found["frames"]


# --- the gate -------------------------------------------------------------------------------------

def gate_environment(folder, hz=HZ, **more):
    return dict(os.environ, PYEBPF=PYEBPF, PYEBPF_OUT=str(folder / "out"), PYEBPF_FREQ=str(hz),
                **more)


def gate(*words, **environment):
    return subprocess.run([GATE_SCRIPT, *map(str, words)], env=environment, timeout=600,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, preexec_fn=go_ahead)


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """A checkout before and one after a change that makes step_3 twice as slow."""
    folder = tmp_path_factory.mktemp("trees")
    for name in ("base", "head"):
        shutil.copytree(CHANGE, str(folder / name))
    path = folder / "head" / "benchmark.py"
    path.write_text(path.read_text().replace("else 1.0)", "else 2.0)"))
    return folder


def test_the_script_of_ci_fails_a_slow_change(trees, some_python, tmp_path):
    summary = tmp_path / "summary.md"
    # 3 runs a side of 600 ticks a function: fewer, and the two halves of base are blind
    environment = gate_environment(tmp_path, hz=9997, PYEBPF_RUNS="6",
                                   PYEBPF_OPTIONS="--limit 5", GITHUB_STEP_SUMMARY=str(summary))
    command = " ".join([*ALONE, *some_python.command]) + " benchmark.py $$ 0.01 60"
    with one_ahead():
        done = gate("run", trees / "base", trees / "head", command, **environment)
    assert done.returncode == 5, done.stderr + done.stdout
    report = (tmp_path / "out" / "report.md").read_text()
    assert re.search(r"### Regression: <code>step&#95;3</code> .* -> .*, \+\d+%", report), report
    assert summary.read_text() == report
    found = diffjson.load(str(tmp_path / "out" / "report.json"))
    assert found["dispersion"] == "runs" and found["gate"]["result"] == "regression"
    # what called it costs an eighth more: surely more than the threshold, where it is quiet
    cause, *callers = [name for name, _ in found["gate"]["regressions"]]
    assert cause == "step_3" and set(callers) <= {"main", "<module>"}
    cases = check_junit(str(tmp_path / "out" / "report.xml"))
    assert cases["step_3"].find("failure") is not None
    # the same folders again, and one side against itself: nothing to fail
    again = gate("check", tmp_path / "out" / "base", tmp_path / "out" / "head", **environment)
    assert again.returncode == 5
    for name in ("4", "5", "6"):
        os.makedirs(str(tmp_path / "half"), exist_ok=True)
        os.rename(str(tmp_path / "out" / "base" / ("run-%s.pyebpf" % name)),
                  str(tmp_path / "half" / ("run-%d.pyebpf" % (int(name) - 3))))
    null = gate("check", tmp_path / "out" / "base", tmp_path / "half", **environment)
    assert null.returncode == 0, null.stderr + null.stdout
    # what else runs on the machine may be too much noise to tell
    found = diffjson.load(str(tmp_path / "out" / "report.json"))
    assert found["gate"]["result"] == "pass" or "inconclusive" in null.stderr, null.stdout
    assert not found["gate"]["regressions"]


def test_the_script_of_ci_without_baseline_passes(tmp_path):
    done = gate("check", tmp_path / "none", tmp_path, **gate_environment(tmp_path))
    assert (done.returncode, done.stderr) == (
        0, "pyebpf-gate: no baseline in %s yet: nothing to compare with\n" % (tmp_path / "none"))


@pytest.mark.parametrize("command,told", [
    ("echo broken; exit 7", ["broken", "ended with 7: nothing to compare"]),
    ("exec sleep 0.1", ["has no samples of Python code: nothing to compare"])],
    ids=["failed", "no-python"])
def test_the_script_of_ci_tells_what_failed(command, told, tmp_path):
    done = gate("record", tmp_path / "x", command, **gate_environment(tmp_path))
    assert done.returncode == 1
    assert all(words in done.stderr for words in told), done.stderr


FAKE_GH = """#!/bin/sh
printf '%s\\n' "$*" >>"$GH_CALLS"
case "$*" in *--paginate*) echo "$GH_FOUND" ;; esac
"""


@pytest.mark.parametrize("found,method", [("", "POST"), ("4711", "PATCH")])
def test_the_comment_is_updated_in_place(found, method, shop, tmp_path):
    report = tmp_path / "report.md"
    run("diff", *sides(shop), "-o", report)
    (tmp_path / "gh").write_text(FAKE_GH)
    os.chmod(str(tmp_path / "gh"), 0o755)
    done = gate("comment", report, 12, GH_CALLS=str(tmp_path / "calls"), GH_FOUND=found,
                GITHUB_REPOSITORY="me/mine", PATH="%s:%s" % (tmp_path, os.environ["PATH"]))
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert 'startswith("<!-- pyebpf-diff -->")' in calls[0]
    assert calls[1] == "api --method %s repos/me/mine/issues/%s -F body=@%s" % (
        method, "comments/4711" if found else "12/comments", report)


@pytest.mark.parametrize("floor, share, is_judged", [
    ("0.1%", 0.001, True), ("0.5%", 0.005, True), ("95%", 0.95, False)])
def test_floor_says_what_is_judged(floor, share, is_judged, shop, tmp_path):
    """render became 1.3 times as slow: where that costs less than the floor nobody asks."""
    _, found = compare(tmp_path, *sides(shop), *RENAME, "--gate", "--floor", floor)
    judged = {name for verdict in ("regressions", "undetermined", "moved")
              for name, _ in found["gate"][verdict]}
    assert found["gate"]["floor"] == share
    assert ("render" in judged) == is_judged, found["gate"]
    assert is_judged or not judged, found["gate"]


@pytest.mark.parametrize("floor", ["x", "-1%"])
def test_floor_is_a_share(floor, shop):
    done = run("diff", *sides(shop), "--gate", "--floor", floor)
    assert done.returncode == 2 and "--floor" in done.stderr, done


def benchmark_runs(python, folder, name, count, factor):
    """Recordings of the noisy benchmark, each with a seed of its own."""
    found = []
    for i in range(count):
        found.append(str(folder / ("%s-%d.pyebpf" % (name, i))))
        record(found[-1], *python.command, os.path.join(CHANGE, "benchmark.py"),
               "%d%03d" % (ord(name[0]), i), "0.03", 100, factor, hz=9997)
    return found


def gate_status(base, current):
    done = run("diff", "--gate", "-q", base[0], *current,
               *[w for path in base[1:] for w in ("--baseline", path)], timeout=240)
    assert done.returncode in (0, 5, 6), done.stderr
    return done.returncode


@pytest.mark.full
def test_gate_false_alarms_and_power(some_python, tmp_path):
    """Runs with 3 % noise from one to the next; a change of twice the threshold. 60 recordings."""
    null = benchmark_runs(some_python, tmp_path, "null", 40, 1.0)
    slow = benchmark_runs(some_python, tmp_path, "slow", 20, 1.2)
    chance = random.Random(1)
    table = {}
    for runs in (5, 10):
        alarms = hits = 0
        for _ in range(40):
            drawn = chance.sample(null, 2 * runs)
            alarms += gate_status(drawn[:runs], drawn[runs:]) == 5
            hits += gate_status(chance.sample(null, runs), chance.sample(slow, runs)) == 5
        table[runs] = alarms, hits
        print("%d runs a side: %d of 40 null comparisons fail, %d of 40 with +20%%" % (
            runs, alarms, hits))
    assert table[5][0] <= 2 and table[10][0] <= 2, table
    assert table[10][1] >= 36, table


# --- A/A ------------------------------------------------------------------------------------------

class Server(object):
    """The server that does the same for ever, at work; undisturbed where that can be had."""

    def __init__(self, python, kind):
        self.process = subprocess.Popen(
            python.command + [os.path.join(CHANGE, "server.py"), kind, "600"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self):
        assert self.process.stdout.readline() == b"READY\n"
        self.lock = ahead(self.process.pid)
        self.process.stdin.write(b"GO\n")
        self.process.stdin.flush()
        return self.process

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()
        self.lock.close()


# One pair in a hundred may have a false finding (Benjamini-Hochberg at 1 %): few pairs show nothing,
# tests/unit/diff/test_simulation.c counts many at once.
@pytest.mark.full
@pytest.mark.parametrize("is_anew", [False, True], ids=["one-process", "started-anew"])
@pytest.mark.parametrize("kind", ["steady", "bursty"])
def test_two_recordings_of_the_same(kind, is_anew, some_python, tmp_path):
    """The same again and again: of nearly all pairs next to nothing is coloured."""
    count, seconds = 10, "5s"
    found = [str(tmp_path / ("%d.pyebpf" % i)) for i in range(count)]
    done = []
    for paths in [[path] for path in found] if is_anew else [found]:
        with Server(some_python, kind) as server:
            done += [run("record", "-F", HZ, "-p", server.pid, "-d", seconds, "-o", path)
                     for path in paths]
    assert all(d.returncode == 0 for d in done), done
    coloured, alarms = [], 0
    for a, b in itertools.combinations(found, 2):
        # a busy machine may lose more of one than of the other
        done, document = compare(tmp_path, a, b, "--gate", "--force")
        assert document["normalize"] == "second"
        coloured.append(document["coloured"])
        alarms += done.returncode == 5
    above = sum(share > 0.01 for share in coloured)
    print("%s: %d pairs, %.2f %% coloured on average, %d of them more than 1 %% (%.2f %% at most), "
          "%d alarms" % (kind, len(coloured), 100 * sum(coloured) / len(coloured), above,
                         100 * max(coloured), alarms))
    assert alarms <= 3
    assert above <= 1 and sum(coloured) / len(coloured) <= 0.01


# --- CPython's rules ------------------------------------------------------------------------------

@pytest.mark.quick
@pytest.mark.parametrize("version", ["3.15", "3.15.0a8"])
def test_by_the_rules_of_cpython(version, shop, tmp_path):
    """Its columns and its elided view; user/diff is compared with the module itself elsewhere."""
    base, current = shop["before"][0], shop["after"][0]
    done, found = compare(tmp_path, base, current, "--compat", version)
    assert found["compat"] == version and "as CPython %s does" % version in done.stdout
    rows = [dict(zip(found["path_fields"], row)) for row in found["paths"]]
    render = [r for r in rows if found["frames"][r["frame"]][0] == "render" and r["self"] > 100]
    assert render and all(r["diff"] > 0 for r in render)
    elided = [dict(zip(found["elided_fields"], row)) for row in found["elided"]]
    gone = {found["frames"][r["frame"]][0] for r in elided if r["elided"]}
    assert "legacy_tax" in gone and "render" not in gone
    refused = run("diff", base, current, "--compat", version, "--gate")
    assert refused.returncode == 2 and "--compat cannot be combined with" in refused.stderr
