# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The table of attacks: each starts something hostile, or does something to the recorder."""
import contextlib
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

from harness import WORKLOADS
from scene import HERE, NotHere, TESTS
from trial import send_signals

RECORDS = ("record", "record everything", "record -a", "record wall", "record gil", "record memory")
CPU_RECORDS = ("record", "record everything", "record -a")
LOOKS = (*RECORDS, "dump", "dump everything", "top", "agent")
SCRIBBLED = ("frames", "code", "strings", "lines", "threads", "tasks", "labels", "values", "runtime", "elf")
CPU1 = pathlib.Path("/sys/devices/system/cpu/cpu1/online")
CGROUP_MEMORY = pathlib.Path("/sys/fs/cgroup/memory")


class Attack:
    """commands: under which it is tried. statuses: exit codes, where they are others than the command's
    own. says: pattern of what it must say. is_honest_judged: an honest process has its samples all the same.
    is_plain: with the build without sanitizers. is_at_start: from the first moment. is_cut: a recording
    without a sample may be left. prefix: what is before the command."""

    commands = LOOKS
    statuses = says = None
    is_honest_judged = True
    is_plain = is_at_start = is_cut = False
    disturbs_machine = False
    prefix = ()

    def start(self, scene):
        """Starts what is hostile. NotHere: this machine cannot."""

    def options(self, scene):
        """Of the recorder's Popen()."""
        return {}

    def during(self, scene, process, seconds):
        """While it records."""
        time.sleep(seconds)

    def last_signal(self, scene):
        return signal.SIGTERM


# --- Targets --------------------------------------------------------------------------------------


class Scribbles(Attack):
    commands = (*LOOKS, "record page")

    def __init__(self, kinds):
        self.kinds = kinds

    def start(self, scene):
        if self.kinds == "runtime":
            scene.choose_python(lambda python: python.minor >= 13, "3.13 or newer, with debug offsets")
        scene.attack_with("scribbles.py", scene.library, scene.chance.randrange(1 << 30), self.kinds)


class HostileFrames(Attack):
    """What workloads/hostile.py writes: the layouts of 3.11 and newer, word by word."""
    commands = (*CPU_RECORDS, "dump everything")

    def start(self, scene):
        scene.choose_python(lambda python: python.minor >= 11, "3.11 or newer")
        scene.attack_with(os.path.join(WORKLOADS, "hostile.py"), 600, scene.chance.randrange(1 << 30))


