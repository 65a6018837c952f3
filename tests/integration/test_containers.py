# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf from its own image: beside a container, with one capability less, as a DaemonSet and as a
sidecar from the manifests in deploy/."""
import contextlib
import copy
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile

import engines
import harness
import pytest
import pythons
from containers import PODMAN, container, podman
from engine_server import Engine
from harness import PATIENCE, PYEBPF, REPOSITORY, export, frames, wait_until
from spinning import HZ, SCRIPT, Spinning, assert_spins, pids, record_pid, say_skipped
from test_agent import names, spinning
from test_deploy import plain, read
from test_places import static_python

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("containers")]
DOCKER_PROFILE = "github.com/moby/profiles/seccomp@v0.3.0"
CAPABILITIES = re.search(r"add: \[(.*)\]", read("kubernetes", "debug.yaml")).group(1).split(", ")
# `play kube` of podman 4.3 gives limits that a small machine may not set, and knows no seccompProfile.
RUNTIME = """#!/usr/bin/python3
import json, os, sys
for word in sys.argv:
    path = os.path.join(word, "config.json")
    if os.path.isfile(path):
        with open(path) as f:
            spec = json.load(f)
        spec["process"].pop("rlimits", None)
        spec["linux"].pop("seccomp", None)
        with open(path, "w") as f:
            json.dump(spec, f)
os.execvp("runc", ["runc", *sys.argv[1:]])
"""


@pytest.fixture(scope="module")
def image():
    """The name of an image of the program under test: takes its time."""
    if not shutil.which("podman") or not shutil.which("runc"):
        say_skipped("no podman and runc here (apt-get install podman runc)")
    name = "localhost/pyebpf-test-%d" % os.getpid()
    done = subprocess.run(["sh", os.path.join(REPOSITORY, "deploy/image/build.sh"), PYEBPF, name],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = done.stdout.splitlines()[-1].split(": ")[0]
    yield made
    podman("rmi", "-f", made)


def capabilities(*without):
    return ["--cap-drop=all", "--read-only", "--security-opt", "seccomp=unconfined", "--cap-add=" +
            ",".join(sorted(set(CAPABILITIES) - set(without)))]


def run_image(image, *command, options=()):
    return subprocess.run([*PODMAN, *map(str, options), image, *map(str, command)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=PATIENCE, check=False)


@pytest.mark.full
def test_image_is_the_program_and_little_else(image):
    assert run_image(image, "--version").stdout == harness.run("--version").stdout
    said = re.search(r"^(\d+) MiB \(", read("..", "docs", "kubernetes.md"), re.M).group(1)
    size = int(podman("image", "inspect", "-f", "{{.Size}}", image)) / (1 << 20)
    assert abs(size - int(said)) < 3, (size, said)


@pytest.mark.full
def test_doctor_says_that_the_capabilities_are_enough(image):
    done = run_image(image, "doctor", options=["--pid=host", *capabilities()])
    assert done.returncode == 0 and "pyebpf can record here" in done.stdout, done.stdout + done.stderr
    done = run_image(image, "doctor", options=["--pid=host", *capabilities("PERFMON")])
    assert done.returncode == 4 and "CAP_PERFMON" in done.stdout, done.stdout + done.stderr


def docker_profile():
    """The seccomp profile that Docker gives containers, of its own Go module."""
    try:
        told = json.loads(pythons.run([engines.go(), "mod", "download", "-json", DOCKER_PROFILE],
                                      "go mod download"))
    except pythons.Unavailable as e:
        say_skipped("no seccomp profile of Docker: %s" % e)
    return os.path.join(told["Dir"], "default.json")


def doctor_beside(image, *options):
    """(exit code, rows that are no "ok", each with what to do about it)"""
    done = run_image(image, "doctor", options=["--pid=host", "--cap-drop=all", "--read-only", *options])
    return done.returncode, [row for row in done.stdout.splitlines() if not row.startswith("ok ")]


def remedy(rows, begin):
    at = next(i for i, row in enumerate(rows) if re.match(begin, row))
    return rows[at + 1].strip()


@pytest.mark.full
def test_default_profiles_of_seccomp(image, some_python):
    """Docker's lets those pass that have the capabilities; podman 4.3's refuses both calls all the
    same. What is missing is said with the line of YAML that adds it."""
    added = "--cap-add=" + ",".join(CAPABILITIES)
    status, rows = doctor_beside(image, added)
    assert status == 4, rows
    assert "securityContext: {seccompProfile: {type: Unconfined}}" in remedy(rows, r"missing +bpf\(\)")
    docker = ("--security-opt", "seccomp=" + docker_profile())
    status, rows = doctor_beside(image, *docker)
    assert status == 4 and "{capabilities: {add: [BPF, PERFMON, SYS_PTRACE]}}" in \
        remedy(rows, "limited +container"), rows
    assert doctor_beside(image, *docker, added)[0] == 0
    with spinning(some_python, name="beside") as target:
        done = run_image(image, "record", "-F", HZ, "-d", "400ms", "-o", "/tmp/x", "-p", target.pid,
                         options=["--pid=host", "--cap-drop=all", "--read-only", "--tmpfs=/tmp", *docker,
                                  added])
    assert done.returncode == 0 and "hot" in done.stderr, done.stderr


class Rootless:
    """podman as a user who has nothing, over this system's own /usr."""

    def __init__(self, folder):
        self.home = folder
        root = os.path.join(folder, "root")
        for name in ("usr", "opt", "proc", "sys", "dev", "tmp", "etc", "run"):
            os.makedirs(os.path.join(root, name))
        for name in ("bin", "lib", "lib64", "sbin"):
            os.symlink("usr/" + name, os.path.join(root, name))
        os.mkdir(os.path.join(folder, "run"), 0o700)
        for path in (PYEBPF, SCRIPT):
            shutil.copy(path, os.path.join(root, "opt"))
        subprocess.run(["chown", "-R", "65534:65534", folder], check=True)
        self.root = root

    def podman(self, *arguments):
        return subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-i", "-C", self.home,
             "PATH=" + os.environ["PATH"], "HOME=" + self.home, "XDG_RUNTIME_DIR=" + self.home + "/run",
             "podman", "--cgroup-manager=cgroupfs", "--runtime", "runc", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=PATIENCE, check=False)

    def run(self, *command, options=()):
        return self.podman(*PODMAN[3:], "-v", "/usr:/usr:ro", *options, "--rootfs", self.root, *command)


