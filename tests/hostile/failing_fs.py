#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file system in memory that fails: failing_fs.py FOLDER BYTES. READY on stdout; ends with its stdin.

Files can be made, written, renamed and removed in one folder, until BYTES were written in all: from then on
each write, and each fsync, is an input/output error, as of a broken disk. As integration/fuse_server.py,
whose kernel protocol this is.
"""
import errno
import os
import pathlib
import stat
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

import fuse_server  # noqa: E402

LOOKUP, GETATTR, SETATTR, MKDIR, UNLINK, RENAME, OPEN, READ, WRITE = 1, 3, 4, 9, 10, 12, 14, 15, 16
STATFS, RELEASE, FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR = 17, 18, 20, 25, 26, 27, 28, 29, 30
CREATE, RENAME2 = 35, 45
SET_MODE, SET_SIZE = 1, 8  # FATTR_
ROOT = 1


class File:
    def __init__(self, mode):
        self.mode, self.content = mode, bytearray()


class FailingServer(fuse_server.Server):
    def __init__(self, folder, room):
        super().__init__("/dev/null", folder, 0)
        self.room, self.names, self.files = room, {}, {}
        self.handlers = {
            INIT: self.init, LOOKUP: self.lookup, CREATE: self.create, GETATTR: self.get, SETATTR: self.set,
            WRITE: self.write, READ: self.read, UNLINK: self.unlink, RENAME: self.rename, RENAME2: self.rename2,
            FSYNC: self.sync, FSYNCDIR: self.sync, STATFS: self.statfs, READDIR: lambda *_: b"",
        }

    def init(self, _, request):
        return super().body(INIT, 0, request)

    def attributes(self, node):
        file = self.files.get(node)
        mode, size = (stat.S_IFREG | file.mode, len(file.content)) if file else (stat.S_IFDIR | 0o700, 0)
        now = int(time.time())
        return struct.pack("<QQQQQQIIIIIIIIII", node, size, (size + 511) // 512, now, now, now, 0, 0, 0, mode,
                           1, 0, 0, 0, 4096, 0)

    def entry(self, node):
        return struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + self.attributes(node)

    def lookup(self, _, request):
        node = self.names.get(request.rstrip(b"\0"))
        return self.entry(node) if node else errno.ENOENT

    def create(self, _, request):
        _, mode = struct.unpack_from("<II", request)
        node = ROOT + 1 + len(self.files)
        self.files[node] = File(mode & 0o777)
        self.names[request[16:].rstrip(b"\0")] = node
        return self.entry(node) + struct.pack("<QII", 0, 0, 0)

    def get(self, node, _):
        return struct.pack("<QII", 0, 0, 0) + self.attributes(node)

    def set(self, node, request):
        valid, _, _, size = struct.unpack_from("<IIQQ", request)
        if valid & SET_MODE:
            self.files[node].mode = struct.unpack_from("<I", request, 68)[0] & 0o777
        if valid & SET_SIZE:
            content = self.files[node].content
            content[:] = content[:size].ljust(size, b"\0")
        return self.get(node, request)

    def write(self, node, request):
        _, offset, size = struct.unpack_from("<QQI", request)
        self.room -= size
        if self.room < 0:
            return errno.EIO
        content = self.files[node].content
        if len(content) < offset:
            content.extend(bytes(offset - len(content)))
        content[offset:offset + size] = request[40:40 + size]
        return struct.pack("<II", size, 0)

    def read(self, node, request):
        _, offset, size = struct.unpack_from("<QQI", request)
        return bytes(self.files[node].content[offset:offset + size])

    def unlink(self, _, request):
        return b"" if self.names.pop(request.rstrip(b"\0"), None) else errno.ENOENT

    def move(self, names):
        old, new = names.rstrip(b"\0").split(b"\0")
        if old not in self.names:
            return errno.ENOENT
        self.names[new] = self.names.pop(old)
        return b""

    def rename(self, _, request):
        return self.move(request[8:])

    def rename2(self, _, request):
        return self.move(request[16:])

    def sync(self, *_):
        return errno.EIO if self.room < 0 else b""

    def statfs(self, *_):
        return struct.pack("<QQQQQIIII", 1 << 20, 1 << 19, 1 << 19, 0, 0, 4096, 255, 4096, 0) + bytes(24)

    def body(self, opcode, node, request):
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if opcode in (RELEASE, RELEASEDIR, FLUSH):
            return b""
        handler = self.handlers.get(opcode)
        return handler(node, request) if handler else errno.ENOSYS


if __name__ == "__main__":
    fuse_server.serve(FailingServer(sys.argv[1], int(sys.argv[2])))
