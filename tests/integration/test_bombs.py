# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Few bytes that would become many: refused with the limit in one line, in little memory and time; and
real files that are packed as tightly, or that are large, are read."""
import gzip
import json
import os
import random
import re
import struct
import subprocess
import sys
import zlib

import foreign_bytes as fb
import pytest
from harness import PYEBPF, draw, run
from made_recording import recording

pytestmark = pytest.mark.usefixtures("pyebpf")

MEMORY_MAX_KIB = 256 << 10
CPU_MAX_S = 20  # a second and a half in a release build
SPEEDSCOPE = '{"$schema":"https://www.speedscope.app/file-format-schema.json",'
FRAMES = SPEEDSCOPE + ('"shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"sampled","name":"x","unit":"none",'
                       '"startValue":0,"endValue":1,"samples":[')
TOO_DEEP = "a stack deeper than 65,536 frames"
UNPACKED = r"it unpacks to more than [0-9.]+ MiB, which is 64 MiB and 1000 times its bytes; if you trust it, give --trust"
TABLES = "its stacks and names take more than [0-9.]+ MiB, which is 32 MiB and (200|64) times its bytes; .* give --trust"


def zstd(path, *parts):
    """Each part: bytes, or (one byte, how often): blocks of zstd, of which the latter are 4 bytes for 128 KiB."""
    blocks = []
    for part in parts:
        if isinstance(part, bytes):
            blocks += [(0, len(part[i:i + 65536]), part[i:i + 65536]) for i in range(0, len(part), 65536)]
        else:
            blocks += [(1, 131072, part[0])] * (part[1] // 131072)
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x68" + b"".join(
        struct.pack("<I", (i == len(blocks) - 1) | kind << 1 | size << 3)[:3] + content
        for i, (kind, size, content) in enumerate(blocks)))


def zipped(path, *parts):
    """Each part: bytes, or (bytes, how often)."""
    with gzip.open(path, "wb", compresslevel=9) as file:
        for part in parts:
            unit, count = part if isinstance(part, tuple) else (part, 1)
            at_once = max(1, (1 << 20) // len(unit))
            for _ in range(count // at_once):
                file.write(unit * at_once)
            file.write(unit * (count % at_once))


def pprof(path, depth):
    """One sample of so many frames."""
    path.write_bytes(gzip.compress(fb.pprof(
        [b"f"], fb.pprof_sample([1] * depth), fb.pprof_location(1, [1]), fb.pprof_function(1, 3)), mtime=0))


def pprof_locations(path):
    """60,000 frames are one number of samples, each time above another frame."""
    count = 500
    path.write_bytes(fb.pprof(
        [b"f%d" % i for i in range(count)], fb.pprof_location(1, [1] * 60000), *(
            fb.pprof_function(i + 1, 3 + i) + fb.pprof_location(i + 2, [i + 1]) + fb.pprof_sample([1, i + 2])
            for i in range(count))))


def pprof_units(path):
    """A megabyte is the unit of numbers, each of which makes a text with it."""
    path.write_bytes(fb.pprof([b"k", b"x" * 1000000], fb.pprof_function(1, 3), fb.pprof_location(1, [1]), *(
        fb.pprof_sample([1], {1: 3, 3: i + 1, 4: 4}) for i in range(1000))))


def mojo(path, *events):
    path.write_bytes(gzip.compress(fb.mojo(
        fb.mojo_stack(), fb.mojo_string(10, b"a.py"), fb.mojo_string(11, b"f"), fb.mojo_frame(1, 10, 11), *events), mtime=0))


def mojo_growing(path):
    """Each sample repeats the last stack, with 20,000 frames more."""
    mojo(path, *[fb.mojo_stack() + fb.MOJO_REPEAT + fb.mojo_reference(1) * 20000 + fb.MOJO_TIME] * 4)


def tachyon(path):
    """Samples that are zeros, packed by the format itself: 4 bytes for 128 KiB."""
    packed = path.with_suffix(".zst")
    zstd(packed, fb.tachyon_record(1, 1, 1, 0) + fb.tachyon_record(1, 0, 1 << 31), (b"\0", 256 << 20))
    path.write_bytes(fb.tachyon([b"a.py", b"f"], [(0, 1, 1)], packed.read_bytes(), 1 << 40, is_zstd=True))


# A process of few bytes starts it: the most memory that a process had includes what it had before exec(),
# and a worker of pytest has more than MEMORY_MAX_KIB.
MEASURES = """import json, os, sys
nowhere = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[nowhere]), 0)
print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_maxrss, usage.ru_utime + usage.ru_stime]))
"""


def measured(*arguments):
    """(status, what it said, KiB, seconds of CPU time)."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURES, PYEBPF, *map(str, arguments)], check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    status, kib, seconds = json.loads(done.stdout)
    return status, done.stderr, kib, seconds


