#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Finds every CPython of this machine and provides the newer ones, for the integration tests.

Found: PYEBPF_PYTHONS (interpreters, colon-separated), PATH, pyenv's versions folder, /usr/bin.
Provided, below ${XDG_CACHE_HOME:-~/.cache}/pyebpf/pythons, without a change to the system:

  sid/     3.13, 3.14 and 3.15 of Debian sid with their own libc, unpacked from packages whose
           signatures apt has checked. Run by chroot (as root), and by that folder's own loader.
  twins/   an interpreter that comes with both kinds of libpython gets a twin of the other kind
           (shared or static): a main() of ten lines linked against it.

What cannot be provided is said on stderr with the reason. Exit status 1: not one found. --check tells
of each minor version whether it is here, as TAP: a test that is skipped where it is not.
"""
import argparse
import concurrent.futures
import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

MINORS = range(6, 16)  # of CPython 3 that must work
SID_MINORS = (13, 14, 15)
DEBIAN_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Raised when the contents of a provided folder change: an older folder is then made anew.
SID_REVISION = 3
TWIN_REVISION = 1

EMBEDDING = r"""
#include <stdlib.h>
int Py_BytesMain(int argc, char **argv);
int main(int argc, char **argv)
{
#ifdef HOME
	setenv("PYTHONHOME", HOME, 0);
#endif
	return Py_BytesMain(argc, argv);
}
"""

# Runs in the interpreter asked, any version. It then waits, so that its mappings can be read.
PROBE = """
import json, sys
try:
    import sysconfig
    var = sysconfig.get_config_var
    var("LIBPL")  # Debian's debug build has no such file without its -dev package
except ImportError:
    var = lambda name: None
print(json.dumps({
    "implementation": getattr(getattr(sys, "implementation", None), "name", "cpython"),
    "version": list(sys.version_info[:3]), "release": sys.version_info[3],
    "free_threaded": bool(var("Py_GIL_DISABLED")),
    "debug": hasattr(sys, "gettotalrefcount"),
    "archive": "%s/%s" % (var("LIBPL"), var("LIBRARY")),
    "libs": "%s %s %s" % (var("LIBS") or "", var("SYSLIBS") or "", var("LIBM") or ""),
    "prefix": sys.prefix, "executable": sys.executable}))
