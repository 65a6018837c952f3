#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes user/profile/opcode_names.h: which number is which bytecode instruction, by minor version.

Usage: opcode_names.py FILE           writes it, from every CPython found (tests/tools/pythons.py)
       opcode_names.py --check FILE   exit status 1 if one of them has other names, or none is found

The names are those of each interpreter's own dis and opcode modules; from 3.11 on they include the
specialised and instrumented instructions, of which code is made while it runs.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import textwrap

# Runs in the interpreter asked, any version. Numbers from 256 on never stand in bytecode.
PROBE = """
import dis, opcode
names = getattr(dis, "_all_opname", opcode.opname)
for number, name in enumerate(names[:256]):
    if not name.startswith("<"):
        print(number, name)
"""

HEAD = """\
/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Written by tests/tools/opcode_names.py from each interpreter's own modules. */
/* clang-format off */
"""


def ask(python):
    """{number: name} of one interpreter."""
    lines = subprocess.check_output(python.command + ["-I", "-S", "-c", PROBE], text=True)
    return {int(number): name for number, name in map(str.split, lines.splitlines())}


def ask_all():
    """[(Python, {number: name})]; versions that have to be fetched if they are there already."""
    import pythons
    found = pythons.find_all()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return list(zip(found, pool.map(ask, found)))


def text_of(names_of):
    parts = [HEAD.rstrip()]
    for minor, names in sorted(names_of.items()):
        items = ['[%d] = "%s",' % item for item in sorted(names.items())]
        body = textwrap.wrap(" ".join(item.replace(" ", "\0") for item in items), 92,
                             break_long_words=False, break_on_hyphens=False)
        parts += ["static const char *const names_3_%d[256] = {" % minor]
        parts += ["\t" + line.replace("\0", " ") for line in body] + ["};"]
    parts += ["static const char *const *const names_by_minor[] = {"]
    parts += ["\t[%d] = names_3_%d," % (minor, minor) for minor in sorted(names_of)] + ["};"]
    return "\n".join(parts) + "\n/* clang-format on */\n"


def read(path):
    """{minor: {number: name}} of a file that text_of() wrote."""
    with open(path, encoding="utf-8") as f:
        tables = re.findall(r"names_3_(\d+)\[256\] = \{(.*?)\};", f.read(), re.DOTALL)
    return {int(minor): {int(number): name for number, name
                         in re.findall(r'\[(\d+)\] = "(\w+)",', body)} for minor, body in tables}


def check(path, answers):
    tables, wrong = read(path), 0
    for python, names in answers:
        table = tables.get(python.minor, {})
        differ = sorted(n for n in set(names) | set(table) if names.get(n) != table.get(n))
        print("%-22s %3d names, %d differ" % (python.name, len(names), len(differ)))
        for number in differ:
            wrong += 1
            print("  %d: %s, in the table %s" % (number, names.get(number), table.get(number)))
    return 1 if wrong or not answers else 0


def main(arguments):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    answers = ask_all()
    path = arguments[-1]
    if "--check" in arguments:
        return check(path, answers)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text_of({python.minor: names for python, names in answers}))
    return check(path, answers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
