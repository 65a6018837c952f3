#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether the programs fit a kernel that cannot be booted here, by its types alone.

    headers.py VMLINUX_H [PYEBPF]      of build/pyebpf, as root

VMLINUX_H is what `bpftool btf dump file /sys/kernel/btf/vmlinux format c` says on that kernel. Tells
what of vmlinux/vmlinux.h it lacks, which not every kernel needs to have, and its helpers. Then `record
--btf` relocates by these types what CPU time takes with it (`sample_old`; not `sample` and iterators,
whose offsets a kernel compares with its own types), and the verifier of the kernel that runs, not of
that one, judges the result: a member that live code needs and the header lacks is refused. Only for
this machine's architecture. Exit code 1 if a program was refused.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import ledger  # noqa: E402

# How the registers' struct begins; the architecture as BPF and as uname calls it.
ARCHITECTURES = [(r"(?m)^struct pt_regs \{\s*long unsigned int r15;", "x86", "x86_64"),
                 (r"(?m)^struct user_pt_regs \{\s*__u64 regs\[31\];", "arm64", "aarch64")]
OF_ARCHITECTURE = ("pt_regs", "thread_struct")
FOR_SAMPLE = ("loop", "find_vma", "task_pt_regs")  # user/collect/features.c, feature_is_old()
HELPERS = FOR_SAMPLE + ("get_current_task_btf", "copy_from_user_task")
NEEDED = {"sample_old", "walk_tasks"}


def clang(*arguments):
    return subprocess.run(["clang", "-target", "bpf", "-w", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", check=False)


def write(folder, name, header, lines):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(['#include "%s"' % header, *lines, ""]))
    return path


def named_members(architecture):
    """[(struct, member)] of vmlinux/vmlinux.h; a member of a struct within is uw.tp_value."""
    ours = os.path.join(ROOT, "vmlinux", "vmlinux.h")
    text = clang("-E", "-P", "-D__TARGET_ARCH_" + architecture, ours).stdout
    text = re.sub(r"struct \{[^{}]*?(\w+);\s*\} (\w+);", r"int \2.\1;", text)
    return [(struct, member) for struct, body in re.findall(r"struct (\w+) \{([^{}]*)\}", text)
            for member in re.findall(r"([\w.]+)(?:\[\w+\])?\s*[,;]", body)]


def find_absent(header, members, folder):
    """[(struct, member)] that the header lacks, and the structs of which it lacks all."""
    path = write(folder, "members.c", header, ["void f(void) {", *(
        "(void)((struct %s *)0)->%s;" % member for member in members), "}"])
    said = clang("-fsyntax-only", "-ferror-limit=0", path).stderr
    absent, structs = [], set()
    for where, line, error in re.findall(r"(?m)^(.*?):(\d+):\d+: (?:fatal )?error: (.*)", said):
        if where != path:
            sys.exit("headers.py: %s:%s: %s" % (where, line, error))
        absent.append(members[int(line) - 3])
        if "incomplete" in error:
            structs.add(absent[-1][0])
    return absent, structs


def make_types(header, structs, folder):
    """The path of a file with these types and those that they are made of."""
    source = write(folder, "types.c", header, ["struct %s of_%s;" % (s, s) for s in sorted(structs)])
    target, types = os.path.join(folder, "types.o"), os.path.join(folder, "other.btf")
    clang("-g", "-O2", "-c", source, "-o", target).check_returncode()
    subprocess.run(["llvm-objcopy", "--dump-section", ".BTF=" + types, target], check=True)
    return types


def load(pyebpf, types, folder):
    """Prints what became of the programs. Returns the exit code."""
    done = subprocess.run([pyebpf, "record", "-vv", "--btf", types, "-d", "1s", "-a",
                           "-o", os.path.join(folder, "x.pyebpf")], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          errors="replace", check=False)
    said = done.stderr.splitlines()
    refused = set(re.findall(r"prog '(\w+)': failed to load", done.stderr))
    lacking = re.findall(r"failed to resolve CO-RE relocation <\w+> \[\d+\] (.*?) \(", done.stderr)
    loaded = {p: n for p, n in ledger.instructions(said).items() if p not in refused}
    for program, count in loaded.items():
        print("%-11s %7s instructions verified" % (program, "{:,}".format(count)))
    for program in sorted(refused):
        print("%-11s REFUSED: %s" % (program, "needs " + lacking[-1] if lacking else said[-2]))
    if refused:
        return 1
    is_other = done.returncode == 4 and "describes another kernel" in done.stderr
    if not NEEDED <= set(loaded) or not (is_other or done.returncode in (0, 3)):  # 3: no Python ran
        print("headers.py: exit code %d: %s" % (done.returncode, "\n".join(said[-5:])), file=sys.stderr)
        return 1
    print("walk_tasks, run: types of %s" % ("another kernel" if is_other else "the kernel that runs"))
    return 0


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    header = os.path.abspath(sys.argv[1])
    pyebpf = sys.argv[2] if len(sys.argv) > 2 else os.path.join(ROOT, "build", "pyebpf")
    with open(header, encoding="utf-8") as f:
        text = f.read()
    name, machine = next((row[1:] for row in ARCHITECTURES if re.search(row[0], text)), ("x86", None))
    members = [m for m in named_members(name) if machine or m[0] not in OF_ARCHITECTURE]
    helpers = set(re.findall(r"\bBPF_FUNC_(\w+) = ", text))
    with tempfile.TemporaryDirectory(prefix="pyebpf-headers-") as folder:
        absent, structs = find_absent(header, members, folder)
        print("%d of %d members; absent: %s" % (
            len(members) - len(absent), len(members), ", ".join(map(".".join, absent)) or "none"))
        if helpers:
            print(*("bpf_%s: %s" % (h, "yes" if h in helpers else "no") for h in HELPERS), sep=", ")
            print("ticks there by", "sample" if helpers.issuperset(FOR_SAMPLE) else "sample_old")
        if machine != os.uname().machine:
            print("no program is loaded: types of", machine or "an architecture that has none")
            return 0
        return load(pyebpf, make_types(header, {m[0] for m in members} - structs, folder), folder)


if __name__ == "__main__":
    sys.exit(main())