class OwnLibrary(Attack):
    """The file of the interpreter's library is overwritten while it is mapped."""
    commands = (*CPU_RECORDS, "dump", "agent")
    statuses = (0, 3)

    def start(self, scene):
        python = scene.choose_python(lambda python: python.linkage == "shared" and python.via == "direct",
                                     "a program with a shared library")
        source = next(line.split(None, 5)[5].strip() for line in maps_of(python) if "libpython3" in line)
        self.copy = scene.folder / os.path.basename(source)
        self.copy.write_bytes(pathlib.Path(source).read_bytes())
        scene.attack_with(os.path.join(WORKLOADS, "spin.py"), 600,
                          env={"LD_PRELOAD": str(self.copy)})
        self.scribble_head(scene.chance)

    def scribble_head(self, chance):
        with open(self.copy, "r+b") as f:
            f.seek(chance.randrange(64))
            f.write(bytes(chance.getrandbits(8) for _ in range(chance.randrange(1, 16))))

    def during(self, scene, process, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.scribble_head(scene.chance)
            time.sleep(0.01)


def maps_of(python):
    done = subprocess.run([*python.command, "-c", "print(open('/proc/self/maps').read())"], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


class Names(Attack):
    commands = (*LOOKS, "record page")

    def start(self, scene):
        scene.attack_with("names.py", "\x1b]0;owned\x07\udcff\udcfe\nname", "\u202e" * 4000)


class Files(Attack):
    commands = (*CPU_RECORDS, "record page", "dump", "agent", "top")

    def __init__(self, what):
        self.what = what

    def start(self, scene):
        folder = scene.folder / "files"
        folder.mkdir()
        scene.attack_with("files.py", self.what, folder, scene.chance.randrange(1 << 30))


class Storm(Attack):
    commands = (*CPU_RECORDS, "record wall", "dump", "agent", "top")

    def __init__(self, *arguments):
        self.arguments = arguments

    def start(self, scene):
        scene.attack_with("storms.py", *self.arguments)


class Stopped(Attack):
    """The target is stopped and goes on, at random."""

    def start(self, scene):
        self.target = scene.attack_with(os.path.join(WORKLOADS, "spin.py"), 600)

    def during(self, scene, process, seconds):
        send_signals(self.target.process, scene.chance, (signal.SIGSTOP, signal.SIGCONT), seconds)


class Ends(Attack):
    """The target is killed in the midst of it."""

    def start(self, scene):
        self.target = scene.attack_with("scribbles.py", scene.library, 1, ",".join(SCRIBBLED))

    def during(self, scene, process, seconds):
        time.sleep(scene.chance.uniform(0, seconds))
        self.target.process.kill()
        time.sleep(seconds / 2)


# --- File systems of targets ----------------------------------------------------------------------


def fuse(scene, command, name="fuse"):
    """(folder, server) of a FUSE server."""
    folder = scene.folder / name
    folder.mkdir()
    server = subprocess.Popen([sys.executable, *map(str, command(folder))], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if server.stdout.readline() != b"READY\n":
        raise NotHere("no FUSE: " + server.stderr.read().decode().strip())

    def end():
        server.kill()
        server.wait()
        subprocess.run(["umount", "-l", folder], check=True)
    scene.stack.callback(end)
    return folder, server


class Unanswered(Attack):
    """Memory of the target lies in a file that does not answer, or whose reads fail. word: what the
    server is told."""
    is_honest_judged = False  # with one in its worker, dump and discovery wait for it first

    def __init__(self, word):
        self.word = word

    def start(self, scene):
        content = scene.folder / "content"
        content.write_bytes(b"A=B\0" * (1 << 18))
        folder, server = fuse(scene, lambda folder: [TESTS / "integration/fuse_server.py", content, folder])
        what, how = scene.chance.choice(("name", "lines", "items", "type", "arguments")), scene.chance.choice(("busy", "idle"))
        target = scene.attack_with(os.path.join(WORKLOADS, "unanswered.py"), folder / "file", what, how,
                                   "x" * 8192, ready=False)
        scene.stack.callback(server.kill)  # first of all, as who waits for it cannot be killed
        if target.process.stdout.readline() != b"READY\n":
            raise AssertionError("the target does not start")
        server.stdin.write(self.word)
        server.stdin.flush()
        server.stdout.readline()


# --- Outputs and limits of the recorder -----------------------------------------------------------


class Disk(Attack):
    """make: makes the folder that the output goes to. says: what each write there becomes."""
    commands = RECORDS[:4]
    statuses = (1,)
    is_honest_judged, is_cut = False, True

    def __init__(self, make, says):
        self.make, self.says = make, says

    def start(self, scene):
        scene.attack_with("scribbles.py", scene.library, 1, "strings,code,lines")
        scene.output_folder = self.make(scene)


def full_disk(scene):
    folder = scene.mount("tmpfs", "size=4k")
    (folder / "filler").write_bytes(bytes(4096))
    return folder


def failing_disk(scene):
    room = scene.chance.choice((0, 100, 1000))
    return fuse(scene, lambda folder: [HERE / "failing_fs.py", folder, room], "broken")[0]


class AddressSpace(Attack):
    """RLIMIT_AS. What needs more ends with a message."""
    commands = RECORDS
    statuses = (0, 1, 3, 4)
    is_honest_judged, is_plain = False, True

    def start(self, scene):
        scene.attack_with("scribbles.py", scene.library, 1, "strings,code")
        self.mib = scene.chance.choice((32, 48, 64, 80, 96, 128, 256))  # less: ld.so ends it

    def options(self, scene):
        limit = self.mib << 20
        return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))}


class MemoryCgroup(Attack):
    """A cgroup's limit of memory: the kernel may kill the recorder."""
    commands = CPU_RECORDS
    statuses = (0, 1, 3, 4, -9)
    is_honest_judged, is_plain, is_cut = False, True, True

    def start(self, scene):
        if not (CGROUP_MEMORY / "memory.limit_in_bytes").exists():
            raise NotHere("no memory controller of cgroup version 1")
        scene.attack_with("scribbles.py", scene.library, 1, "strings,code")
        self.group = CGROUP_MEMORY / f"pyebpf-hostile-{os.getpid()}"
        self.group.mkdir(exist_ok=True)
        scene.stack.callback(self.remove)
        (self.group / "memory.limit_in_bytes").write_text(str(scene.chance.choice((8, 16, 24, 32)) << 20))

    def remove(self):
        end = time.monotonic() + 10
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                self.group.rmdir()
                return
            time.sleep(0.05)

    def options(self, scene):
        procs = self.group / "cgroup.procs"
        return {"preexec_fn": lambda: procs.write_text("0")}


# --- Signals, clocks, CPUs, others ----------------------------------------------------------------


