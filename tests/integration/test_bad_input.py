# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Wrong input of every kind: one clear line, the right exit status, nothing half-written.

What is said of it becomes rows of docs/faults.md (tools/fault_table.py)."""
import os
import pathlib
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import pytest
from harness import PYEBPF, Recorder, Workload, export, frames, leaf_counts, run

CORPUS = pathlib.Path(__file__).resolve().parent.parent / "fuzz" / "corpus" / "store_rows"

pytestmark = pytest.mark.usefixtures("pyebpf")


@pytest.fixture
def refused(refusal):
    """assert_refused(), and a row of docs/faults.md of it."""
    def check(what, done, *wanted):
        assert_refused(done, *wanted)
        refusal(what, done)
    return check


def assert_refused(done, status, pattern, command="record"):
    """One line that says what and whose fault, and at most one more that says what to do."""
    lines = done.stderr.splitlines()
    assert done.returncode == status, (done.returncode, done.stderr, done.stdout)
    assert lines and re.search(pattern, lines[0], re.I), done.stderr
    assert lines[0].startswith("pyebpf %s: " % command if command else "pyebpf: "), done.stderr
    assert len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("try: ")), done.stderr
    assert not re.search(r"Traceback|errno|Errno|assert|0x[0-9a-f]{6}|libbpf:", done.stderr)
    assert done.stdout == ""


def command_line(*arguments):
    return "`pyebpf %s`" % " ".join(map(shlex.quote, arguments))


@pytest.mark.parametrize("arguments,pattern", [
    (["-p", "1", "-d", "0"], "-d|duration"),
    (["-p", "1", "-d", "0s"], "-d|duration"),
    (["-p", "1", "-d", "-1"], "-d|duration"),
    (["-p", "1", "-d", "soon"], "soon"),
    (["-p", "1", "-d", "1e9h"], "1e9h"),
    (["-p", "1", "-F", "0"], "-F|freq"),
    (["-p", "1", "-F", "1000000"], "-F|freq"),
    (["-p", "1", "-F", "99999999999999999999"], "-F|freq"),
    (["-p", "1", "-F", "-5"], "-F|freq|-5"),
    (["-p", "1", "-F", "fast"], "fast"),
    (["-p", "1", "-F", ""], "-F|freq"),
    (["-p", "abc"], "abc"),
    (["-p", "0"], "-p|pid"),
    (["-p", "-1"], "-p|pid|-1"),
    (["-p", "1,"], "-p|pid"),
    (["-p", "1", "-p", "1"], "pid 1 .*twice"),
    (["-p", "99999999999999999999"], "-p|pid"),
    (["-p"], "-p|pid"),
    (["-p", "1", "--", "true"], "-p|command|target"),
    (["-a", "--", "true"], "-a|command|target"),
    (["-a", "-p", "1"], "-a|-p|target"),
    (["--"], "command|target|what to record"),
    ([], "target|-p"),
    (["-p", "1", "extra"], "extra|--"),
    (["--nonsense", "-p", "1"], "nonsense"),
    (["-p", "1", "-o"], "-o|output"),
    (["-p", "1", "-o", ""], "-o|output|empty"),
], ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "")
def test_usage(arguments, pattern, refused, tmp_path):
    done = run("record", *arguments, cwd=tmp_path, timeout=20)
    refused(command_line("record", *arguments), done, 2, pattern)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments,status,pattern,command", [
    (["frobnicate"], 2, "frobnicate", None),
    (["--frobnicate"], 2, "frobnicate", None),
    (["export", "-f", "nonsense", "x"], 2, "nonsense", "export"),
    (["export", "-f", "collapsed", "absent.pyebpf"], 1, "absent.pyebpf", "export"),
    (["export", "-f", "collapsed"], 1, "profile.pyebpf", "export"),
    (["export", "-f", "collapsed", "."], 1, "directory|regular file", "export"),
    (["report", "absent.pyebpf"], 1, "absent.pyebpf", "report"),
    (["report"], 1, "profile.pyebpf", "report"),
    (["report", "--limit", "x"], 2, "limit|x", "report"),
    (["report", "--sort", "colour"], 2, "colour", "report"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_usage_of_others(arguments, status, pattern, command, refused, tmp_path):
    done = run(*arguments, cwd=tmp_path, timeout=20)
    refused(command_line(*arguments), done, status, pattern, command)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], ["record", "--help"],
                                       ["report", "-h"], ["export", "--help"]], ids=" ".join)
def test_help_is_no_error(arguments):
    done = run(*arguments)
    assert done.returncode == 0 and done.stdout and not done.stderr


def test_no_arguments_is_a_usage_error():
    done = run()
    assert done.returncode == 2 and "record" in done.stderr + done.stdout


# --- Targets that cannot be recorded --------------------------------------------------------------


@pytest.fixture
def refused_pid(refused, tmp_path):
    def check(what, pid, pattern, *options):
        output = tmp_path / "out"
        output.mkdir()
        done = run("record", "-p", pid, "-d", "1s", "-o", output / "x.pyebpf", *options,
                   timeout=20)
        refused("`record -p` of " + what, done, 3, pattern)
        assert str(pid) in done.stderr
        assert os.listdir(output) == []
    return check


def test_not_python(refused_pid):
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            time.sleep(0.05)
            refused_pid("another program, with `--no-children`", child.pid,
                        r"pid \d+: no Python.*sleep", "--no-children")
        finally:
            child.kill()


def test_no_such_pid(refused_pid):
    with open("/proc/sys/kernel/pid_max") as f:
        refused_pid("a PID that never was", int(f.read()) - 1, r"no such process|no process")


def test_gone_pid(refused_pid):
    child = subprocess.Popen(["true"])
    child.wait()
    refused_pid("a process that is gone", child.pid, r"no such process|no process")


def test_kernel_thread(refused_pid):
    refused_pid("a kernel thread", 2, r"kernel thread")


def test_zombie(refused_pid):
    child = subprocess.Popen(["true"])
    try:
        while True:
            with open("/proc/%d/stat" % child.pid) as f:
                if f.read().rsplit(") ", 1)[1].startswith("Z"):
                    break
        refused_pid("a zombie", child.pid, r"zombie|exited")
    finally:
        child.wait()


def test_one_of_several_is_gone(some_python, refusal, tmp_path):
    """A wrong PID beside a right one is not passed over in silence."""
    child = subprocess.Popen(["true"])
    child.wait()
    with Workload(some_python, "family.py", 0.4, "idle") as workload:
        done = run("record", "-p", "%d,%d" % (workload.pid, child.pid), "-d", "1s",
                   "-o", tmp_path / "x.pyebpf", timeout=20)
    assert str(child.pid) in done.stderr
    assert done.returncode in (0, 3)
    refusal("`record -p` of two, one of them gone", done)


def test_no_samples(some_python, refused, tmp_path):
    """An idle process gives no samples: exit status 3, and says so."""
    with Workload(some_python, "family.py", 1, "idle") as workload:
        done = run("record", "-p", workload.pid, "-d", "0.3s", "-o", tmp_path / "x.pyebpf")
    refused("a process that waits all the time", done, 3,
            "no samples of pid %d in .*: no CPU time used" % workload.pid)
    assert len(done.stderr.splitlines()) == 2, done


def test_no_samples_of_another_program(refusal, tmp_path):
    """What the ticks were instead, said by record and by whoever reads the recording."""
    output = tmp_path / "x.pyebpf"
    done = run("record", "-F", 997, "-o", output, "--", "sh", "-c",
               "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; exit 5")
    expected = r"no samples(?: of Python code)?: (\d[\d,]*) ticks, (.*)"
    report = run("report", output)
    assert done.returncode == 5 and report.returncode == 3, (done, report)
    refusal("a command that runs no Python, and exits with 5", done)
    refusal("`report` of its recording", report)
    for text in (done.stderr, report.stderr):
        line, following = text.splitlines()
        total, parts = re.search(expected, line).groups()
        counts = [int(count) for count in re.findall(r"(\d+) ", parts.replace(",", ""))]
        assert int(total.replace(",", "")) == sum(counts) > 20, text
        assert re.match(r"\d[\d,]* in processes without Python", parts), text
        assert following.startswith("try: pgrep -af python"), text
    quiet = run("record", "-q", "-o", output, "--", "true")
    assert quiet.returncode == 0 and not quiet.stderr, quiet


# --- Pythons that are not known ------------------------------------------------------------------


def patched_python(python, folder, cookie, minor):
    """A copy of a loader-run interpreter that says it is another version, or has no cookie."""
    program = python.command[-1]
    with open(program, "rb") as f:
        image = bytearray(f.read())
    at = symbol_offset(bytes(image), b"_PyRuntime")
    assert image[at:at + 8] == b"xdebugpy"
    hexversion, = struct.unpack_from("<Q", image, at + 8)
    assert hexversion >> 16 & 0xff == python.minor
    changed = hexversion & ~0xff0000 | minor << 16
    struct.pack_into("<Q", image, at + 8, changed)
    image[at:at + 8] = cookie
    text = struct.pack("<L", hexversion & 0xffffffff)
    at = symbol_offset(bytes(image), b"Py_Version")
    assert image[at:at + 4] == text
    struct.pack_into("<L", image, at, changed & 0xffffffff)
    copy = os.path.join(folder, "python3.%d" % minor)
    with open(copy, "wb") as f:
        f.write(image)
    os.chmod(copy, 0o755)
    return python.command[:-1] + [copy]


def symbol_offset(image, name):
    """The offset in the file of a symbol's bytes, by .dynsym."""
    shoff, = struct.unpack_from("<Q", image, 40)
    shentsize, shnum = struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, shoff + i * shentsize)
                for i in range(shnum)]
    for section in sections:
        if section[1] != 11:  # SHT_DYNSYM
            continue
        strings = sections[section[6]][4]
        for i in range(section[5] // 24):
            st_name, _, _, shndx, value, _ = struct.unpack_from("<IBBHQQ", image, section[4] + i * 24)
            if shndx and image.startswith(name + b"\0", strings + st_name):
                return sections[shndx][4] + value - sections[shndx][3]
    raise AssertionError("no " + name.decode())


@pytest.fixture
def loader_python(request):
    found = [p for p in request.config.all_pythons if p.via == "loader" and p.linkage == "static"]
    if not found:
        pytest.skip("no interpreter run by its own loader")
    return found[-1]


def patched_workload(python, folder, cookie, minor):
    command = patched_python(python, str(folder), cookie, minor)
    home = os.path.dirname(os.path.dirname(python.command[-1]))
    return Workload(python, "family.py", 1, "idle", command=command, env={"PYTHONHOME": home})


def test_unknown_minor_with_its_own_offsets_is_best_effort(loader_python, tmp_path):
    with patched_workload(loader_python, tmp_path, b"xdebugpy", 77) as workload:
        output = tmp_path / "x.pyebpf"
        with Recorder(output, "-p", workload.pid, "-F", 997) as recorder:
            recorder.wait_attached()
            workload.go()
            truth = workload.truth()
            recorder.finish()
            text = recorder.text()
    assert re.search(r"3\.77", text) and re.search("best effort", text, re.I), text
    counts = leaf_counts(frames(export(output)))
    found = counts.get(("spin_idle", truth["lines"]["spin_idle"]), 0)
    due = 997 * truth["cpu"]["spin_idle"]
    assert found > max(0, 0.8 * due - 4 * due ** 0.5), (counts, truth)


def test_unknown_minor_without_offsets_is_refused(loader_python, refused_pid, tmp_path):
    with patched_workload(loader_python, tmp_path, b"\0" * 8, 77) as workload:
        refused_pid("a Python of an unknown version, without `_Py_DebugOffsets`", workload.pid,
                    r"3\.77")


# --- Permissions ----------------------------------------------------------------------------------


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip("no " + ", ".join(missing))


def record_wrapped(wrapper, python, program=PYEBPF):
    """record of a live target by a program run through others; its output folder stays empty."""
    folder = tempfile.mkdtemp(prefix="pyebpf-test-")
    try:
        os.chmod(folder, 0o777)
        with Workload(python, "family.py", 1, "idle") as workload:
            done = subprocess.run(
                [*wrapper, program, "record", "-p", str(workload.pid), "-d", "0.5s",
                 "-o", os.path.join(folder, "x.pyebpf")], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20, text=True)
        assert os.listdir(folder) == []
        return done
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def public_pyebpf():
    """A copy of the program that every user can reach."""
    folder = tempfile.mkdtemp(prefix="pyebpf-test-")
    os.chmod(folder, 0o755)
    yield shutil.copy(PYEBPF, folder)
    shutil.rmtree(folder)


LACKING = [
    ("not root", ["--reuid=65534", "--regid=65534", "--clear-groups"], r"root|CAP_\w+|permission"),
    ("no CAP_BPF", ["--bounding-set=-sys_admin,-bpf"], r"CAP_BPF"),
    ("no CAP_PERFMON", ["--bounding-set=-sys_admin,-perfmon"], r"CAP_PERFMON"),
    ("no CAP_SYS_PTRACE", ["--bounding-set=-sys_ptrace"], r"CAP_SYS_PTRACE"),
    ("no capability", ["--bounding-set=-all"], r"CAP_\w+"),
]


@pytest.mark.parametrize("lacking,wrapper,pattern", LACKING, ids=[row[0] for row in LACKING])
def test_missing_permission(lacking, wrapper, pattern, some_python, public_pyebpf, refused):
    needs("setpriv")
    refused(lacking, record_wrapped(["setpriv", *wrapper, "--inh-caps=-all"], some_python,
                                    public_pyebpf), 4, pattern)


PARANOID = "/proc/sys/kernel/perf_event_paranoid"


@pytest.fixture
def paranoid():
    """Debian's and Ubuntu's strictest: no perf events at all without CAP_PERFMON."""
    with open(PARANOID) as f:
        before = f.read()
    with open(PARANOID, "w") as f:
        f.write("4")
    yield
    with open(PARANOID, "w") as f:
        f.write(before)


def test_paranoid(some_python, paranoid, refused, refusal, public_pyebpf, tmp_path):
    """It does not bind who has CAP_PERFMON; who has not is told of that, not of the number."""
    needs("setpriv")
    without = ["setpriv", "--bounding-set=-sys_admin,-perfmon", "--inh-caps=-all"]
    refused("perf_event_paranoid is 4, no CAP_PERFMON",
            record_wrapped(without, some_python, public_pyebpf), 4, r"CAP_PERFMON")
    output = tmp_path / "x.pyebpf"
    with Workload(some_python, "family.py", 600, "idle") as workload:
        workload.go()
        done = run("record", "-q", "-F", 999, "-p", workload.pid, "-d", "0.5s", "-o", output, timeout=20)
    assert done.returncode == 0 and leaf_counts(frames(export(output))), done
    refusal("perf_event_paranoid is 4, as root", done)


def test_no_btf(some_python, refused):
    needs("unshare", "mount")
    script = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    refused("a kernel without BTF",
            record_wrapped(["unshare", "-m", "sh", "-c", script, "sh"], some_python), 4, "BTF")


# --- Output ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["/nonexistent/folder/x.pyebpf", "/proc/x.pyebpf", "."],
                         ids=["missing folder", "unwritable folder", "a folder"])
