# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent: what pods are called, by a kubelet, an API server or files, and by none of them."""
import os

import pytest
from engine_server import Engine
from harness import PATIENCE, run, wait_until
from kubelet_server import Answer, Kubelet, pod
from test_agent import SERVICE, Agent, spinning
from test_agent_origin import CONTAINER, NEIGHBOUR, POD, enter, pod_cgroups

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]
TOKEN = "s3cret-pods"
SHOP = pod(POD, labels={"app.kubernetes.io/name": "shop", "team": "pay", "pod-template-hash": "7d9f"},
           containers={"web": CONTAINER}, owner=("ReplicaSet", "shop-7d9f"))


def settings(kubelet, tmp_path, source="kubelet", more=""):
    token = tmp_path / "token"
    if not token.exists():
        token.write_text(TOKEN + "\n")
    return ("kubernetes:\n  source: %s\n  url: %s\n  node: node-1\n  token_file: %s\n  ca_file: %s\n"
            "  labels: [team]\n%s" % (source, kubelet.url, token, kubelet.certificate, more))


@pytest.mark.threads
@pytest.mark.parametrize("kind, source", [("pyroscope", "kubelet"), ("otlp", "api")])
def test_names_of_pod_and_container(some_python, kind, source, tmp_path):
    """The label names the service; a process that names its own keeps that."""
    with pod_cgroups(CONTAINER) as (own,), Kubelet(tmp_path, TOKEN, [SHOP]) as kubelet, \
            Engine(kind) as engine, spinning(some_python, name="") as target, \
            spinning(some_python) as named:
        enter(own, target.pid)
        enter(own, named.pid)
        with Agent(tmp_path, kind, engine.url, more=settings(kubelet, tmp_path, source)) as agent:
            labels = []

            def have_come():  # what was sent before the names were known may come after it
                labels[:] = engine.labels_of("shop"), engine.labels_of(SERVICE)
                return all("namespace" in str(each) for each in labels)
            wait_until(have_come, PATIENCE, "names arrive")
            assert agent.metric("kubernetes_pods") == 1
            agent.stop()
            assert engine.total() == agent.recorded()
        for process in (target, named):
            process.kill()
            process.wait()
    keys = ("k8s.namespace.name", "k8s.pod.name", "k8s.container.name", "k8s.pod.label.team",
            "k8s.deployment.name", "k8s.node.name") \
        if kind == "otlp" else ("namespace", "pod", "container", "label_team", "workload", "host")
    for each in labels:
        assert [each[key] for key in keys] == ["prod", "shop-7d9f", "web", "pay", "shop", "node-1"]
    assert TOKEN not in agent.text()


def test_pages_of_the_api_server(some_python, tmp_path):
    """All of them are read; a list that is too old to go on with is begun anew."""
    others = [pod("0000-%d" % i, name="other-%d" % i) for i in range(4)]
    script = [Answer(), Answer(410, b"the provided continue parameter is too old")]
    with pod_cgroups(CONTAINER) as (own,), Engine("pyroscope") as engine, \
            Kubelet(tmp_path, TOKEN, others + [SHOP], script, page_pods=2) as kubelet, \
            spinning(some_python) as target:
        enter(own, target.pid)
        with Agent(tmp_path, "pyroscope", engine.url,
                   more=settings(kubelet, tmp_path, "api")) as agent:
            wait_until(lambda: agent.metric("kubernetes_pods") == 5, PATIENCE, "all are known")
            assert agent.metric("kubernetes_refresh_failures_total") == 0, agent.text()
            wait_until(lambda: engine.labels_of(SERVICE).get("pod") == "shop-7d9f", PATIENCE,
                       "it has a name")
            agent.stop()
        target.kill()
        target.wait()
    asked = ["continue" in path for path, _ in kubelet.requests]
    assert asked[:5] == [False, True, False, True, True], kubelet.requests
    assert "resourceVersion=0" in kubelet.requests[0][0]


def test_host_is_the_node(some_python, tmp_path):
    """Within a pod the host's name would be the pod's."""
    with Engine("pyroscope") as engine, spinning(some_python):
        with Agent(tmp_path, "pyroscope", engine.url, environment={"NODE_NAME": "node-7"}) as agent:
            wait_until(lambda: engine.labels_of(SERVICE).get("host") == "node-7", PATIENCE,
                       "samples arrive")
            agent.stop()


BAD_ANSWERS = [
    # what, answer, said
    ("403", Answer(403, b"Forbidden"), "status 403: not allowed"),
    ("500", Answer(500, b"x" * 100000), "status 500"),
    ("malformed", Answer(200, b'{"kind":"PodList","items":[{"metadata":{"uid":]}}]}'), "not valid JSON"),
    ("a web page", Answer(200, b"<html>sign in</html>"), "not a list of pods"),
    ("cut", Answer(200, b'{"items":[{"metadata":{}}'), "not a complete list"),
    ("huge pod", Answer(200, b'{"items":[{"a":"' + b"x" * (3 << 20)), "a pod of more than"),
    ("closed", Answer(hang_s=0.01), "kubernetes: "),
    ("slow", Answer(hang_s=600), None),
]


# The texts of the others are in unit/agent/test_pods.
IN_MINUTES = ("403", "malformed", "slow")


@pytest.mark.parametrize("what, answer, said", [
    pytest.param(*row, id=row[0], marks=() if row[0] in IN_MINUTES else pytest.mark.full)
    for row in BAD_ANSWERS])
