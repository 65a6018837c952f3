# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The examples of docs/dump.md are what dump says of the programs in workloads/hangs/."""
import os
import re
import subprocess

import pytest
from harness import REPOSITORY, WORKLOADS, run, wait_until
from test_dump import has_task_work

pytestmark = pytest.mark.usefixtures("pyebpf")
FOLDER = os.path.join(WORKLOADS, "hangs")
MINOR = 13  # of the interpreter in the page
ITSELF = "unwind itself"  # in the line that only some kernels have


def plain(line):
    """Without what another run has otherwise: numbers, but for lines of the program; folders."""
    line = re.sub(r"\(python[\d.]*\)", "(python)", line).replace(FOLDER, "/srv")
    line = re.sub(r"[^\" (]*/lib/python3\.\d+/", "/lib/", line)
    line = re.sub(r"^(pid .*threads?: ).*", r"\1", line)
    line = re.sub(r"[├└`][─-]{2}", "+", line).replace("│", "|")
    if "/srv/" in line:
        return line.rstrip()
    line = re.sub(r"(\d[\d.]*) [num]?s to (\d[\d.]*) [num]?s", r"\1 s", line)
    return re.sub(r"0x[0-9a-f]+|\d[\d.]*( [num]?s\b)?", "N", line).rstrip()


def example(name):
    with open(os.path.join(REPOSITORY, "docs", "dump.md"), encoding="utf-8") as f:
        blocks = re.findall(r"(?ms)^```\n(.*?)^```$", f.read())
    block, = (block for block in blocks if "/srv/%s.py" % name in block)
    return [plain(line) for line in block.splitlines() if line.strip() not in ("", "...")
            and (ITSELF not in line or has_task_work())]


def missing(wanted, said):
    """The first line of the example that is not there, behind those before it; None: all are."""
    lines = iter([plain(line) for line in said.splitlines()])
    return next((line for line in wanted if line not in lines), None)


@pytest.mark.few_pythons
@pytest.mark.parametrize("name, options", [("bank", []), ("fetch", []), ("storm", []),
                                           ("orders", ["--async"])])
def test_examples(python, name, options):
    if python.minor != MINOR:
        return
    wanted = example(name)
    program = os.path.join(FOLDER, name + ".py")
    with subprocess.Popen([*python.command, program], stderr=subprocess.DEVNULL) as process:
        said = []

        def is_said():
            done = run("dump", *options, "-p", process.pid)
            said[:] = [missing(wanted, done.stdout) if done.returncode == 0 else done.stderr,
                       done.stdout]
            return said[0] is None
        try:
            wait_until(is_said, 60, "the example")
        except AssertionError as e:
            raise AssertionError("%s: not there: %s, in:\n%s" % (e, *said))
        finally:
            process.kill()
