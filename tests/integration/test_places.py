# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where a process runs: namespaces, roots, overlays, cgroups, containers; and what becomes of the
files it was started from."""
import contextlib
import json
import os
import shutil
import subprocess
import threading
import time

import harness
import pytest
from containers import container, podman
from filesystems import btrfs, overlay
from harness import Recorder, Workload, export, frames, leaf_counts, wait_until
from spinning import (HZ, LEAF, SCRIPT, Spinning, assert_spins, children, pids, record, record_pid,
                      say_skipped)
from test_targets import assert_seen

pytestmark = pytest.mark.usefixtures("pyebpf")

# What is enough to record; without CAP_SYS_ADMIN and CAP_CHECKPOINT_RESTORE /proc/PID/map_files is
# closed, so that files are opened by their paths below the target's root.
LEAST = ("setpriv", "--bounding-set", "-all,+bpf,+perfmon,+sys_ptrace")


@pytest.fixture
def inside(rooted, tmp_path):
    """(root, folder in it, the folder as seen inside): with spin.py, gone afterwards."""
    root = rooted[0].root
    seen = os.path.join("/tmp", tmp_path.parent.name + "-" + tmp_path.name)
    folder = root + seen
    os.makedirs(folder)
    shutil.copy(SCRIPT, folder)
    yield root, folder, seen
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def program(some_python, tmp_path):
    """A static interpreter as a file of its own, which may be moved, replaced and removed."""
    path = tmp_path / "bin" / "python"
    os.mkdir(path.parent)
    shutil.copy(static_python(some_python), path)
    return path


def static_python(fallback):
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else fallback.command[-1]


def in_namespaces(*options):
    if not shutil.which("unshare"):
        say_skipped("no unshare here")
    return ("unshare", *options)


# --- Namespaces and roots -------------------------------------------------------------------------


def test_mount_namespace(rooted, tmp_path, inside):
    """The path of its interpreter is another file where we are."""
    root, folder, seen = inside
    other = os.path.join(folder, "python")
    os.mkfifo(other)  # would stop whoever opens it
    os.remove(other)
    open(other, "w").close()
    script = "mount --bind %s/usr/bin/python3.%d %s && exec chroot %s %s/python %s/spin.py" % (
        root, rooted[-1].minor, other, root, seen, seen)
    with Spinning(*in_namespaces("-m"), "sh", "-c", script) as target:
        for wrapper in ((), LEAST):
            record_pid(tmp_path, target.pid, wrapper=wrapper)


def test_two_roots_with_different_pythons_at_one_path(rooted, tmp_path, inside):
    root, folder, seen = inside
    other = os.path.join(folder, "python")
    open(other, "w").close()
    output = tmp_path / "spinning.pyebpf"
    with contextlib.ExitStack() as stack:
        targets = []
        for python in rooted:
            script = "mount --bind %s/usr/bin/python3.%d %s && " \
                "exec chroot %s %s/python %s/spin.py" % (root, python.minor, other, root, seen, seen)
            targets.append(stack.enter_context(
                Spinning(*in_namespaces("-m"), "sh", "-c", script)))
        samples, text = record(tmp_path, "-p", ",".join(str(t.pid) for t in targets), seconds=1)
        assert_spins(samples, text)
        assert pids(output) == {t.pid for t in targets}, text
        report = harness.run("report", output).stdout
        for python in rooted:
            assert "CPython 3.%d." % python.minor in report, report


def nested(levels):
    """A command in so many PID namespaces, each with its own /proc."""
    return in_namespaces("-pf", "--mount-proc") * levels


@pytest.mark.parametrize("levels", [1, 2])
def test_pid_namespace(some_python, tmp_path, levels):
    """From outside: PIDs are ours, and the report has the process's own too."""
    with Spinning(*nested(levels), *some_python.command, SCRIPT) as target:
        record_pid(tmp_path, target.pid)
        assert target.inner_pid == 1 != target.pid
        output = tmp_path / "spinning.pyebpf"
        assert pids(output) == {target.pid}
        report = harness.run("report", "--threads", output).stdout
        assert "(%d, 1 in its namespace)" % target.pid in report, report


