# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What other profilers write of a real program, and what their own reports say of it.

    python3 foreign_tools.py FOLDER    writes both: FOLDER/NAME, and FOLDER/reports.json

A report is {kind: {function: time or bytes of its own}}, in ns and bytes. What the tools do not
name is NAMELESS.
"""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tools"))
import engines  # noqa: E402
import packages  # noqa: E402
import pythons  # noqa: E402

PROGRAM = os.path.join(os.path.dirname(HERE), "workloads", "sampled.py")
NAMELESS = "[unknown]"
GO_SOURCE = os.path.join(HERE, "foreign", "program.go")

# By austin-python: text of memory is not, it takes bytes for us.
READ_AUSTIN = """
import json, sys
from austin.format.collapsed_stack import AustinFileReader
from austin.format.mojo import MojoStreamReader
from austin.stats import AustinStats
path = sys.argv[1]
stream = MojoStreamReader(open(path, "rb")) if path.endswith(".mojo") else AustinFileReader(open(path))
report = {}
def add(own, node, name):
    own[name] = own.get(name, 0) + node.own
    for frame, child in node.children.items():
        add(own, child, frame.function)
for kind, stats in AustinStats.load(stream).items():
    own = report[kind.value] = {}
    for process in stats.processes.values():
        for thread in process.threads.values():
            add(own, thread, "")
print(json.dumps(report))
"""
AUSTIN_KINDS = {"wall": ("wall", 1000), "cpu": ("cpu", 1000), "memory_alloc": ("memory", 1),
                "memory_dealloc": ("memory-freed", 1)}
GO_KINDS = {"cpu": [("cpu", "ns")],
            "heap": [("alloc_space", "B"), ("inuse_space", "B"), ("alloc_objects", "")],
            "mutex": [("delay", "ns"), ("contentions", "")]}


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode:
        raise pythons.Unavailable("%s: %s" % (command[0], done.stderr.decode("utf-8", "replace")[-300:]))
    return done.stdout.decode("utf-8", "replace")


def not_zero(report):
    return {kind: {name: value for name, value in own.items() if value}
            for kind, own in report.items()}


# --- Austin --------------------------------------------------------------------------------------

def write_austin(python, path, *options):
    program = os.path.join(packages.folder_of(python, "austin"), "bin", "austin")
    run([program, *options, "-i", "2ms", "-o", path, *python.command, PROGRAM, "0.5"])


def write_austin4(python, path, *options):
    """Of the kinds of events that MOJO got of late it writes none yet."""
    program = os.path.join(packages.folder_of(python, "austin4"), "bin", "austin")
    run([*pythons.sid_command(program), *options, "-i", "2ms", "-o", path, *python.command, PROGRAM,
         "0.5"])


def report_austin(python, path):
    environment = packages.environment(packages.folder_of(python, "austin-python"))
    told = json.loads(run([*python.command, "-c", READ_AUSTIN, path], env=environment))
    report = {}
    for kind, own in told.items():
        ours, scale = AUSTIN_KINDS[kind]
        report[ours] = {name: value * scale for name, value in own.items()}
    return not_zero(report)


# --- py-spy, in speedscope's format --------------------------------------------------------------

def write_py_spy(python, path, *options):
    program = os.path.join(packages.folder_of(python, "py-spy"), "bin", "py-spy")
    run([program, "record", "-f", "speedscope", "-r", "200", *options, "-o", path, "--",
         *python.command, PROGRAM, "0.5"])


def report_speedscope(path):
    """As speedscope's own tables: the weight of each sample is its last frame's."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    own = collections.Counter()
    for profile in data["profiles"]:
        for stack, weight in zip(profile["samples"], profile["weights"]):
            if not stack:  # which it leaves out, too
                continue
            frame = data["shared"]["frames"][stack[-1]]
            is_tag = not frame["file"] and frame["name"].startswith(("thread (", "process "))
            own["" if is_tag else frame["name"]] += round(weight * 1e9)
    return not_zero({"time": own})


# --- perf ----------------------------------------------------------------------------------------