@pytest.mark.full
def test_rootless(pyebpf, tmp_path):
    """Its processes are recorded from outside; within, where no capability counts, that is said, and `dump`
    takes no more than the right to trace."""
    if not shutil.which("podman") or not shutil.which("runc"):
        say_skipped("no podman and runc here (apt-get install podman runc)")
    folder = tempfile.mkdtemp(prefix="pyebpf-test-")
    os.chmod(folder, 0o755)
    rootless = Rootless(folder)
    started = rootless.run("/usr/bin/python3", "/opt/spin.py", options=["-d"])
    try:
        if started.returncode:
            say_skipped("podman starts no rootless container here: " + started.stderr.strip()[-300:])
        ident = started.stdout.strip()
        wait_until(lambda: "READY" in rootless.podman("logs", ident).stdout, PATIENCE, "it starts")
        pid = rootless.podman("inspect", "-f", "{{.State.Pid}}", ident).stdout.strip()
        record_pid(tmp_path, int(pid))
        beside = ["--rm", "--pid=container:" + ident]
        refused = rootless.run("/opt/pyebpf", "record", "-a", "-d", "1s", "-o", "/tmp/x", options=beside)
        assert refused.returncode == 4 and "(a rootless container)" in refused.stderr, refused.stderr
        dumped = rootless.run("/opt/pyebpf", "dump", "-p", "1", options=beside)
        assert dumped.returncode == 0 and 'in <module>' in dumped.stdout, dumped.stderr
    finally:
        rootless.podman("rm", "-f", "-t", "0", "-a")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.full
