# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What source text is shown: nothing that the target could not read itself, and all that it could."""
import ctypes
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time

import pytest
from harness import Recorder, run
from htmlpage import Page

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.few_pythons]

# Runs code whose file is argv[1]: a loop at each of some lines, by "<module>", and threads that wait.
# It is nobody by then, in the groups of argv[3].
THIEF = """import os, sys, threading, time
path, lines = sys.argv[1], int(sys.argv[2])
os.setgroups([int(group) for group in sys.argv[3:]])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
code = [compile("\\n" * (at - 1) + "for i in range(200000): pass", path, "exec")
        for at in range(1, lines + 1, 3)]
for at in range(1, lines + 1):
    waits = compile("\\n" * (at - 1) + "import time; time.sleep(600)", path, "exec")
    threading.Thread(target=exec, args=(waits, {}), daemon=True).start()
print("READY", flush=True)
while True:
    for c in code:
        exec(c, {})
"""


class Target:
    """A program that runs until the end of the block."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True, **options)
        self.pid = self.process.pid

    def __enter__(self):
        assert self.process.stdout.readline() == "READY\n"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Place:
    """Directories that nobody may enter, or may not; the secret is in the latter. They are below the
    root of the interpreter, which sees another path of them than we do, and there below `parent`."""

    def __init__(self, root, parent="/tmp"):
        self.root = root or ""
        self.seen = tempfile.mkdtemp(prefix="pyebpf-test-", dir=self.root + parent)[len(self.root):]
        self.here = pathlib.Path(self.root + self.seen)
        self.here.chmod(0o711)
        (self.here / "public").mkdir()
        (self.here / "private").mkdir(mode=0o700)
        self.write("private/settings.py", "password = 'xyzzy'\n" * 12)
        self.write("public/mine.py", "mine = 1\n" * 12)
        self.write("public/thief.py", THIEF)

    def write(self, name, text):
        (self.here / name).write_text(text)

    def thief(self, python, name, *groups, before=(), lines=12):
        """A thief that says its code is of that file."""
        return Target(*before, *python.command, f"{self.seen}/public/thief.py", f"{self.seen}/{name}",
                      lines, *groups)

    def source_root(self):
        return ["--source-root", self.root] if self.root else []


@pytest.fixture
def places():
    made = []

    def make(python):
        made.append(Place(python.root))
        return made[-1]

    yield make
    for place in made:
        shutil.rmtree(place.here)


def shown_everywhere(pid, folder, *more):
    """Each output that has source text, of one recording and of one dump: name -> text."""
    recording = folder / "x.pyebpf"
    done = run("record", "-p", pid, "-d", "500ms", "-F", 997, "-o", recording, "-o", folder / "r.html")
    assert done.returncode == 0, done.stderr
    shown = {"record's page": str(Page(folder / "r.html").source)}
    for name, arguments in {"report's page": ["report", "-o", folder / "p.html", recording],
                            "comparison": ["diff", recording, recording, "-o", folder / "p.html"]}.items():
        done = run(*arguments, *more)
        assert done.returncode == 0, done.stderr
        shown[name] = str(Page(folder / "p.html").source)
    done = run("export", "-f", "heatmap", recording, "-o", folder / "x.heatmap", *more)
    assert done.returncode == 0, done.stderr
    shown["heatmap"] = "".join(page.read_text() for page in (folder / "x.heatmap").iterdir())
    for name, arguments in {"dump": [], "dump in JSON": ["--json"]}.items():
        done = run("dump", "-p", pid, *arguments)
        assert done.returncode == 0, done.stderr
        shown[name] = done.stdout
    return shown


def test_a_file_that_the_target_cannot_read_is_shown_nowhere(python, places, tmp_path):
    place = places(python)
    with place.thief(python, "private/settings.py") as target:
        shown = shown_everywhere(target.pid, tmp_path)
    assert not [name for name, text in shown.items() if "xyzzy" in text]


def test_a_file_that_it_can_read_is_shown(python, places, tmp_path):
    place = places(python)
    with place.thief(python, "public/mine.py") as target:
        shown = shown_everywhere(target.pid, tmp_path, *place.source_root())
    shown.pop("dump in JSON")  # it has no source text
    if place.root:
        shown.pop("record's page")  # it is not told where the root is
    assert not [name for name, text in shown.items() if "mine = 1" not in text]


@pytest.mark.parametrize("group, is_shown", [(4242, True), (4243, False)])
def test_a_supplementary_group_counts(some_python, places, tmp_path, group, is_shown):
    place = places(some_python)
    os.chown(place.here / "public/mine.py", 0, 4242)
    (place.here / "public/mine.py").chmod(0o640)
    with place.thief(some_python, "public/mine.py", group) as target:
        shown = shown_everywhere(target.pid, tmp_path)
    shown.pop("dump in JSON")
    assert {("mine = 1" in text) for text in shown.values()} == {is_shown}


def test_the_host_s_file_of_a_name_is_not_the_target_s(some_python, places, tmp_path):
    """In a mount namespace another file is at that path: it is shown by dump, the host's nowhere."""
    place = places(some_python)
    place.write("public/theirs.py", "theirs = 2\n" * 12)
    script = f"mount --bind {place.here}/public/theirs.py {place.here}/public/mine.py && exec \"$@\""
    with place.thief(some_python, "public/mine.py",
                     before=["unshare", "-m", "sh", "-c", script, "sh"]) as target:
        shown = shown_everywhere(target.pid, tmp_path)
    assert not [name for name, text in shown.items() if "mine = 1" in text]
    assert "theirs = 2" in shown["dump"]


