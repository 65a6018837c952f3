#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes a wheel of a static pyebpf: pip puts the program beside its python, no Python code is in it.

usage: wheel.py PROGRAM VERSION ARCHITECTURE COPYRIGHTS FOLDER

COPYRIGHTS: the folder that copyrights.py made. The same bytes each time: SOURCE_DATE_EPOCH dates what is
in it.
"""
import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A static program asks nothing of the system's C library: it is of the oldest glibc that pip has a tag
# for, and of musl.
TAGS = ("manylinux_2_5_{0}", "manylinux1_{0}", "manylinux_2_17_{0}", "manylinux2014_{0}",
        "musllinux_1_1_{0}")
OLDEST_ARM = ("manylinux_2_17_{0}", "manylinux2014_{0}", "musllinux_1_1_{0}")

METADATA = """Metadata-Version: 2.1
Name: pyebpf
Version: {version}
Summary: profiler for running Python programs, by BPF
License: GPL-2.0-only OR BSD-2-Clause
Classifier: Environment :: Console
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: Implementation :: CPython
Classifier: Topic :: Software Development :: Debuggers
Requires-Python: >=3.6
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """Wheel-Version: 1.0
Generator: pyebpf
Root-Is-Purelib: false
{tags}"""


def members(program, version, copyrights, tags):
    """(path, bytes, mode) of all but RECORD."""
    info = f"pyebpf-{version}.dist-info"
    readme = (ROOT / "README.md").read_text()
    wheel = WHEEL.format(tags="".join(f"Tag: py3-none-{tag}\n" for tag in tags))
    yield f"pyebpf-{version}.data/scripts/pyebpf", program, 0o755
    yield f"{info}/METADATA", METADATA.format(version=version, readme=readme).encode(), 0o644
    yield f"{info}/WHEEL", wheel.encode(), 0o644
    for license_file in [ROOT / "LICENSE", *sorted((ROOT / "LICENSES").iterdir())]:
        yield f"{info}/licenses/{license_file.name}", license_file.read_bytes(), 0o644
    for package in sorted(pathlib.Path(copyrights).iterdir()):
        yield f"{info}/licenses/copyrights/{package.name}", package.read_bytes(), 0o644


def row_of(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def main(program, version, architecture, copyrights, folder):
    patterns = TAGS if architecture == "x86_64" else OLDEST_ARM
    tags = [pattern.format(architecture) for pattern in patterns]
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]  # 1980
    files = list(members(pathlib.Path(program).read_bytes(), version, copyrights, tags))
    record = f"pyebpf-{version}.dist-info/RECORD"
    rows = "".join(row_of(path, data) for path, data, _ in files) + f"{record},,\n"
    path = pathlib.Path(folder) / f"pyebpf-{version}-py3-none-{'.'.join(tags)}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, data, mode in files + [(record, rows.encode(), 0o644)]:
            member = zipfile.ZipInfo(name, date)
            member.external_attr = (0o100000 | mode) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(member, data)
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