def test_one_look_at_one_container(image, rooted, some_python):
    """As by `kubectl debug --target`: in its PID namespace, from another root. Seen are its process and
    one in a PID namespace below, which has files of its own; the neighbour's is not. The recording
    is left in the target's file system."""
    with container(rooted[0]), container(rooted[-1]) as (ident, pid), \
            Spinning("nsenter", "-t", pid, "-p", "unshare", "-pf", "--mount-proc",
                     *some_python.command, SCRIPT) as below:
        assert below.inner_pid == 1
        done = run_image(image, "record", "-a", "-F", HZ, "-d", "500ms", "-o",
                         "/proc/1/root/tmp/profile.pyebpf",
                         options=["--pid=container:" + ident, *capabilities()])
        assert done.returncode == 0, done.stderr
        output = "/proc/%d/root/tmp/profile.pyebpf" % pid
        assert_spins(frames(export(output)), done.stderr)
        seen = pids(output)
        assert 1 in seen and len(seen) == 2, seen
        text = harness.run("report", "--threads", output).stdout
        for python in rooted[-1], some_python:
            assert "CPython 3.%d." % python.minor in text, text


@contextlib.contextmanager
def interpreters(some_python):
    """{what: a process that spins}: of root, of another user in a closed folder, of a deleted file."""
    folder = tempfile.mkdtemp(prefix="pyebpf-test-")
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        script = shutil.copy(SCRIPT, folder)
        closed = os.path.join(folder, "closed")
        os.mkdir(closed)
        for path in (folder + "/plain", folder + "/deleted", closed + "/python"):
            shutil.copy(static_python(some_python), path)
        os.chmod(closed, stat.S_IRWXU)
        os.chown(closed, 65534, 65534)
        as_nobody = ("setpriv", "--reuid=65534", "--clear-groups")
        found = {"plain": Spinning(folder + "/plain", script),
                 "deleted": Spinning(folder + "/deleted", script),
                 "closed": Spinning(*as_nobody, closed + "/python", script)}
        for target in found.values():
            stack.enter_context(target)
        os.remove(folder + "/deleted")
        yield found


# The table of docs/kubernetes.md: without this capability, the exit code of recording what.
WITHOUT = [
    (None, {"plain": 0, "closed": 0, "deleted": 0}),
    ("BPF", {"plain": 4}),
    ("PERFMON", {"plain": 4}),
    ("SYS_PTRACE", {"plain": 4}),
    ("DAC_READ_SEARCH", {"plain": 0, "closed": 4, "deleted": 0}),
    ("CHECKPOINT_RESTORE", {"plain": 0, "closed": 0, "deleted": 3}),
]


@pytest.mark.full
def test_each_capability_is_needed_and_no_other(image, some_python):
    assert {row[0] for row in WITHOUT} == {None, *CAPABILITIES}
    with interpreters(some_python) as targets:
        for without, statuses in WITHOUT:
            for what, status in statuses.items():
                done = run_image(image, "record", "-F", HZ, "-d", "400ms", "-o", "/tmp/x", "-p",
                                 targets[what].pid, options=["--pid=host", "--tmpfs=/tmp",
                                                             *capabilities(without)])
                assert done.returncode == status, (without, what, done.stdout, done.stderr)
                if status == 4:
                    assert "CAP_" + without in done.stderr, done.stderr


def agent_config(manifest, engine):
    """agent.yaml of a manifest's ConfigMap, for an engine and a port of this test."""
    import yaml
    config = yaml.safe_load(manifest["ConfigMap"]["data"]["agent.yaml"])
    config["output"]["url"] = engine.url
    config["http"]["port"] = engines.free_port()
    del config["kubernetes"]  # nobody is here to ask
    return yaml.safe_dump({**config, "rate": 199, "window": "1s", "cpu_budget": "100%"})


@contextlib.contextmanager
def running(*command):
    """A container in the background, which must live to the end: its id. Its log if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    ident = done.stdout.strip()
    try:
        yield ident
        assert podman("inspect", "-f", "{{.State.Running}}", ident) == "true\n"
    except BaseException:
        print(podman("logs", ident)[-4000:])
        raise
    finally:
        podman("rm", "-f", "-t", "0", ident)


@pytest.mark.full
def test_daemonset_sees_every_container(image, rooted, tmp_path):
    """The node's processes, in its network, without its files: each profile has its container's id."""
    with container(rooted[0]) as (first, _), container(rooted[-1]) as (second, _), \
            Engine("pyroscope") as engine:
        (tmp_path / "agent.yaml").write_text(agent_config(plain("daemonset"), engine))
        options = [word for word in PODMAN if word not in ("--network", "none")]
        with running(*options, "-d", "--pid=host", "--network=host", *capabilities(),
                     "-v", "%s:/etc/pyebpf:ro" % tmp_path, "--tmpfs=/var/lib/pyebpf", image):
            def seen():
                with engine.lock:
                    return {labels.get("container_id") for labels in engine.labels}
            wait_until(lambda: {first, second} <= seen(), PATIENCE, "both containers are seen")
        with engine.lock:
            own = [stacks for (_, stacks), labels in zip(engine.stored, engine.labels)
                   if labels.get("container_id") in (first, second)]
        assert all("spin_here" in names(stacks) for stacks in own)


def sidecar_pod(image, engine, python):
    """deploy/kubernetes/sidecar.yaml as `play kube` of podman 4.3 can have it: a Pod, the sidecar an
    ordinary container, a network that exists here, the app's files from the interpreter's root."""
    import yaml
    made = copy.deepcopy(plain("sidecar"))
    made["ConfigMap"]["data"]["agent.yaml"] = agent_config(made, engine)
    spec = made["Deployment"]["spec"]["template"]["spec"]
    app, = spec["containers"]
    sidecar, = spec.pop("initContainers")
    assert sidecar.pop("restartPolicy") == "Always"
    for key in "livenessProbe", "ports", "env":  # not with hostNetwork; no node is known here
        del sidecar[key]
    mounts = {"/usr": python.root + "/usr", "/lib": python.root + "/usr/lib",
              "/lib64": python.root + "/usr/lib64", "/opt/spin.py": SCRIPT}
    for named in sidecar["volumeMounts"], spec["volumes"]:
        assert named.pop()["name"] == "pyebpf-podinfo"  # podman has no downward API
    app.update(image=image, command=["/usr/bin/python3.%d" % python.minor, "/opt/spin.py", "600"],
               volumeMounts=[{"name": "m%d" % i, "mountPath": path, "readOnly": True}
                             for i, path in enumerate(mounts)])
    spec["volumes"] += [{"name": "m%d" % i, "hostPath": {"path": path}}
                        for i, path in enumerate(mounts.values())]
    sidecar["image"] = image
    spec.update(containers=[app, sidecar], hostNetwork=True)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pyebpf-test-%d" % os.getpid()},
           "spec": spec}
    return yaml.safe_dump_all([made["ConfigMap"], pod])


@pytest.mark.full
def test_sidecar_sees_its_pod_alone(image, some_python, rooted, tmp_path):
    """One PID namespace for both containers of a pod; a service of the host spins beside it."""
    if not os.path.exists("/usr/libexec/podman/catatonit"):
        say_skipped("no pods here (apt-get install catatonit)")
    runtime = tmp_path / "runtime"
    runtime.write_text(RUNTIME)
    runtime.chmod(0o755)
    manifest = tmp_path / "pod.yaml"
    call = ("podman", "--runtime", str(runtime))
    with Engine("pyroscope") as engine, spinning(some_python, name="beside"):
        manifest.write_text(sidecar_pod(image, engine, rooted[-1]))
        done = subprocess.run([*call, "play", "kube", "-q", str(manifest)], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        try:
            assert done.returncode == 0, done.stdout
            wait_until(lambda: engine.total("app") > 100, PATIENCE, "the app's samples arrive")
        finally:
            logs = podman("pod", "logs", "pyebpf-test-%d" % os.getpid())
            subprocess.run([*call, "pod", "rm", "-f", "-t", "0", "pyebpf-test-%d" % os.getpid()],
                           stdout=subprocess.DEVNULL, check=False)
            print(logs[-4000:])
        assert {service for service, _ in engine.stored} == {"app"}
        assert "spin_here" in names(engine.stacks("app"))
