#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares pyebpf's CPython layouts with the headers of every CPython found, field by field.

Usage: offsets_check.py SOURCE_DIR   exit status 1 if one field differs, or if no headers are found

Prints TAP: a test is a build of a version; a minor without headers is skipped. Each version is compiled as it is, as a debug build, and from 3.13 on free-threaded too; 3.7 also
as it was before 3.7.4: its headers with that release's one change of a layout taken back.
Found: PYEBPF_HEADERS (folders with a Python.h, colon-separated), pyenv's versions,
/usr/include/python3.*, ${XDG_CACHE_HOME:-~/.cache}/pyebpf/headers, where those of Debian sid's 3.13,
3.14 and 3.15 are unpacked. CC: the compiler (cc), with its options.

PYEBPF_MACHINE=arm64: as that architecture has them. CC then is a cross compiler and RUN what runs its
programs; of Debian's headers, which differ by architecture, those of PYEBPF_HEADERS and of sid's
packages for it are taken. pyenv's differ by nothing that decides a layout.
"""
import concurrent.futures
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))

import pythons  # noqa: E402

MACHINE = os.environ.get("PYEBPF_MACHINE")
HEADERS_REVISION = 1  # raised when what is in the folder of headers changes
SOURCES = ("user/inspect/value_stack.c", "user/symbolize/exceptiontable.c", "user/target/offsets.c",
           "user/target/debug_offsets.c", "user/target/object.c",
           "user/base/err.c")


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "pyebpf", "headers" + ("_" + MACHINE if MACHINE else ""))


def version_of(folder):
    """(text, minor), or None if the folder is not one of a CPython 3 with its internal headers."""
    try:
        with open(os.path.join(folder, "patchlevel.h")) as f:
            text = f.read()
    except OSError:
        return None
    version = re.search(r'^#define PY_VERSION\s+"([^"]+)"', text, re.M)
    minor = re.search(r"^#define PY_MINOR_VERSION\s+(\d+)", text, re.M)
    if not version or not minor or not version.group(1).startswith("3.") \
            or not os.path.isdir(os.path.join(folder, "internal")) and minor.group(1) != "6":
        return None
    return version.group(1), int(minor.group(1))


def find_headers():
    """{version: folder}, the first folder of each version."""
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    folders = [os.path.expanduser(f) for f in os.environ.get("PYEBPF_HEADERS", "").split(":") if f]
    own = () if MACHINE else ("/usr/include/python3.*", "/usr/local/include/python3.*")
    for pattern in (os.path.join(glob.escape(pyenv), "versions/*/include/python3.*"), *own,
                    os.path.join(glob.escape(cache_dir()), "usr/include/python3.*")):
        folders += sorted(glob.glob(pattern))
    found = {}
    for folder in folders:
        version = version_of(folder)
        if version and version[1] in pythons.MINORS:
            found.setdefault(version, folder)
    return found


def provide():
    """The headers of Debian sid. Why not, or None."""
    try:
        with pythons.provided_folder(cache_dir(), HEADERS_REVISION) as new:
            if new:
                with tempfile.TemporaryDirectory(dir=os.path.dirname(cache_dir())) as folder:
                    download(folder, new)
    except (pythons.Unavailable, OSError) as error:
        return str(error)
    return None


def download(folder, root):
    apt = pythons.PrivateApt(folder, MACHINE)
    apt("update", "-o", "APT::Update::Error-Mode=any")
    pythons.run(["apt-get", "-q", "download",
                 *("libpython3.%d-dev" % minor for minor in pythons.SID_MINORS)], "apt-get download",
                cwd=folder, env=dict(os.environ, APT_CONFIG=apt.conf, LC_ALL="C"))
    for package in glob.glob(os.path.join(glob.escape(folder), "*.deb")):
        pythons.run(["dpkg-deb", "-x", package, root], os.path.basename(package))


def change(folder, name, pattern, replacement):
    path = os.path.join(folder, name)
    with open(path) as f:
        text, count = re.subn(pattern, replacement, f.read(), flags=re.M)
    if count != 1:
        sys.exit("offsets_check: %s: %d times %s" % (path, count, pattern))
    with open(path, "w") as f:
        f.write(text)


def before_3_7_4(headers, folder):
    """A copy of 3.7's headers without bpo-27987, the change to PyGC_Head that came with 3.7.4."""
    shutil.copytree(headers, folder)
    change(folder, "objimpl.h", r"^    long double dummy;", "    double dummy;")
    change(folder, "patchlevel.h", r"^#define PY_MICRO_VERSION.*", "#define PY_MICRO_VERSION 3")
    return folder


def variants(minor):
    yield "", []
    yield "debug", ["-DPy_DEBUG"]
    if minor >= 13:
        yield "free-threaded", ["-DPy_GIL_DISABLED=1"]


def check(cc, source, objects, output, folder, flags):
    """'' if all fields are right, else what is wrong."""
    usr = os.path.dirname(folder)  # Debian's pyconfig.h includes <MULTIARCH/python3.N/pyconfig.h>
    done = subprocess.run(
        [*cc, "-std=gnu11", "-w", *flags, "-I", folder, "-I", os.path.join(folder, "internal"),
         "-idirafter", usr, "-I", source, "-I", os.path.join(source, "user"),
         os.path.join(source, "tests/lint/offsets_check.c"), *objects, "-o", output,
         # 3.13's table comes with static objects that refer to all of libpython.
         "-no-pie", "-Wl,--unresolved-symbols=ignore-all"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        return "  does not compile:\n" + "\n".join(done.stdout.splitlines()[:12])
    done = subprocess.run([*shlex.split(os.environ.get("RUN", "")), output], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode and not done.stdout:
        return "  ended with status %d" % done.returncode
    return done.stdout.rstrip() if done.returncode else ""


def main():
    source = os.path.abspath(sys.argv[1])
    cc = shlex.split(os.environ.get("CC", "cc"))
    unavailable = provide()
    found = find_headers()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        objects = []
        for path in SOURCES:
            objects.append(os.path.join(folder, os.path.basename(path) + ".o"))
            subprocess.run([*cc, "-std=gnu11", "-D_GNU_SOURCE", "-I", source,
                            "-I", os.path.join(source, "user"), "-c",
                            os.path.join(source, path), "-o", objects[-1]], check=True)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            jobs = []
            targets = [(version, minor, headers) for (version, minor), headers in found.items()]
            targets += [("3.7.3", 7, before_3_7_4(headers, os.path.join(folder, version)))
                        for version, minor, headers in targets if minor == 7]
            for version, minor, headers in sorted(targets, key=lambda target: target[1]):
                for name, flags in variants(minor):
                    output = os.path.join(folder, "check-%d" % len(jobs))
                    job = pool.submit(check, cc, source, objects, output, headers, flags)
                    jobs.append(("%s %s" % (version, name), headers, job))
            for number, (name, headers, job) in enumerate(jobs, 1):
                wrong = job.result()
                failed += bool(wrong)
                print("%sok %d - %s" % ("not " * bool(wrong), number, name.strip()))
                print("\n".join("# " + line for line in [headers, *wrong.splitlines()]))
    missing = [minor for minor in pythons.MINORS if minor not in {m for _, m in found}]
    for number, minor in enumerate(missing, len(jobs) + 1):
        print("ok %d - 3.%d # SKIP no headers%s" % (
            number, minor, ": " + unavailable if minor in pythons.SID_MINORS and unavailable else ""))
    print("# %d versions, %d builds, %d wrong" % (len(found), len(jobs), failed))
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main() if len(sys.argv) == 2 else __doc__)
