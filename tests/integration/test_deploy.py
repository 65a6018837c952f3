# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""deploy/: the chart, the plain manifests and the unit agree with each other and with the program;
Helm and Kubernetes' own code take them."""
import os
import re

import charts
import pytest
import pythons
from harness import REPOSITORY, run
from spinning import say_skipped

DEPLOY = os.path.join(REPOSITORY, "deploy")
PLAIN = ("daemonset", "sidecar")
# What operators may set beyond the defaults.
VARIANTS = [
    (),
    ("namespace.create=true", "serviceMonitor.enabled=true"),
    ("hostNetwork=true", "config.http.address=127.0.0.1", "config.output.engine=parca"),
    ("config.http.address=::", "existingSecret=engine-token",
     "config.output.tenant=team-a", "config.kubernetes.source=kubelet",
     "config.kubernetes.verify=no"),
    ("serviceAccount.create=false", "serviceAccount.name=other", "imagePullSecrets[0].name=registry",
     "priorityClassName=system-node-critical", "fullnameOverride=profiler", "config.rate=49",
     "podLabels.team=a", "podAnnotations.note=b", "updateStrategy.type=OnDelete",
     "updateStrategy.rollingUpdate=null", "image.tag=abc", "nameOverride=short",
     "config.output.engine=otlp", "config.labels.cluster=one", "config.kubernetes.source=files",
     "config.services.exclude={*-cron,batch-*}"),
    ("rbac.create=false", "config.kubernetes.source=none"),
    ("extraEnv[0].name=HTTPS_PROXY", "extraEnv[0].value=http://proxy:3128", "extraVolumes[0].name=ca",
     "extraVolumes[0].configMap.name=engine-ca", "extraVolumeMounts[0].name=ca",
     "extraVolumeMounts[0].mountPath=/etc/ssl/engine"),
    ("config.output=null", "config.output[0].engine=pyroscope", "config.output[0].url=http://a:4040",
     "config.output[1].name=b", "config.output[1].engine=otlp", "config.output[1].url=http://b:4318"),
]
REFUSED = [
    ("config.output.engine=loki", "one of 'pyroscope', 'otlp', 'parca'"),
    ("config.output.url=pyroscope:4040", "config/output/url"),
    ("config.output[0].engine=otlp", "config/output/0"),
    ("config.http.port=0", "config/http/port"),
    ("hostnetwork=true", "hostnetwork"),
    ("spool.hostPath=relative", "spool/hostPath"),
    ("config.http.address=127.0.0.1", "probes cannot reach 127.0.0.1"),
]


def read(*path):
    with open(os.path.join(DEPLOY, *path), encoding="utf-8") as f:
        return f.read()


def documents(text):
    """{kind: document}"""
    try:
        import yaml
    except ImportError:
        say_skipped("no PyYAML (apt-get install python3-yaml)")
    return {document["kind"]: document for document in yaml.safe_load_all(text) if document}


def plain(name):
    return documents(read("kubernetes", name + ".yaml"))


