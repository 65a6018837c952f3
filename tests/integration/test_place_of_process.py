# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""In which container and pod the processes of a recording run, and who says so."""
import re

import otlp
import pprof
import pytest
from containers import container
from harness import run
from spinning import SCRIPT, Spinning, record
from test_agent_origin import CONTAINER, NEIGHBOUR, POD, enter, pod_cgroups

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("containers")]
KEYS = ("container_id", "pod_uid", "pod", "namespace")
# The kubelet's folders of logs, in a mount namespace where there are no others.
LOGS = ("unshare", "-m", "sh", "-c", "mount -t tmpfs logs /var/log && "
        "mkdir -p /var/log/pods/prod_shop-7d9f_%s && exec \"$@\"" % POD, "sh")


def places(recording):
    """{pid: (container, pod UID, pod, namespace)}, by the labels of export -f pprof."""
    path = "%s.pb.gz" % recording
    run("export", "--processes", "-o", path, recording, check=True)
    return {sample.labels["pid"]: tuple(sample.labels.get(key) for key in KEYS)
            for sample in pprof.Profile(path).samples}


def test_pod_and_none(some_python, tmp_path):
    """Two containers of one pod, and a process in none."""
    recording = tmp_path / "spinning.pyebpf"
    with pod_cgroups(CONTAINER, NEIGHBOUR) as (own, other), \
            Spinning(*some_python.command, SCRIPT) as web, \
            Spinning(*some_python.command, SCRIPT) as sidecar, \
            Spinning(*some_python.command, SCRIPT) as outside:
        enter(own, web.pid)
        enter(other, sidecar.pid)
        _, said = record(tmp_path, "-p", "%d,%d,%d" % (web.pid, sidecar.pid, outside.pid),
                         wrapper=LOGS)
        pids = (web.pid, sidecar.pid, outside.pid)
    assert "samples of 3 processes, 2 in containers" in said, said
    found = places(recording)
    assert found == {pids[0]: (CONTAINER, POD, "shop-7d9f", "prod"),
                     pids[1]: (NEIGHBOUR, POD, "shop-7d9f", "prod"),
                     pids[2]: (None,) * 4}
    text = run("report", "--threads", recording).stdout
    assert re.search(r"^runs in +prod/shop-7d9f$", text, re.M), text
    assert re.search(r"\(%d\) in prod/shop-7d9f$" % pids[1], text, re.M), text
    assert re.search(r"\(%d\)$" % pids[2], text, re.M), text


def test_resources_of_otlp(some_python, tmp_path):
    """A resource for each container where processes are told apart; else of what they share."""
    recording, path = tmp_path / "spinning.pyebpf", tmp_path / "x.otlp"
    with pod_cgroups(CONTAINER, NEIGHBOUR) as (own, other), \
            Spinning(*some_python.command, SCRIPT) as web, \
            Spinning(*some_python.command, SCRIPT) as sidecar:
        enter(own, web.pid)
        enter(other, sidecar.pid)
        record(tmp_path, "-p", "%d,%d" % (web.pid, sidecar.pid))

        def resources(*options):
            run("export", "-o", path, *options, recording, check=True)
            return sorted((r.resource.get("container.id"), r.resource.get("k8s.pod.uid"))
                          for r in otlp.Request.each(otlp.decode(path.read_bytes())))

        assert resources("--processes") == [(CONTAINER, POD), (NEIGHBOUR, POD)]
        assert resources() == [(None, None)]
        record(tmp_path, "-p", web.pid)
        assert resources() == [(CONTAINER, POD)]


def test_pyebpf_in_a_namespace(some_python, tmp_path):
    """It reads "0::/../cri-containerd-ID.scope": the pod is that of its own container."""
    with pod_cgroups(CONTAINER, NEIGHBOUR) as (own, other), \
            Spinning(*some_python.command, SCRIPT) as target:
        enter(other, target.pid)
        record(tmp_path, "-p", target.pid, wrapper=(
            "sh", "-c", "echo $$ > %s/cgroup.procs; exec unshare -C \"$@\"" % own, "sh"))
        assert places(tmp_path / "spinning.pyebpf") == {target.pid: (NEIGHBOUR, POD, None, None)}


def test_container_beside_pyebpf_in_a_namespace(some_python, tmp_path):
    """Its id is in "0::/../cri-containerd-ID.scope"; its folder, below the host's cgroups."""
    inside = "echo $$ > %s/cgroup.procs; exec unshare -C \"$@\""
    hidden = "umount -l {0} && mount -t cgroup2 none {0} && exec \"$@\""
    with pod_cgroups(CONTAINER, NEIGHBOUR) as (own, other), \
            Spinning(*some_python.command, SCRIPT) as target:
        enter(other, target.pid)
        wrapper = ("sh", "-c", inside % own, "sh")
        record(tmp_path, "--container", NEIGHBOUR[:12], wrapper=wrapper)
        assert set(places(tmp_path / "spinning.pyebpf")) == {target.pid}
        root = own.partition("/test-")[0]
        _, said = record(tmp_path, "--container", NEIGHBOUR, status=4, wrapper=(
            *wrapper, "unshare", "-m", "sh", "-c", hidden.format(root), "sh"))
    assert "mount the host's /sys/fs/cgroup here" in said, said


def test_process_that_has_ended(some_python, tmp_path):
    """It was asked while it lived: the recording's end is too late."""
    with pod_cgroups(CONTAINER) as (own,):
        recording = tmp_path / "spinning.pyebpf"
        run("record", "-o", recording, "--", "sh", "-c", "echo $$ > %s/cgroup.procs; exec %s -c "
            "'sum(range(3 * 10**7))'" % (own, " ".join(some_python.command)), check=True)
        (place,) = set(places(recording).values())
    assert place == (CONTAINER, POD, None, None)


def test_real_container(rooted, tmp_path):
    with container(rooted[-1]) as (ident, pid):
        record(tmp_path, "-p", pid)
        assert places(tmp_path / "spinning.pyebpf") == {pid: (ident, None, None, None)}
