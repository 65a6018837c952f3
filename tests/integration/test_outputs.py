# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Output files in directories where others can put files, and who may read them."""
import os
import shutil
import signal
import stat
import subprocess
import sys

import pytest
from harness import PATIENCE, PYEBPF, run
from made_recording import recording as made

pytestmark = [pytest.mark.usefixtures("pyebpf")]

SPIN = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: sum(range(999))\n"


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    path = tmp_path_factory.mktemp("outputs") / "x.pyebpf"
    done = run("record", "-o", path, "--", sys.executable, "-c", SPIN)
    assert done.returncode == 0, done.stderr
    return path


def commands(recording, folder):
    """Name -> (arguments, output) of each command that writes a file."""
    text = folder / "in.collapsed"
    text.write_text("a;b 3\n")
    return {
        "record": (["record", "-o", "OUT", "--", sys.executable, "-c", SPIN], "o.pyebpf"),
        "record, a page": (["record", "-o", "OUT", "--", sys.executable, "-c", SPIN], "o.html"),
        "cat": (["cat", recording, "-o", "OUT"], "o.pyebpf"),
        "import": (["import", text, "-o", "OUT"], "o.pyebpf"),
        "report": (["report", recording, "-o", "OUT"], "o.html"),
        "export": (["export", "-f", "pprof", recording, "-o", "OUT"], "o.pb.gz"),
        "diff": (["diff", recording, recording, "-o", "OUT"], "o.json"),
        "heatmap": (["export", "-f", "heatmap", recording, "-o", "OUT"], "o.heatmap"),
    }


NAMES = ["record", "record, a page", "cat", "import", "report", "export", "diff", "heatmap"]


def start(arguments, output, **options):
    return run(*(output if word == "OUT" else word for word in arguments), **options)


def someone_s_file(path):
    path.write_text("theirs")
    os.chown(path, 65534, 65534)


def link(path):
    (path.parent / "secret").write_text("secret")
    path.symlink_to(path.parent / "secret")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prepare, said", [
    (someone_s_file, "belongs to another user (uid 65534)"),
    (link, "a symbolic link"),
    (os.mkfifo, "not a regular file"),
], ids=["another's file", "a link", "a FIFO"])
def test_what_others_put_there_is_refused(name, prepare, said, recording, tmp_path):
    arguments, output = commands(recording, tmp_path)[name]
    output = tmp_path / output
    prepare(output)
    before = {path.name: path.lstat() for path in tmp_path.iterdir()}
    done = start(arguments, output, timeout=20)
    if arguments[0] == "record":  # the command's own status, behind a message
        assert done.stderr.startswith("pyebpf record: "), done.stderr
    else:
        assert done.returncode == 1, done.stderr
    assert said in done.stderr or "is not a directory" in done.stderr, done.stderr
    after = {path.name: path.lstat() for path in tmp_path.iterdir()}
    assert {n: (s.st_size, s.st_ino, s.st_uid) for n, s in after.items()} == \
        {n: (s.st_size, s.st_ino, s.st_uid) for n, s in before.items()}
    if (tmp_path / "secret").exists():
        assert (tmp_path / "secret").read_text() == "secret"


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_one_s_own_is_replaced(name, recording, tmp_path):
    arguments, output = commands(recording, tmp_path)[name]
    for _ in range(2):
        done = start(arguments, tmp_path / output, umask=0)
        assert done.returncode == 0, done.stderr
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".partial")]
    mode = stat.S_IMODE((tmp_path / output).stat().st_mode)
    assert not mode & 0o022, oct(mode)  # nobody else writes to it, whatever the umask
    inside = (tmp_path / output).iterdir() if (tmp_path / output).is_dir() else []
    assert not [path for path in inside if stat.S_IMODE(path.stat().st_mode) & 0o022]


@pytest.mark.parametrize("name", ["cat", "import", "export", "report", "diff"])
def test_names_of_temporary_files_cannot_be_known(name, recording, tmp_path):
    """Files of the names that the next processes would use, if these were their numbers."""
    arguments, output = commands(recording, tmp_path)[name]
    pid = os.getpid()
    taken = [tmp_path / f"{output}.{number}.partial" for number in range(pid, pid + 2000)]
    for path in taken:
        path.touch()
    done = start(arguments, tmp_path / output)
    assert done.returncode == 0, done.stderr
    assert all(path.stat().st_size == 0 for path in taken)