def unique_stacks(path):
    """Lines of 20,000 frames, none of which begins as another."""
    compress = zlib.compressobj(9, zlib.DEFLATED, 31)
    with open(path, "wb") as file:
        for i in range(300):
            file.write(compress.compress(b"f%d;" % i + b"a;" * 20000 + b"a 1\n"))
        file.write(compress.flush())


BOMBS = {
    "collapsed, a deep line": (lambda path: zstd(path, b"a;" * 100000 + b"a 1\n"), TOO_DEEP),
    "austin, a deep line": (lambda path: zstd(path, b"P1;T1;" + b"a:b:1;" * 70000 + b"a:b:1 5\n"), TOO_DEEP),
    "perf, a deep stack": (lambda path: zstd(path, b"python 1 [000] 1.0:  1 cpu-clock:\n" + b"\t0 a (b)\n" * 70000),
                           TOO_DEEP),
    "speedscope, a deep stack": (lambda path: zstd(path, FRAMES.encode() + b"[" + b"0," * 70000 + b'0]],"weights":[1]}]}'),
                                 TOO_DEEP),
    "pprof, a deep stack": (lambda path: pprof(path, 70000), TOO_DEEP),
    "collapsed, empty lines": (lambda path: zstd(path, b"main (a.py:1) 3\n", (b"\n", 320 << 20)), UNPACKED),
    "speedscope, spaces": (lambda path: zstd(path, SPEEDSCOPE.encode(), (b" ", 1 << 30), b"}"), UNPACKED),
    "perf, comments": (lambda path: zstd(path, b"python 1 1.0: 1 x:\n#", (b"\n", 1 << 30)), UNPACKED),
    "pprof, frames of a location": (pprof_locations, TABLES),
    "pprof, a long unit": (pprof_units, "the unit of a label is longer than 64 bytes"),
    "mojo, a deep stack": (lambda path: mojo(path, fb.mojo_reference(1) * 70000 + fb.MOJO_TIME), TOO_DEEP),
    "mojo, a stack that grows": (mojo_growing, TOO_DEEP),
    "tachyon, repetitions": (tachyon, UNPACKED),
    "pprof, zeros": (lambda path: zstd(path, b"\x0a\x04\x08\x01\x10\x02", (b"\0", 1 << 30)), "byte|unpacks"),
    "a long line": (lambda path: zipped(path, (b"a;", 1 << 25), b" 1\n"), "longer than 16 MiB"),
    "zeros": (lambda path: zipped(path, (b"\0", 100 << 20)), "64 zero bytes"),
    "collapsed, stacks of their own": (unique_stacks, TABLES),
}


MANY_SAMPLES = ("tachyon, repetitions",)  # 37 million of them before the limit


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_is_refused_in_little_memory_and_time(name, is_full, tmp_path):
    """By two of the commands that read it, with --tier=all by each."""
    make, pattern = BOMBS[name]
    path = tmp_path / "bomb"
    make(path)
    assert path.stat().st_size < 1 << 20
    commands = [["report", path], ["export", "-f", "jsonl", path], ["diff", path, path],
                ["import", path, "-o", tmp_path / "x.pyebpf"], ["cat", path, "-o", tmp_path / "x.pyebpf"]]
    if name in MANY_SAMPLES:
        commands = commands[:1]
    for arguments in commands if is_full else draw(commands, 2, name):
        status, said, kib, seconds = measured(*arguments)
        first, *others = said.splitlines()
        assert status == 1 and re.search(pattern, first), (arguments, status, said)
        assert not others or [line[:5] for line in others] == ["try: "], said
        assert kib < MEMORY_MAX_KIB and seconds < CPU_MAX_S, (arguments, kib, seconds)
    assert not (tmp_path / "x.pyebpf").exists()