def test_output_that_cannot_be(output, some_python, refused, tmp_path):
    with Workload(some_python, "family.py", 0.3, "idle") as workload:
        workload.go()
        start = time.monotonic()
        done = run("record", "-p", workload.pid, "-d", "5s", "-o", output, cwd=tmp_path, timeout=30)
        spent = time.monotonic() - start
    refused(command_line("record", "-p", "PID", "-o", output), done, 1, re.escape(output))
    assert spent < 3, "found out only after recording"
    assert os.listdir(tmp_path) == []


def test_full_disk(some_python, tmp_path):
    """What was recorded before stays readable; the rest is reported, with exit status 1."""
    needs("mount", "umount")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", disk], check=True)
    try:
        output = disk / "x.pyebpf"
        with Workload(some_python, "churn.py", 0.5, "lines", 400) as workload:
            with Recorder(output, "-p", workload.pid, "-F", 10000) as recorder:
                recorder.wait_attached()
                workload.go()
                workload.truth()
                if recorder.process.poll() is None:
                    recorder.process.send_signal(signal.SIGINT)
                status = recorder.wait()
                text = recorder.text()
        if status == 0 and output.stat().st_size < 4000:
            pytest.skip("the recording is too small to fill the disk")
        assert status == 1 and re.search("no space", text, re.I) and "x.pyebpf" in text, text
        done = run("export", "-f", "collapsed", output)
        assert done.returncode == 0 and done.stdout, done.stderr
    finally:
        subprocess.run(["umount", disk], check=True)