def test_descriptors_are_written_to(recording, tmp_path):
    text = subprocess.run([PYEBPF, "export", "-f", "collapsed", recording, "-o", "-"],
                          stdout=subprocess.PIPE, check=True).stdout
    assert text
    for name in ("/dev/stdout", "/dev/fd/1"):
        done = subprocess.run([PYEBPF, "export", "-f", "collapsed", recording, "-o", name],
                              stdout=subprocess.PIPE, check=True)
        assert done.stdout == text
    for arguments in (["export", "-f", "collapsed", recording], ["cat", recording]):
        assert run(*arguments, "-o", "/dev/null").returncode == 0
    for folder in ("/dev/fd", "/proc/self/fd"):  # zsh names the second one
        reading, writing = os.pipe()
        done = run("cat", recording, "-o", f"{folder}/{writing}", pass_fds=[writing])
        os.close(writing)
        assert done.returncode == 0, done.stderr
        with open(reading, "rb") as pipe:
            (tmp_path / "copy.pyebpf").write_bytes(pipe.read())
        assert run("report", tmp_path / "copy.pyebpf").returncode == 0


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_recordings_of_others_are_private(some_python, tmp_path):
    """And so is what is made of them; one's own are as the umask says."""
    spin = "import os\nos.setresuid({uid}, {uid}, {uid})\nprint('READY', flush=True)\nwhile True: pass"
    for uid, wanted in ((os.getuid(), 0o644), (65534, 0o600)):
        folder = tmp_path / str(uid)
        folder.mkdir()
        (folder / "x.pyebpf").touch(mode=0o666)  # an empty file is written to in place
        target = subprocess.Popen([*some_python.command, "-c", spin.format(uid=uid)],
                                  stdout=subprocess.PIPE, text=True)
        try:
            assert target.stdout.readline() == "READY\n"
            done = run("record", "-p", target.pid, "-d", "300ms", "-o", folder / "x.pyebpf",
                       "-o", folder / "x.html", umask=0o022)
            assert done.returncode == 0, done.stderr
        finally:
            target.kill()
            target.wait()
            target.stdout.close()
        for arguments in (["report", folder / "x.pyebpf", "-o", folder / "r.html"],
                          ["cat", folder / "x.pyebpf", "-o", folder / "c.pyebpf"]):
            assert run(*arguments, umask=0o022).returncode == 0
        assert {path.name: oct(mode_of(path)) for path in folder.iterdir()} == dict.fromkeys(
            ["x.pyebpf", "x.html", "r.html", "c.pyebpf"], oct(wanted))


def test_the_command_keeps_the_umask(recording, tmp_path):
    """A private BASE makes what is made of it private, not what COMMAND makes."""
    base = tmp_path / "base.pyebpf"
    base.write_bytes(recording.read_bytes())
    base.chmod(0o600)
    done = run("record", "--diff", base, "-o", tmp_path / "x.pyebpf", "--", sys.executable, "-c",
               "import os\nprint('umask', oct(os.umask(0)))\n" + SPIN, umask=0o022)
    assert "umask 0o22\n" in done.stdout, done.stdout + done.stderr


WRITERS = {
    "export": ["export", "-f", "json", "IN", "-o", "OUT"],
    "a heatmap": ["export", "-f", "heatmap", "IN", "-o", "OUT"],
    "a page": ["report", "IN", "-o", "OUT.html"],
    "cat": ["cat", "IN", "-o", "OUT"],
    "import": ["import", "IN", "-o", "OUT"],
    "diff": ["diff", "IN", "IN", "-o", "OUT.html"],
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_signal_leaves_nothing_behind(name, tmp_path):
    """The signal comes while the file of the output that is not whole yet is there."""
    source, folder = tmp_path / "in.pyebpf", tmp_path / "out"
    source.write_bytes(made([b"f", b"/a" * 7000 + b".py"], [(1, 2, i + 1) for i in range(40000)]))
    words = [{"IN": source}.get(word, word.replace("OUT", str(folder / "out"))) for word in WRITERS[name]]
    hits = 0
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) * 20:
        folder.mkdir()
        process = subprocess.Popen([PYEBPF, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not any(".partial" in each for each in os.listdir(folder)):
            pass
        process.send_signal(number)
        status = process.wait(PATIENCE)
        left = os.listdir(folder)
        assert status in (0, -number) and not any(".partial" in each for each in left), (status, left)
        assert status == 0 or not left, left
        shutil.rmtree(folder)
        hits += status != 0
        if hits == 3:
            return
    assert hits, "it was whole each time"
