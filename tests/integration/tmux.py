# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A terminal that programs can be watched on: tmux, with a server of its own."""
import os
import re
import subprocess
import tempfile
import time

PATIENCE = 30
PROMPT = "ready>"


class Terminal:
    """A shell on it. Screens are lists of lines without spaces at their ends."""

    def __init__(self, width=80, height=24, **environment):
        self.folder = tempfile.TemporaryDirectory(prefix="pyebpf-tmux-")
        self.socket = os.path.join(self.folder.name, "socket")
        clean = {"PATH": os.environ["PATH"], "HOME": self.folder.name, "LC_ALL": "C.UTF-8",
                 "PS1": PROMPT, "SHELL": "/bin/sh"}
        self.environment = dict(clean, **environment)
        self.tmux("new-session", "-d", "-x", width, "-y", height, "bash --norc --noprofile -i",
                  configuration=True)
        self.wait(lambda screen: PROMPT in screen[0])

    def tmux(self, *words, configuration=False):
        command = ["tmux", *(["-f", "/dev/null"] if configuration else []), "-S", self.socket]
        done = subprocess.run([*command, *map(str, words)], env=self.environment, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.stdout.decode()

    def keys(self, *names):
        """Names of keys, as tmux has them."""
        self.tmux("send-keys", *names)

    def type(self, text):
        self.tmux("send-keys", "-l", "--", text)

    def command(self, line):
        self.type(line)
        self.keys("Enter")

    def screen(self, *options):
        return [line.rstrip() for line in self.tmux("capture-pane", "-p", *options).split("\n")]

    def wait(self, fact, seconds=PATIENCE):
        """The first screen of which it is true."""
        end = time.monotonic() + seconds
        while True:
            screen = self.screen()
            found = fact(screen)
            if found:
                return found if isinstance(found, (list, re.Match)) else screen
            if time.monotonic() > end:
                raise AssertionError("not to be seen:\n" + "\n".join(screen))
            time.sleep(0.05)

    def wait_for(self, pattern, seconds=PATIENCE):
        """What matches, in a line of it."""
        return self.wait(lambda screen: re.search(pattern, "\n".join(screen), re.M), seconds)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", width, "-y", height)

    def answer(self, line):
        """What a command of the shell writes: of one line."""
        self.keys("C-l")
        self.wait(lambda screen: screen[0].endswith(PROMPT) and not any(screen[1:]))
        self.command("%s; echo done''." % line)
        return self.wait(lambda screen: "done." in screen and screen)[1:]

    def modes(self):
        """Of the terminal, as programs of the shell have it: a sum of them, which fits in a line."""
        return self.answer("stty -g | cksum")[0]

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], stderr=subprocess.DEVNULL)
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
