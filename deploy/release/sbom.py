#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints what a static pyebpf is made of, as CycloneDX 1.5: the packages whose libraries are in it.

usage: sbom.py PROGRAM VERSION LINKER_MAP DEPS_FOLDER [SYSROOT]

A library is in it when the linker's map names a member of it: its package is whose file it is, or the
source in DEPS_FOLDER/source. SYSROOT: where libraries are from that are not installed, with a list of
them beside it (cmake/arm64_sysroot.sh).
"""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

# Libraries that static_deps.sh builds, by the source package.
BUILT = {"libcjson.a": "cjson", "libcurl.a": "curl", "libmicrohttpd.a": "libmicrohttpd"}


def libraries(linker_map):
    """Paths of the .a that members were taken of, but for our own."""
    loaded = re.findall(r"^(\S+\.a)\(", pathlib.Path(linker_map).read_text(), re.M)
    folder = os.path.dirname(linker_map)  # the linker's own
    return sorted({os.path.realpath(os.path.join(folder, path)) for path in loaded
                   if not os.path.basename(path).startswith("libpyebpf_")})


def installed(path):
    """(source package, version) whose file it is."""
    for name in (path, path.replace("/usr/lib/", "/lib/", 1)):
        done = subprocess.run(["dpkg-query", "-S", name], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            package = done.stdout.rpartition(": ")[0].split(",")[0]
            shown = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}",
                                    package], text=True, stdout=subprocess.PIPE, check=True)
            return tuple(shown.stdout.split())
    return sys.exit(f"sbom.py: {path}: of no package")


def unpacked(path, sysroot):
    """The same of one below the sysroot."""
    listed = (pathlib.Path(sysroot).parent / "libraries").read_text().splitlines()
    found = {line.split()[0]: tuple(line.split()[1:]) for line in listed}
    name = os.path.relpath(path, sysroot)
    for wanted in (name, name.replace("usr/lib/", "lib/", 1)):
        if wanted in found:
            return found[wanted]
    return sys.exit(f"sbom.py: {path}: of no package")


def package_of(path, deps, sysroot):
    if path.startswith(deps + "/"):
        return built(deps, BUILT[os.path.basename(path)])
    if sysroot and path.startswith(sysroot + "/"):
        return unpacked(path, sysroot)
    return installed(path)


def built(folder, source):
    """(source package, version) as its changelog has it."""
    changelog = (pathlib.Path(folder) / "source" / source / "debian/changelog").read_text()
    return source, re.match(r"\S+ \(([^)]+)\)", changelog).group(1)


def component(name, version):
    return {"type": "library", "name": name, "version": version,
            "bom-ref": f"pkg:deb/debian/{name}@{version}",
            "purl": f"pkg:deb/debian/{name}@{version}?arch=source"}


def main(program, version, linker_map, deps, sysroot=None):
    deps, sysroot = os.path.realpath(deps), sysroot and os.path.realpath(sysroot)
    found = {package_of(path, deps, sysroot) for path in libraries(linker_map)}
    date = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)),
                                           datetime.timezone.utc)
    digest = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()
    components = [component(*item) for item in sorted(found)]
    print(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": date.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {"type": "application", "name": "pyebpf", "version": version,
                          "bom-ref": "pyebpf",
                          "licenses": [{"expression": "GPL-2.0-only OR BSD-2-Clause"}],
                          "hashes": [{"alg": "SHA-256", "content": digest}]}},
        "components": components,
        "dependencies": [{"ref": "pyebpf", "dependsOn": [c["bom-ref"] for c in components]}],
    }, indent=2))


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])
