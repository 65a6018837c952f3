# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files that a reader could take long for: many names, threads or events, deep stacks, long lines, all of them of
few bytes. The time of reading grows with the bytes, whatever is in them."""
import os
import subprocess

import foreign_bytes as fb
import pytest
from harness import PYEBPF, draw
from made_recording import recording

pytestmark = pytest.mark.usefixtures("pyebpf")

# A release build takes 10 to 250 ns for a byte. What is below was 1.2 to 14 us before it was mended.
CPU_S = 2  # a machine that is short of memory bandwidth takes twenty times as long
CPU_S_A_BYTE = 2e-6
LONG = b"x" * (1 << 20)
MANY = 30000
DEEP = 60000
PERF = b"python 1 [000] 1.0: 1 cpu-clock:\n\t0 a (b)\n\n"


def joined(make, count=MANY):
    return b"".join(make(i) for i in range(count))


def pprof_wide(*order):
    """A location of 60,000 lines (0 in order), and one of a single line for each sample (1)."""
    return fb.pprof([b"f"], fb.pprof_function(1, 3), fb.pprof_location(1, [1] * DEEP),
                    joined(lambda i: fb.pprof_location(i + 2, [1]), MANY // 3),
                    joined(lambda i: fb.pprof_sample([(1, i + 2)[each] for each in order]), MANY // 3))


def pprof_labels(strings, label):
    return fb.pprof(strings, fb.pprof_function(1, 3), fb.pprof_location(1, [1]),
                    joined(lambda i: fb.pprof_sample([1], label(i))))


def mojo(events, names=1):
    return fb.mojo(fb.mojo_stack(), fb.mojo_string(10, b"a.py"),
                   joined(lambda i: fb.mojo_string(20 + i, b"f%d" % i) + fb.mojo_frame(i + 1, 10, 20 + i), names), events)


def events_of_speedscope():
    """30,000 frames stay open, and so many samples are above them."""
    opening = [(True, 0, i + 1) for i in range(MANY)]
    above = [(opens, 1, MANY + 2 * i + (2 - opens)) for i in range(MANY) for opens in (True, False)]
    closing = [(False, 0, 4 * MANY + i) for i in range(MANY)]
    return fb.speedscope(['{"name":"f"}', '{"name":"g"}'], [fb.speedscope_evented(opening + above + closing)])


FILES = {
    "pprof, a location of many lines": lambda: pprof_wide(1, 0),
    "pprof, a long name": lambda: fb.pprof(
        [LONG], fb.pprof_function(1, 3), joined(lambda i: fb.pprof_location(i + 1, [1])),
        joined(lambda i: fb.pprof_sample([i + 1]))),
    "pprof, a long label": lambda: pprof_labels([LONG, b"k"], lambda i: {1: 4, 2: 3}),
    "pprof, values of a label": lambda: pprof_labels(
        [b"k", *(b"v%d" % i for i in range(MANY))], lambda i: {1: 3, 2: 4 + i}),
    "pprof, labels": lambda: pprof_labels([b"k%d" % i for i in range(MANY)], lambda i: {1: 3 + i, 2: 3}),
    "pprof, threads": lambda: pprof_labels([b"thread", *(b"t%d" % i for i in range(MANY))], lambda i: {1: 3, 2: 4 + i}),
    "mojo, names": lambda: mojo(joined(lambda i: fb.mojo_stack(thread=b"%x" % (i + 1)) + fb.mojo_reference(i + 1) +
                                       fb.MOJO_TIME), MANY),
    "mojo, a deep stack again and again": lambda: mojo(
        fb.mojo_reference(1) * DEEP + fb.MOJO_TIME + joined(lambda i: fb.mojo_stack() + fb.MOJO_REPEAT + fb.MOJO_TIME)),
    "mojo, stacks that grow": lambda: mojo(joined(
        lambda i: fb.mojo_stack() + fb.MOJO_REPEAT + fb.mojo_reference(1) + fb.MOJO_TIME)),
    "mojo, processes": lambda: fb.mojo(joined(
        lambda i: fb.mojo_stack(i + 1) + fb.mojo_string(10, b"f%d" % i) + fb.mojo_frame(1, 10, 10) +
        fb.mojo_reference(1) + fb.MOJO_TIME)),
    "tachyon, threads": lambda: fb.tachyon([b"a.py", b"f"], [(0, 1, 1)], joined(
        lambda i: fb.tachyon_record(i + 1, 1, 1, 0)), MANY, MANY),
    "tachyon, frames": lambda: fb.tachyon([b"a.py", *(b"f%d" % i for i in range(MANY))], [
        (0, i + 1, 1) for i in range(MANY)], joined(lambda i: fb.tachyon_record(1, 1, 1, i)), MANY),
    "tachyon, a long name": lambda: fb.tachyon([LONG, b"f"], [(0, 1, i + 1) for i in range(MANY)], joined(
        lambda i: fb.tachyon_record(1, 1, 1, i)), MANY),
    "tachyon, deep stacks": lambda: fb.tachyon([b"a.py", b"f"], [(0, 1, i + 1) for i in range(300)], fb.tachyon_record(
        1, 1, 255, *range(255)) + joined(lambda i: fb.tachyon_record(1, 3, 1, 1, i % 300)), MANY + 1),
    "pyebpf, a long name": lambda: recording([LONG, b"a.py"], [(1, 2, i + 1) for i in range(MANY)]),
    "pyebpf, a long file": lambda: recording([LONG, b"f"], [(2, 1, i + 1) for i in range(MANY)]),
    "perf, events": lambda: joined(lambda i: b"python 1 [000] %d.0: cpu-clock:u%d:\n\t0 a (b)\n\n" % (i, i)),
    "perf, threads": lambda: joined(lambda i: b"python %d/%d [000] %d.0: 1 cpu-clock:\n\t0 a%d (b)\n\n" % (i + 1, i + 1, i, i)),
    "perf, a long line": lambda: PERF + b"python " + b"1 " * (1 << 18) + PERF[9:],
    "collapsed, names": lambda: joined(lambda i: b"f%d (a%d.py:%d);g%d 1\n" % (i, i, i, i)),
    "collapsed, threads": lambda: joined(lambda i: b"process p%d (%d);thread t%d (%d);f 1\n" % (i, i, i, i)),
    "collapsed, places within a name": lambda: b" (" * (1 << 19) + b") 1\n",
    "collapsed, a deep line": lambda: b";".join(b"f%d" % i for i in range(DEEP)) + b" 1\n",
    "collapsed, common beginnings": lambda: joined(lambda i: b"a;" * 200 + b"b%d 1\n" % i, MANY // 10),
    "austin, threads": lambda: b"# austin: 3.7.0\n# interval: 100\n# mode: wall\n\n" + joined(
        lambda i: b"P%d;T0:%d;a.py:f%d:%d 5\n" % (i + 1, i + 1, i, i)),
    "austin, metadata": lambda: b"# austin: 3.7.0\n# mode: wall\n" + joined(lambda i: b"# k%d: v\n" % i) + b"\nP1;T0:1;f 5\n",
    "speedscope, profiles": lambda: fb.speedscope(
        ['{"name":"f"}'], [fb.speedscope_sampled(["[0]"], "p%d" % i) for i in range(MANY)]),
    "speedscope, kinds": lambda: fb.speedscope(
        ['{"name":"f"}'], [fb.speedscope_sampled(["[0]"], "p (1) t (1): k%d" % i) for i in range(MANY)], "pyebpf 1"),
    "speedscope, frames": lambda: fb.speedscope(
        ['{"name":"f%d"}' % i for i in range(MANY)], [fb.speedscope_sampled(["[%d]" % i for i in range(MANY)])]),
    "speedscope, lambdas": lambda: fb.speedscope(
        ['{"name":"f.<locals>.<lambda>","file":"a.py","line":%d}' % (i + 1) for i in range(MANY)],
        [fb.speedscope_sampled(["[%d]" % i for i in range(MANY)], "p (1) t (1)")], "pyebpf 1"),
    "speedscope, events": events_of_speedscope,
}
# What is said of those that are refused.
REFUSED = {"perf, events": "more than 255 events", "speedscope, kinds": "more than 255 kinds"}


def used(*arguments):
    """(status, what it said, seconds of CPU time)."""
    process = subprocess.Popen([PYEBPF, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, encoding="utf-8")
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    return process.returncode, said, usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("name", FILES)
def test_time_grows_with_bytes(name, is_full, tmp_path):
    """By the recording that is made of it, and by two of the commands that read either; with --tier=all by each."""
    path, made = tmp_path / "file", tmp_path / "x.pyebpf"
    path.write_bytes(FILES[name]())
    allowed = CPU_S + path.stat().st_size * CPU_S_A_BYTE
    others = [["report", path], ["report", made], ["cat", made, "-o", made], ["diff", path, path]]
    for arguments in [["import", path, "-o", made], *(others if is_full else draw(others, 2, name))]:
        status, said, seconds = used(*arguments)
        assert seconds < allowed, (arguments, seconds, allowed)
        if name in REFUSED:
            assert status == 1 and REFUSED[name] in said, said
            return
        assert status == 0, said


@pytest.mark.parametrize("words", [["report", "--json"], ["report", "--lines"], ["export", "-f", "html"],
                                   ["export", "-f", "gecko"], ["export", "-f", "svg"], ["export", "-f", "pprof"]], ids=" ".join)
@pytest.mark.parametrize("name", ["pyebpf, a long name", "pyebpf, a long file"])
def test_long_names_of_recordings(name, words, tmp_path):
    """A name of a MiB is not read for each function that has it."""
    path = tmp_path / "file"
    path.write_bytes(FILES[name]())
    status, said, seconds = used(*words, path)
    assert status == 0, said
    assert seconds < CPU_S + path.stat().st_size * CPU_S_A_BYTE, seconds


@pytest.mark.parametrize("form", ["json", "html", "pstats", "svg"])
def test_sums_do_not_grow_with_the_depth(form, tmp_path):
    """Formats that have sums, of a file in which each sample is a frame deeper than the last."""
    path = tmp_path / "file"
    path.write_bytes(FILES["mojo, stacks that grow"]())
    status, said, seconds = used("export", "-f", form, path, "-o", tmp_path / "out")
    assert status == 0, said
    assert seconds < CPU_S + path.stat().st_size * CPU_S_A_BYTE, seconds


# Rows of a few bytes that all name the same long texts: four times the rows, of four times the length.
SHAPES = {
    "a path of many libraries": lambda times: recording(
        [b"f", b"/site-packages/" * (250 * times) + b"a.py"], [(1, 2, i + 1) for i in range(10000 * times)]),
    "a path of many folders": lambda times: recording(
        [b"f", b"/a" * (2000 * times) + b".py"], [(1, 2, i + 1) for i in range(10000 * times)]),
    "a name of many parts": lambda times: recording(
        [b"f [x." * (800 * times) + b"]", b"~"], [(1, 2, i + 1) for i in range(4000 * times)]),
    "scripts in folders that differ at the root": lambda times: recording(
        [b"<module>", *(b"/%d" % i + b"/a" * (1900 * times) + b"/m.py" for i in range(2)),
         *(b"/p%d/q.py" % i for i in range(1000 * times))], [(1, i + 2, 1) for i in range(1000 * times + 2)]),
    "files of one name": lambda times: recording(
        [b"f", *(b"/%d/orders.py" % i for i in range(300 * times))], [(1, i + 2, 1) for i in range(300 * times)]),
}
COMMANDS = [
    "report", "report --json", "report --by file", "report --by test_*", "report --lines", "report --tree", "report --no-idle",
    "report --focus x*y:foo", "report --hide foo", "report --module foo.bar", "report --file foo", "report --merge module",
    "report --merge file", "report --collapse-stdlib", "report --fold-imports", "diff FILE", "cat --strip-paths -o OUT",
    "export -f html -o OUT", "export -f heatmap -o OUT", "export -f gecko -o OUT", "export -f svg -o OUT",
    "export -f pprof -o OUT", "export -f otlp -o OUT",
]


def written(path):
    """Bytes of a file, or of the files of a folder."""
    return sum(each.stat().st_size for each in ([path] if path.is_file() else path.glob("*")))


@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_the_bytes_take_four_times_as_long(shape, is_full, tmp_path):
    """Outputs that grow faster than the input are left out: a heatmap has the name of each function."""
    small, large = tmp_path / "small.pyebpf", tmp_path / "large.pyebpf"
    small.write_bytes(SHAPES[shape](1))
    large.write_bytes(SHAPES[shape](4))
    slow = {}
    for command in COMMANDS if is_full else draw(COMMANDS, 10, shape):
        seconds, outputs = [], []
        for path in small, large:
            out = tmp_path / f"{len(list(tmp_path.iterdir()))}"
            status, said, cpu_s = used(*({"FILE": path, "OUT": out}.get(word, word) for word in command.split()), path)
            assert status in (0, 3), (command, said)  # 3: no sample is selected
            seconds.append(cpu_s)
            outputs.append(written(out))
        growth = max(4, outputs[1] / max(outputs[0], 1))
        if seconds[1] > 2 * growth * seconds[0] + 0.3:
            slow[command] = seconds
    assert not slow
