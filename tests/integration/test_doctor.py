# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf doctor: the table of this machine, one process explained, the page of what to do."""
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from harness import PYEBPF, REPOSITORY, Workload, run

KEYS = {"name", "state", "required", "found", "problem", "remedy"}
PYTHON_KEYS = {"version", "free_threaded", "debug", "shared", "best_effort", "build_id", "path",
               "path_deleted", "mapped_at", "found_by", "runtime_address", "layout",
               "thread_state", "jit", "interpreters", "thread_states"}


def doctor(*arguments, wrapper=(), program=None):
    return subprocess.run([*wrapper, program or PYEBPF, "doctor", *map(str, arguments)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, text=True, errors="surrogateescape")


def machine(*arguments, **options):
    """({name: row}, whether it says that recording is possible), with the exit status checked."""
    done = doctor("--json", *arguments, **options)
    facts = json.loads(done.stdout)
    assert set(facts) == {"pyebpf", "rows", "can_record"} and not done.stderr, done
    assert done.returncode == (0 if facts["can_record"] else 4), done
    assert all(set(row) == KEYS for row in facts["rows"])
    rows = {row["name"]: row for row in facts["rows"]}
    assert len(rows) == len(facts["rows"])
    for row in rows.values():
        assert row["state"] in ("ok", "limited", "missing", "unknown"), row
        assert bool(row["problem"]) == (row["state"] != "ok"), row
        assert bool(row["remedy"]) == (row["state"] in ("limited", "missing")), row
    assert facts["can_record"] == (not any(row["required"] and row["state"] == "missing"
                                           for row in rows.values()))
    return rows, facts["can_record"]


def explain(pid, *arguments, **options):
    done = doctor("-p", pid, "--json", *arguments, **options)
    return json.loads(done.stdout), done


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        pytest.skip("no " + ", ".join(missing))


# --- The machine ----------------------------------------------------------------------------------


def test_a_machine_that_can_record(pyebpf):
    rows, can_record = machine()
    assert can_record
    assert {name for name, row in rows.items() if row["state"] == "missing"} == set()
    assert rows["kernel"]["found"].startswith("Linux " + os.uname().release)


def test_text_and_json_have_the_same_rows(pyebpf):
    rows, _ = machine()
    done = doctor()
    assert done.returncode == 0 and not done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "pyebpf can record here."
    shown = [re.match(r"(ok|limited|missing|unknown) +(.*?)(?:  |$)", line)
             for line in lines[:-1] if not line.startswith(" ")]
    assert [(m.group(2), m.group(1)) for m in shown] == \
        [(name, row["state"]) for name, row in rows.items()]
    said = without_numbers(done.stdout)  # of processes, which come and go
    for row in rows.values():
        assert without_numbers(row["found"].split(":")[0]) in said and row["remedy"] in done.stdout


def without_numbers(text):
    return re.sub(r"\d+", "N", text)


def on_a_terminal(environment):
    """What doctor prints on a terminal, and its exit status."""
    pid, fd = pty.fork()
    if not pid:
        os.execve(PYEBPF, [PYEBPF, "doctor"], environment)
    text = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:  # Linux: the last writer has left
            break
        if not part:
            break
        text += part
    os.close(fd)
    return text.decode(), os.WEXITSTATUS(os.waitpid(pid, 0)[1])


def test_colour_only_on_a_terminal(pyebpf):
    plain = {"TERM": "xterm", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
    assert "\033" not in doctor().stdout
    text, status = on_a_terminal(plain)
    assert status == 0 and "\033[" in text
    for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\033" not in on_a_terminal({**plain, **more})[0]


def test_wraps_at_the_width_of_a_terminal(pyebpf):
    text, _ = on_a_terminal({"TERM": "dumb", "PATH": os.environ["PATH"]})
    assert all(len(line) <= 80 for line in text.splitlines() if "-> " not in line), text


@pytest.fixture
def public_pyebpf(pyebpf):
    """A copy of the program that every user can reach."""
    folder = tempfile.mkdtemp(prefix="pyebpf-test-")
    os.chmod(folder, 0o755)
    yield shutil.copy(PYEBPF, folder)
    shutil.rmtree(folder)


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
PRIVATE_BTF = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh"]


def lockdown(mode):
    """A kernel in this mode, as far as it says so."""
    return ["unshare", "-m", "sh", "-c",
            "mount -t tmpfs none /sys/kernel/security && "
            "echo 'none integrity confidentiality' | sed 's/%s/[&]/' >/sys/kernel/security/lockdown "
            '&& exec "$@"' % mode, "sh"]


REFUSALS = [
    ("not root", NOBODY, ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_PTRACE"]),
    ("no CAP_BPF", ["setpriv", "--bounding-set=-sys_admin,-bpf", "--inh-caps=-all"], ["CAP_BPF"]),
    ("no CAP_PERFMON", ["setpriv", "--bounding-set=-sys_admin,-perfmon", "--inh-caps=-all"],
     ["CAP_PERFMON"]),
    ("no CAP_SYS_PTRACE", ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-all"],
     ["CAP_SYS_PTRACE"]),
    ("no BTF", PRIVATE_BTF, ["BTF"]),
    ("lockdown", lockdown("confidentiality"), ["lockdown"]),
    ("user namespace", ["unshare", "-Ur"], ["user namespace"]),
    ("another /proc", ["unshare", "-pf"], ["/proc"]),
]


@pytest.mark.parametrize("wrapper,missing", [case[1:] for case in REFUSALS],
                         ids=[case[0] for case in REFUSALS])
def test_what_is_missing_is_said_by_doctor_and_record(wrapper, missing, public_pyebpf, tmp_path):
    """Doctor names what is missing; record refuses for the same reason and points at doctor."""
    needs("setpriv", "unshare", "mount")
    if subprocess.run([*wrapper, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("cannot run " + " ".join(wrapper))
    rows, can_record = machine(wrapper=wrapper, program=public_pyebpf)
    assert not can_record
    assert [name for name, row in rows.items() if row["state"] == "missing"] == missing
    done = doctor(wrapper=wrapper, program=public_pyebpf)
    assert done.returncode == 4
    assert done.stdout.splitlines()[-1].startswith("pyebpf cannot record here")
    assert rows[missing[0]]["remedy"] in done.stdout

    os.chmod(tmp_path, 0o777)
    done = subprocess.run([*wrapper, public_pyebpf, "record", "-a", "-d", "0.1s",
                           "-o", str(tmp_path / "x.pyebpf")], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20, text=True)
    lines = done.stderr.splitlines()
    assert done.returncode == 4 and len(lines) == 2, done
    assert rows[missing[0]]["problem"] in lines[0] and rows[missing[0]]["remedy"] in lines[0]
    assert lines[1] == "try: pyebpf doctor"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("wrapper,limited", [
    (["setpriv", "--bounding-set=-sys_admin,-checkpoint_restore", "--inh-caps=-all"],
     "CAP_CHECKPOINT_RESTORE"),
    (["setpriv", "--bounding-set=-dac_read_search,-dac_override", "--inh-caps=-all"],
     "CAP_DAC_READ_SEARCH"),
    (["unshare", "-pf", "--mount-proc"], "PID namespace"),
    (["sh", "-c", 'ulimit -n 100 && exec "$@"', "sh"], "open files"),
], ids=["no CAP_CHECKPOINT_RESTORE", "no CAP_DAC_READ_SEARCH", "PID namespace",
        "few open files"])
def test_what_limits_does_not_refuse(wrapper, limited, pyebpf):
    needs("setpriv", "unshare")
    before, _ = machine()
    rows, can_record = machine(wrapper=wrapper)
    assert can_record
    assert {name for name in rows if rows[name]["state"] != before[name]["state"]} == {limited}
    assert rows[limited]["state"] == "limited"


def test_lockdown_for_integrity_does_not_refuse(pyebpf):
    needs("unshare", "mount")
    wrapper = lockdown("integrity")
    if subprocess.run([*wrapper, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("cannot run " + " ".join(wrapper))
    rows, can_record = machine(wrapper=wrapper)
    assert can_record and rows["lockdown"]["state"] == "ok"
    assert rows["lockdown"]["found"] == "integrity"


@pytest.fixture
def system_python(request):
    """Readable for every user, and in one file."""
    found = [p for p in request.config.all_pythons if p.source == "system"]
    if not found or found[0].linkage != "static":
        pytest.skip("the system has no Python in one file")
    return found[0]


def test_its_own_advice_works_for_any_user(public_pyebpf, system_python):
    """With the file capabilities that it says to set, another user than root records."""
    needs("setpriv", "setcap")
    rows, _ = machine(wrapper=NOBODY, program=public_pyebpf)
    advice = re.search(r"setcap (\S+)", rows["CAP_BPF"]["remedy"]).group(1)
    if subprocess.run(["setcap", advice, public_pyebpf]).returncode:
        pytest.skip("no file capabilities in this file system")
    rows, can_record = machine(wrapper=NOBODY, program=public_pyebpf)
    assert can_record and rows["CAP_CHECKPOINT_RESTORE"]["state"] == "ok"
    assert rows["CAP_DAC_READ_SEARCH"]["state"] == "limited"
    with Workload(system_python, "family.py", 20, "idle") as workload:
        workload.go()
        facts, done = explain(workload.pid, wrapper=NOBODY, program=public_pyebpf)
    assert done.returncode == 0, done
    assert "spin_idle" in [frame["name"] for frame in facts["test_stack"]["frames"]]


@pytest.mark.few_pythons
def test_counts_the_pythons_that_run(python, pyebpf):
    version = "CPython %d.%d.%d" % tuple(python.version[:3])
    with Workload(python, "family.py", 1, "idle"):
        rows, _ = machine()
    assert version in rows["Pythons that run"]["found"], rows["Pythons that run"]


# --- One process ----------------------------------------------------------------------------------


@pytest.mark.few_pythons
def test_explains_a_busy_process(python, pyebpf):
    with Workload(python, "family.py", 20, "idle") as workload:
        workload.go()
        facts, done = explain(workload.pid)
        text = doctor("-p", workload.pid)
    assert done.returncode == 0 and not done.stderr and not facts["error"], done
    found = facts["python"]
    assert set(found) == PYTHON_KEYS
    assert found["version"].split("rc")[0] == "%d.%d.%d" % tuple(python.version[:3])
    assert found["shared"] == (python.linkage == "shared" or python.via == "loader"), found
    assert not found["debug"] and not found["free_threaded"]
    assert found["found_by"] and found["layout"] and found["thread_state"]
    assert found["mapped_at"] < found["runtime_address"] < found["mapped_at"] + (1 << 30)
    assert (found["interpreters"], found["thread_states"], facts["threads"]) == (1, 1, 1)
    assert facts["root"] == (python.root or "/")
    stack = facts["test_stack"]
    assert stack["thread"] == workload.pid and stack["ticks"] >= 1
    assert [frame["name"] for frame in stack["frames"]][-1] == "spin_idle", stack
    assert stack["frames"][0]["name"] == "<module>", stack
    assert stack["frames"][-1]["file"].endswith("family.py")
    with open(os.path.join(REPOSITORY, "tests/workloads/family.py")) as f:
        line = f.read().splitlines()[stack["frames"][-1]["line"] - 1]
    assert line.startswith("    while clock() < end"), line

    assert text.returncode == 0 and not text.stderr, text
    for part in (found["version"], found["path"], found["found_by"], found["layout"],
                 found["thread_state"], "0x%x" % found["runtime_address"], "spin_idle"):
        assert part in text.stdout, (part, text.stdout)


def test_test_stack_has_all_its_names(some_python, pyebpf):
    """More code objects than one tick sends."""
    with Workload(some_python, "chains.py", 20, 200) as workload:
        workload.go()
        facts, _ = explain(workload.pid)
    names = [frame["name"] for frame in facts["test_stack"]["frames"]]
    assert len(names) > 10 and "<unknown>" not in names, names


def test_an_idle_process_is_said_to_be_idle(some_python, pyebpf):
    with Workload(some_python, "family.py", 1, "idle") as workload:
        facts, done = explain(workload.pid)
        text = doctor("-p", workload.pid)
    assert done.returncode == 0 and facts["test_stack"]["frames"] == [], facts
    assert text.returncode == 0 and re.search(r"test stack +none: the process was idle", text.stdout), text


def python_script(python, text):
    """The interpreter at work on text, which prints a line when it is where it should be."""
    child = subprocess.Popen(python.command + ["-u", "-c", text], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    assert child.stdout.readline()
    return child


@pytest.mark.few_pythons
def test_counts_threads(python, pyebpf):
    script = ("import sys, threading\n"
              "for _ in range(3): threading.Thread(target=sys.stdin.read, daemon=True).start()\n"
              "print('there'); threading.Event().wait(60)")
    child = python_script(python, script)
    try:
        facts, _ = explain(child.pid)
    finally:
        child.kill()
        child.communicate()
    assert facts["threads"] == 4 and facts["python"]["thread_states"] == 4, facts
    assert facts["python"]["interpreters"] == 1


def test_a_deleted_program_is_said_to_be_deleted(system_python, pyebpf, tmp_path):
    program = shutil.copy(os.path.realpath(system_python.command[-1]), tmp_path / "gone")
    child = subprocess.Popen([program, "-S", "-c", "print('there', flush=True)\nwhile 1: pass"],
                             stdout=subprocess.PIPE, env={"PYTHONHOME": "/usr"})
    try:
        assert child.stdout.readline()
        os.unlink(program)
        facts, done = explain(child.pid)
        text = doctor("-p", child.pid)
    finally:
        child.kill()
        child.communicate()
    assert done.returncode == 0, done
    assert facts["program"] == str(program) and facts["program_deleted"]
    assert facts["python"]["path_deleted"] and not facts["python"]["shared"]
    assert facts["test_stack"]["frames"]
    assert text.stdout.count("(deleted or replaced since)") == 2, text.stdout


def test_a_process_in_other_namespaces(some_python, pyebpf):
    needs("unshare")
    command = ["unshare", "-pfm", "--kill-child", *some_python.command, "-u", "-c",
               "print('there')\nwhile 1: pass"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        try:
            if not parent.stdout.readline():
                pytest.skip("no namespaces of our own here")
            with open("/proc/%d/task/%d/children" % (parent.pid, parent.pid)) as f:
                pid = int(f.read().split()[0])
            facts, done = explain(pid)
            text = doctor("-p", pid)
        finally:
            parent.kill()
    assert done.returncode == 0, done
    assert facts["other_mount_namespace"] and facts["other_pid_namespace"]
    assert (facts["pid"], facts["own_pid"]) == (pid, 1)
    assert "there it is pid 1" in text.stdout
    assert facts["test_stack"]["frames"], facts


@pytest.mark.parametrize("start,pattern", [
    (lambda: subprocess.Popen(["sleep", "60"]), r"pid \d+: no Python.*sleep"),
    (lambda: 2, "kernel thread"),
    (lambda: int(open("/proc/sys/kernel/pid_max").read()) - 1, "no such process"),
], ids=["no Python", "kernel thread", "no process"])
def test_no_python(start, pattern, pyebpf):
    target = start()
    pid = target if isinstance(target, int) else target.pid
    try:
        time.sleep(0.05)
        facts, done = explain(pid)
        text = doctor("-p", pid)
    finally:
        if target != pid:
            target.kill()
            target.wait()
    for said in (done, text):
        assert said.returncode == 3 and len(said.stderr.splitlines()) == 1, said
        assert re.match("pyebpf doctor: .*" + pattern, said.stderr), said
    assert facts["python"] is None and facts["test_stack"] is None
    assert done.stderr.strip().endswith(facts["error"])


def test_a_process_that_may_not_be_read(some_python, public_pyebpf):
    needs("setpriv")
    with Workload(some_python, "family.py", 1, "idle") as workload:
        done = doctor("-p", workload.pid, wrapper=NOBODY, program=public_pyebpf)
    assert done.returncode == 4, done
    assert re.search("permission", done.stderr) and done.stderr.endswith("try: pyebpf doctor\n")


def test_record_points_at_it(pyebpf, tmp_path):
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            time.sleep(0.05)
            done = run("record", "--no-children", "-p", child.pid, "-o", tmp_path / "x.pyebpf", timeout=20)
        finally:
            child.kill()
    assert done.returncode == 3
    assert done.stderr.splitlines()[1:] == ["try: pyebpf doctor -p %d" % child.pid]


@pytest.mark.parametrize("arguments,pattern", [
    (["-p", "0"], "pid"), (["-p", "x"], "x"), (["412"], "412.*-p"), (["--nonsense"], "nonsense"),
], ids=" ".join)
def test_usage(arguments, pattern):
    done = doctor(*arguments)
    assert done.returncode == 2 and re.search(pattern, done.stderr) and not done.stdout


def test_a_closed_pipe_is_no_error(pyebpf):
    with subprocess.Popen([PYEBPF, "doctor"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as child:
        child.stdout.close()
        assert child.stderr.read() == b"" and child.wait() in (0, -signal.SIGPIPE)


# --- docs/troubleshooting.md ----------------------------------------------------------------------

TOKEN = re.compile(r'"((?:\\.|[^"\\])*)"|/\*.*?\*/|(\w+|[^\w\s])', re.S)
EXPLAINED = ["user/target/interpreter_file.c", "user/target/runtime.c",
             "user/target/version_scan.c", "user/target/offsets.c", "user/target/debug_offsets.c",
             "user/target/cgroup.c", "user/target/container_cgroup.c", "user/target/mem.c",
             "user/collect/discover.c", "user/collect/finder.c", "user/collect/programs.c",
             "user/collect/context_labels.c", "user/collect/session.c", "user/collect/walked_tasks.c",
             "user/collect/event_links.c", "user/collect/tracefs.c", "user/store/reader.c",
             "user/store/decode.c", "user/store/writer.c", "user/cmd/top_terminal.c"]


def source(path):
    with open(os.path.join(REPOSITORY, path)) as f:
        return f.read()


def arguments(text):
    """What stands between commas of C code up to the closing bracket, strings joined; else ''."""
    argument, depth = "", 0
    for token in TOKEN.finditer(text):
        string, other = token.groups()
        if string is not None:
            argument += string
        elif other in ("(", "{", "["):
            depth += 1
        elif other in (")", "}", "]"):
            depth -= 1
            if depth < 0:
                break
        elif other == "," and depth == 0:
            yield argument
            argument = ""
    yield argument


def messages(path):
    """Formats of err_set(), but those that only put a name in front of strerror()."""
    text = source(path)
    for call in re.finditer(r"\berr_set\(", text):
        format = next((a for a in arguments(text[call.end():]) if a), "")
        if re.sub(r"%\w+|\W", "", format):
            yield format


def rows_of_features():
    """[(name, problem, remedy)] of collect/features.c."""
    text = source("user/collect/features.c")
    table = re.search(r"features\[\] = \{(.*?)\n\};", text, re.S).group(1)
    for name, lines in re.findall(r"#define ([A-Z]+)((?:.*\\\n)+.*)\n", text):
        joined = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', lines))
        table = re.sub(r"\b%s\b" % name, lambda _, text=joined: '"%s"' % text, table)
    return [tuple(list(arguments(row))[:3]) for row in re.split(r"\n\t\{ ", table)[1:]]


def cells():
    """The rows of the page's tables, as tuples of their cells."""
    return [tuple(cell.strip() for cell in line.strip().strip("|").split(" | "))
            for line in source("docs/troubleshooting.md").splitlines()
            if line.startswith("|") and not line.startswith("|--")]


def test_troubleshooting_has_every_row_of_the_table(pyebpf):
    rows = rows_of_features()
    assert [name for name, _, _ in rows] + ["Pythons that run"] == list(machine()[0])
    missing = [row for row in rows if row[1] and row not in cells()]
    assert not missing, "docs/troubleshooting.md lacks: %s" % missing


def test_troubleshooting_has_every_message():
    """Each message of those files holds words that the page explains, and none explains in vain."""
    explained = {part for row in cells() for part in re.findall(r"^`(.*)`$", row[0])}
    known = {format for path in EXPLAINED for format in messages(path)}
    everything = ""
    for folder, _, names in os.walk(os.path.join(REPOSITORY, "user")):
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                text = source(os.path.join(folder, name))
                everything += re.sub(r'"\s*"', "", text)
    unknown = {format for format in known if not any(part in format for part in explained)}
    assert not unknown, "docs/troubleshooting.md explains none of: %s" % sorted(unknown)
    vain = {part for part in explained if part not in everything}
    assert not vain, "docs/troubleshooting.md explains what no code says: %s" % sorted(vain)
