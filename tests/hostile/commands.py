# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The commands of pyebpf that targets are attacked under. Each is run, told to end, and judged."""
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import threading
import time
import fcntl

from harness import has_events, is_polling
from scene import HONEST_LEAF

HZ = 997
EVERYTHING = ("--async", "--label", "route=contextvar:route", "--opcodes")
AGENT = """rate: 199
window: 1s
cpu_budget: 100%
output:
  engine: files
  directory: {folder}/out
spool:
  directory: {folder}/spool
http:
  port: 0
"""


class Command:
    """One run of pyebpf. Its output is in a file, so that nobody has to read it meanwhile. What its sanitizers
    report is in files of their own: those processes of it that read targets have no stderr."""

    judges_honest = False
    statuses = (0, 3)

    def __init__(self, scene, program, pids, prefix=()):
        self.scene, self.program, self.prefix = scene, program, prefix
        self.pids, self.honest_pid = ",".join(map(str, pids)), pids[-1]
        self.text_file = tempfile.TemporaryFile()
        self.log_path = scene.folder / "sanitizer"
        self.process = None

    def arguments(self):
        raise NotImplementedError

    def environment(self):
        given = os.environ.get("ASAN_OPTIONS", "")
        return dict(os.environ, ASAN_OPTIONS=f"{given}:log_path={self.log_path}")

    def start(self, **options):
        self.process = subprocess.Popen([*self.prefix, self.program, *map(str, self.arguments())],
                                        stdin=subprocess.DEVNULL, stdout=self.text_file,
                                        stderr=self.text_file, cwd=self.scene.folder,
                                        env=self.environment(), **options)

    def wait_ready(self, seconds=40):
        """Until it samples, or ends."""
        end, opened = time.monotonic() + seconds, None
        while self.process.poll() is None and time.monotonic() < end:
            if has_events(self.process.pid):
                opened = opened or time.monotonic()
                if is_polling(self.process.pid) or time.monotonic() > opened + 5:
                    return
            time.sleep(0.02)

    def text(self):
        self.text_file.seek(0)
        return self.text_file.read().decode("utf-8", "replace")

    def reports(self):
        """What sanitizers say, in any of its processes."""
        paths = sorted(self.log_path.parent.glob(self.log_path.name + ".*"))
        return "".join(path.read_text(errors="replace") for path in paths)

    def recordings(self):
        """Files that it wrote, to be loaded."""
        return []

    def said_of_honest(self):
        """None: its recordings say it. Else whether its text names what the honest process does."""
        return None

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.text_file.close()


class Record(Command):
    options = ()

    def arguments(self):
        return ["record", "-o", self.output(), *self.target(), *self.options]

    def target(self):
        return ["-p", self.pids]

    def output(self):
        return self.scene.output_folder / "x.pyebpf"

    def recordings(self):
        return [self.output()] if self.output().exists() else []


class Cpu(Record):
    judges_honest = True
    options = ("-F", HZ)


class Everything(Record):
    judges_honest = True
    options = ("-F", HZ, *EVERYTHING)


class Page(Record):
    """The page, with the sources of targets."""

    def output(self):
        return self.scene.output_folder / "x.html"

    def recordings(self):
        return []


class System(Everything):
    def target(self):
        return ["-a"]


class Wall(Record):
    options = ("--mode", "wall", "--async")


class Gil(Record):
    options = ("--mode", "gil")


class Memory(Record):
    options = ("--mode", "memory")


class Dump(Command):
    """Ends by itself; told to end, it does at once."""
    statuses = (0, 3, -15)

    def arguments(self):
        return ["dump", "-p", self.pids]

    def wait_ready(self, seconds=40):
        pass

    def said_of_honest(self):
        return self.process.returncode < 0 or HONEST_LEAF in self.text()


class DumpAll(Dump):
    def arguments(self):
        return ["dump", "--locals=full", "--async", "-p", self.pids]

    def said_of_honest(self):
        """Tasks are shown, and it has none."""
        return self.process.returncode < 0 or f"pid {self.honest_pid}, CPython" in self.text()


class Top(Command):
    statuses = (0, 3, -15)

    def arguments(self):
        return ["top", "-p", self.pids, "--async"]

    def start(self, **options):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        environment = dict(self.environment(), TERM="xterm-256color", LC_ALL="C.UTF-8")
        self.process = subprocess.Popen([*self.prefix, self.program, *map(str, self.arguments())],
                                        stdin=slave, stdout=slave, stderr=slave, env=environment,
                                        start_new_session=True, **options)
        os.close(slave)
        self.master, self.screens = master, bytearray()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        try:
            while True:
                self.screens += os.read(self.master, 65536)
        except OSError:
            os.close(self.master)  # its other end is closed

    def text(self):
        if self.process.poll() is not None:
            self.reader.join(10)
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", self.screens.decode("utf-8", "replace"))


class Agent(Command):
    def arguments(self):
        path = self.scene.folder / "agent.yaml"
        path.write_text(AGENT.format(folder=self.scene.folder))
        return ["agent", "--config", path]

    def recordings(self):
        return sorted((self.scene.folder / "out").glob("*"))


COMMANDS = {
    "record": Cpu,
    "record everything": Everything,
    "record -a": System,
    "record page": Page,
    "record wall": Wall,
    "record gil": Gil,
    "record memory": Memory,
    "dump": Dump,
    "dump everything": DumpAll,
    "top": Top,
    "agent": Agent,
}
