# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent: which service, container and pod a profile is said to be of."""
import contextlib
import os
import re
import subprocess

import pytest
from engine_server import Engine
from harness import PATIENCE, WORKLOADS, Workload, wait_until
from spinning import cpu_seconds
from test_agent import SERVICE, Agent, spinning

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]
POD, POD_NAME = "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0", "1f2e3d4c_5b6a_7988_a7b6_c5d4e3f2a1b0"
CONTAINER, NEIGHBOUR = "0123456789abcdef" * 4, "fedcba9876543210" * 4
HIERARCHIES = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")


@contextlib.contextmanager
def pod_cgroups(*containers):
    """A pod's cgroups on version 2, as systemd and containerd name them: their folders."""
    root = next((h for h in HIERARCHIES if os.path.exists(h + "/cgroup.procs")), None)
    if not root or not os.access(root, os.W_OK):
        pytest.skip("no cgroup of version 2 can be made here")
    top = "%s/test-%d.slice" % (root, os.getpid())
    pod = "%s/kubepods-burstable-pod%s.slice" % (top, POD_NAME)
    scopes = ["%s/cri-containerd-%s.scope" % (pod, name) for name in containers]
    folders = [top, pod, *scopes]
    for folder in folders:
        os.mkdir(folder)
    try:
        yield scopes
    finally:
        for folder in reversed(folders):
            wait_until(lambda: not open(folder + "/cgroup.procs").read(), PATIENCE, "it is empty")
            os.rmdir(folder)


def enter(folder, pid):
    with open(folder + "/cgroup.procs", "w") as f:
        f.write(str(pid))


def test_pod_beside_an_agent_in_a_namespace(some_python, tmp_path):
    """The agent reads "0::/../cri-containerd-ID.scope": the pod is that of its own container."""
    with pod_cgroups(CONTAINER, NEIGHBOUR) as (own, other), Engine("pyroscope") as engine, \
            spinning(some_python) as target:
        enter(other, target.pid)
        agent = Agent(tmp_path, "pyroscope", engine.url)
        agent.prefix = ("sh", "-c", "echo $$ > %s/cgroup.procs; exec unshare -C \"$@\"" % own, "sh")
        with agent:
            wait_until(lambda: engine.total(SERVICE) > 0, PATIENCE, "samples arrive")
            agent.stop()
        with open("/proc/%d/cgroup" % target.pid) as f:
            assert other.rpartition("/")[2] in f.read()
        labels = engine.labels_of(SERVICE)
        target.kill()
        target.wait()
    assert (labels["container_id"], labels["pod_uid"]) == (NEIGHBOUR, POD)


def test_process_that_ends_before_its_window(some_python, tmp_path):
    """What it was called and where it ran was read while it lived."""
    with pod_cgroups(CONTAINER) as (own,), Engine("pyroscope") as engine:
        with Agent(tmp_path, "pyroscope", engine.url, window="30m") as agent:
            with spinning(some_python, first=lambda: enter(own, os.getpid())) as target:
                wait_until(lambda: cpu_seconds(target.pid) > 2, PATIENCE, "it is sampled")
            assert not os.path.exists("/proc/%d" % target.pid)
            agent.stop()
        places = {(labels.get("container_id"), labels.get("pod_uid"))
                  for (name, _), labels in zip(engine.stored, engine.labels) if name == SERVICE}
    # On a crowded CPU its first ticks may come before anybody knows where it runs.
    assert (CONTAINER, POD) in places and places <= {(CONTAINER, POD), (None, None)}, places


def test_units_name_services(some_python, tmp_path):
    """By rules on the path of the cgroup, as systemd has it for a service."""
    root = next((h for h in HIERARCHIES if os.path.exists(h + "/cgroup.procs")), None)
    if not root or not os.access(root, os.W_OK):
        pytest.skip("no cgroup of version 2 can be made here")
    unit = "%s/test-%d.service" % (root, os.getpid())
    os.mkdir(unit)
    rules = ("relabel:\n  - {source_labels: [__cgroup], regex: '/(test-.*)[.]service', "
             "target_label: service_name}\n"
             "  - {action: keep, source_labels: [__cgroup], regex: '.*[.]service'}\n")
    try:
        with Engine("pyroscope") as engine, \
                spinning(some_python, first=lambda: enter(unit, os.getpid())) as target, \
                spinning(some_python, name="elsewhere"):
            with Agent(tmp_path, "pyroscope", engine.url, more=rules) as agent:
                wait_until(lambda: engine.total(os.path.basename(unit)[:-8]) > 0 and
                           agent.metric("excluded_samples_total") > 0, PATIENCE, "samples arrive")
                agent.stop()
            assert "elsewhere" not in {service for service, _ in engine.stored}
            assert "__cgroup" not in engine.labels_of(os.path.basename(unit)[:-8])
            target.kill()
            target.wait()
    finally:
        os.rmdir(unit)


def test_services_that_a_user_invents_leave_room(some_python, tmp_path):
    """A user, by the real user id, has a quarter of the places, window after window; who comes later has one."""
    with open("/proc/self/cgroup") as f:
        if re.search("[0-9a-f]{64}", f.read()):
            pytest.skip("all is of one container here")
    invented = ["invented-%d" % i for i in range(6)]
    scope = "services:\n  max: 8\n  include: ['invented-*', 'other', 'late']\n"
    with Engine("pyroscope") as engine, contextlib.ExitStack() as stack:
        for name in invented:
            stack.enter_context(spinning(some_python, name=name, first=lambda: os.setresuid(65534, 0, 0)))
        with Agent(tmp_path, "pyroscope", engine.url, more=scope) as agent:
            wait_until(lambda: engine.total("other") > 0, PATIENCE, "some have no place")
            stack.enter_context(spinning(some_python, name="late"))
            wait_until(lambda: engine.total("late") > 0, PATIENCE, "it has a place")
            agent.stop()
        assert len({service for service, _ in engine.stored} & set(invented)) == 2


@pytest.mark.parametrize("kind, version, environment", [
    ("pyroscope", "service_version", "deployment_environment"),
    ("otlp", "service.version", "deployment.environment")])
def test_version_and_environment(some_python, kind, version, environment, monkeypatch, tmp_path):
    """As a process says them in OTEL_RESOURCE_ATTRIBUTES, whoever names its service."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=7.1,deployment.environment=prod")
    with Engine(kind) as engine, spinning(some_python):
        monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES")
        with Agent(tmp_path, kind, engine.url) as agent:
            wait_until(lambda: engine.total(SERVICE) > 0, PATIENCE, "samples arrive")
            agent.stop()
        labels = engine.labels_of(SERVICE)
        assert (labels[version], labels[environment]) == ("7.1", "prod")


@pytest.mark.full
def test_what_a_process_publishes_names_its_service(some_python, tmp_path):
    """OTEP 4719, where the environment says nothing; what its threads publish is of samples."""
    library = str(tmp_path / "otel.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, os.path.join(WORKLOADS, "otel_thread.c")], check=True)
    with Engine("otlp") as engine, Workload(some_python, "otel_published.py", 600, library) as workload:
        workload.go()
        with Agent(tmp_path, "otlp", engine.url, more="sample_labels: [otel]\n") as agent:
            wait_until(lambda: any("trace_id" in labels for _, labels, _ in list(engine.labelled)), PATIENCE,
                       "samples of threads' contexts arrive")
            agent.stop()
        assert engine.labels_of("checkout")["service.version"] == "\u20ac1"
        for frames, labels, link in engine.labelled:
            assert set(labels) in (set(), {"trace_id", "span_id", "http.route", "user"}), labels
            inside = [name for name in frames if name.startswith("in_")]
            if inside and link:
                assert inside[0].startswith("in_%s_%s_" % link)
