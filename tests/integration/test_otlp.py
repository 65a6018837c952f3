# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""export -f otlp: the same samples as collapsed text, by the field numbers, by the official package,
and by what a Collector passes on."""
import json
import os
import subprocess
import urllib.request

import engines
import otlp
import packages
import pytest
import pythons
from harness import PYEBPF, Recorder, Workload, export, make_recording, run

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.quick]
HZ = 997
OPTIONS = ["--processes", "--threads"]

OFFICIAL = """
import sys
from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import (
    ExportProfilesServiceRequest)
message = ExportProfilesServiceRequest.FromString(sys.stdin.buffer.read())
whole = message.SerializeToString()
message.DiscardUnknownFields()
assert message.SerializeToString() == whole, "it does not know all of our fields"
print(MessageToJson(message))
"""


@pytest.fixture(scope="module")
def exported(some_python, tmp_path_factory):
    """(recording, its export)."""
    folder = tmp_path_factory.mktemp("otlp")
    recording, output = folder / "x.pyebpf", folder / "x.otlp"
    with Workload(some_python, "family.py", 0.3, "fork") as workload:
        with Recorder(recording, "-p", workload.pid, "-F", HZ) as recorder:
            recorder.wait_attached()
            workload.go()
            workload.truth()
            recorder.finish()
    done = run("export", *OPTIONS, "-o", output, recording)
    assert done.returncode == 0, done.stderr
    return recording, output.read_bytes()


def assert_same(recording, message):
    request = otlp.Request(message)
    assert request.stacks() == export(recording, *OPTIONS)
    assert request.value_type("sampleType") == ("samples", "count")
    assert request.value_type("periodType") == ("cpu", "nanoseconds")
    assert otlp.number(request.profile, "period") == 1000000000 // HZ
    assert otlp.number(request.profile, "timeUnixNano") > 1700000000e9
    assert 0 < otlp.number(request.profile, "durationNano") < 60e9
    assert request.scope["name"] == "pyebpf"
    assert request.resource["service.name"] == "unknown_service:python"
    assert request.resource["host.name"] == os.uname().nodename


def test_same_samples_as_collapsed(exported):
    recording, body = exported
    assert_same(recording, otlp.decode(body))


def test_each_kind_is_a_profile(tmp_path):
    """As golden/waits_recording.c tells; CPU time, which is exact, as samples of 1 ns."""
    recording = make_recording("waits_recording", tmp_path / "x.pyebpf")
    body = subprocess.run([PYEBPF, "export", "-f", "otlp", recording], stdout=subprocess.PIPE,
                          check=True).stdout
    found = {}
    for request in otlp.Request.each_profile(otlp.decode(body)):
        period = request.value_type("periodType") if "periodType" in request.profile else None
        found[request.value_type("sampleType")] = (
            period, otlp.number(request.profile, "period"), sum(request.stacks().values()))
    assert found == {
        ("samples", "count"): (("cpu", "nanoseconds"), 1, 7060000000),
        ("off_cpu", "nanoseconds"): (None, 0, 42940000000),
        ("delay", "nanoseconds"): (("mutex", "count"), 1, 7000000000),
        ("rss_growth", "bytes"): (("memory", "bytes"), 1, 12 << 20)}


@pytest.mark.full
def test_official_package_reads_it(exported, some_python):
    try:
        folder = packages.folder_of(some_python, "otlp")
    except pythons.Unavailable as error:
        pytest.skip(str(error))
    recording, body = exported
    done = subprocess.run([*some_python.command, "-c", OFFICIAL], input=body, check=True,
                          stdout=subprocess.PIPE, env=packages.environment(folder))
    assert_same(recording, json.loads(done.stdout))


@pytest.mark.full
def test_collector_passes_it_on(exported):
    recording, body = exported
    try:
        engines.collector()
    except pythons.Unavailable as error:
        pytest.skip(str(error))
    with engines.Collector() as collector:
        request = urllib.request.Request(collector.url, data=body, headers={
            "Content-Type": "application/x-protobuf"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200
        message, = collector.received(1)
    assert_same(recording, message)
