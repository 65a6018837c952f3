#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Puts into a folder what the packages within a static pyebpf ask of those who hand it on: a file a source
package, its copyright and licenses.

usage: copyrights.py FOLDER LINKER_MAP DEPS_FOLDER [SYSROOT]

The last three: packages.py.
"""
import pathlib
import shutil
import sys

import packages


def main(folder, *arguments):
    shutil.rmtree(folder, ignore_errors=True)
    pathlib.Path(folder).mkdir()
    for package in packages.within(*arguments):
        shutil.copyfile(package.copyright, pathlib.Path(folder) / package.source)


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
