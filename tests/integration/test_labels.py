# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""record --label: shares by value against the CPU time that each value had by the program's own clock."""
import collections
import contextlib
import json
import os
import re
import shutil
import subprocess

import diffjson
import otlp
import packages
import pytest
import pythons
from harness import PYEBPF, WORKLOADS, Workload, record_to, run
from truth import share_error

pytestmark = pytest.mark.usefixtures("pyebpf")

HZ = 1999
LABELS = ("--label", "route=contextvar:route", "--label", "who=contextvar:user")
NAMES = {"route": "route", "who": "user"}  # of the variables


def samples_of(recording, *arguments):
    done = run("export", "-f", "jsonl", *arguments, recording)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def working(samples):
    """Of those that the truth is of."""
    return [s for s in samples if any(frame[0] == "work" for frame in s["stack"])]


def check_shares(samples, truth):
    for label, variable in NAMES.items():
        seen = collections.Counter()
        for sample in samples:
            seen[sample["labels"].get(label)] += sample["value"]
        used = {value: seconds for value, seconds in truth[variable]}
        cpu, total = sum(used.values()), sum(seen.values())
        assert set(seen) <= set(used), (seen, used)
        for value, seconds in used.items():
            error = share_error(seen[value] * len(samples) / total, len(samples), seconds / cpu)
            assert error <= 0, (label, value, seconds / cpu, seen[value] / total, len(samples))


def record(python, folder, *arguments, seconds=0.6, variables=40):
    output = folder / "labels.pyebpf"
    with Workload(python, "labelled.py", seconds, variables) as workload:
        truth, text = record_to(output, workload, HZ, *LABELS, *arguments)
    return truth, output, text


def has_contexts(python):
    return python.minor >= 7


@pytest.mark.few_pythons
@pytest.mark.quick
def test_labels_have_their_shares(python, tmp_path, is_full):
    if not has_contexts(python):
        return
    truth, output, text = record(python, tmp_path, seconds=5 if is_full else 0.4,
                                 variables=(0, 20, 400)[python.minor % 3])
    check_shares(working(samples_of(output)), truth)
    assert "no sample has this label" not in text, text


@pytest.mark.full
def test_labels_have_their_shares_free_threaded(free_threaded, tmp_path, is_full):
    test_labels_have_their_shares(free_threaded, tmp_path, is_full)


def test_waits_have_labels(some_python, tmp_path):
    """Ticks in the recording of waits, and the spans of the GIL between them."""
    truth, output, _ = record(some_python, tmp_path, "--mode", "wall", seconds=0.25)
    check_shares(working(samples_of(output, "--kind", "cpu")), truth)
    spans = working(samples_of(output, "--kind", "off-cpu"))
    assert spans and all(set(s["labels"]) >= {"wait"} for s in spans if s["stack"])
    assert {s["labels"].get("route") for s in spans} & {"/orders", "/nested"}


def test_what_is_not_there_is_said(some_python, tmp_path):
    output = tmp_path / "none.pyebpf"
    with Workload(some_python, "labelled.py", 0.05, 0) as workload:
        _, text = record_to(output, workload, HZ, "--label", "a=contextvar:no such variable")
    assert "--label a: no sample has this label" in text, text


def rows_by(recording, key):
    """{name: percent} of report --by."""
    done = run("report", "--by", key, "-n", 0, recording)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ *([\d.]+)% +[\d.,]+ \S+  (.+)$", done.stdout, re.M)
    return {name: float(percent) for percent, name in rows}


def milliseconds(recording, *arguments):
    return sum(sample["value"] for sample in samples_of(recording, *arguments)) / 1e6


def test_values_are_rows_and_sides(some_python, tmp_path):
    """report --by label:NAME, and the requests of one route against the others."""
    truth, output, _ = record(some_python, tmp_path, seconds=0.25)
    by_value = rows_by(output, "label:route")
    assert abs(sum(by_value.values()) - 100) < 0.5 and "(none)" in by_value, by_value
    all_labels = rows_by(output, "label")
    assert {"route=" + name for name in by_value if name != "(none)"} <= set(all_labels)
    path = tmp_path / "diff.json"
    done = run("diff", "--current-label", "route=/orders", output, "-o", path)
    assert done.returncode == 0, done.stderr
    found = diffjson.load(path)
    total, ours = milliseconds(output), milliseconds(output, "--label", "route=/orders")
    assert found["normalize"] == "share"
    assert abs(found["current"]["ms"] - ours) < 0.01 and abs(found["base"]["ms"] - total + ours) < 0.01
    assert not [note for note in found["notes"] if "both sides" in note], found["notes"]
    done = run("diff", "--base-label", "route=/named", "--current-label", "route=/orders", output, output,
               "-o", tmp_path / "diff.html", "-o", path)
    assert done.returncode == 0, done.stderr
    assert abs(diffjson.load(path)["base"]["ms"] - milliseconds(output, "--label", "route=/named")) < 0.01


def test_otlp_links_to_traces(some_python, tmp_path):
    """Labels trace_id and span_id, ints or hexadecimal, are a link; what is no such id is none."""
    output, links = tmp_path / "traced.pyebpf", {}
    with Workload(some_python, "traced.py", 0.1) as workload:
        truth, _ = record_to(output, workload, HZ, "--label", "trace_id=contextvar:trace",
                             "--label", "span_id=contextvar:span")
    done = subprocess.run([PYEBPF, "export", "-f", "otlp", "--labels", output], check=True,
                          stdout=subprocess.PIPE)
    request = otlp.Request(otlp.decode(done.stdout))
    for sample in request.profile["samples"]:
        told = request.attributes(sample)
        if "trace_id" in told:
            assert links.setdefault(told["trace_id"], request.link(sample)) == request.link(sample)
        else:
            assert request.link(sample) is None
    assert links == {trace: tuple(link) if link else None for trace, link in truth.items()}
    table = request.dictionary["linkTable"]
    assert len(table) == 1 + len({link for link in links.values() if link})


