# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""dump of threads whose code objects' names are rewritten all the time, from outside of the GIL."""
import os
import subprocess

import pytest
from harness import HERE, Workload, run

pytestmark = [pytest.mark.usefixtures("pyebpf")]
TARGETS = os.path.join(os.path.dirname(HERE), "hostile", "targets")
TIMES = {False: 8, True: 20}  # in some of them the kernel sees one name, and whoever reads it then another


def test_dump_goes_on(some_python, tmp_path, is_full):
    library = tmp_path / "scribble.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, os.path.join(TARGETS, "scribble.c"), "-lpthread"],
                   check=True)
    with Workload(some_python, "waits.py", "crowd", 2) as other, \
            subprocess.Popen([*some_python.command, os.path.join(TARGETS, "scribbles.py"), library, "77", "strings"],
                             stdout=subprocess.PIPE, text=True) as changing:
        try:
            assert changing.stdout.readline().startswith("READY")
            for _ in range(TIMES[is_full]):
                done = run("dump", "-p", f"{changing.pid},{other.pid}")
                assert done.returncode >= 0, done  # no signal has ended it
                assert f"pid {other.pid}, CPython" in done.stdout, done
        finally:
            changing.kill()
