# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""With which rights `record` works, and which it keeps."""
import contextlib
import os
import re
import shutil
import struct
import subprocess

import engines
import pytest
from harness import PATIENCE, PYEBPF, Recorder, run, wait_until
from test_deploy import read

pytestmark = pytest.mark.usefixtures("pyebpf")

CAPS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "KILL": 5, "SYS_PTRACE": 19,
        "SYS_ADMIN": 21, "SYS_NICE": 23, "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40}
NOBODY = 65534


def mask(*names):
    return sum(1 << CAPS[name] for name in names)


KEPT = mask(*(set(CAPS) - {"SYS_ADMIN"}))


def status_of(path):
    with open(path, encoding="ascii", errors="replace") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


@contextlib.contextmanager
def spinning():
    """One whose interpreter everybody may read."""
    script = "def spin():\n    while True: pass\nspin()"
    with subprocess.Popen(["/usr/bin/python3", "-c", script]) as process:
        try:
            yield process
        finally:
            process.kill()


def test_rights_that_are_not_needed_are_gone(tmp_path):
    with spinning() as target, \
            Recorder(tmp_path / "it.pyebpf", "-p", target.pid) as recorder:
        recorder.wait_attached()
        tasks = "/proc/%d/task" % recorder.process.pid
        for tid in os.listdir(tasks):
            status = status_of("%s/%s/status" % (tasks, tid))
            assert int(status["CapPrm"], 16) & ~KEPT == 0 and int(status["CapInh"], 16) == 0, status
            assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2"), status
        recorder.stop()


def test_the_command_keeps_what_the_caller_has(some_python, tmp_path):
    script = "print([line for line in open('/proc/self/status') if line[:3] in ('Cap', 'NoN', 'Sec')])"
    command = [*some_python.command, "-c", script]
    plain = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    done = run("record", "-o", tmp_path / "it.pyebpf", "--", *command)
    assert done.stdout == plain.stdout and done.returncode == 0


def run_as(uid, *command):
    """As that user, who has no capability but those of the program's file."""
    def becomes():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    return subprocess.run(list(map(str, command)), preexec_fn=becomes, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


@pytest.fixture
def own_program(tmp_path):
    """A copy whose file can be given capabilities, where everybody can execute it."""
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o777 if folder == tmp_path else 0o755)
    program = tmp_path / "pyebpf"
    shutil.copy(PYEBPF, program)
    program.chmod(0o755)
    return program


def give(program, *names):
    """File capabilities, as setcap(8) NAME,...+ep does."""
    caps = mask(*names)
    version_2, is_effective = 0x02000000, 1
    words = version_2 | is_effective, caps & 0xffffffff, 0, caps >> 32, 0
    os.setxattr(program, "security.capability", struct.pack("<5I", *words))


def test_a_user_records_by_file_capabilities(own_program, tmp_path):
    """As `doctor` tells it: another user's process, too."""
    told = run_as(NOBODY, own_program, "doctor")
    assert told.returncode == 4 and "setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore+ep" in told.stdout
    give(own_program, "BPF", "PERFMON", "SYS_PTRACE", "CHECKPOINT_RESTORE")
    assert run_as(NOBODY, own_program, "doctor").returncode == 0
    with spinning() as target:
        done = run_as(NOBODY, own_program, "record", "-p", target.pid, "-d", "1s", "-o",
                      tmp_path / "it.pyebpf")
    assert done.returncode == 0, done.stderr
    assert os.stat(tmp_path / "it.pyebpf").st_uid == NOBODY
    assert "spin" in run("report", tmp_path / "it.pyebpf").stdout


def test_a_user_dumps_own_processes_without_any(own_program):
    """What takes no more than the right to trace."""
    with subprocess.Popen(["/usr/bin/python3", "-c", "import time\ndef waits():\n    time.sleep(60)\nwaits()"],
                          user=NOBODY, group=NOBODY, extra_groups=[]) as target:
        try:
            dumped = run_as(NOBODY, own_program, "dump", "-p", target.pid)
            while dumped.returncode == 0 and "waits" not in dumped.stdout:  # it starts
                dumped = run_as(NOBODY, own_program, "dump", "-p", target.pid)
            refused = run_as(NOBODY, own_program, "record", "-p", target.pid, "-d", "1s")
        finally:
            target.kill()
    assert dumped.returncode == 0, dumped.stderr
    assert refused.returncode == 4 and "CAP_BPF" in refused.stderr


AGENT = """rate: 199
window: 1s
cpu_budget: 100%
output: {{engine: files, directory: {0}/out}}
spool: {{directory: {0}/spool}}
http: {{port: {1}}}
"""


def test_the_agent_is_a_user_s_by_ambient_capabilities(own_program, tmp_path):
    """As docs/fleet.md has it for systemd. It hands on none of them."""
    names = ",".join("+" + name for name in re.search(
        r"(?m)^AmbientCapabilities=(CAP_.*)", read("..", "docs", "fleet.md")).group(1)
        .replace("CAP_", "").lower().split())
    config = tmp_path / "agent.yaml"
    config.write_text(AGENT.format(tmp_path, engines.free_port()))
    command = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
               "--bounding-set=-all," + names, "--inh-caps=-all," + names, "--ambient-caps=-all," + names,
               own_program, "agent", "--config", config]
    with spinning() as target, subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as agent:
        try:
            wait_until(lambda: list((tmp_path / "out").glob("*.pyebpf")) or agent.poll() is not None,
                       PATIENCE, "a window of the agent's")
            status = status_of("/proc/%d/status" % agent.pid)
        finally:
            agent.terminate()
            said = agent.stderr.read()
        assert agent.wait() == 0, said
        files = sorted((tmp_path / "out").glob("*.pyebpf"))
        rows = run("report", "--process", target.pid, *files).stdout
    assert status["Uid"].split() == [str(NOBODY)] * 4 and files[0].stat().st_uid == NOBODY
    assert int(status["CapAmb"], 16) == int(status["CapInh"], 16) == 0, status
    assert "spin" in rows, rows
