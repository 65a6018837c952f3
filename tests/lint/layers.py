# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fails when a file includes a folder its own folder may not use.

The rules are the table in user/README.md, so the document cannot rot:
    | `folder/` | may include |
CMakeLists.txt (pyebpf_library(... USES ...)) must not link more than the table allows either. And
    | folder | room | files |
every source of user/ is in one room of its folder, and every file that a room has is there.

usage: layers.py ROOT
"""
import pathlib
import re
import sys

ROW = re.compile(r"^\| `(\w+)/` +\| ([^|]*) \|", re.M)
ROOM = re.compile(r"^\| (?!folder )(\w+) \| [^|]+ \| ([\w/ ]+) \|$", re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]*)"', re.M)
LIBRARY = re.compile(r"pyebpf_library\((\w+)([^)]*)\)")
USES = re.compile(r"USES((?:\s+[a-z]\w*)+)")
# Headers the build makes, and who may include them.
GENERATED = {"collect": {"pyebpf.skel.h", "own.skel.h", "syscall_names.h"}, "bpf": {"vmlinux.h"},
             "import": {"pprof.pb-c.h"},
             "export": {"hotlines_assets.h", "page_assets.h", "svg_script.h", "otlp.pb-c.h", "perfetto.pb-c.h",
                        "pprof.pb-c.h"},
             "cmd": {"guide.h"}}
# Headers of bpf/ that need no kernel's types, and who may include them beside events.h.
PURE = {"inspect": re.compile(r"bpf/(python\w*|syscalls)\.h"), "collect": re.compile(r"bpf/hash\.h")}


def read_rules(readme):
    rows = ROW.findall(readme.read_text())
    folders = {folder for folder, _ in rows}
    rules = {}
    for folder, allowed in rows:
        names = set(re.findall(r"`(\w+)/`", allowed))
        if allowed.startswith("everything but"):
            names = folders - names
        rules[folder] = names | {folder}
    return rules


def sources(folder):
    return sorted(p for p in folder.rglob("*.[ch]") if p.is_file())


def user_violations(root, rules):
    user = root / "user"
    for path in sources(user):
        parts = path.relative_to(user).parts
        folder = parts[0] if len(parts) > 1 else "cmd"  # main.c may what cmd/ may
        for included in INCLUDE.findall(path.read_text()):
            if folder not in rules:
                yield f"{path}: {folder}/ has no row in user/README.md"
                break
            used, _, rest = included.partition("/")
            if included in GENERATED.get(folder, ()):
                continue
            if not rest or ".." in included:
                yield f'{path}: "{included}" is not named by folder and file'
            elif used not in rules[folder]:
                yield f"{path}: {folder}/ may not include {used}/"
            elif used == "bpf" and included != "bpf/events.h" and not (
                    folder in PURE and PURE[folder].fullmatch(included)):
                yield f"{path}: of bpf/ only bpf/events.h may be included"


def bpf_violations(root):
    for path in sources(root / "bpf"):
        for included in INCLUDE.findall(path.read_text()):
            if included not in GENERATED["bpf"] and not re.fullmatch(r"bpf/[\w.]+", included):
                yield f'{path}: bpf/ may not include "{included}"'


def link_violations(root, rules):
    for folder, rest in LIBRARY.findall((root / "CMakeLists.txt").read_text()):
        match = USES.search(rest)
        for used in match.group(1).split() if match else ():
            if used not in rules.get(folder, ()):
                yield f"CMakeLists.txt: pyebpf_{folder} may not link pyebpf_{used}"


def room_violations(root):
    user = root / "user"
    rooms = [f"{folder}/{name}" for folder, names in ROOM.findall((user / "README.md").read_text())
             for name in names.split()]
    there = {path.relative_to(user).with_suffix("").as_posix() for path in sources(user)
             if path.parent != user}
    for name in sorted(there - set(rooms)):
        yield f"user/{name}: in no room of user/README.md"
    for name in sorted(set(rooms) - there):
        yield f"user/README.md: {name} is in a room, and not there"
    for name in sorted({name for name in rooms if rooms.count(name) > 1}):
        yield f"user/README.md: {name} is in two rooms"


def main(root):
    rules = read_rules(root / "user" / "README.md")
    if not rules:
        sys.exit(f"{root}/user/README.md: no include table")
    found = [*user_violations(root, rules), *bpf_violations(root), *link_violations(root, rules),
             *room_violations(root)]
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
