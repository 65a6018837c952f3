# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages of PyPI for the tests, kept below ${XDG_CACHE_HOME:-~/.cache}/pyebpf/packages."""
import os
import subprocess

import pythons

# Raised when the list below changes: older folders are then made anew.
REVISION = 1
# Without their C, so that they go with a Python of any version.
PURE = {name + "_NO_EXTENSIONS": "1"
        for name in ("AIOHTTP", "MULTIDICT", "YARL", "FROZENLIST", "PROPCACHE")}
PACKAGES = {
    "servers": ["gunicorn>=20,<24", "uvicorn>=0.20,<1"],
    "celery": ["--prefer-binary", "celery>=5,<6", "setproctitle"],
    "otlp": ["opentelemetry-proto>=1.43,<2", "protobuf"],
    "austin": ["austin-dist==3.7.0"],
    # Tagged as for any libc, it wants 2.38: pythons.sid_command().
    "austin4": ["--platform", "manylinux2014_" + os.uname().machine, "--only-binary", ":all:",
                "austin-dist==4.0.0"],
    "austin-python": ["austin-python==2.4.0"],
    "pstats": ["snakeviz==2.2.2", "gprof2dot>=2024,<2026"],
    "py-spy": ["py-spy>=0.4,<1"],
    "opentelemetry": ["opentelemetry-sdk>=1,<2"],
    "flask": ["flask>=3,<4"],
    "aiohttp": ["--no-binary", "aiohttp,multidict,yarl,frozenlist,propcache", "aiohttp>=3,<4"],
    "async": ["trio>=0.22", "anyio>=4", "uvloop"],
    "greenlets": ["--only-binary", ":all:", "greenlet"],
    "uvloop": ["--only-binary", ":all:", "uvloop"],
    "programs": ["flask>=3,<4", "django>=4,<6", "aiohttp>=3,<4", "pandas>=2,<3"],
    "frames": ["--only-binary", ":all:", "numpy", "pandas"],
    "cython": ["--only-binary", ":all:", "cython>=3,<4"],
    "nuitka": ["nuitka>=2,<5"],
    "pyinstaller": ["pyinstaller>=6,<7", "setuptools"],
}


def folder_of(python, name):
    """A folder for PYTHONPATH. Raises pythons.Unavailable, with the reason."""
    folder = os.path.join(os.path.dirname(pythons.cache_dir()), "packages",
                          "%s-%s" % (name, python.label()))
    with pythons.provided_folder(folder, REVISION) as new:
        if new:
            pythons.run([*python.command, "-m", "pip", "install", "-q", "--no-input",
                         "--disable-pip-version-check", "--target", new, *PACKAGES[name]],
                        "pip install " + " ".join(PACKAGES[name]), env=dict(os.environ, **PURE))
    return folder


def environment(folder):
    return dict(os.environ, PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1")


def compiled(python, source, folder):
    """A module of Cython's, made in folder. Raises pythons.Unavailable, or CalledProcessError."""
    name = os.path.splitext(os.path.basename(source))[0]
    made = os.path.join(folder, name + ".c")
    subprocess.run([*python.command, "-m", "cython", "-3", "-o", made, source], check=True,
                   env=environment(folder_of(python, "cython")))
    headers = subprocess.check_output([*python.command, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"],
                                      text=True).strip()
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-I", headers, "-o", os.path.join(folder, name + ".so"), made],
                   check=True)


def bundle(python, script, folder):
    """script and its interpreter as one file, by PyInstaller. Returns its path."""
    packages = folder_of(python, "pyinstaller")
    done = subprocess.run(
        [*python.command, "-m", "PyInstaller", "--onefile", "--log-level", "ERROR", "--distpath",
         folder, "--workpath", folder + "/work", "--specpath", folder, script],
        env=environment(packages), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise pythons.Unavailable("PyInstaller: " + done.stdout[-500:])
    return os.path.join(folder, os.path.splitext(os.path.basename(script))[0])
