# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads what `pyebpf diff -o x.json` wrote, and checks all that must hold in it: docs/diff.md."""
import collections
import json
import math

KEYS = ["schema", "compat", "base", "current", "normalize", "centre", "ms_per_sample", "scale",
        "total", "dispersion", "counts", "coloured", "elided_count", "notes", "frames",
        "functions", "path_fields", "paths", "left_out"]
COMPAT_KEYS = ["schema", "compat", "base", "current", "normalize", "centre", "ms_per_sample",
               "scale", "total", "elided_count", "notes", "frames", "path_fields", "paths",
               "elided_fields", "elided"]
OPTIONAL_KEYS = ["group_by", "groups", "gate"]
FIELDS = ["parent", "frame", "self", "value", "baseline", "baseline_total", "diff", "diff_pct",
          "ratio", "low", "high", "q", "class", "self_class", "match"]
COMPAT_FIELDS = ["parent", "frame", "self", "value", "self_time", "baseline", "baseline_total",
                 "diff", "diff_pct"]
GREY = {"unchanged", "undetermined", "rare"}
CLASSES = GREY | {"slower%d" % i for i in range(1, 5)} | {"faster%d" % i for i in range(1, 5)} | \
    {"new", "removed"}
MATCHES = {"exact", "renamed", "inserted", "deleted", None}


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-6)


def percent(self, baseline):
    return 100 * (self - baseline) / baseline if baseline else 100 if self > 0 else 0


def check_sums(paths, own, whole):
    """Children and self are the total, in every path."""
    below = [0.0] * len(paths)
    for path in reversed(paths):
        if path.parent >= 0:
            below[path.parent] += getattr(path, whole)
    for path, children in zip(paths, below):
        assert near(getattr(path, own) + children, getattr(path, whole)), path


def is_topmost(paths, index):
    """No caller of it is the same function."""
    frame, at = paths[index].frame, paths[index].parent
    while at >= 0:
        if paths[at].frame == frame:
            return False
        at = paths[at].parent
    return True


def check_functions(functions, paths):
    """Each is the sum of its paths, recursion counted once."""
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for index, path in enumerate(paths):
        sums[path.frame][0] += path.self
        sums[path.frame][1] += path.baseline
        if is_topmost(paths, index):
            sums[path.frame][2] += path.value
            sums[path.frame][3] += path.baseline_total
    changes = []
    for index, function in enumerate(functions):
        self, baseline, value, total = sums[index]
        assert (function["self"], function["value"]) == (self, value), function
        assert near(function["baseline"], baseline), function
        assert near(function["baseline_total"], total), function
        assert function["class"] in CLASSES and function["self_class"] in CLASSES, function
        changes.append(abs(function["value"] - function["baseline_total"]))
    assert all(a >= b or near(a, b) for a, b in zip(changes, changes[1:])), "order of functions"


def check_left_out(document, paths):
    """What is there, of both sides, and what is said not to be are the whole."""
    left_out = document["left_out"]
    assert list(left_out) == ["functions", "paths"]
    whole = document["total"]["value"] + document["total"]["baseline"]
    for key, own in (("functions", sum(f["self"] + f["baseline"] for f in document["functions"])),
                     ("paths", sum(p.self + p.baseline for p in paths))):
        assert list(left_out[key]) == ["count", "share"], left_out
        if left_out[key]["count"]:
            assert abs(own / whole + left_out[key]["share"] - 1) < 1e-3, (key, own / whole, left_out)
    return left_out


def check_path(path, index, frames):
    assert -1 <= path.parent < index and 0 <= path.frame < frames, path
    assert near(path.diff, path.self - path.baseline), path
    assert near(path.diff_pct, percent(path.self, path.baseline)), path
    assert path.value >= path.self and path.value + path.baseline_total > 0, path
    assert path.class_ in CLASSES and path.self_class in CLASSES, path
    assert path.match in MATCHES, path
    if path.class_ == "new":
        assert path.baseline_total == 0, path
    if path.class_ == "removed":
        assert path.value == 0, path
    if path.ratio is not None:
        assert path.low <= path.ratio and (path.high is None or path.ratio <= path.high), path
    if path.class_ not in GREY | {"new", "removed"}:
        assert path.q is not None and path.q <= 0.05, path
        assert (path.ratio > 1) == path.class_.startswith("slower"), path


def check_side(side):
    assert len(side["files"]) == side["runs"], side
    if side["interval_us"] and side["samples"]:
        assert near(side["ms"], side["samples"] * side["interval_us"] / 1000), side


def check_lines(text, document):
    """Every element of the long lists stands on its own line."""
    lines = text.split("\n")
    for key in ("frames", "functions", "paths"):
        if not document.get(key):
            continue
        start = next(i for i, line in enumerate(lines) if line.endswith('"%s":[' % key))
        for at, element in enumerate(document[key], start + 1):
            assert json.loads(lines[at].rstrip(",")) == element


def load(path):
    """The document as it is, checked; `paths` as tuples with names (`class` as class_)."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    document = json.loads(text, object_pairs_hook=collections.OrderedDict)
    assert document["schema"] == "pyebpf-diff/1"
    check_lines(text, document)
    for side in ("base", "current"):
        check_side(document[side])
    if document["compat"]:
        check_compat(document)
        return document
    keys = [key for key in document if key not in OPTIONAL_KEYS]
    assert keys == KEYS and document["path_fields"] == FIELDS
    Path = collections.namedtuple("Path", [f if f != "class" else "class_" for f in FIELDS])
    paths = document["paths"] = [Path(*row) for row in document["paths"]]
    for index, row in enumerate(paths):
        check_path(row, index, len(document["frames"]))
    assert [[f["name"], f["file"], None] for f in document["functions"]] == \
        document["frames"][:len(document["functions"])]
    left_out = check_left_out(document, paths)
    if left_out["functions"]["count"] or left_out["paths"]["count"]:
        return document
    check_sums(paths, "self", "value")
    check_sums(paths, "baseline", "baseline_total")
    check_functions(document["functions"], paths)
    assert len(document["frames"]) == len(document["functions"])
    counts = collections.Counter(path.class_ for path in paths)
    assert {k: v for k, v in document["counts"].items() if v} == counts
    assert document["elided_count"] == sum(p.value == 0 and p.baseline > 0 for p in paths)
    total = document["total"]
    assert total["value"] == document["current"]["samples"]
    assert near(total["baseline"], document["base"]["samples"] * document["scale"])
    assert near(sum(p.value for p in paths if p.parent < 0), total["value"])
    return document


def check_compat(document):
    assert list(document) == COMPAT_KEYS
    assert document["path_fields"] == COMPAT_FIELDS
    assert document["elided_fields"] == COMPAT_FIELDS + ["elided"]
    for row in document["paths"] + document["elided"]:
        path = dict(zip(document["elided_fields"], row))
        frame = document["frames"][path["frame"]]
        assert path["parent"] < len(document["paths"] + document["elided"]) and len(frame) == 3
        assert isinstance(frame[2], int), frame


def names(document, *classes):
    """Functions of these classes by their name."""
    return {f["name"]: f for f in document["functions"] if f["class"] in classes}