def test_a_file_of_the_kernel_is_no_source(some_python, places, tmp_path):
    """It decides by who reads it: pyebpf would see more of it than the target."""
    place, made_up = places(some_python), "/sys/devices/system/cpu/possible"
    (place.here / "public/kernel.py").symlink_to(made_up)
    with place.thief(some_python, "public/kernel.py", lines=1) as target:
        shown = shown_everywhere(target.pid, tmp_path)
    text = pathlib.Path(made_up).read_text().strip()
    assert "\n    %s\n" % text not in shown["dump"]
    status = Page(tmp_path / "r.html").status
    assert status[place.seen + "/public/kernel.py"] == "unknown", status


# Threads in deep stacks, of which each frame is of another file; none of the files is there.
OF_MANY_FILES = """import sys, threading, time
folder, threads, depth = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def chain(thread):
    below = lambda: time.sleep(0.1)
    for frame in range(depth):
        names = {"below": below}
        exec(compile("def work():\\n    below()", f"{folder}/{thread}-{frame}.py", "exec"), names)
        below = names["work"]
    return below
def run(work):
    while True:
        work()
for work in list(map(chain, range(threads))):
    threading.Thread(target=run, args=(work,), daemon=True).start()
print("READY", flush=True)
time.sleep(600)
"""


def test_a_process_with_many_files_does_not_take_the_place_of_others(some_python, tmp_path):
    """Its 18,000 files are more than are read for all. A program that begins after that has its source."""
    program, output = tmp_path / "after.py", tmp_path / "x.pyebpf"
    program.write_text("def work():\n    return sum(range(3000))\n\nfor i in range(3000):\n    work()\n")
    with Target(*some_python.command, "-c", OF_MANY_FILES, tmp_path, 60, 300), \
            Recorder(output, "-a", "--mode", "wall") as recorder:
        recorder.wait_attached()
        time.sleep(2)
        subprocess.run([*some_python.command, program], check=True)
        recorder.finish()
    assert page_of(output, tmp_path / "p.html").status[str(program)] == "embedded"
    assert "files are not shown: a process or a user has too many" in recorder.text()


def test_a_program_that_has_ended_is_shown(some_python, tmp_path):
    program = tmp_path / "short.py"
    program.write_text("def work():\n    return sum(range(3000))\n\nfor i in range(400):\n    work()\n")
    done = run("record", "-F", 999, "-o", tmp_path / "x.pyebpf", "--", *some_python.command, program)
    assert done.returncode == 0, done.stderr
    assert page_of(tmp_path / "x.pyebpf", tmp_path / "p.html").status[str(program)] == "embedded"


def page_of(recording, page, *arguments):
    done = run("report", "-o", page, *arguments, recording)
    assert done.returncode == 0, done.stderr
    return Page(page)


def test_a_source_root_is_taken_at_its_word(tmp_path):
    """Of a text profile, which has no digests: nothing is shown, but below the root."""
    text, root = tmp_path / "x.collapsed", tmp_path / "root"
    (root / "srv").mkdir(parents=True)
    (root / "srv" / "app.py").write_text("def f():\n    return 1\n")
    (root / "srv" / "out.py").symlink_to("/etc/passwd")
    os.mkfifo(root / "srv" / "pipe.py")
    text.write_text("".join(f"f (/srv/{name}.py:2) 5\n" for name in ("app", "out", "pipe", "none")))
    assert not page_of(text, tmp_path / "p.html").source
    page = page_of(text, tmp_path / "q.html", "--source-root", root)
    assert set(page.source) == {"/srv/app.py"}
    assert page.status["/srv/out.py"] == "missing"  # /etc/passwd below the root
    assert page.status["/srv/pipe.py"] == "missing"
    done = run("report", "-o", tmp_path / "r.html", "--source-root", tmp_path / "none", text)
    assert done.returncode == 1
    assert done.stderr.startswith(f"pyebpf report: --source-root {tmp_path / 'none'}: ")


class Opens:
    """Counts the opens of a file, by inotify: O_PATH is none."""

    IN_OPEN = 0x20

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init1(os.O_NONBLOCK)
        assert libc.inotify_add_watch(self.fd, os.fsencode(path), self.IN_OPEN) >= 0

    def count(self):
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return 0
        return len(data) // struct.calcsize("iIII")

    def close(self):
        os.close(self.fd)


@pytest.mark.parametrize("command", [
    ["record", "-d", "500ms", "-o", "x.pyebpf", "-o", "x.html", "-p"],
    ["dump", "-p"], ["doctor", "-p"]], ids=["record", "dump", "doctor"])
def test_no_path_of_the_host_that_a_target_chose_is_opened(tmp_path, command):
    """The interpreter is mounted at the path of a FIFO: pyebpf never opens the host's FIFO."""
    fifo = tmp_path / "device"
    os.mkfifo(fifo)
    program = "print('READY', flush=True)\nwhile True: pass\n"
    script = f"mount --bind {os.path.realpath('/usr/bin/python3')} {fifo} && exec {fifo} \"$@\""
    opens = Opens(fifo)
    with Target("unshare", "-m", "sh", "-c", script, "sh", "-S", "-E", "-c", program) as target:
        opens.count()
        done = run(*command, target.pid, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert opens.count() == 0
    opens.close()
