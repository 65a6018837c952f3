# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of others that read what we write, for --tier=all."""
import os
import shutil
import subprocess

import pythons


def go():
    """The go command; Debian's is installed where there is none. Raises pythons.Unavailable."""
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin:/usr/lib/go/bin")
    if found:
        return found
    pythons.run(["apt-get", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "-qq",
                 "--no-install-recommends", "golang-go"], "apt-get install golang-go")
    return shutil.which("go")


def go_pprof(*arguments):
    """What `go tool pprof` prints. It must not complain."""
    done = subprocess.run([go(), "tool", "pprof", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False,
                          env=dict(os.environ, PPROF_TMPDIR="/nonexistent", NO_COLOR="1"))
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout
