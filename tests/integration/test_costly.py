# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that are costly to look at: each maps hundreds of large ELF files, with symbol tables to be searched. All of
them together use a few hundredths of a CPU of the recorder, and a Python that begins then is identified."""
import contextlib
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time

import pytest
from harness import PATIENCE, Recorder, export, wait_until
from spinning import family

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.alone]

TABLE = 64 << 20  # bytes of .symtab, and of .strtab: all that pyebpf searches
# Files that a process maps, seconds of a recording, and the share of a CPU that the mappers may cost on top: 1.1 before
# there was a budget. What each may cost once is the most of that.
FEW, MANY = (300, 6, 0.1), (1500, 15, 0.05)
LOOPS = 4  # that start mappers one after the other
FLOOD_SECONDS = 8
FLOOD_SHARE = 0.05  # of a CPU, that they may cost on top once their user's first second is spent
NAMES = b"".join(64 * name for name in (b"_PyRuntime\0", b"pypy_execute_source\0", b"_PyThreadState_Current\0"))
MAPPER = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char path[256];

	for (int i = 0; i < atoi(argv[argc - 1]); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%d.so", argv[1], i);
		fd = open(path, O_RDONLY);
		if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			return 1;
		close(fd);
	}
	puts("READY");
	fflush(stdout);
	for (;;) {
		for (volatile int k = 0; k < 1000000; k++)
			;
		usleep(20000);
	}
}
"""
WORK = """
import time
def begun_beside_costly(end):
    while time.process_time() < end: sum(range(1000))
begun_beside_costly(time.process_time() + 0.5)
"""


def section(name, kind, offset, size, link, entry):
    return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, link, 0, 8, entry)


def make_elf(path):
    """Sparse, so that it takes 12 KiB of a disk."""
    symbols, strings = 0x2000, 0x2000 + TABLE
    machine = {"x86_64": 62, "aarch64": 183}[os.uname().machine]
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0x1000, 0, 64, 56, 1, 64,
                                                          4, 3)
    with open(path, "wb") as f:
        f.write(head + struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 0x1000, 0x1000, 0x1000))
        f.seek(0x1000)
        f.write(bytes(64) + section(1, 2, symbols, TABLE, 2, 24) + section(9, 3, strings, TABLE, 0, 0) +
                section(17, 3, 0x1800, 64, 0, 0))
        f.seek(0x1800)
        f.write(b"\0.symtab\0.strtab\0.shstrtab\0")
        f.seek(strings + TABLE - len(NAMES) - 1)
        f.write(NAMES)
        f.truncate(strings + TABLE)


@pytest.fixture
def mapper(is_full):
    """Its words, but for the number of files; of a folder that any user may read."""
    folder = tempfile.mkdtemp(prefix="pyebpf-test-")
    os.chmod(folder, 0o755)
    for i in range(MANY[0] if is_full else FEW[0]):
        make_elf(os.path.join(folder, "%d.so" % i))
    program = os.path.join(folder, "mapper")
    subprocess.run(["cc", "-O1", "-xc", "-", "-o", program], input=MAPPER, text=True, check=True)
    yield ["nice", "-n", "19", program, folder]
    shutil.rmtree(folder)


def found_in(recording):
    """Samples of the Python that began."""
    return sum(count for stack, count in export(recording).items()
               if any(frame[0] == "begun_beside_costly" for frame in stack.frames))


def record(python, output, seconds):
    """(CPU seconds of pyebpf, its readers included; samples of a Python that begins after a second)."""
    with Recorder(output, "-a", "-d", "%ds" % seconds) as recorder:
        recorder.wait_attached()
        subprocess.run(["sleep", "1"], check=True)
        subprocess.run([*python.command, "-c", WORK], check=True)
        assert recorder.wait() == 0, recorder.text()
        used, unit = re.search(r"pyebpf used ([\d.]+) (m?s) of CPU time", recorder.text()).groups()
    return float(used) / (1000 if unit == "ms" else 1), found_in(output)


def test_processes_that_map_much(some_python, mapper, tmp_path, is_full):
    files, seconds, share = MANY if is_full else FEW
    alone, expected = record(some_python, tmp_path / "alone.pyebpf", seconds)
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            process = subprocess.Popen([*mapper, str(files)], stdout=subprocess.PIPE)
            stack.callback(process.wait)
            stack.callback(process.kill)
            assert process.stdout.readline() == b"READY\n"
        beside, found = record(some_python, tmp_path / "beside.pyebpf", seconds)
    assert beside - alone < share * seconds, (alone, beside)
    assert found >= 0.7 * expected > 20, (expected, found)


@contextlib.contextmanager
def flood_of_nobody(mapper, files):
    """A user's loops, each of which starts a mapper that lives half a second."""
    loop = "while :; do timeout -s KILL 0.5 %s %d >/dev/null; done" % (" ".join(mapper), files)
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", loop]
    loops = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
             for _ in range(LOOPS)]
    try:
        yield
    finally:
        for process in loops:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def cpu_of(pid):
    """CPU seconds of a process and its children, also of those that have ended."""
    used = 0
    for member in family(pid):
        with contextlib.suppress(FileNotFoundError), open("/proc/%d/stat" % member) as f:
            used += sum(map(int, f.read().rpartition(")")[2].split()[11:15]))
    return used / os.sysconf("SC_CLK_TCK")


def record_flood(python, output, mapper, files, first):
    """(the share of a CPU that pyebpf takes once it has used so many seconds; samples of a Python that begins then)."""
    with flood_of_nobody(mapper, files), Recorder(output, "-a") as recorder:
        recorder.wait_attached()
        before = cpu_of(recorder.process.pid)
        wait_until(lambda: cpu_of(recorder.process.pid) > before + first, PATIENCE, "it has used %.1f s" % first)
        before, began = cpu_of(recorder.process.pid), time.monotonic()
        subprocess.run([*python.command, "-c", WORK], check=True)
        time.sleep(max(began + FLOOD_SECONDS - time.monotonic(), 0))
        share = (cpu_of(recorder.process.pid) - before) / (time.monotonic() - began)
        recorder.finish()
    return share, found_in(output)


@pytest.mark.full
def test_a_user_who_starts_many_such_processes(some_python, mapper, tmp_path):
    """Beside as many that map one file."""
    cheap, expected = record_flood(some_python, tmp_path / "cheap.pyebpf", mapper, 1, 0.2)
    costly, found = record_flood(some_python, tmp_path / "costly.pyebpf", mapper, MANY[0], 1.5)
    assert costly - cheap < FLOOD_SHARE, (cheap, costly)
    assert found >= 0.5 * expected > 15, (expected, found)