sys.stdout.flush()
sys.stdin.readline()
"""


class Unavailable(Exception):
    """Something could not be provided; the text says why."""


def say(text):
    print("pythons: " + text, file=sys.stderr, flush=True)


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "pyebpf", "pythons")


# --- ELF -----------------------------------------------------------------------------------------


def elf_defines(path, names):
    """Which of the names a 64-bit little-endian ELF file defines in .dynsym or .symtab."""
    found = set()
    with open(path, "rb") as f:
        head = f.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            return found
        shoff, = struct.unpack_from("<Q", head, 40)
        shentsize, shnum = struct.unpack_from("<HH", head, 58)
        f.seek(shoff)
        table = f.read(shentsize * shnum)
        sections = [struct.unpack_from("<IIQQQQIIQQ", table, i * shentsize) for i in range(shnum)]
        for section in sections:
            if section[1] not in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
                continue
            strings = sections[section[6]]
            f.seek(strings[4])
            text = f.read(strings[5])
            wanted = {}
            for name in names:
                at = text.find(b"\0" + name.encode() + b"\0")
                if at >= 0:
                    wanted[at + 1] = name
            if not wanted:
                continue
            f.seek(section[4])
            for st_name, _, _, shndx, _, _ in struct.iter_unpack("<IBBHQQ", f.read(section[5])):
                if shndx and st_name in wanted:
                    found.add(wanted[st_name])
    return found


def runtime_file(pid):
    """The file mapped by a live interpreter that defines its runtime state, as seen from here."""
    with open("/proc/%d/maps" % pid) as maps:
        files = dict.fromkeys(line.split(None, 5)[5].rstrip("\n") for line in maps
                              if "x" in line.split()[1] and " /" in line)
    for path in files:
        with contextlib.suppress(OSError):
            if elf_defines(path, ("_PyRuntime", "_PyThreadState_Current")):
                return path
    return None


# --- One interpreter -----------------------------------------------------------------------------


class Python:
    """One way to run one CPython.

    name      unique, e.g. "3.8.18-shared", "3.15.2-static-chroot"
    command   argument list that ends in the interpreter; it execs, so the PID stays the same
    version   (major, minor, micro)
    linkage   "static" | "shared": where _PyRuntime is: the program or a libpython
    via       "direct" | "chroot" | "loader"
    root      the folder it is chrooted into, or None
    source    "env" | "path" | "pyenv" | "system" | "sid" | "twin"
    runtime   the file that defines _PyRuntime, as a path of the host
    """

    def __init__(self, command, source, via="direct", root=None):
        self.command = command
        self.source = source
        self.via = via
        self.root = root

    def ask(self):
        """Fills in the rest by running it; False if it is no CPython 3."""
        try:
            with subprocess.Popen(self.command + ["-E", "-S", "-c", PROBE], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
                watchdog = threading.Timer(20, child.kill)
                watchdog.start()
                try:
                    facts = json.loads(child.stdout.readline() or b"null")
                    self.runtime = facts and runtime_file(child.pid)
                    child.communicate(b"\n")
                finally:
                    watchdog.cancel()
        except (OSError, ValueError):
            return False
        if not facts or facts["implementation"] != "cpython" or facts["version"][0] != 3 \
                or not self.runtime:
            return False
        self.version = tuple(facts["version"])
        self.release = facts["release"]
        self.free_threaded = facts["free_threaded"]
        self.debug = facts["debug"]
        self.prefix = facts["prefix"]
        self.executable = facts["executable"]
        self.archive = facts["archive"]
        self.libs = facts["libs"]
        self.linkage = "shared" if ".so" in os.path.basename(self.runtime) else "static"
        return True

    @property
    def minor(self):
        return self.version[1]

    def label(self):
        text = "%d.%d.%d" % self.version
        text += "t" * self.free_threaded + "d" * self.debug + "-" + self.linkage
        return text if self.via == "direct" else text + "-" + self.via

    def facts(self):
        keys = ("name", "command", "version", "release", "free_threaded", "debug", "linkage",
                "via", "root", "source", "runtime", "executable")
        return {key: getattr(self, key) for key in keys}


def ask_all(pythons):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return [python for python, ok in zip(pythons, pool.map(Python.ask, pythons)) if ok]


# --- What is here --------------------------------------------------------------------------------


def candidates():
    """(source, path) of everything that may be an interpreter."""
    for path in filter(None, os.environ.get("PYEBPF_PYTHONS", "").split(":")):
        found = shutil.which(os.path.expanduser(path))
        if found:
            yield "env", found
        else:
            say("PYEBPF_PYTHONS: %s: no such program" % path)
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    for path in sorted(glob.glob(os.path.join(pyenv, "versions", "*", "bin", "python3"))):
        yield "pyenv", path
    for folder in ["/usr/bin"] + os.environ.get("PATH", "").split(":"):
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "python3*"))):
            if re.fullmatch(r"python3(\.\d+)?t?d?", os.path.basename(path)):
                yield "system" if folder == "/usr/bin" else "path", path


def is_script(path):
    """pyenv's shims: shell programs that choose one of the versions found anyway."""
    try:
        with open(path, "rb") as f:
            return f.read(2) == b"#!"
    except OSError:
        return True


def find_here():
    by_file = {}
    for source, path in candidates():
        real = os.path.realpath(path)
        if os.access(real, os.X_OK) and (source == "env" or not is_script(real)):
            by_file.setdefault(real, Python([real], source))
    return ask_all(by_file.values())


# --- Debian sid ----------------------------------------------------------------------------------


def os_release(key):
    with open("/etc/os-release") as f:
        for line in f:
            if line.startswith(key + "="):
                return line.split("=", 1)[1].strip().strip('"')
    return None


