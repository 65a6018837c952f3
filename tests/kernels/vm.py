# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A virtual machine without a disk: builds its initramfs, boots it, reads what its steps printed."""
import collections
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
for place in (HERE, os.path.join(os.path.dirname(HERE), "tools")):
    sys.path.insert(0, place)

import kernels  # noqa: E402
import pythons  # noqa: E402

GUEST = os.path.join(HERE, "guest")
WORKLOADS = [os.path.join(os.path.dirname(HERE), "workloads", name)
             for name in ("family.py", "cold.py", "waits.py", "dumped.py")]
SELF_CONTAINED = [os.path.join(os.path.dirname(HERE), *path)  # import nothing else
                  for path in (("workloads", "chains.py"), ("tools", "other_btf.py"),
                                ("kernels", "guest", "dumps.py"))]
QEMU = "qemu-system-aarch64" if kernels.IS_ARM64 else "qemu-system-x86_64"
EMULATOR = "qemu-aarch64"  # of programs
FOLDERS = ("bin", "dev", "proc", "sys", "tmp", "root")

# Which files `python3 -S` reads for the workloads.
MODULES = """
import encodings.ascii, json, runpy, site, sys  # what up to 3.10 starts with, too
for path in sys.argv[1:]:
    runpy.run_path(path, run_name="packing")
print(json.dumps([sys.prefix, sys.exec_prefix] + sorted(
    m.__file__ for m in list(sys.modules.values()) if getattr(m, "__file__", None))))
"""

# Into a folder: what an import of these files would make of them, each time. They stay as they are.
COMPILED = """
import importlib.util, os, py_compile, sys
for number, path in enumerate(sys.argv[2:]):
    py_compile.compile(path, os.path.join(sys.argv[1], str(number)), path, doraise=True,
                       invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    print(importlib.util.cache_from_source(path))
"""

# The guest's clock goes by instructions, 4 ns each, and does not wait for timers: what it measures is
# the same on a busy host. Such a machine's CPUs take turns.
CLOCK = ["-accel", "tcg,thread=single", "-icount", "shift=2,sleep=off"]
CLOCK_OF_HOST = ["-accel", "tcg,thread=multi"]

Step = collections.namedtuple("Step", "status out err")


class Archive:
    """An initramfs: cpio, "newc" format (Linux, Documentation/driver-api/early-userspace)."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.inode = 0
        self.folders = set()

    def put(self, name, mode, content=b""):
        self.inode += 1
        name = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name
        self.file.write(head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4))

    def folder(self, name):
        parent = os.path.dirname(name)
        if name and name not in self.folders:
            self.folder(parent)
            self.folders.add(name)
            self.put(name, stat.S_IFDIR | 0o755)

    def add(self, source, name, mode=0o755):
        name = name.lstrip("/")
        self.folder(os.path.dirname(name))
        with open(source, "rb") as f:
            self.put(name, stat.S_IFREG | mode, f.read())

    def link(self, target, name):
        self.folder(os.path.dirname(name))
        self.put(name, stat.S_IFLNK | 0o777, target.encode())

    def close(self):
        self.put("TRAILER!!!", 0)
        self.file.close()


class Guest:
    """Where the programs of the guest are found."""

    def __init__(self, root=None):
        self.root = root or ""  # None: it is of this machine's kind, and has what this machine has
        self.runs = [EMULATOR, "-L", root] if root else []

    def path(self, name):
        """On this machine."""
        return self.root + name

    def name(self, path):
        """In the guest."""
        return path[len(self.root):] if path.startswith(self.root) else path

    def python(self):
        return self.name(os.path.realpath(self.path("/usr/bin/python3"))) if self.root else find_python()

    def libraries(self, program):
        """The shared libraries that a program or library loads, the loader among them, in the guest."""
        command = ["ldd", program]
        if self.root:
            command = [*self.runs, self.path("/lib/ld-linux-aarch64.so.1"), "--list", program]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
        return {self.name(name)
                for name in re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", done.stdout, re.M)}


def find_python():
    """The path of an interpreter of this machine for the guest: Debian's own, which has USDT probes, if it
    is there. None: there is none at all."""
    found = [p for p in pythons.find_all(provision=False)
             if p.minor >= 8 and not p.free_threaded and not p.debug]
    python = next((p for p in found if p.source == "system"), found[-1] if found else None)
    return python and python.command[-1]


def find_initramfs(kernel, pyebpf, folder):
    """The initramfs for a kernel, built in the folder unless it is there. pyebpf: linked statically where
    the guest is of another kind than this machine. Raises kernels.Unavailable, OSError."""
    path = os.path.join(folder, "initramfs-" + (kernel.python or "own"))
    if not os.path.exists(path):
        build_initramfs(path, pyebpf, kernels.find_busybox(), Guest(kernels.find_root(kernel)))
    return path


def add_compiled(archive, guest, python, modules):
    """As no interpreter of the guest writes any, each would compile all that it imports."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*guest.runs, guest.path(python), "-E", "-S", "-c", COMPILED, folder,
             *[guest.path(module) for module in modules]], stdout=subprocess.PIPE, check=True, text=True)
        for number, path in enumerate(done.stdout.splitlines()):
            archive.add(os.path.join(folder, str(number)), guest.name(path), 0o644)