# --- Recordings -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recording(request, tmp_path_factory):
    python = max((p for p in request.config.all_pythons if p.via == "direct"),
                 key=lambda p: p.version)
    output = tmp_path_factory.mktemp("recording") / "good.pyebpf"
    with Workload(python, "chains.py", 1, 200) as workload:
        with Recorder(output, "-p", workload.pid, "-F", 997) as recorder:
            recorder.wait_attached()
            workload.go()
            workload.truth()
            recorder.finish()
    return output.read_bytes()


FOREIGN = [
    ("an empty file", lambda good: b""),
    ("one byte", lambda good: good[:1]),
    ("the first 8 bytes of a recording", lambda good: good[:8]),
    ("zeros", lambda good: bytes(4096)),
    ("text", lambda good: b"hello world, this is no recording\n"),
    ("a PNG", lambda good: b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4),
    ("an ELF file", lambda good: open(sys.executable, "rb").read(65536)),
    ("a recording whose first byte is wrong", lambda good: bytes([good[0] ^ 0x20]) + good[1:]),
]


@pytest.mark.parametrize("command", [["export", "-f", "collapsed"], ["report"]], ids=" ".join)
@pytest.mark.parametrize("what,content", FOREIGN, ids=[name for name, _ in FOREIGN])
def test_foreign_recording(command, what, content, recording, refused, tmp_path):
    path = tmp_path / "bad.pyebpf"
    path.write_bytes(content(recording))
    done = run(*command, path, timeout=20)
    refused("`%s` of %s" % (command[0], what), done, 1, "bad.pyebpf", command[0])
    assert os.listdir(tmp_path) == ["bad.pyebpf"]