def debian_mirror():
    """(URI, keyring) that this system itself gets Debian from."""
    if os_release("ID") != "debian":
        raise Unavailable("this system is not Debian, so it names no mirror of sid")
    codename = os_release("VERSION_CODENAME") or "stable"
    for path in sorted(glob.glob("/etc/apt/sources.list.d/*.sources")):
        with open(path) as f:
            stanzas = re.split(r"\n\s*\n", f.read())
        for stanza in stanzas:
            fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", stanza, re.M))
            if codename in fields.get("Suites", "").split() and fields.get("URIs") \
                    and fields.get("Enabled", "yes") != "no":
                keyring = fields.get("Signed-By", "").split()
                return fields["URIs"].split()[0], (keyring or [DEBIAN_KEYRING])[0]
    for path in ["/etc/apt/sources.list"] + sorted(glob.glob("/etc/apt/sources.list.d/*.list")):
        if not os.path.exists(path):
            continue
        with open(path) as f:
            for line in f:
                match = re.match(r"deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+%s\s" % re.escape(codename), line)
                if match:
                    keyring = re.search(r"signed-by=(\S+)", match.group(1) or "")
                    return match.group(2), keyring.group(1) if keyring else DEBIAN_KEYRING
    raise Unavailable("no Debian mirror in this system's apt sources")


def run(command, what, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if line.startswith(("E:", "W:"))]
        raise Unavailable("%s: %s" % (what, "; ".join(errors or done.stdout.splitlines()[-2:])))
    return done.stdout