def build_initramfs(path, pyebpf, busybox, guest):
    python = guest.python()
    if not python:
        raise kernels.Unavailable("no CPython on this machine")
    found = json.loads(subprocess.run(
        [*guest.runs, guest.path(python), "-E", "-S", "-c", MODULES, *WORKLOADS],
        stdout=subprocess.PIPE, check=True).stdout)
    prefix, exec_prefix, *modules = [guest.name(name) for name in found]
    archive = Archive(path)
    add_compiled(archive, guest, python, [m for m in modules if m.endswith(".py") and m not in WORKLOADS])
    for folder in FOLDERS:
        archive.folder(folder)
    archive.add(busybox, "bin/busybox")
    archive.link("busybox", "bin/sh")
    archive.add(pyebpf, "bin/pyebpf")
    archive.add(guest.path(python), python)
    archive.link(python, "bin/python3")
    for path in WORKLOADS + SELF_CONTAINED:
        archive.add(path, os.path.basename(path))
    for name in ("init", "steps", "waiting", "ledger", "scale"):
        archive.add(os.path.join(GUEST, name), name)
    needed = guest.libraries(guest.path(python))
    if not guest.root:
        needed |= guest.libraries(pyebpf)
    for module in modules:
        if module.endswith(".so"):
            needed |= guest.libraries(guest.path(module)) | {module}
        elif module not in WORKLOADS:
            archive.add(guest.path(module), module, 0o644)
    for library in sorted(needed):
        archive.add(guest.path(library), library)
    # What an interpreter looks for to know where it is installed (Modules/getpath.py).
    version = next(os.path.basename(os.path.dirname(m)) for m in modules if m.endswith("/os.py"))
    for folder in {prefix, exec_prefix}:
        archive.folder(os.path.join(folder, "lib", version, "lib-dynload").lstrip("/"))
    archive.close()


def read_steps(text):
    """{name: Step}; a step that did not end has status None."""
    steps, name = {}, None
    for line in text.replace("\r", "").split("\n"):
        word, _, rest = line.partition(" ")
        if word == "@begin":
            name = rest
            steps[name] = Step(None, [], [])
        elif word == "@end":
            name, _, status = rest.rpartition(" ")
            steps[name] = steps[name]._replace(status=int(status))
        elif word in ("out", "err") and name:
            getattr(steps[name], word).append(rest)
    return steps, "@done" in text


class BootError(Exception):
    """The machine did not come to its end; the text has the last lines of the console."""


def hardware(console, results):
    """Options of qemu, and what the kernel is told. Of two serial ports the second one is for results;
    arm64's machine has one, on which a quiet kernel says nothing else."""
    if kernels.IS_ARM64:
        os.symlink(results, console)
        return (["-M", "virt,gic-version=3", "-serial", "file:" + results],
                "console=ttyAMA0 quiet results=/dev/ttyAMA0")
    # On a busy host the timer does not come within what the kernel waits for it.
    return (["-serial", "file:" + console, "-serial", "file:" + results],
            "console=ttyS0 no_timer_check results=/dev/ttyS1")


def boot(path, kernel, initramfs, seconds, append="", cpus=2):
    """{name: Step} of a machine that ran to its end. path: of the kernel's image."""
    folder = tempfile.mkdtemp(prefix="pyebpf-vm-")
    console, results = os.path.join(folder, "console"), os.path.join(folder, "results")
    options, told = hardware(console, results)
    command = [QEMU, *(CLOCK if kernel.by_instructions else CLOCK_OF_HOST),
               "-cpu", kernel.cpu, "-smp", str(cpus), "-m", "1024",
               "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", *options,
               "-kernel", path, "-initrd", initramfs,
               "-append", " ".join((told, "panic=-1 oops=panic", append))]
    try:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=seconds, check=False)
            problem = "qemu: %s" % done.stdout.decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            problem = "not done after %d s" % seconds
        texts = []
        for path in (results, console):
            with open(path, errors="replace") as f:
                texts.append(f.read())
        steps, is_done = read_steps(texts[0])
        if not is_done:
            raise BootError("%s; steps: %s; the console ends in\n%s" % (
                problem, " ".join(steps) or "none", "\n".join(texts[1].splitlines()[-30:])))
        return steps, texts[1]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