OUTPUTS = {form: r"standard output: it would be more than 1\.[0-9]+ GiB, which is 1 GiB and 64 times the bytes of what "
                 r"is read; if you trust that, give --trust$"
           for form in ("jsonl", "script", "speedscope", "perfetto", "json", "pstats", "collapsed")}
QUICK_OUTPUTS = ["speedscope", "perfetto"]  # the others take 5 to 11 s of CPU time until a GiB is full


def test_small_recordings_do_not_fill_disks(is_full, tmp_path):
    """Names of a MiB, 60,000 functions of 40 bytes that have them: two GB of output. One of two forms, with --tier=all each."""
    path, long = tmp_path / "x.pyebpf", 1 << 20
    path.write_bytes(recording([b"x" * long, b"y" * long], [(1, 2, i + 1) for i in range(60000)]))
    assert path.stat().st_size < 3 << 20
    for form in OUTPUTS if is_full else draw(QUICK_OUTPUTS, 1, "forms"):
        status, said, _, _ = measured("export", "-f", form, path)
        lines = [line for line in said.splitlines() if "truncated at byte" not in line]
        assert status == 1 and len(lines) == 1 and re.search(OUTPUTS[form], lines[0]), (form, status, said)
    trusted = ["--trust", "-f", "perfetto"]
    for options in [trusted] * is_full + [["-f", "pprof"], ["-f", "html"]]:
        status, said, _, _ = measured("export", *options, path)
        assert status == 0, (options, said)


TOO_LARGE = r"it would be more than 1(\.[0-9]+)? GiB, which is 1 GiB and 64 times the bytes of what is read"


@pytest.mark.full
def test_small_recordings_do_not_fill_disks_by_comparisons(tmp_path):
    """65,000 functions of a file whose path is 16 KiB: each is a row of JSON. The table and the page have it once."""
    base, wide = tmp_path / "base.txt", tmp_path / "wide.pyebpf"
    base.write_text("f (m.py:1) 1\n")
    wide.write_bytes(recording([b"/" + b"y" * (1 << 14) + b".py", *(b"f%d" % i for i in range(65000))],
                               [(2 + i, 1, i + 1) for i in range(65000)]))
    status, said, _, _ = measured("diff", "--force", "-f", "json", base, wide)
    lines = [line for line in said.splitlines() if "truncated at byte" not in line]
    assert status == 1 and len(lines) == 1 and re.search("standard output: " + TOO_LARGE, lines[0]), said
    for options in ([], ["-o", tmp_path / "d.html"], ["-n", 10, "-f", "json"]):
        status, said, _, _ = measured("diff", "--force", *options, base, wide)
        assert status == 0, (options, said)


@pytest.mark.full
def test_small_recordings_do_not_fill_disks_by_heatmaps(tmp_path):
    """30,000 lines have a name of 16 KiB, each character of which is four of HTML."""
    path, folder = tmp_path / "x.pyebpf", tmp_path / "x.heatmap"
    path.write_bytes(recording([b"<" * (1 << 14), b"/y.py"], [(1, 2, i + 1) for i in range(30000)]))
    status, said, _, _ = measured("export", path, "-o", folder)
    assert status == 1 and re.search("x.heatmap: " + TOO_LARGE, said), said
    assert list(tmp_path.iterdir()) == [path]


@pytest.fixture(scope="module")
def many_stacks(tmp_path_factory):
    """Collapsed text of 42,000 stacks that take about 20 MiB."""
    chance = random.Random(1)
    path = tmp_path_factory.mktemp("stacks") / "many.txt"
    path.write_text("".join(
        "main (app.py:1);%s 1\n" % ";".join("f%d (m.py:%d)" % (chance.randrange(3000), chance.randrange(900))
                                            for _ in range(16)) for _ in range(42000)))
    return path


@pytest.mark.parametrize("arguments", [
    ["report"], ["report", "--json"], ["report", "-o", "x.html"], ["export", "-f", "speedscope"], ["diff", "FILE"],
    ["export", "-f", "pprof", "-o", "x.pb.gz"]], ids=" ".join)
