# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What we export, as programs of others read it: their totals, names and lines are the recording's."""
import collections
import json
import re
import subprocess

import engines
import packages
import pytest
import pythons
from harness import Workload, record_to, run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.full]

READ_PSTATS = """
import gprof2dot, json, pstats, snakeviz.stats, sys
path = sys.argv[1]
graph = gprof2dot.PstatsParser(path).parse()
stats = snakeviz.stats.json_stats(pstats.Stats(path))
print(json.dumps({
    "gprof2dot": [[f.filename, *f.name.split(":", 2)[1:], f[gprof2dot.TIME], f[gprof2dot.TOTAL_TIME]]
                  for f in graph.functions.values()],
    "snakeviz": [[name, node["stats"][2], node["stats"][3],
                  sum(child[3] for child in node["children"].values())]
                 for name, node in stats.items()],
    "rows": [[row[-1], row[1], row[3]]
             for row in snakeviz.stats.table_rows(pstats.Stats(path))]}))
"""


@pytest.fixture(scope="module")
def recording(some_python, tmp_path_factory):
    path = tmp_path_factory.mktemp("viewers") / "x.pyebpf"
    with Workload(some_python, "family.py", 0.3, "threads", 4) as workload:
        record_to(path, workload, 997)
    return path


def exported(recording, format, *options):
    path = recording.with_suffix("." + format)
    done = run("export", "-f", format, "-o", path, *options, recording)
    assert done.returncode == 0, done.stderr
    return path


def functions(recording):
    """{(file, line of its def, name): (own, with callees) in s}; of what is no Python file "~"."""
    told = json.loads(run("export", "-f", "json", "--no-fold-imports", recording).stdout)
    frames = json.loads(exported(recording, "speedscope").read_text())["shared"]["frames"]
    lines = {(f["name"], f.get("file")): f.get("line", 0) for f in frames}
    return {(f["file"] or "~", lines[f["name"], f["file"]], f["name"]): tuple(v / 1e9 for v in f["cpu"])
            for f in told["functions"]}


def test_pstats_in_snakeviz_and_gprof2dot(recording, some_python):
    wanted = functions(recording)
    try:
        folder = packages.folder_of(some_python, "pstats")
    except pythons.Unavailable as error:
        pytest.skip(str(error))
    told = json.loads(subprocess.run(
        [*some_python.command, "-c", READ_PSTATS, exported(recording, "pstats")], check=True,
        stdout=subprocess.PIPE, env=packages.environment(folder)).stdout)
    found = {(file, int(line), name): (own, total)
             for file, line, name, own, total in told["gprof2dot"]}
    assert set(found) == set(wanted)
    named = {"%s:%d(%s)" % key: value for key, value in wanted.items()}
    assert {name for name, _, _ in told["rows"]} == set(named)
    for key, values in found.items():
        assert values == pytest.approx(wanted[key]), key
    for name, own, total in told["rows"]:  # four digits
        assert (float(own), float(total)) == pytest.approx(named[name], rel=1e-3), name
    for name, own, total, below in told["snakeviz"]:
        assert (own, total) == pytest.approx(named[name]), name
        assert own + below == pytest.approx(total), name  # as its icicles are drawn


def test_pstats_of_each_python(recording, request):
    path, wanted = exported(recording, "pstats"), functions(recording)
    of_minor = {python.minor: python for python in request.config.all_pythons if python.via != "chroot"}
    assert len(of_minor) > 1
    for python in of_minor.values():
        told = subprocess.run([*python.command, "-c", "import json, pstats, sys\n"
                               "stats = pstats.Stats(sys.argv[1])\n"
                               "print(json.dumps([[*key, *value[2:4]] for key, value in stats.stats.items()]))",
                               path], check=True, stdout=subprocess.PIPE).stdout
        found = {(file, line, name): (own, total)
                 for file, line, name, own, total in json.loads(told)}
        assert set(found) == set(wanted), python.name
        for key, values in found.items():
            assert values == pytest.approx(wanted[key]), (python.name, key)


def boxes(text):
    """{(frame, samples): how many} of the flame graph that collapsed text is."""
    tree = collections.Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = tuple(stack.split(";"))
        for depth in range(len(frames)):
            tree[frames[:depth + 1]] += int(count)
    return collections.Counter((stack[-1], count) for stack, count in tree.items())


def inferno(name):
    try:
        return engines.inferno(name)
    except pythons.Unavailable as error:
        return pytest.skip(str(error))


def own_by_name(rows):
    sums = collections.Counter()
    for name, value in rows:
        sums[name] += value
    return {name: value for name, value in sums.items() if value}


def test_script_in_inferno(recording):
    """It keeps to the event of the first sample, which the flags of a sample must not change."""
    with exported(recording, "script").open() as script:
        folded = subprocess.run([inferno("collapse-perf")], stdin=script, check=True,
                                stdout=subprocess.PIPE, encoding="utf-8").stdout
    found = own_by_name((stack.rpartition(";")[2], int(period)) for stack, _, period in
                        (line.rpartition(" ") for line in folded.splitlines()))
    wanted = own_by_name((name, round(own * 1e9)) for (_, _, name), (own, _) in
                         functions(recording).items())
    assert found == pytest.approx(wanted, rel=1e-6)


def test_collapsed_in_inferno(recording):
    flamegraph = inferno("flamegraph")
    collapsed = exported(recording, "collapsed")
    drawn = subprocess.run([flamegraph, "--minwidth", "0", collapsed], check=True,
                           stdout=subprocess.PIPE, encoding="utf-8").stdout
    found = collections.Counter()
    for name, count in re.findall(r"<title>(.*?) \(([\d,]+) samples, ", drawn):
        name = name.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        found[name, int(count.replace(",", ""))] += 1
    text = collapsed.read_text()
    total = sum(int(line.rpartition(" ")[2]) for line in text.splitlines())
    assert found == boxes(text) + collections.Counter([("all", total)])