def daemonset():
    return plain("daemonset")["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]


def sidecar():
    return plain("sidecar")["Deployment"]["spec"]["template"]["spec"]["initContainers"][0]


def check_config(config, folder):
    path = folder / "agent.yaml"
    path.write_text(config)
    done = run("agent", "--check", "--config", path)
    assert done.returncode == 0, done.stderr


def test_plain_daemonset_was_made_of_the_chart_as_it_is():
    text = read("kubernetes", "daemonset.yaml")
    body = text[text.index("apiVersion"):]
    assert text == charts.HEAD % charts.digest(body) + body, "run `make manifests`"


@pytest.mark.parametrize("name", PLAIN)
def test_configuration_in_the_manifest_is_taken(name, tmp_path):
    check_config(plain(name)["ConfigMap"]["data"]["agent.yaml"], tmp_path)


def test_all_run_the_agent_alike():
    """As a sidecar, from the chart, in `kubectl debug`, under systemd."""
    ours, beside = daemonset(), sidecar()
    for key in ("image", "args", "env", "securityContext", "resources", "livenessProbe"):
        assert ours[key] == beside[key], key
    assert "readinessProbe" not in beside  # a profiler takes no app out of service
    import yaml
    debug = yaml.safe_load(read("kubernetes", "debug.yaml"))["securityContext"]
    assert debug.items() <= ours["securityContext"].items()
    unit = re.search(r"^CapabilityBoundingSet=(.*)$", read("pyebpf-agent.service"), re.M).group(1)
    assert set(unit.split()) == {"CAP_" + name for name in debug["capabilities"]["add"]}


def test_role_is_what_the_configuration_needs():
    """Pods may be listed, and nothing else; who asks nobody has no token."""
    made = plain("daemonset")
    assert made["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    assert "source: api\n" in made["ConfigMap"]["data"]["agent.yaml"]
    pod = plain("sidecar")["Deployment"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False


def test_alerts_of_the_chart_are_the_documented_ones():
    """Each expression, whole, and each metric in them is one that the agent has."""
    template = read("helm", "pyebpf", "templates", "prometheusrule.yaml")
    with open(os.path.join(REPOSITORY, "docs", "fleet.md"), encoding="utf-8") as f:
        page = " ".join(f.read().split())
    with open(os.path.join(REPOSITORY, "user", "agent", "metrics.c"), encoding="utf-8") as f:
        source = f.read()
    expressions = re.findall(r"expr: '(.*)'", template)
    assert len(expressions) == template.count("- alert: ") >= 10
    for expression in expressions:
        assert "`%s`" % expression in page, expression
        for metric in re.findall(r"pyebpf_(\w+)", expression):
            assert '"%s"' % metric in source, metric


def test_versions_agree():
    version = run("--version").stdout.split()[1]
    chart = read("helm", "pyebpf", "Chart.yaml")
    assert re.search(r"^appVersion: (.*)$", chart, re.M).group(1) == version
    assert daemonset()["image"] == "pyebpf:" + version


# --- With Helm and Kubernetes' own code -----------------------------------------------------------


@pytest.fixture
def tools():
    """They take Go, and minutes to build."""
    try:
        charts.helm()
        charts.judge()
    except pythons.Unavailable as error:
        say_skipped(str(error))


@pytest.mark.full
def test_plain_daemonset_is_what_helm_makes(tools):
    assert read("kubernetes", "daemonset.yaml") == charts.plain(), "run `make manifests`"
    assert "0 chart(s) failed" in charts.lint()


@pytest.mark.full
@pytest.mark.parametrize("settings", VARIANTS, ids=lambda settings: "+".join(settings)[:40])
def test_chart_makes_what_kubernetes_takes(tools, settings, tmp_path):
    text = charts.render(*settings)
    made = documents(text)
    assert len(charts.judged(text)) == len(made) >= 2
    check_config(made["ConfigMap"]["data"]["agent.yaml"], tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("setting, said", REFUSED)
def test_chart_refuses_values_that_cannot_work(tools, setting, said):
    with pytest.raises(charts.Refused, match=re.escape(said)):
        charts.render(setting)


@pytest.mark.full
@pytest.mark.parametrize("name", PLAIN)
def test_kubernetes_takes_the_plain_manifests(tools, name):
    assert len(charts.judged(read("kubernetes", name + ".yaml"))) == len(plain(name))


@pytest.mark.full
@pytest.mark.parametrize("before, after, said", [
    ("hostPID: true", "hostPid: true", 'unknown field "spec.template.spec.hostPid"'),
    ("app.kubernetes.io/name: pyebpf\n      app", "app.kubernetes.io/name: other\n      app",
     "selector"),
    ("memory: 64Mi", "memory: 512Mi", "must be less than or equal to memory limit"),
    ("port: metrics", "port: nowhere_at_all", "port"),
])
def test_the_judge_refuses_what_kubernetes_does(tools, before, after, said):
    text = read("kubernetes", "daemonset.yaml")
    assert before in text
    with pytest.raises(charts.Refused, match=re.escape(said)):
        charts.judged(text.replace(before, after, 1))


@pytest.mark.full
def test_kubernetes_takes_the_container_of_kubectl_debug(tools):
    lines = read("kubernetes", "debug.yaml").splitlines()
    pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: app\nspec:\n  containers:\n  - name: debug\n" \
        "    image: pyebpf\n" + "".join("    %s\n" % line for line in lines)
    assert charts.judged(pod) == ["Pod/app"]


@pytest.mark.full
@pytest.mark.parametrize("source, resources", [
    ("api", ["pods"]), ("kubelet", ["nodes/pods"]), ("files", None), ("none", None)])
def test_role_follows_the_source_of_names(tools, source, resources):
    made = documents(charts.render("config.kubernetes.source=" + source))
    assert ("ClusterRole" in made) == ("ClusterRoleBinding" in made) == bool(resources)
    if resources:
        assert made["ClusterRole"]["rules"][0]["resources"] == resources
    pod = made["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] == bool(resources)
    assert ("pod-logs" in str(pod["volumes"])) == (source == "files")


@pytest.mark.full
def test_nodes_pods_is_not_asked_of_older_kubelets(tools):
    text = charts.call([charts.helm(), "template", "pyebpf", charts.CHART, "--kube-version", "1.32.0",
                        "--set", "config.kubernetes.source=kubelet"])
    assert documents(text)["ClusterRole"]["rules"][0]["resources"] == ["nodes/proxy"]


@pytest.mark.full
def test_what_operators_of_prometheus_and_openshift_add(tools):
    """Kinds that the judge does not know: their form, and whom they are for."""
    made = documents(charts.render("podMonitor.enabled=true", "prometheusRule.enabled=true",
                                   "prometheusRule.labels.release=main", "openshift.enabled=true"))
    pods = made["DaemonSet"]["spec"]["template"]
    monitor = made["PodMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= pods["metadata"]["labels"].items()
    ports = [port["name"] for port in pods["spec"]["containers"][0]["ports"]]
    assert [end["port"] for end in monitor["podMetricsEndpoints"]] == ports
    rules = made["PrometheusRule"]["spec"]["groups"][0]["rules"]
    assert made["PrometheusRule"]["metadata"]["labels"]["release"] == "main"
    assert "{{ $labels.reason }}" in rules[0]["annotations"]["summary"]
    allowed = made["SecurityContextConstraints"]
    assert allowed["users"] == ["system:serviceaccount:pyebpf:pyebpf"]
    context = pods["spec"]["containers"][0]["securityContext"]
    assert allowed["allowedCapabilities"] == context["capabilities"]["add"]
    for kind in {next(iter(set(volume) - {"name"})) for volume in pods["spec"]["volumes"]}:
        assert kind in allowed["volumes"]