@pytest.mark.parametrize("command", [["export", "-f", "collapsed"], ["report"]], ids=" ".join)
def test_rows_without_bytes(command, refused, tmp_path):
    """600 bytes that claim a million empty strings (tests/unit/store/test_cost.c made them)."""
    path = tmp_path / "bad.pyebpf"
    shutil.copy(CORPUS / "00", path)
    done = run(*command, path, timeout=20)
    refused("`%s` of a recording of rows that have no bytes" % command[0], done, 1,
            "more memory than a valid recording", command[0])
    assert os.listdir(tmp_path) == ["bad.pyebpf"]


@pytest.mark.parametrize("command", [["export", "-f", "collapsed"], ["report"]], ids=" ".join)
@pytest.mark.parametrize("part", range(1, 16))
def test_truncated_recording(command, part, recording, refusal, tmp_path):
    """Read up to the last good chunk, with a word about it; or refused. Never a crash."""
    path = tmp_path / "cut.pyebpf"
    path.write_bytes(recording[:len(recording) * part // 16])
    done = run(*command, path, timeout=20)
    assert done.returncode in (0, 1), done
    assert "cut.pyebpf" in done.stderr, done.stderr
    refusal("`%s` of a recording that ends early" % command[0], done)


@pytest.mark.parametrize("part", range(0, 64))
def test_corrupted_recording(part, recording, refusal, tmp_path):
    """A flipped bit is noticed by a checksum: a word about it, never a crash, never wrong text."""
    path = tmp_path / "flip.pyebpf"
    broken = bytearray(recording)
    broken[min(len(broken) * part // 64 + 3, len(broken) - 1)] ^= 1 << part % 8
    path.write_bytes(broken)
    done = run("export", "-f", "collapsed", path, timeout=20)
    assert done.returncode in (0, 1), done
    if done.returncode == 1:
        assert_refused(done, 1, "flip.pyebpf", "export")
    refusal("`export` of a recording with one bit changed", done)
    good = tmp_path / "good.pyebpf"
    good.write_bytes(recording)
    known = frames(export(good))
    if done.returncode == 0:
        for stack, count in frames(export(path)).items():
            assert count <= known.get(stack, 0), (stack, count)