def check_spans(python, folder, seconds, *arguments):
    """Each sample of a span has its ids, which the function that it is in is named after. How many there were."""
    output, checked = folder / "spans.pyebpf", 0
    with Workload(python, "otel_spans.py", seconds, *arguments) as workload:
        names, _ = record_to(output, workload, HZ, "--label", "otel")
    for sample in samples_of(output):
        inside = [frame[0] for frame in sample["stack"] if frame[0].startswith("in_")]
        if not inside:
            continue
        assert inside[0] in names
        labels = sample["labels"]
        told = "in_%s_%s" % (labels["trace_id"], labels["span_id"]) if labels else "in_none"
        assert told == inside[0] and len(labels) in (0, 2), sample
        checked += 1
    return checked


@pytest.mark.few_pythons
def test_opentelemetry_has_its_ids(python, tmp_path, is_full):
    if has_contexts(python):
        assert check_spans(python, tmp_path, 2 if is_full else 0.3) > 100


@pytest.mark.full
def test_opentelemetry_has_its_ids_free_threaded(free_threaded, tmp_path):
    assert check_spans(free_threaded, tmp_path, 2) > 100


@contextlib.contextmanager
def seen_by(python, folder):
    """A folder's path as the interpreter sees it: it is copied below its root where that has one."""
    if not python.root:
        yield folder
        return
    name = os.path.join("tmp", "pyebpf-test-packages-%d" % os.getpid())
    shutil.copytree(folder, os.path.join(python.root, name))
    try:
        yield os.path.join("/", name)
    finally:
        shutil.rmtree(os.path.join(python.root, name))


@pytest.mark.full
def test_opentelemetry_of_pypi_has_its_ids(python, some_python, tmp_path):
    """The SDK itself, as it is, of the newest version for that Python; those of Debian have no pip, and
    take that of another one: it is Python alone."""
    if not has_contexts(python):
        return
    try:
        folder = packages.folder_of(python if python.via == "direct" else some_python, "opentelemetry")
    except pythons.Unavailable as reason:
        pytest.skip(str(reason))
    with seen_by(python, folder) as path:
        assert check_spans(python, tmp_path, 2, path) > 100


ACCESS = {  # how a library has its thread-local variables
    "descriptor": ["-mtls-dialect=gnu2"], "descriptor-dynamic": ["-mtls-dialect=gnu2", "-DLARGE"],
    "general": ["-mtls-dialect=gnu"], "general-dynamic": ["-mtls-dialect=gnu", "-DLARGE"],
    "initial-exec": ["-ftls-model=initial-exec"],
}
RESOURCE = {"service.name": "checkout", "service.version": "\u20ac1", "host.cpus": "4", "is.test": "true"}
SETTLED = 0.1  # s: samples of one moment are in no order


def check_published(python, folder, access, seconds, *arguments):
    """From the moment on that it is found, each sample in a thread's context has what that says."""
    library = str(folder / "otel.so")
    subprocess.run(["cc", "-shared", "-fPIC", *ACCESS[access], "-o", library,
                    os.path.join(WORKLOADS, "otel_thread.c")], check=True)
    output, checked = folder / "published.pyebpf", 0
    with Workload(python, "otel_published.py", seconds, library, *arguments) as workload:
        names, _ = record_to(output, workload, HZ, "--label", "otel")
    samples = samples_of(output)
    found = min(s["time"] for s in samples if "trace_id" in s["labels"])
    for sample in samples:
        inside = [frame[0] for frame in sample["stack"] if frame[0].startswith("in_")]
        if not inside or sample["time"] < found + SETTLED:
            continue
        labels = dict(sample["labels"])
        assert {name: labels.pop(name, None) for name in RESOURCE} == RESOURCE, sample
        if inside[0] == "in_none":
            assert not labels, sample
            continue
        _, trace, span, route = inside[0].split("_")
        route = route[:64] + "\u2026" if len(route) > 64 else route
        assert (labels.pop("user") or "") == "" and inside[0] in names
        assert labels == {"trace_id": trace, "span_id": span, "http.route": route}, sample
        checked += 1
    return checked


@pytest.mark.parametrize("access", [name if name == "descriptor-dynamic" else pytest.param(name, marks=pytest.mark.full)
                                    for name in ACCESS])
def test_what_processes_and_threads_publish(some_python, access, tmp_path):
    """OTEP 4719 and 4947: resource attributes, ids, attributes of threads."""
    assert check_published(some_python, tmp_path, access, 1.6) > 50


@pytest.mark.full
def test_what_is_published_on_each_version(python, tmp_path):
    if python.minor >= 8 and python.via == "direct":
        assert check_published(python, tmp_path, "descriptor", 2) > 50


@pytest.mark.full
def test_what_is_published_later_is_found(some_python, tmp_path):
    assert check_published(some_python, tmp_path, "general-dynamic", 6, "late") > 50


def test_labels_that_make_no_sense():
    for text, words in (("route", "is no label such as"), ("wait=contextvar:x", "samples have anyway"),
                        ("a=contextvar:" + "x" * 65, "at most 64")):
        done = run("record", "--label", text, "-p", 1)
        assert done.returncode == 2 and words in done.stderr, done.stderr
