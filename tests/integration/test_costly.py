# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that are costly to look at: each maps hundreds of large ELF files, with symbol tables to be searched. All of
them together use a few hundredths of a CPU of the recorder, and a Python that begins then is identified."""
import contextlib
import os
import re
import struct
import subprocess

import pytest
from harness import Recorder, export

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.alone]

FILES = 300
TABLE = 64 << 20  # bytes of .symtab, and of .strtab: all that pyebpf searches
SECONDS = 6
SHARE = 0.1  # of a CPU, that the mappers may cost on top; 1.1 before there was a budget
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


def record(python, output):
    """(CPU seconds of pyebpf, its readers included; samples of a Python that begins after a second)."""
    with Recorder(output, "-a", "-d", "%ds" % SECONDS) as recorder:
        recorder.wait_attached()
        subprocess.run(["sleep", "1"], check=True)
        subprocess.run([*python.command, "-c", WORK], check=True)
        assert recorder.wait() == 0, recorder.text()
        used, unit = re.search(r"pyebpf used ([\d.]+) (m?s) of CPU time", recorder.text()).groups()
    found = sum(count for stack, count in export(output).items() if any(frame[0] == "begun_beside_costly" for frame in stack.frames))
    return float(used) / (1000 if unit == "ms" else 1), found


def test_processes_that_map_much(some_python, tmp_path):
    for i in range(FILES):
        make_elf(tmp_path / ("%d.so" % i))
    subprocess.run(["cc", "-O1", "-xc", "-", "-o", tmp_path / "mapper"], input=MAPPER, text=True, check=True)
    alone, expected = record(some_python, tmp_path / "alone.pyebpf")
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            mapper = subprocess.Popen(["nice", "-n", "19", tmp_path / "mapper", tmp_path, str(FILES)],
                                      stdout=subprocess.PIPE)
            stack.callback(mapper.wait)
            stack.callback(mapper.kill)
            assert mapper.stdout.readline() == b"READY\n"
        beside, found = record(some_python, tmp_path / "beside.pyebpf")
    assert beside - alone < SHARE * SECONDS, (alone, beside)
    assert found >= 0.7 * expected > 20, (expected, found)