def write_perf(python, path):
    """A Python that perf can walk through, if there is one: 3.15 keeps frame pointers."""
    data = path + ".data"
    run(["perf", "record", "-q", "-F", "499", "-e", "cpu-clock", "-g", "-o", data, "--",
         *python.command, "-X", "perf", PROGRAM, "0.4"])
    with open(path, "w", encoding="utf-8") as file:
        file.write(run(["perf", "script", "-i", data]))


def report_perf(path):
    own = collections.Counter()
    told = run(["perf", "report", "-i", path + ".data", "--no-children", "-g", "none", "--stdio",
                "-t", "|", "-F", "period,sym"])
    for line in told.splitlines():
        match = re.fullmatch(r" *(\d+) *\|\[.\] (.*?) *", line)
        if match:
            period, symbol = match.groups()
            if re.fullmatch("0x[0-9a-f]{16}", symbol):
                symbol = NAMELESS
            if symbol.startswith("py::"):
                symbol = symbol.split(":")[2]
            own[symbol] += int(period)
    return not_zero({"cpu": own})


# --- Go ------------------------------------------------------------------------------------------

def write_go(folder):
    binary = os.path.join(folder, "program")
    run([engines.go(), "build", "-o", binary, GO_SOURCE], env=dict(os.environ, GO111MODULE="off"))
    run([binary], cwd=folder)
    os.remove(binary)


def report_go(path, kinds):
    report = {}
    for kind, unit in kinds:
        told = engines.go_pprof("-top", "-sample_index=" + kind, *(["-unit=" + unit] if unit else []),
                                "-nodecount=1000000", "-nodefraction=0", path)
        own = report[kind] = collections.Counter()
        for line in told.splitlines():
            match = re.fullmatch(r" *(\d+)(?:ns|B)? +\S+% +\S+% +\S+ +\S+%  (.*?)(?: \(inline\))?", line)
            if match:
                own[match.group(2)] += int(match.group(1))
    return not_zero(report)


def write_all(folder, python, walked):
    """Files and reports, as {name: report}; what a machine cannot write is in reasons."""
    reports, reasons = {}, []

    def attempt(name, write, report):
        path = os.path.join(folder, name)
        try:
            write(path)
            reports[name] = report(path)
        except pythons.Unavailable as reason:
            reasons.append("%s: %s" % (name, reason))

    for name, options in (("austin.txt", []), ("austin-cpu.txt", ["-s"]), ("austin.mojo", ["-b"]),
                          ("austin-full.mojo", ["-b", "-f"]), ("austin-memory.mojo", ["-b", "-m"])):
        attempt(name, lambda path: write_austin(python, path, *options),
                lambda path: report_austin(python, path))
    for name, options in (("austin4.mojo", []), ("austin4-cpu.mojo", ["-c"]),
                          ("austin4-full.mojo", ["-f"]), ("austin4-memory.mojo", ["-m"])):
        attempt(name, lambda path: write_austin4(python, path, *options),
                lambda path: report_austin(python, path))
    for name, options in (("py-spy.speedscope.json", []), ("py-spy-idle.speedscope.json", ["-i", "-s"])):
        attempt(name, lambda path: write_py_spy(python, path, *options), report_speedscope)
    attempt("perf.script", lambda path: write_perf(walked, path), report_perf)
    attempt("go", lambda path: write_go(folder), lambda path: None)
    if reports.pop("go", 0) is None:
        for name, kinds in GO_KINDS.items():
            path = os.path.join(folder, "go-%s.pb.gz" % name)
            reports["go-%s.pb.gz" % name] = report_go(path, kinds)
    return reports, reasons


def pack(path, by):
    if by == "gzip":
        with open(path, "rb") as plain, gzip.open(path + ".gz", "wb") as packed:
            shutil.copyfileobj(plain, packed)
        return path + ".gz"
    run(["zstd", "-q", "-f", path, "-o", path + ".zst"])
    return path + ".zst"


def main(folder):
    found = [p for p in pythons.find_all() if p.via != "chroot" and not p.free_threaded]
    python = next(p for p in found if p.minor == 12 and p.via == "direct")
    reports, reasons = write_all(folder, python, max(found, key=lambda p: p.version))
    with open(os.path.join(folder, "reports.json"), "w", encoding="utf-8") as file:
        json.dump(reports, file, indent=1, sort_keys=True)
        file.write("\n")
    print("\n".join(reasons))


if __name__ == "__main__":
    main(sys.argv[1])