class PrivateApt:
    """apt with its own sources, lists, cache and an empty list of installed packages.

    architecture: Debian's name of another one than this machine's."""

    def __init__(self, folder, architecture=None):
        if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
            raise Unavailable("no apt-get and dpkg-deb here")
        self.folder = folder
        uri, keyring = debian_mirror()
        if not os.path.exists(keyring):
            raise Unavailable("%s is missing (package debian-archive-keyring)" % keyring)
        for name in ("etc/sources.list.d", "etc/apt.conf.d", "etc/preferences.d",
                     "etc/trusted.gpg.d", "state/lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(folder, name))
        with open(os.path.join(folder, "etc/sources.list.d/sid.sources"), "w") as f:
            f.write("Types: deb\nURIs: %s\nSuites: sid\nComponents: main\nSigned-By: %s\n"
                    % (uri, keyring))
        with open(os.path.join(folder, "status"), "w"):
            pass
        # Proxies and certificates stay the system's. sid's Release may be past its valid-until.
        config = "".join(line + "\n" for line in
                         run(["apt-config", "dump"], "apt-config").splitlines()
                         if line.startswith("Acquire::"))
        config += "".join('%s "%s";\n' % item for item in (
            ("Dir::Etc", folder + "/etc"), ("Dir::State", folder + "/state"),
            ("Dir::State::status", folder + "/status"), ("Dir::Cache", folder + "/cache"),
            ("APT::Sandbox::User", ""), ("APT::Install-Recommends", "false"),
            ("APT::Get::AllowUnauthenticated", "false"), ("Acquire::Languages", "none"),
            ("Acquire::Check-Valid-Until", "false"), ("Acquire::Retries", "2"),
            ("Acquire::http::Timeout", "20"), ("Acquire::https::Timeout", "20")))
        if architecture:
            config += 'APT::Architecture "%s";\nAPT::Architectures { "%s"; };\n' % (
                architecture, architecture)
        self.conf = os.path.join(folder, "apt.conf")
        with open(self.conf, "w") as f:
            f.write(config)

    def __call__(self, *arguments):
        env = dict(os.environ, APT_CONFIG=self.conf, LC_ALL="C")
        return run(["apt-get", "-q", "-y", *arguments], "apt-get " + arguments[0], env=env)

    def download(self, packages):
        """The packages and all they depend on, as files."""
        self("update", "-o", "APT::Update::Error-Mode=any")
        self("install", "--download-only", *packages)
        return sorted(glob.glob(os.path.join(self.folder, "cache/archives/*.deb")))


def cc():
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def compile_embedding(folder, output, arguments):
    source = os.path.join(folder, "embedding.c")
    with open(source, "w") as f:
        f.write(EMBEDDING)
    if not cc():
        raise Unavailable("no C compiler here")
    run([cc(), "-O1", "-o", output, source] + arguments, "cc")


@contextlib.contextmanager
def provided_folder(path, revision):
    """Locks; yields None if the folder is there, else a new one that takes its place at the end.

    A run that dies leaves nothing at path: the folder appears by one rename."""
    stamp = os.path.join(path, ".revision")

    def is_current():
        with contextlib.suppress(OSError), open(stamp) as f:
            return f.read() == str(revision)
        return False

    if is_current():
        yield None
        return
    parent = os.path.dirname(path)
    os.makedirs(parent, exist_ok=True)
    with open(os.path.join(parent, "." + os.path.basename(path) + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_current():
            yield None
            return
        prefix = ".new-%s-" % os.path.basename(path)  # others may be made of the folders beside it
        for stale in glob.glob(os.path.join(glob.escape(parent), prefix + "*")):
            shutil.rmtree(stale, ignore_errors=True)
        new = tempfile.mkdtemp(prefix=prefix, dir=parent)
        try:
            os.chmod(new, 0o755)
            yield new
            with open(os.path.join(new, ".revision"), "w") as f:
                f.write(str(revision))
            shutil.rmtree(path, ignore_errors=True)
            os.rename(new, path)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def merge_usr(root, name):
    """Makes /name a link to /usr/name, with what is in either."""
    target = os.path.join(root, name)
    if os.path.isdir(target) and not os.path.islink(target):
        shutil.copytree(target, os.path.join(root, "usr", name), symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(target)
    if not os.path.islink(target):
        os.symlink("usr/" + name, target)


def make_sid(root):
    with tempfile.TemporaryDirectory(prefix=".apt-", dir=os.path.dirname(root)) as folder:
        packages = []
        for minor in SID_MINORS:
            packages += ["python3.%d" % minor, "libpython3.%d" % minor]
        say("downloading python %s from Debian sid"
            % ", ".join("3.%d" % minor for minor in SID_MINORS))
        for package in PrivateApt(folder).download(packages):
            run(["dpkg-deb", "-x", package, root], os.path.basename(package))
        for name in ("bin", "sbin", "lib", "lib64"):
            merge_usr(root, name)
        for name in ("dev", "proc", "tmp"):
            os.makedirs(os.path.join(root, name), exist_ok=True)
        if os.geteuid() == 0:
            null = os.path.join(root, "dev/null")
            os.mknod(null, 0o666 | 0o020000, os.makedev(1, 3))
            os.chmod(null, 0o666)
        for minor in SID_MINORS:
            library, = glob.glob(os.path.join(root, "usr/lib/*/libpython3.%d.so.1.0" % minor))
            try:
                compile_embedding(folder, os.path.join(root, "usr/bin/python3.%d-shared" % minor),
                                  [library, "-Wl,--allow-shlib-undefined"])
            except Unavailable as e:
                say("no shared twin of sid's python3.%d: %s" % (minor, e))


def sid_command(program):
    """Runs a program that wants a newer libc with that of Debian sid."""
    root = os.path.join(cache_dir(), "sid")
    if not os.path.isdir(root):
        raise Unavailable("no libc of Debian sid")
    return loader_command(root, program)


def loader_command(root, program):
    loader = glob.glob(os.path.join(root, "usr/lib*/ld-linux-*.so.*"))
    libraries = glob.glob(os.path.join(root, "usr/lib/*-linux-gnu*"))
    return [loader[0], "--library-path", ":".join(libraries), program]


def find_sid(missing):
    """missing: {minor: why} of those that are not to be had."""
    root = os.path.join(cache_dir(), "sid")
    try:
        with provided_folder(root, SID_REVISION) as new:
            if new:
                make_sid(new)
    except (Unavailable, OSError) as e:
        say("no CPython 3.13 to 3.15 of Debian sid: %s" % e)
        missing.update((minor, "not to be had of Debian sid: %s" % e) for minor in SID_MINORS)
        return []
    pythons = []
    for minor in SID_MINORS:
        for name in ("python3.%d" % minor, "python3.%d-shared" % minor):
            program = os.path.join(root, "usr/bin", name)
            if not os.path.exists(program):
                continue
            if os.geteuid() == 0:
                pythons.append(Python([shutil.which("chroot") or "/usr/sbin/chroot", root,
                                       "/usr/bin/" + name], "sid", "chroot", root))
            pythons.append(Python(loader_command(root, program), "sid", "loader"))
    return ask_all(pythons)


# --- Twins ---------------------------------------------------------------------------------------


def make_twin(python):
    """The path of a program that runs the same interpreter with libpython linked statically."""
    folder = os.path.join(cache_dir(), "twins", "%d.%d.%d" % python.version)
    program = os.path.join(folder, "bin", "python3.%d" % python.minor)
    with provided_folder(folder, "%d %s" % (TWIN_REVISION, python.runtime)) as new:
        if new:
            os.mkdir(os.path.join(new, "bin"))
            output = os.path.join(new, "bin", os.path.basename(program))
            libs = [word for word in python.libs.split() if word.startswith("-l")]
            compile_embedding(new, output, ['-DHOME="%s"' % python.prefix, "-Wl,-export-dynamic",
                                            python.archive] + libs + ["-lpthread", "-lutil"])
    return program


def find_twins(pythons):
    twins = []
    for python in pythons:
        # Py_BytesMain is there from 3.8.
        if python.linkage != "shared" or python.minor < 8 or python.via != "direct" \
                or not python.archive.endswith(".a") or not os.path.exists(python.archive):
            continue
        try:
            twins.append(Python([make_twin(python)], "twin"))
        except (Unavailable, OSError) as e:
            say("no static twin of %s: %s" % (python.label(), e))
    return ask_all(twins)


# --- Front ---------------------------------------------------------------------------------------


def find_all(provision=True, missing=None):
    """Every interpreter, oldest first, each with a unique name. missing: see find_sid()."""
    pythons = find_here()
    if provision:
        pythons += find_twins(pythons) + find_sid({} if missing is None else missing)
    pythons.sort(key=lambda p: (p.version, p.linkage, p.via, p.source))
    names = set()
    for python in pythons:
        name = label = python.label()
        number = 2
        while name in names:
            name, number = "%s-%d" % (label, number), number + 1
        names.add(name)
        python.name = name
    return pythons


def of_minors(found, minors):
    """One interpreter for each of these minors; all if none of them is here."""
    chosen = {p.minor: p for p in reversed(found) if p.minor in minors}
    return [p for p in found if p is chosen.get(p.minor)] or found


def check():
    """A test a minor: is it here?"""
    missing = dict.fromkeys(MINORS, "none on this machine, and none is fetched")
    found = {}
    for python in find_all(missing=missing):
        found.setdefault(python.minor, []).append(python.name)
    for number, minor in enumerate(MINORS, 1):
        print("ok %d - CPython 3.%d%s" % (
            number, minor, "" if minor in found else " # SKIP " + missing[minor]))
        for name in found.get(minor, ()):
            print("# " + name)
    return 0 if found else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--list", action="store_true", help="one line an interpreter (default)")
    form.add_argument("--json", action="store_true", help="everything known, one object a line")
    form.add_argument("--check", action="store_true", help="which minor versions are here, as TAP")
    form.add_argument("--commands", action="store_true", help="only the command, for a shell")
    parser.add_argument("--no-provision", action="store_true", help="only what is here already")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    pythons = find_all(not arguments.no_provision)
    for python in pythons:
        if arguments.json:
            print(json.dumps(python.facts()))
        elif arguments.commands:
            print(" ".join(python.command))
        else:
            print("%-22s %-6s %-7s %s" % (python.name, python.source, python.linkage,
                                          " ".join(python.command)))
    if not pythons:
        say("not one CPython found: set PYEBPF_PYTHONS to the interpreters to use")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
