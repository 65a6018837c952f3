# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Several hosts and one engine. A host here is namespaces of its own for network, names and PIDs."""
import contextlib
import os
import shutil
import signal
import subprocess

import pytest
from engine_server import Engine
from harness import PATIENCE, wait_until
from spinning import family, say_skipped
from test_agent import Agent

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]
# name, service
HOSTS = [("alder", "shop"), ("birch", "shop"), ("cedar", "cron")]
SPINS = "import time\nwhile True: sum(range(100000)), time.sleep(0.008)"
START = """
hostname "$1"
ip link set lo up
OTEL_SERVICE_NAME=$2 "$3" -c "$4" &
shift 4
exec "$@"
"""


def ip(*words):
    return subprocess.run(["ip", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)


@contextlib.contextmanager
def network(number):
    """A network namespace and a wire to it: its name, the address at our end, that at its end."""
    name = "pyebpf-%d-%d" % (os.getpid(), number)
    wire, near, far = "pyw%d-%d" % (os.getpid() % 100000, number), \
        "10.213.%d.1" % number, "10.213.%d.2" % number
    made = ip("netns", "add", name)
    if made.returncode:
        say_skipped("no network namespace can be made here: " + made.stderr.strip())
    try:
        for words in (("link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", name),
                      ("addr", "add", near + "/30", "dev", wire), ("link", "set", wire, "up"),
                      ("-n", name, "addr", "add", far + "/30", "dev", "eth0"),
                      ("-n", name, "link", "set", "eth0", "up")):
            done = ip(*words)
            if done.returncode:
                say_skipped("no wire into a network namespace here: " + done.stderr.strip())
        yield name, near, far
    finally:
        ip("netns", "del", name)


class Host(Agent):
    """The agent of one, with a service beside it."""

    def __init__(self, folder, wire, engine_port, name, service, python):
        network_name, near, far = wire
        folder.mkdir()
        super().__init__(folder, "pyroscope", "http://%s:%d" % (near, engine_port),
                         more="  address: 0.0.0.0\n")
        self.host = far
        self.prefix = ("nsenter", "--net=/run/netns/" + network_name, "unshare", "--uts", "--pid",
                       "--fork", "--kill-child", "--mount-proc", "sh", "-c", START, "sh", name,
                       service, python.command[-1], SPINS)

    def stop(self):
        os.kill(family(self.process.pid)[1], signal.SIGTERM)  # unshare hands no signal on
        status = self.process.wait(PATIENCE)
        assert status == 0, self.text()


def test_hosts_push_to_one_engine(some_python, tmp_path):
    """What each recorded is there, under its own name, and nobody else's is."""
    if not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
        say_skipped("no ip, nsenter or unshare here (apt-get install iproute2 util-linux)")
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(Engine("pyroscope", address="0.0.0.0"))
        wires = [stack.enter_context(network(number)) for number in range(1, len(HOSTS) + 1)]
        hosts = [stack.enter_context(Host(tmp_path / name, wire, engine.port, name, service,
                                          some_python))
                 for wire, (name, service) in zip(wires, HOSTS)]

        def seen():
            with engine.lock:
                return {(labels["host"], labels["service_name"]) for labels in engine.labels}
        wait_until(lambda: set(HOSTS) <= seen(), PATIENCE, "each has pushed")
        for host in hosts:
            host.stop()
        assert engine.total() == sum(host.recorded() for host in hosts)
        assert seen() == set(HOSTS)