def test_max_memory_is_said(arguments, many_stacks, tmp_path):
    command = [arguments[0], *(many_stacks if word == "FILE" else word for word in arguments[1:]), many_stacks]
    done = run(*command, "--max-memory", "16MiB", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert re.fullmatch(r"pyebpf \w+: .*Cannot allocate memory: the limit is [0-9.]+ MiB; --max-memory SIZE sets "
                        r"another\n", done.stderr), done.stderr
    assert not list(tmp_path.iterdir())
    done = run(*command, "--max-memory", "1GiB", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_text_that_packs_well_is_read(tmp_path):
    """Deep stacks in order, 90 MiB of them, packed a hundred times: a real profile is like that."""
    path = tmp_path / "deep.gz"
    shared = ";".join("framework.module.call_%d (/usr/lib/python3/framework/module.py:%d)" % (i, i) for i in range(60))
    with gzip.open(path, "wb", compresslevel=9) as file:
        for i in range(26000):
            file.write(("%s;handler_%d (app.py:%d) %d\n" % (shared, i % 900, i % 900, 1 + i % 3)).encode())
    assert path.stat().st_size < 1 << 20
    done = run("export", "-f", "collapsed", path, "-o", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert sum(int(line.rsplit(" ", 1)[1]) for line in open(tmp_path / "out")) == sum(1 + i % 3 for i in range(26000))


def test_many_equal_samples_are_read(tmp_path):
    """A program that slept: three million samples of speedscope that are one and the same."""
    path = tmp_path / "idle.json.gz"
    count = 3 << 20
    zipped(path, FRAMES.encode(), (b"[0],", count - 1), b'[0]],"weights":[', (b"1,", count - 1), b"1]}]}")
    done = run("report", "--json", path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["functions"][0]["weight"] == [count, count]


def test_trust_reads_what_packs_too_well(tmp_path):
    """One stack, again and again: 80 MiB of text in some kB. What refuses it names the option."""
    path = tmp_path / "steady.zst"
    line = b"main (app.py:1);loop (app.py:2);" + b"wait (app.py:3);" * 200 + b"poll (app.py:4) 1\n"
    zipped(tmp_path / "steady.gz", (line, (80 << 20) // len(line)))
    subprocess.run(["sh", "-c", 'gunzip < "$1" | zstd -q -19 --long=27 > "$2"', "sh", tmp_path / "steady.gz", path], check=True)
    assert path.stat().st_size < 16 << 10
    for command in (["report"], ["export", "-f", "collapsed"], ["cat", "-o", tmp_path / "o.pyebpf"],
                    ["import", "-o", tmp_path / "o.pyebpf"]):
        done = run(*command, path)
        assert done.returncode == 1 and done.stderr.count("\n") <= 2, done.stderr
        assert re.search(UNPACKED, done.stderr), done.stderr
        done = run(*command, "--trust", path)
        assert done.returncode == 0, done.stderr
    done = run("export", "-f", "collapsed", tmp_path / "o.pyebpf")
    assert done.stdout.endswith(" %d\n" % ((80 << 20) // len(line)))
    assert run("diff", "--trust", path, path).returncode == 0


def test_standard_input(tmp_path):
    """What comes through a pipe is read as a file is, within the same limits, by each command that reads files."""
    path, text = tmp_path / "bomb", b"main (app.py:1);work (app.py:2) 5\n"
    zstd(path, b"main (a.py:1) 3\n", (b"\n", 320 << 20))
    with open(path, "rb") as file:
        done = subprocess.run([PYEBPF, "report", "/dev/stdin"], stdin=file, stderr=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 1 and re.search(UNPACKED, done.stderr), done.stderr
    for name in ("-", "/dev/stdin"):
        done = subprocess.run([PYEBPF, "report", name], input=path.read_bytes(), stderr=subprocess.PIPE)
        assert done.returncode == 1 and re.search(UNPACKED, done.stderr.decode()), done.stderr
    (tmp_path / "other.txt").write_bytes(text.replace(b"5", b"6"))
    made = tmp_path / "made.pyebpf"
    for words in (["report", "-"], ["report", "--json", "-"], ["export", "-f", "collapsed", "/dev/stdin"], ["import", "-", "-o", made],
                  ["cat", "-", "-o", made], ["diff", "--force", tmp_path / "other.txt", "-"],
                  ["diff", "--force", tmp_path / "other.txt", tmp_path / "other.txt", "--baseline", "/dev/fd/0"]):
        for content in (text, gzip.compress(text), made.read_bytes() if made.exists() else text):
            done = subprocess.run([PYEBPF, *words], input=content, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert done.returncode == 0, (words, done.stderr)
            assert words[-1] == made or b"work" in done.stdout, (words, done.stdout)
    assert made.stat().st_mode & 0o777 == 0o600  # nobody knows whose it is
    for words, content, pattern in ((["report", "-", "--max-memory", "16MiB"], b"a 1\n" * (5 << 20), "standard input: more than 16 MiB"),
                                    (["report", "-"], b"", "/dev/stdin: empty file"),
                                    (["import", "-"], text, "no output file")):
        done = subprocess.run([PYEBPF, *words], input=content, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode in (1, 2) and re.search(pattern, done.stderr.decode()), (words, done.stderr)
    done = run("report", "-")
    assert done.returncode == 1 and "standard input: neither a file nor a pipe" in done.stderr, done.stderr


@pytest.mark.parametrize("name", ["collapsed, empty lines", "pprof, frames of a location", "collapsed, a deep line"])
def test_record_diff_of_a_bomb(name, some_python, tmp_path):
    """The recording is made and kept; the comparison is refused."""
    path, made = tmp_path / "bomb", tmp_path / "x.pyebpf"
    BOMBS[name][0](path)
    status, said, kib, seconds = measured("record", "--diff", path, "-o", made, "--", *some_python.command, "-c",
                                          "sum(range(10000000))")
    assert re.search(BOMBS[name][1], said), said
    assert kib < MEMORY_MAX_KIB and seconds < CPU_MAX_S, (kib, seconds)
    assert run("report", made).returncode == 0


def test_record_diff_has_the_options_of_a_reader(some_python, many_stacks, tmp_path):
    """What refuses BASE names an option that record has, and that lets it pass; COMMAND has no limit of ours."""
    packed, made = tmp_path / "steady.gz", tmp_path / "x.pyebpf"
    line = b"main (app.py:1);" + b"wait (app.py:3);" * 200 + b"poll (app.py:4) 1\n"
    zipped(tmp_path / "one.gz", (line, (80 << 20) // len(line)))
    subprocess.run(["sh", "-c", 'gunzip < "$1" | zstd -q -19 --long=27 > "$2"', "sh", tmp_path / "one.gz",
                    packed], check=True)
    code = ("import resource\nassert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY\n"
            "sum(range(20000000))")

    def record(*options):
        return run("record", *options, "-o", made, "--", *some_python.command, "-c", code)

    for options, pattern, lifts in (
            (["--diff", packed], UNPACKED, ["--trust"]),
            (["--diff", many_stacks, "--max-memory", "16MiB"], "--max-memory SIZE sets another", ["--max-memory", "1GiB"])):
        done = record(*options)
        assert re.search(pattern, done.stderr) and "the recording was saved as" in done.stderr, done.stderr
        done = record(*options[:2], *lifts)
        assert done.returncode == 0 and "the recording was saved as" not in done.stderr, done.stderr
    for option in (["--trust"], ["--max-memory", "1GiB"], ["--from", "collapsed"]):
        done = record(*option)
        assert done.returncode == 2 and option[0] + " goes with --diff" in done.stderr, done.stderr


def test_damaged_recordings_take_little(tmp_path):
    """Lengths and counts in it become large: it is refused, or read up to there, in little memory, time and words."""
    path, text = tmp_path / "damaged.pyebpf", tmp_path / "text"
    text.write_text("".join("a;b%d 1\n" % i for i in range(3000)))
    assert run("import", text, "-o", path).returncode == 0
    whole = path.read_bytes()
    chance = random.Random(1)
    for at in sorted(chance.sample(range(len(whole)), 60)):
        path.write_bytes(whole[:at] + b"\xff\xff\xff\xff\x7f" + whole[at + 5:])
        status, said, kib, seconds = measured("report", path)
        assert status in (0, 1) and kib < MEMORY_MAX_KIB and seconds < 2, (at, status, kib, seconds)
        assert said.count("\n") <= 2, said
