# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files that other profilers wrote of real programs: our report is their own one."""
import collections
import gzip
import json
import os
import re
import resource

import pytest

import foreign_tools
import harness
import pythons
from profilejson import Profile

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.quick]

FOLDER = os.path.join(harness.HERE, "foreign")


def ours(path):
    """{kind: {function: what is its own}}, in ns, bytes, or what is counted."""
    done = harness.run("export", "-f", "json", "--no-fold-imports", path)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    report = collections.defaultdict(collections.Counter)
    for kind in data["kinds"]:
        for function in data["functions"]:
            report[kind["name"]][function["name"]] += function[kind["name"]][0]
        # what nobody knows the function of
        rest = kind["total"] - sum(report[kind["name"]].values())
        report[kind["name"]][""] += rest
    if "off-cpu" in report:
        report["wall"] = report["cpu"] + report["off-cpu"]
    return report


def check(path, theirs):
    """Their kinds; perf and Austin also say where they could not tell, or that it was the collector."""
    report = ours(path)
    for kind, own in theirs.items():
        got = collections.Counter(report[kind])
        marks = sum(got.pop(name, 0) for name in ("", "<unknown>", "<invalid>"))
        want = collections.Counter(own)
        unknown = want.pop("", 0) + want.pop("INVALID", 0)  # of `:INVALID:`, in austin-python
        assert got == want, (path, kind, {name: (got[name], want[name]) for name in
                                          set(got) | set(want) if got[name] != want[name]})
        assert marks == unknown, (path, kind)


def kept():
    with open(os.path.join(FOLDER, "reports.json"), encoding="utf-8") as file:
        return json.load(file)


@pytest.mark.parametrize("name", sorted(kept()))
def test_kept_files(name):
    """tests/integration/foreign, by foreign_tools.py; packed, but for what is packed anyway."""
    path = os.path.join(FOLDER, name)
    check(path if name.endswith(".gz") else path + ".gz", kept()[name])


@pytest.mark.full
def test_files_written_here(request, some_python, tmp_path):
    """Anew, by every tool that runs here; then the same packed, and as recordings."""
    walked = max((p for p in request.config.all_pythons if p.via != "chroot"),
                 key=lambda p: p.version)
    for python in request.config.all_pythons:
        if python.minor == 12 and python.via == "direct":
            some_python = python  # Austin 3.7 knows 3.13 at most
    reports, reasons = foreign_tools.write_all(str(tmp_path), some_python, walked)
    for name, report in reports.items():
        path = str(tmp_path / name)
        check(path, report)
        recording = path + ".pyebpf"
        assert harness.run("import", path, "-o", recording).returncode == 0
        check(recording, report)
        for by in "gzip", "zstd":
            try:
                packed = foreign_tools.pack(path, by)
            except pythons.Unavailable:
                continue
            if not name.endswith(".gz"):  # one layer is looked through
                check(packed, report)
    if reasons:  # the rest was right
        pytest.skip("; ".join(reasons))


# Ends by the CPU time that it had, however busy the machine is.
PROGRAM = """
import threading, time

def leaf(count):
    return sum(number * number for number in range(count))

def work(seconds):
    while time.thread_time() < seconds:
        leaf(20000)
        time.sleep(0.0005)

thread = threading.Thread(target=work, args=(0.05,))
thread.start()
work(0.05)
thread.join()
"""


