#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints how much of each parser the inputs of its fuzz target reach.

    coverage.py [--learned=BUILD] [--page=FILE] BUILD [TARGET...]

BUILD is a build of the preset fuzz-coverage. Runs every file of the target's corpus once, and with --learned
what fuzz.py left below BUILD/fuzz/TARGET, without mutations. The parser of fuzz/FOLDER/fuzz_TARGET.c is every
file of user/FOLDER (of bpf/ for unwind) that the inputs reach, and every file whose header the target includes,
but for those of base/. --page puts the table into a page (docs/faults.md). Exit status 1: the inputs of a target reach nothing.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "tools"))

import sections  # noqa: E402

FUZZ = ROOT / "tests" / "fuzz"
INCLUDED = re.compile(r'^#include "([\w/]+)\.[ch]"', re.M)
HEAD = ("target", "inputs", "lines", "branches", "lines of each file")
INTRODUCTION = """\
Each parser of foreign bytes has a fuzz target (`tests/fuzz`). `make test` replays the corpora with mutations, with ASan and
UBSan; `make fuzz` runs libFuzzer. `make fuzz-coverage` measured how much of each parser the inputs reach: corpora, and
what libFuzzer had learned.

"""
VERSIONS = ("", "-14")  # of the names of LLVM's tools


def tool(name):
    for version in VERSIONS:
        path = pathlib.Path("/usr/bin", name + version)
        if path.exists():
            return str(path)
    return sys.exit(f"coverage.py: no {name}: make deps")


def source_of(target):
    source, = FUZZ.glob(f"*/fuzz_{target}.c")
    return source


def is_of_parser(target, name, lines):
    """name: of a source file, from the root of the repository."""
    source = source_of(target)
    folder = {"unwind": "bpf"}.get(source.parent.name, f"user/{source.parent.name}")
    stem, suffix = os.path.splitext(name.removeprefix("user/"))
    is_included = stem in INCLUDED.findall(source.read_text()) and not stem.startswith(("base/", "tests/"))
    return (str(pathlib.Path(name).parent) == folder or is_included) and (
        lines["covered"] > 0 or is_included and suffix == ".c")


def inputs_of(target, learned):
    folders = [FUZZ / "corpus" / target, *sorted((FUZZ / "corpus").glob(target + "_*"))]
    if learned:
        folders.append(learned / "fuzz" / target)
    return [folder for folder in folders if folder.is_dir()]


def profile(program, folders, scratch):
    """Runs all inputs. Returns the file that says which code ran."""
    raw, merged = scratch / "raw", scratch / f"{program.name}.profile"
    done = subprocess.run([program, "-runs=0", "-timeout=0", "-rss_limit_mb=0", *folders], check=False,
                          env={**os.environ, "LLVM_PROFILE_FILE": str(raw)}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, errors="replace")
    if done.returncode:
        sys.exit(f"coverage.py: {program.name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    subprocess.run([tool("llvm-profdata"), "merge", "-o", merged, raw], check=True)
    return merged


def summaries(target, program, merged):
    """{name: {"lines", "functions", "branches": {"covered", "count"}}} of the files of its parser."""
    done = subprocess.run([tool("llvm-cov"), "export", "-summary-only", f"-instr-profile={merged}", program],
                          check=True, stdout=subprocess.PIPE)
    files = {os.path.relpath(file["filename"], ROOT): file["summary"]
             for file in json.loads(done.stdout)["data"][0]["files"]}
    return {name: summary for name, summary in sorted(files.items())
            if is_of_parser(target, name, summary["lines"])}


def share(summaries_, what):
    covered, count = (sum(s[what][key] for s in summaries_) for key in ("covered", "count"))
    return f"{100 * covered / max(count, 1):.0f} % of {count:,}"


def row(target, folders, found):
    count = sum(len(list(folder.iterdir())) for folder in folders)
    files = ", ".join(f"{name.removeprefix('user/')} {s['lines']['percent']:.0f} %" for name, s in found.items())
    return target, str(count), share(found.values(), "lines"), share(found.values(), "branches"), files


def put_into_page(path, rows):
    table = "".join("| " + " | ".join(cells) + " |\n" for cells in [HEAD, ["---"] * len(HEAD), *rows])
    sections.put(path, "Fuzzing", INTRODUCTION + table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--learned", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("targets", nargs="*", help="all, if none is named")
    options = parser.parse_args()
    programs = {path.name[len("fuzz_"):]: path
                for path in sorted(options.build.resolve().glob("tests/fuzz_*"))
                if path.is_file() and os.access(path, os.X_OK)}
    if not programs or set(options.targets) - set(programs):
        sys.exit(f"coverage.py: no such targets in {options.build}: make build-fuzz-coverage")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for target in options.targets or programs:
            folders = inputs_of(target, options.learned)
            merged = profile(programs[target], folders, pathlib.Path(scratch))
            rows.append(row(target, folders, summaries(target, programs[target], merged)))
            print("{:16} {:>6} {:>16} {:>16}  {}".format(*rows[-1]), flush=True)
    if options.page:
        put_into_page(options.page, rows)
    return 1 if any(cells[2].startswith("0 %") for cells in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
