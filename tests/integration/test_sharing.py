# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Files that leave the house tell nothing of it; and who has no browser where they are is told what to type."""
import base64
import collections
import ctypes
import gzip
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import zlib

import pytest
from harness import PYEBPF, make_recording, run

pytestmark = pytest.mark.usefixtures("pyebpf")

# Each in what --strip-paths takes out, and in nothing else: folders, a link to the interpreter, the host, arguments,
# lines of source.
FOLDERS = ["quaggahome", "zebrafolder", "tapirpackage"]
SECRETS = [*FOLDERS, "ocelothost", "axolotltoken", "narwhalcomment", "/usr/", "/root", ".pyenv"]
SOURCE = ["axolotltoken", "narwhalcomment"]

ORDERS = """
import json, time
def price(seconds):
    end = time.thread_time() + seconds  # narwhalcomment
    while time.thread_time() < end: json.loads("[1, 2, 3]")
"""
MAIN = """
import threading, time
import %(name)s, %(name)s.orders, orders
def serve(): %(name)s.orders.price(0.15); orders.price(0.15); time.sleep(0.05)
thread = threading.Thread(target=serve, name="serves %(home)s/socket")
thread.start()
thread.join()
"""


@pytest.fixture(scope="module")
def house(request, tmp_path_factory):
    """(recording of a program that lives in the house, its folder)."""
    request.getfixturevalue("pyebpf")
    folder = tmp_path_factory.mktemp("sharing")
    home = folder / FOLDERS[0] / FOLDERS[1]
    (home / FOLDERS[2]).mkdir(parents=True)
    (home / FOLDERS[2] / "__init__.py").write_text("")
    for path in home / "orders.py", home / FOLDERS[2] / "orders.py":
        path.write_text(ORDERS)
    (home / "main.py").write_text(MAIN % {"name": FOLDERS[2], "home": home})
    python = max((python for python in request.config.pythons if python.via == "direct"),
                 key=lambda python: python.version)
    recording = home / "x.pyebpf"
    at_home("record", "--mode", "wall", "-F", 499, "-o", recording, "--", *python.command, home / "main.py",
            "--token=axolotltoken")
    return recording, home


def at_home(*arguments):
    """On the host of that name: only there sources are shown."""
    command, *rest = map(str, arguments)
    done = subprocess.run(["unshare", "--uts", "sh", "-c", 'hostname ocelothost && exec "$@"', "sh", PYEBPF, command, "-q",
                           *rest], check=False, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done


def formats():
    done = run("export", "-o", "x.nosuch")
    assert done.returncode == 2
    return re.search(r"-f \((.*?)\)", done.stderr).group(1).split(", ")


def zstd_frames(data):
    """All that is compressed in a recording."""
    zstd = ctypes.CDLL("libzstd.so.1")
    for name in "ZSTD_getFrameContentSize", "ZSTD_findFrameCompressedSize", "ZSTD_decompress":
        getattr(zstd, name).restype = ctypes.c_ulonglong
    for at in (match.start() for match in re.finditer(rb"\x28\xb5\x2f\xfd", data)):
        frame = data[at:]
        size = zstd.ZSTD_getFrameContentSize(frame, ctypes.c_size_t(len(frame)))
        length = zstd.ZSTD_findFrameCompressedSize(frame, ctypes.c_size_t(len(frame)))
        if size < 1 << 24 and length <= len(frame):
            room = ctypes.create_string_buffer(size + 1)
            zstd.ZSTD_decompress(room, ctypes.c_size_t(size), frame, ctypes.c_size_t(length))
            yield room.raw


def content(path):
    """Every byte that a file or folder tells, compressed ones included."""
    if path.is_dir():
        return b"".join(content(file) for file in sorted(path.rglob("*")) if file.is_file())
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    if data.startswith(b"\x89PYEBPF"):
        data += b"".join(zstd_frames(data))
    for blob in re.findall(rb'type="application/octet-stream">([^<]*)<', data):
        data += zlib.decompress(base64.b64decode(blob))
    return data


def outputs(recording, folder, *options):
    """{format: all bytes of it}."""
    folder.mkdir()
    found = {}
    for name in formats():
        output = folder / ("x." + name)
        at_home("export", "-f", name, *options, "-o", output, recording)
        found[name] = content(output)
    output = folder / "x.pyebpf"
    at_home("cat", *options, "-o", output, recording)
    found["pyebpf"] = content(output)
    return found


def has(data, word):
    return word.encode() in data or word.encode("utf-16-le") in data


def test_nothing_of_the_house_is_left(house, tmp_path):
    recording, _ = house
    plain = outputs(recording, tmp_path / "plain")
    missed = [word for word in [*FOLDERS, "ocelothost", *SOURCE] if not any(has(d, word) for d in plain.values())]
    assert not missed, "the judge finds nothing where it is"
    assert all(has(plain["pyebpf"], word) for word in [*FOLDERS, "ocelothost", "axolotltoken"])
    stripped = outputs(recording, tmp_path / "stripped", "--strip-paths")
    again = outputs(tmp_path / "stripped" / "x.pyebpf", tmp_path / "again")
    for name, data in [*stripped.items(), *again.items()]:
        left = [word for word in SECRETS if has(data, word)]
        assert not left, (name, left)
        assert has(data, "orders.py"), name
    assert has(stripped["jsonl"], "serves socket")


def test_nothing_of_the_source_is_left(house, tmp_path):
    recording, _ = house
    for name, data in outputs(recording, tmp_path / "x", "--strip-source").items():
        assert not [word for word in SOURCE if has(data, word)], name
        assert name in ("collapsed", "script") or has(data, FOLDERS[1]) or has(data, "orders.py"), name


def functions(*arguments):
    """{(name, its file's name): [(self, total), ...] of all such, sorted}."""
    done = run("export", "-q", "-f", "json", "--no-lines", *arguments)
    assert done.returncode == 0, done
    data = json.loads(done.stdout)
    found = collections.defaultdict(list)
    for function in data["functions"]:
        key = function["name"], os.path.basename(function["file"] or "")
        found[key].append(tuple(tuple(function[kind["name"]]) for kind in data["kinds"]))
    return {key: sorted(values) for key, values in found.items()}, data


def test_what_is_stripped_is_the_same_profile(house):
    recording, _ = house
    plain, data = functions(recording)
    stripped, told = functions("--strip-paths", recording)
    assert plain == stripped and len(plain["price", "orders.py"]) == 2
    assert told["kinds"] == data["kinds"] and told["lost"] == data["lost"]
    facts = told["recordings"][0]
    assert [facts[key] for key in ("command", "target", "host")] == [None] * 3
    assert [facts[key] for key in ("start", "seconds", "python")] == \
        [data["recordings"][0][key] for key in ("start", "seconds", "python")]
    modules = {frame[4] for frame in told["frames"]}
    assert {"json", "json.decoder"} <= modules
    assert functions("--strip-paths", "--file", "orders.py", recording)[0] == functions("--file", "orders.py", recording)[0]
    assert functions("--strip-paths", "--collapse-stdlib", recording)[0] == functions("--collapse-stdlib", recording)[0]


def test_containers_are_of_the_house(tmp_path):
    recording = make_recording("golden_recording", tmp_path / "x.pyebpf")
    plain = content(recording)
    assert run("cat", "--strip-paths", recording, "-o", tmp_path / "y.pyebpf").returncode == 0
    stripped = content(tmp_path / "y.pyebpf")
    for word in ["web1", "shop-7d9f", "/srv/"]:
        assert has(plain, word) and not has(stripped, word), word
    done = run("report", tmp_path / "y.pyebpf")
    assert "runs in" in run("report", recording).stdout and "runs in" not in done.stdout, done


# --- how to look at it ----------------------------------------------------------------------------


def on_terminal(command, **environment):
    """What is said where stderr is a terminal."""
    reader, terminal = pty.openpty()
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith("SSH_") and key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    with os.fdopen(reader, "rb", buffering=0) as said:
        done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal,
                              env={**kept, **environment}, check=False)
        os.close(terminal)
        text = b""
        try:
            while part := said.read(65536):
                text += part
        except OSError:
            pass  # the terminal's other end is closed
    assert done.returncode == 0, text
    return [line for line in text.decode().splitlines() if "ssh" in line]