def test_bad_answer_stops_nothing(some_python, what, answer, said, tmp_path):
    """It is said once, recording goes on, and the next answer is taken."""
    with pod_cgroups(CONTAINER) as (own,), Engine("pyroscope") as engine, \
            Kubelet(tmp_path, TOKEN, [SHOP], [answer]) as kubelet, \
            spinning(some_python) as target:
        enter(own, target.pid)
        with Agent(tmp_path, "pyroscope", engine.url, more=settings(kubelet, tmp_path)) as agent:
            wait_until(lambda: engine.total(SERVICE) > 0, PATIENCE, "samples arrive")
            if what != "slow":
                wait_until(lambda: agent.metric("kubernetes_pods") == 1, PATIENCE, "it is mended")
                assert agent.metric("kubernetes_refresh_failures_total") == 1
                assert agent.text().count("profiles go without names") == 1
                assert said in agent.text()
            agent.stop()  # also while an answer is waited for
            assert engine.total() == agent.recorded()
        target.kill()
        target.wait()


def test_token_is_read_anew(tmp_path):
    """401 until the file is rotated; the token is in no log. A stranger's certificate gets none."""
    with Engine("pyroscope") as engine, Kubelet(tmp_path, "s3cret-new") as kubelet:
        with Agent(tmp_path, "pyroscope", engine.url, more=settings(kubelet, tmp_path)) as agent:
            wait_until(lambda: "status 401" in agent.text(), PATIENCE, "it is refused")
            (tmp_path / "token").write_text("s3cret-new")
            wait_until(lambda: agent.metric("kubernetes_refreshes_total") == 1, PATIENCE, "it is let in")
            agent.stop()
        assert "s3cret" not in agent.text()
        asked = len(kubelet.requests)
        stranger = settings(kubelet, tmp_path).replace(str(kubelet.certificate), str(tmp_path / "no.pem"))
        with Agent(tmp_path, "pyroscope", engine.url, more=stranger) as agent:
            wait_until(lambda: agent.metric("kubernetes_refresh_failures_total") > 0, PATIENCE,
                       "it is not spoken to")
            assert "certificate" in agent.text()
            agent.stop()
        assert len(kubelet.requests) == asked
        shown = run("agent", "--check", "--config", agent.config)
        assert "s3cret" not in shown.stdout + shown.stderr


def test_pod_that_is_new(some_python, tmp_path):
    """It is asked for when it turns up, and has its names in the windows that follow."""
    with pod_cgroups(CONTAINER) as (own,), Engine("pyroscope") as engine, \
            Kubelet(tmp_path, TOKEN) as kubelet:
        with Agent(tmp_path, "pyroscope", engine.url, more=settings(kubelet, tmp_path)) as agent:
            wait_until(lambda: agent.metric("kubernetes_refreshes_total") == 1, PATIENCE, "none yet")
            kubelet.pods.append(SHOP)
            with spinning(some_python, first=lambda: enter(own, os.getpid())):
                wait_until(lambda: engine.labels_of(SERVICE).get("pod") == "shop-7d9f", PATIENCE,
                           "it has a name")
            agent.stop()


def test_container_that_is_new_in_a_pod_that_is_known(some_python, tmp_path):
    """One that was restarted has another id: it is asked for too, not only after five minutes."""
    with pod_cgroups(CONTAINER, NEIGHBOUR) as (first, second), Engine("pyroscope") as engine, \
            Kubelet(tmp_path, TOKEN, [SHOP]) as kubelet:
        with Agent(tmp_path, "pyroscope", engine.url, more=settings(kubelet, tmp_path)) as agent:
            with spinning(some_python, first=lambda: enter(first, os.getpid())):
                wait_until(lambda: engine.labels_of(SERVICE).get("container") == "web", PATIENCE,
                           "the first has a name")
            refreshes = agent.metric("kubernetes_refreshes_total")
            kubelet.pods[:] = [pod(POD, containers={"web": NEIGHBOUR})]
            with spinning(some_python, name="again", first=lambda: enter(second, os.getpid())):
                wait_until(lambda: engine.labels_of("again").get("container") == "web", PATIENCE,
                           "and the second")
            assert agent.metric("kubernetes_refreshes_total") > refreshes
            agent.stop()


def test_names_by_files(some_python, tmp_path):
    """The kubelet's folders of logs: names, no labels. Nobody is asked."""
    (tmp_path / "logs" / ("prod_shop-7d9f_" + POD)).mkdir(parents=True)
    with pod_cgroups(CONTAINER) as (own,), Engine("pyroscope") as engine, \
            spinning(some_python) as target:
        enter(own, target.pid)
        with Agent(tmp_path, "pyroscope", engine.url, more="kubernetes:\n  source: files\n"
                   "  pod_logs: %s/logs\n" % tmp_path) as agent:
            wait_until(lambda: engine.labels_of(SERVICE).get("pod") == "shop-7d9f", PATIENCE,
                       "it has a name")
            agent.stop()
        assert engine.labels_of(SERVICE)["namespace"] == "prod"
        target.kill()
        target.wait()


def test_check_says_what_is_risky(tmp_path):
    config = tmp_path / "agent.yaml"
    config.write_text("output: {engine: otlp, url: https://h}\nkubernetes: {source: kubelet, verify: no,\n"
                      "  token_file: /nowhere/token, labels: [team, example.org/tier]}\n")
    done = run("agent", "--check", "--config", config)
    assert done.returncode == 0 and "  labels: [team, example.org/tier]\n" in done.stdout
    assert "/nowhere/token: cannot be read here" in done.stderr
    assert "kubernetes.verify is no" in done.stderr