class Signalled(Attack):
    """SIGUSR1, SIGSTOP and SIGCONT at random moments, and SIGTERM or SIGINT at last. While it is stopped
    its ring may fill, which it says."""
    commands = RECORDS
    is_honest_judged = False

    def start(self, scene):
        scene.attack_with("scribbles.py", scene.library, 1, ",".join(SCRIBBLED))

    def during(self, scene, process, seconds):
        send_signals(process, scene.chance, (signal.SIGUSR1, signal.SIGSTOP, signal.SIGCONT), seconds)

    def last_signal(self, scene):
        return scene.chance.choice((signal.SIGTERM, signal.SIGINT))


class EndsEarly(Attack):
    """SIGTERM or SIGINT at a random moment of its start."""
    commands = (*RECORDS, "dump", "top", "agent")
    statuses = (0, 3, -signal.SIGTERM, -signal.SIGINT)
    is_honest_judged, is_at_start = False, True

    def start(self, scene):
        scene.attack_with("scribbles.py", scene.library, 1, ",".join(SCRIBBLED))

    def during(self, scene, process, seconds):
        time.sleep(scene.chance.uniform(0, 0.6))

    def last_signal(self, scene):
        return scene.chance.choice((signal.SIGTERM, signal.SIGINT))


class ClockSteps(Attack):
    """CLOCK_REALTIME jumps by three seconds, for moments."""
    commands = (*CPU_RECORDS, "record wall", "agent", "top")
    disturbs_machine = True

    def start(self, scene):
        scene.attack_with(os.path.join(WORKLOADS, "spin.py"), 600)

    def during(self, scene, process, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            step = scene.chance.choice((-3, 3))
            try:
                time.clock_settime(time.CLOCK_REALTIME, time.time() + step)
            except PermissionError as error:
                raise NotHere(f"the clock may not be set: {error}") from error
            try:
                time.sleep(scene.chance.uniform(0, 0.05))
            finally:
                time.clock_settime(time.CLOCK_REALTIME, time.time() - step)
            time.sleep(0.1)


class Hotplug(Attack):
    """The second CPU goes away and comes back. What runs there is seen a second later, and named as lost."""
    commands = CPU_RECORDS
    disturbs_machine = True

    def start(self, scene):
        if not CPU1.exists():
            raise NotHere("no second CPU that can be taken away")
        scene.attack_with(os.path.join(WORKLOADS, "spin.py"), 600)

    def during(self, scene, process, seconds):
        time.sleep(seconds / 3)
        try:
            CPU1.write_text("0")
            time.sleep(0.3)
        except OSError as error:
            raise NotHere(f"CPU 1 stays: {error}") from error
        finally:
            CPU1.write_text("1")
        time.sleep(3 * seconds)


class ManyRecorders(Attack):
    """Three more at once."""
    commands = (*CPU_RECORDS, "record wall")

    def start(self, scene):
        scene.attack_with("scribbles.py", scene.library, 1, ",".join(SCRIBBLED))

    def during(self, scene, process, seconds):
        command = [os.readlink(f"/proc/{process.pid}/exe"), "record", "-p", str(scene.pids[0]), "-d",
                   f"{int(seconds * 1000)}ms", "-o"]
        others = [subprocess.Popen([*command, scene.folder / f"other-{number}.pyebpf"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for number in range(3)]
        for other in others:
            said = other.communicate(timeout=60)[1].decode("utf-8", "replace")
            if other.returncode not in (0, 3):
                raise AssertionError(f"another recorder ends with {other.returncode}: {said[-2000:]}")


ATTACKS = {
    **{f"rewrites its {kind}": Scribbles(kind) for kind in SCRIBBLED},
    "rewrites all of these": Scribbles(",".join(SCRIBBLED)),
    "wild frames, code, thread lists": HostileFrames(),
    "overwrites its library's file": OwnLibrary(),
    "hostile names": Names(),
    "sparse files of 1 TiB": Files("sparse"),
    "FIFOs and devices as sources": Files("fifo"),
    "files cut while mapped": Files("truncated"),
    "memory behind a deaf FUSE": Unanswered(b"deaf\n"),
    "memory behind a FUSE that fails": Unanswered(b"broken\n"),
    "3,000 threads": Storm("threads", "3000"),
    "threads that end at once": Storm("short-threads"),
    "a storm of forks": Storm("forks"),
    "a storm of execs": Storm("execs"),
    "target stopped and continued": Stopped(),
    "target killed": Ends(),
    "output on a full disk": Disk(full_disk, "No space left on device"),
    "output on a failing disk": Disk(failing_disk, "Input/output error"),
    "limit of address space": AddressSpace(),
    "limit of a cgroup's memory": MemoryCgroup(),
    "SIGUSR1, SIGSTOP, SIGCONT": Signalled(),
    "SIGTERM or SIGINT while it starts": EndsEarly(),
    "steps of the clock": ClockSteps(),
    "a CPU goes and comes back": Hotplug(),
    "four recorders at once": ManyRecorders(),
}