SSH = {"SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22"}


@pytest.mark.parametrize("output,what", [
    ("x.svg", "cat {}/x.svg"), ("x.html", "cat {}/x.html"), ("x.speedscope.json", "cat {}/x.speedscope.json"),
    ("a b.svg", r"cat '\''{}/a b.svg'\''"), ("x.json", None), ("x.collapsed", None), ("-", None)])
def test_export_says_how_to_look(output, what, tmp_path):
    recording = make_recording("golden_recording", tmp_path / "x.pyebpf")
    command = [PYEBPF, "export", "-o", output if output == "-" else tmp_path / output, recording]
    command += ["-f", "svg"] if output == "-" else []
    said = on_terminal(command, **SSH)
    local = "'%s'" % output if " " in output else output
    want = "ssh %s '%s' > %s" % (os.uname().nodename, what.format(tmp_path), local) if what else None
    assert [line.partition(": ")[2] for line in said] == ([want] if want else [])


def test_where_it_does_not_help_nothing_is_said(tmp_path):
    recording = make_recording("golden_recording", tmp_path / "x.pyebpf")
    command = [PYEBPF, "report", "-o", tmp_path / "x.html", recording]
    assert len(on_terminal(command, **SSH)) == 1
    assert not on_terminal(command, DISPLAY=":0", **SSH)
    assert not on_terminal(command, WAYLAND_DISPLAY="wayland-0", **SSH)
    assert not on_terminal([*command, "-q"], **SSH)
    assert "ssh" not in run(*command[1:], env={**os.environ, **SSH}).stderr


def test_sudo_leaves_no_variable_but_the_server(tmp_path):
    recording = make_recording("golden_recording", tmp_path / "x.pyebpf")
    server = tmp_path / "sshd"
    shutil.copy("/bin/sh", server)
    assert len(on_terminal([server, "-c", '"$@"; :', "sh", PYEBPF, "report", "-o", tmp_path / "x.html", recording])) == 1


def test_what_is_said_works(house, tmp_path):
    """The line itself, with a stand-in for ssh that runs what it is given as a remote shell does."""
    recording, home = house
    copy = home / "a b.pyebpf"
    shutil.copy(recording, copy)
    for name, text in ("ssh", '#!/bin/sh\nshift\nexec sh -c "$*"\n'), ("pyebpf", '#!/bin/sh\nexec %s "$@"\n' % PYEBPF):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    said = on_terminal([PYEBPF, "record", "-o", copy, "--", "/usr/bin/python3", "-c", "sum(range(10**7))"], **SSH)
    line = said[0].partition(": ")[2]
    subprocess.run(line, shell=True, check=True, cwd=tmp_path,
                   env=dict(os.environ, PATH="%s:%s" % (tmp_path, os.environ["PATH"])))
    assert "pyebpf-data" in pathlib.Path(tmp_path, "a b.html").read_text()
