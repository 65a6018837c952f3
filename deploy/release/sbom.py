#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Prints what a static pyebpf is made of, as CycloneDX 1.5: the packages whose libraries are in it.

usage: sbom.py PROGRAM VERSION LINKER_MAP DEPS_FOLDER [SYSROOT]

The last three: packages.py.
"""
import datetime
import hashlib
import json
import os
import pathlib
import sys

import packages


def component(name, version):
    return {"type": "library", "name": name, "version": version,
            "bom-ref": f"pkg:deb/debian/{name}@{version}",
            "purl": f"pkg:deb/debian/{name}@{version}?arch=source"}


def main(program, version, linker_map, deps, sysroot=None):
    found = {(found.source, found.version) for found in packages.within(linker_map, deps, sysroot)}
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