INSIDE_OUT = """
pyebpf=$1 output=$2 python=$3 script=$4 deeper=$5
$deeper $python $script 8 always > $output.ready &
while ! grep -q READY $output.ready; do sleep 0.02; done
pid=$!
[ -z "$deeper" ] || pid=$(cat /proc/$!/task/$!/children)
echo $pid
$pyebpf record -F 997 -d 500ms -o $output-pid -p $pid || exit
$pyebpf record -F 997 -d 500ms -o $output-all -a
"""


@pytest.mark.parametrize("deeper", ["", "unshare -pf --mount-proc"], ids=["own", "deeper"])
def test_recorded_from_inside_a_pid_namespace(some_python, tmp_path, deeper):
    """-p takes the PIDs that one sees there; -a sees its processes and those below, no others."""
    with Spinning(*some_python.command, SCRIPT) as outside:
        done = subprocess.run(
            [*nested(1), "sh", "-c", INSIDE_OUT, "sh", harness.PYEBPF, str(tmp_path / "inside"),
             some_python.command[-1], SCRIPT, deeper.strip()],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        pid = int(done.stdout.split()[0])
        assert pid < 30 and pid != outside.pid
        for name in "pid", "all":
            output = str(tmp_path / "inside") + "-" + name
            assert_spins(frames(export(output)), done.stderr)
            assert pids(output) == {pid}, (name, done.stderr)
        report = harness.run("report", "--threads", str(tmp_path / "inside-pid")).stdout
        assert ("(%d, 1 in its namespace)" % pid in report) == bool(deeper), report


def test_proc_of_another_namespace_is_refused(tmp_path):
    done = subprocess.run([*in_namespaces("-pf"), harness.PYEBPF, "record", "-a", "-o",
                           str(tmp_path / "x")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=30)
    assert done.returncode == 4 and "/proc" in done.stderr and "mount" in done.stderr, done.stderr


# --- File systems ---------------------------------------------------------------------------------


def test_overlay(rooted, tmp_path, is_full):
    """maps, stat and the kernel's own inode say three different things of one file."""
    folder = tmp_path / "overlay"
    os.mkdir(folder)
    with overlay(rooted[0].root, folder) as merged:
        shutil.copy(SCRIPT, merged + "/tmp/spin.py")
        for python in rooted if is_full else rooted[-1:]:
            with Spinning("chroot", merged, "/usr/bin/python3.%d" % python.minor,
                          "/tmp/spin.py") as target:
                for wrapper in ((), LEAST):
                    record_pid(tmp_path, target.pid, wrapper=wrapper)


@pytest.mark.alone
def test_overlay_new_process_is_known_by_its_file(rooted, tmp_path):
    """Under -a, of processes one after another: all but the first from their first tick on."""
    folder = tmp_path / "overlay"
    os.mkdir(folder)
    output = tmp_path / "short.pyebpf"
    python = rooted[-1]
    with overlay(python.root, folder) as merged:
        shutil.copy(os.path.join(harness.WORKLOADS, "family.py"), merged + "/tmp/family.py")
        with Recorder(output, "-a", "-F", HZ) as recorder:
            recorder.wait_attached()
            done = subprocess.run(["chroot", merged, "/usr/bin/python3.%d" % python.minor,
                                   "/tmp/family.py", "0.2", "short", "6"], input=b"GO\nEXIT\n",
                                  stdout=subprocess.PIPE, check=True)
            recorder.finish()
    truth = json.loads(done.stdout.split(b"\n")[1])
    samples = {}
    for stack, count in frames(export(output)).items():
        if any("family.py" in frame[1] for frame in stack):
            samples[stack] = samples.get(stack, 0) + count
    assert_seen(truth, samples, HZ, least=0.97)


def test_btrfs(program, tmp_path):
    """A subvolume has a device number of its own, which maps does not show."""
    folder = tmp_path / "mount"
    os.mkdir(folder)
    with btrfs(tmp_path / "image", folder) as sub:
        copy = os.path.join(sub, "python")
        shutil.copy(program, copy)
        with Spinning(copy, SCRIPT) as target:
            assert os.stat(copy).st_dev not in devices_in_maps(target.pid, copy)
            for wrapper in ((), LEAST):
                record_pid(tmp_path, target.pid, wrapper=wrapper)
            doctor = harness.run("doctor", "-p", target.pid)
            assert "part of the program" in doctor.stdout and copy in doctor.stdout, doctor.stdout


def devices_in_maps(pid, path):
    with open("/proc/%d/maps" % pid) as f:
        found = {line.split()[3] for line in f if line.rstrip("\n").endswith(path)}
    assert found
    return {os.makedev(*(int(number, 16) for number in text.split(":"))) for text in found}


# --- Cgroups --------------------------------------------------------------------------------------


def mounted_cgroups(kind):
    with open("/proc/self/mountinfo") as f:
        for line in f:
            left, _, right = line.rstrip("\n").partition(" - ")
            if right.split()[0] == kind:
                yield left.split()[4], right.split()[2].split(",")


@pytest.fixture
def cgroup_v2():
    for root, _ in mounted_cgroups("cgroup2"):
        yield from new_cgroup(root)
        return
    say_skipped("no cgroup version 2 is mounted")


@pytest.fixture
def cgroup_v1():
    for root, options in mounted_cgroups("cgroup"):
        if "cpuacct" in options or "freezer" in options:
            yield from new_cgroup(root)
            return
    say_skipped("no cgroup version 1 is mounted")


def new_cgroup(root):
    path = os.path.join(root, "pyebpf-test-%d" % os.getpid())
    try:
        os.makedirs(path + "/inner")
    except OSError as e:
        say_skipped("cannot make a cgroup: %s" % e)
    yield path
    for folder in (path + "/inner", path):
        if os.path.isdir(folder):
            wait_until(lambda f=folder: not members(f), 10, "the cgroup is empty")
            os.rmdir(folder)


def members(path):
    with open(path + "/cgroup.procs") as f:
        return f.read().split()


def move(pid, path):
    with open(path + "/cgroup.procs", "w") as f:
        f.write(str(pid))


def by_process(output):
    counts = {}
    for stack, count in export(output, "--processes").items():
        pid = next(ident for kind, _, ident in stack.tags if kind == "process")
        counts[pid] = counts.get(pid, 0) + count
    return counts


def check_cgroup(path, python, tmp_path, slack):
    """Those in it at the start, those in a cgroup below, one that moves in, one that moves out, its
    short-lived children; none beside it. slack: seconds after a move that may be wrong."""
    output = tmp_path / "cgroup.pyebpf"
    with Spinning(*python.command, SCRIPT) as early, Spinning(*python.command, SCRIPT) as late, \
            Spinning(*python.command, SCRIPT) as outside, \
            Workload(python, "family.py", 0.4, "short", 4) as short:
        move(early.pid, path)
        move(short.pid, path + "/inner")
        before = cpu(early)
        with Recorder(output, "--cgroup", path, "-F", HZ) as recorder:
            recorder.wait_attached()
            attached, joined = cpu(early), cpu(late)
            move(late.pid, path)
            short.go()
            truth = short.truth()
            time.sleep(0.3)  # for the two that spin
            move(early.pid, os.path.dirname(path))
            left = cpu(early)
            time.sleep(slack)
            recorder.finish()
            stayed = cpu(late)
            text = recorder.text()
        counts = by_process(output)
        for target, least, most in ((early, left - attached, left - before),
                                    (late, stayed - joined, stayed - joined)):
            got = counts.get(target.pid, 0) / HZ
            assert 0.85 * (least - slack) - 0.02 <= got <= most * 1.1 + slack + 0.05, \
                (got, least, most, counts, text)
        assert outside.pid not in counts, (counts, text)
        # Its first child's first tick may be what the interpreter's file is learnt from.
        assert_seen(truth, frames(export(output)), HZ, least=0.97)
        for target in early, late:
            move(target.pid, os.path.dirname(path))


def cpu(target):
    with open("/proc/%d/schedstat" % target.pid) as f:
        return int(f.read().split()[0]) / 1e9


def test_cgroup_v2(some_python, cgroup_v2, tmp_path):
    """By the kernel's own knowledge: exact at each tick."""
    check_cgroup(cgroup_v2, some_python, tmp_path, 0.02)


def test_cgroup_v1(some_python, cgroup_v1, tmp_path):
    """By its list of processes, four times a second."""
    check_cgroup(cgroup_v1, some_python, tmp_path, 0.4)


@pytest.mark.parametrize("version", ["cgroup_v2", "cgroup_v1"])
def test_recording_ends_with_its_cgroup(request, some_python, version, tmp_path):
    path = request.getfixturevalue(version)
    output = tmp_path / "cgroup.pyebpf"
    with Spinning(*some_python.command, SCRIPT) as target:
        move(target.pid, path + "/inner")
        # By its name as in /proc/PID/cgroup, not by its folder.
        with Recorder(output, "--cgroup", os.path.basename(path) + "/inner", "-F", HZ) as recorder:
            recorder.wait_attached()
            used = cpu(target)
            wait_until(lambda: cpu(target) > used + 0.2, 20, "the target spins")
            target.close()
            wait_until(lambda: not members(path + "/inner"), 10, "the cgroup is empty")
            os.rmdir(path + "/inner")
            assert recorder.wait() == 0, recorder.text()
    assert_spins(frames(export(output)))


@pytest.mark.parametrize("arguments,status,says", [
    (("--cgroup", "no/such/cgroup"), 3, "no such cgroup"),
    (("--cgroup", "/tmp"), 3, "no such cgroup"),
    (("--container", "00112233445566ff"), 3, "no process here is in a container"),
    (("--container", "web"), 2, "12 hex digits"),
    (("--container", "0123456789abcdef", "-a"), 2, "exclude"),
], ids=lambda value: "-".join(value) if isinstance(value, tuple) else None)
def test_no_such_group(arguments, status, says, tmp_path):
    done = harness.run("record", "-o", tmp_path / "x", *arguments)
    assert done.returncode == status and says in done.stderr, done.stderr


def test_container_id_of_two(some_python, cgroup_v2, tmp_path):
    """An id's beginning that fits two containers names both."""
    ids = ["5a5a00112233" + digit * 52 for digit in "cd"]
    with Spinning(*some_python.command, SCRIPT) as first, \
            Spinning(*some_python.command, SCRIPT) as second:
        for target, ident in zip((first, second), ids):
            os.mkdir("%s/docker-%s.scope" % (cgroup_v2, ident))
            move(target.pid, "%s/docker-%s.scope" % (cgroup_v2, ident))
        done = harness.run("record", "-o", tmp_path / "x", "--container", "5a5a00112233")
        samples, text = record(tmp_path, "--container", "docker://" + ids[1])
        seen = pids(tmp_path / "spinning.pyebpf")
        for target in first, second:
            move(target.pid, os.path.dirname(cgroup_v2))
    for ident in ids:
        assert ident in done.stderr
        wait_until(lambda i=ident: not members("%s/docker-%s.scope" % (cgroup_v2, i)), 10, "empty")
        os.rmdir("%s/docker-%s.scope" % (cgroup_v2, ident))
    assert done.returncode == 3, done.stderr
    assert_spins(samples, text)
    assert seen == {second.pid}


# --- Containers -----------------------------------------------------------------------------------


def test_two_containers_with_different_pythons_at_one_path(rooted, tmp_path):
    output = tmp_path / "spinning.pyebpf"
    with container(rooted[0]) as (first, first_pid), container(rooted[-1]) as (second, second_pid):
        for ident, pid, python in ((first[:12], first_pid, rooted[0]),
                                   ("podman://" + second, second_pid, rooted[-1])):
            samples, text = record(tmp_path, "--container", ident)
            assert_spins(samples, text)
            assert pids(output) == {pid}, text
            report = harness.run("report", "--threads", output).stdout
            assert "(%d, 1 in its namespace)" % pid in report, report
            assert "CPython 3.%d." % python.minor in report, report
        samples, text = record(tmp_path, "-p", "%d,%d" % (first_pid, second_pid))
        assert_spins(samples, text)
        assert pids(output) == {first_pid, second_pid}, text


def test_recording_ends_with_its_container(rooted, tmp_path):
    output = tmp_path / "container.pyebpf"
    with container(rooted[-1]) as (ident, _):
        with Recorder(output, "--container", ident, "-F", HZ) as recorder:
            recorder.wait_attached()
            time.sleep(0.3)  # of its spinning
            podman("rm", "-f", "-t", "0", ident)
            assert recorder.wait() == 0, recorder.text()
    assert_spins(frames(export(output)))


# --- Files ----------------------------------------------------------------------------------------


def test_absolute_symlink_in_the_targets_root(rooted, tmp_path, inside):
    """Below the target's root it leads to the interpreter; followed from ours, to a FIFO."""
    root, folder, seen = inside
    os.mkdir(folder + "/real")
    shutil.copy("%s/usr/bin/python3.%d" % (root, rooted[-1].minor), folder + "/real/python")
    os.makedirs(seen + "/moved")
    os.mkfifo(seen + "/moved/python")
    try:
        with Spinning("chroot", root, seen + "/real/python", seen + "/spin.py") as target:
            os.rename(folder + "/real", folder + "/moved")
            os.symlink(seen + "/moved", folder + "/real")
            for wrapper in ((), LEAST):
                record_pid(tmp_path, target.pid, wrapper=wrapper)
    finally:
        shutil.rmtree(seen)


def fifo(path):
    os.remove(path)
    os.mkfifo(path)


def directory(path):
    os.remove(path)
    os.mkdir(path)


def link_to_terminal(path):
    os.remove(path)
    os.symlink("/dev/zero", path)


def other_program(path):
    shutil.copy("/bin/sh", str(path) + ".new")
    os.rename(str(path) + ".new", path)


def same_program(path):
    shutil.copy(path, str(path) + ".new")
    os.rename(str(path) + ".new", path)


@pytest.mark.parametrize("change", [os.remove, fifo, directory, link_to_terminal, other_program,
                                    same_program], ids=lambda change: change.__name__)
def test_file_changed_between_map_and_open(change, program, tmp_path):
    """What is mapped counts; where only the path is to be had and leads elsewhere, it is refused."""
    with Spinning(program, SCRIPT) as target:
        change(program)
        record_pid(tmp_path, target.pid)
        _, text = record(tmp_path, "-p", target.pid, wrapper=LEAST, status=3)
        assert str(program) in text, text


def test_file_truncated_while_it_is_read(some_python, program, tmp_path, is_full):
    """A file that a target maps shrinks and grows all the time: no crash, and the target is right."""
    copy = tmp_path / "libpython-copy.so"
    shutil.copy(program, copy)
    whole = copy.read_bytes()
    stop = threading.Event()

    def truncate():
        while not stop.is_set():
            os.truncate(copy, len(whole) // 3)
            os.truncate(copy, 100)
            with open(copy, "r+b") as f:
                f.write(whole)

    mapper = "import mmap, runpy, sys; f = open(%r, 'rb'); " \
        "m = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC); " \
        "sys.argv = ['spin', '60']; runpy.run_path(%r, run_name='__main__')" % (str(copy), SCRIPT)
    with Spinning(program, "-c", mapper) as target:
        thread = threading.Thread(target=truncate)
        thread.start()
        try:
            for _ in range(40 if is_full else 2):
                for wrapper in ((), LEAST):
                    samples, text = record(tmp_path, "-p", target.pid, seconds=0.2, wrapper=wrapper)
                    assert_spins(samples, text)
        finally:
            stop.set()
            thread.join()