def recorded(python, folder, *options):
    recording = str(folder / "own.pyebpf")
    done = harness.run("record", "-q", "-F", "997", *options, "-o", recording, "--",
                       *python.command, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    return recording


@pytest.mark.parametrize("options", [[], ["--mode", "wall,memory"]], ids=["cpu", "wall"])
def test_what_we_export_comes_back(some_python, tmp_path, options):
    """Totals, names, lines, threads of speedscope's and pprof's files are the recording's."""
    recording = recorded(some_python, tmp_path, *options)
    kinds = ["wall", "memory"] if options else ["cpu"]
    expected = {kind: summed(recording, kind) for kind in kinds}
    assert expected[kinds[0]][0] > 5 * 10**7
    for suffix, flags in ((".speedscope.json", []), (".pb.gz", ["--threads", "--processes"])):
        path = recording + suffix
        assert harness.run("export", "--no-fold-imports", *flags, "-o", path,
                           recording).returncode == 0
        for kind in kinds:
            assert summed(path, kind) == expected[kind], (suffix, kind)
        done = harness.run("diff", recording, path)  # ticks and times: both are times then
        assert done.returncode == 0, done.stderr
        sizes = [re.sub(r".*?: ([\d,]+ samples?, )?|, Python.*", "", line)
                 for line in done.stdout.splitlines()[:2]]
        assert sizes[0] == sizes[1] and " of " in sizes[0], done.stdout
    assert harness.run("export", "-f", "collapsed", "--threads", recording + ".pb.gz").stdout == \
        harness.run("export", "-f", "collapsed", "--threads", recording).stdout


def summed(path, kind):
    """{(thread, functions with their first lines): value}, in the unit."""
    done = harness.run("export", "-f", "json", "--no-fold-imports", "--kind", kind, path)
    if done.returncode == 3:
        return None  # no sample of it was taken
    profile = Profile(done.stdout)
    functions = collections.Counter()
    for function in profile.data["functions"]:
        functions[function["name"], function["file"]] += function[kind][0]
    threads = {(t["pid"], t["tid"], t["name"]): t[kind] for t in profile.data["threads"]}
    return profile.total, +functions, threads


def test_what_claims_more_than_it_has(tmp_path):
    """1 kB that says it is 2^60 samples ends with a place, at once, in little memory."""
    number = b"\x80" * 8 + b"\x10"  # 2^60
    claims = {
        "pprof": b"\x0a\x04\x08\x01\x10\x02" + b"\x12" + number + b"x" * 1000,
        "mojo": b"MOJ\x03\x01mode\0cpu\0" + (b"\x02\x04\x00" b"5\0\x09\xbf" + b"\xff" * 7 + b"\x7f") * 60,
        "austin": b"# mode: wall\nP1;T0:1;a.py:f:1 %d\n" % 2**60,
        "perf": b"a 1/1 1.0: %d cycles:\n\n" % 2**70,
        "speedscope": b'{"profiles":[{"type":"sampled","unit":"none","weights":[1.2e18' +
                      b",1.2e18" * 99 + b'],"samples":[[0]' + b",[0]" * 99 +
                      b']}],"shared":{"frames":[{"name":"f"}]}}',
    }
    limit = 512 << 20
    for name, claim in claims.items():
        path = tmp_path / name
        path.write_bytes(claim)
        done = harness.run("report", "--from", name, path, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (limit, limit)))
        assert done.returncode == 1 and "at byte " in done.stderr, (name, done.stderr)
        assert len(done.stderr.splitlines()) <= 2, done.stderr


def test_units_are_not_compared(tmp_path):
    """Unless --force is given. A diff says which file is of what."""
    plain = gzip.decompress(open(os.path.join(FOLDER, "austin.txt.gz"), "rb").read())
    wall, memory = tmp_path / "wall.txt", tmp_path / "memory.txt"
    wall.write_bytes(plain)
    memory.write_bytes(plain.replace(b"# mode: wall", b"# mode: memory"))
    done = harness.run("diff", wall, memory)
    assert done.returncode == 1 and "measures time, %s measures bytes" % memory in done.stderr, done.stderr
    assert harness.run("diff", "--force", wall, memory).returncode == 0
    assert harness.run("diff", wall, os.path.join(FOLDER, "austin.txt.gz")).returncode == 0


def test_from_is_for_files_that_do_not_tell(tmp_path):
    """Without its header an Austin text of old looks like any; recordings stay recordings."""
    path = tmp_path / "old.txt"
    path.write_text("P4;T5;a.py:f:2 7\n")
    for words, function in (["--from", "collapsed"], "a.py:f:2"), (["--from", "austin"], "f"):
        recording = str(tmp_path / ("%s.pyebpf" % words[1]))
        assert harness.run("import", *words, path, "-o", recording).returncode == 0
        for file in path, recording:
            done = harness.run("report", "--no-summary", *words, file)
            assert done.stdout.splitlines()[-1].split()[3] == function, done.stdout
    done = harness.run("report", "--from", "pprof", path)
    assert done.returncode == 1 and "at byte 2: no field" in done.stderr
