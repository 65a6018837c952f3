# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which packages a static program was linked from.

A library is in it when the linker's map names a member of it: its package is whose file it is, or the
source in DEPS_FOLDER/source (cmake/static_deps.sh). SYSROOT: where libraries are from that are not
installed, with a list of them beside it (cmake/arm64_sysroot.sh).
"""
import collections
import os
import pathlib
import re
import subprocess
import sys

# Libraries that static_deps.sh builds, by the source package.
BUILT = {"libcjson.a": "cjson", "libcurl.a": "curl", "libmicrohttpd.a": "libmicrohttpd"}

# Source package and its version; the path of its debian/copyright.
Package = collections.namedtuple("Package", "source version copyright")


def libraries(linker_map):
    """Paths of the .a that members were taken of, but for our own."""
    loaded = re.findall(r"^(\S+\.a)\(", pathlib.Path(linker_map).read_text(), re.M)
    folder = os.path.dirname(linker_map)  # the linker's own
    return sorted({os.path.realpath(os.path.join(folder, path)) for path in loaded
                   if not os.path.basename(path).startswith("libpyebpf_")})


def names_of(path):
    """As dpkg may know it: /lib and /usr/lib are one."""
    return path, re.sub(r"^(/?)usr/lib/", r"\1lib/", path, count=1)


def copyright_of(package, root=""):
    return "%s/usr/share/doc/%s/copyright" % (root, package)


def installed(path):
    for name in names_of(path):
        done = subprocess.run(["dpkg-query", "-S", name], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            package = done.stdout.rpartition(": ")[0].split(",")[0]
            shown = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}",
                                    package], text=True, stdout=subprocess.PIPE, check=True)
            return Package(*shown.stdout.split(), copyright_of(package.partition(":")[0]))
    return sys.exit(f"packages.py: {path}: of no package")


def unpacked(path, sysroot):
    """The same of one below the sysroot."""
    listed = (pathlib.Path(sysroot).parent / "packages").read_text().splitlines()
    found = {line.split()[0]: line.split()[1:] for line in listed}
    for name in names_of(os.path.relpath(path, sysroot)):
        if name in found:
            source, version, package = found[name]
            return Package(source, version, copyright_of(package, sysroot))
    return sys.exit(f"packages.py: {path}: of no package")


def built(folder, source):
    """As its changelog has it."""
    debian = pathlib.Path(folder) / "source" / source / "debian"
    version = re.match(r"\S+ \(([^)]+)\)", (debian / "changelog").read_text()).group(1)
    return Package(source, version, str(debian / "copyright"))


def package_of(path, deps, sysroot):
    if path.startswith(deps + "/"):
        return built(deps, BUILT[os.path.basename(path)])
    if sysroot and path.startswith(sysroot + "/"):
        return unpacked(path, sysroot)
    return installed(path)


def within(linker_map, deps, sysroot=None):
    """The Package of each library in the program."""
    deps, sysroot = os.path.realpath(deps), sysroot and os.path.realpath(sysroot)
    return {package_of(path, deps, sysroot) for path in libraries(linker_map)}
