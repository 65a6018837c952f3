# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file system with one file, whose server can stop answering: as a network mount that hangs.

    fuse_server.py FILE FOLDER [async]

Serves FILE as FOLDER/file, read-only, by the kernel's own protocol (include/uapi/linux/fuse.h, 7.31), as
root. READY on stdout; each line on stdin turns answering off and on again, and is answered by a line.
Ends with its stdin. Off: requests are left where they are, so that who waits can be killed. After the
line "deaf" they are taken and never answered: that keeps their sender, which even SIGKILL does not end,
until the server ends, but for a read where the kernel was told "async", as libfuse tells it.
After "broken" each read is an input/output error.
"""
import ctypes
import errno
import os
import select
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ = 1, 2, 3, 14, 15
RELEASE, FLUSH, INIT, OPENDIR = 18, 25, 26, 27
ROOT, FILE = 1, 2
ASYNC_READ = 1  # a flag of INIT
MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
FOREVER = 1 << 30  # seconds that names and attributes stay known


def attributes(node, size):
    mode = 0o040555 if node == ROOT else 0o100555
    blocks = (size + 511) // 512
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, blocks, 0, 0, 0, 0, 0, 0,
                       mode, 1, 0, 0, 0, 4096, 0)


class Server:
    def __init__(self, path, folder, flags):
        self.flags = flags
        with open(path, "rb") as f:
            self.content = f.read()
        self.device = os.open("/dev/fuse", os.O_RDWR)
        options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % self.device
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"pyebpf-test", folder.encode(), b"fuse", MS_NOSUID | MS_NODEV,
                      options.encode()):
            sys.exit("mount: " + os.strerror(ctypes.get_errno()))
        self.is_hanging = self.is_deaf = self.is_broken = False

    def size_of(self, node):
        return len(self.content) if node == FILE else 0

    def body(self, opcode, node, request):
        """The answer's body, or an errno."""
        if opcode == INIT:
            major, minor, ahead = struct.unpack_from("<III", request)
            return struct.pack("<IIIIHHIIHHIIIIII", 7, min(minor, 31), ahead, self.flags, 12, 9, 131072, 1,
                               32, 0, 0, 0, 0, 0, 0, 0)
        if opcode == LOOKUP:
            if request.rstrip(b"\0") != b"file":
                return errno.ENOENT
            return struct.pack("<QQQQII", FILE, 0, FOREVER, FOREVER, 0, 0) + \
                attributes(FILE, self.size_of(FILE))
        if opcode == GETATTR:
            return struct.pack("<QII", FOREVER, 0, 0) + attributes(node, self.size_of(node))
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if opcode == READ and self.is_broken:
            return errno.EIO
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", request)
            return self.content[offset:offset + size]
        if opcode in (RELEASE, FLUSH):
            return b""
        return errno.ENOSYS

    def answer(self):
        message = os.read(self.device, 1 << 20)
        _, opcode, unique, node = struct.unpack_from("<IIQQ", message)
        if opcode == FORGET or self.is_deaf:
            return
        body = self.body(opcode, node, message[40:])
        error = 0
        if isinstance(body, int):
            error, body = -body, b""
        os.write(self.device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


def serve(server):
    sys.stdout.write("READY\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select([0] if server.is_hanging else [0, server.device], [], [])
        if server.device in ready:
            server.answer()
        if 0 in ready:
            line = os.read(0, 64)
            if not line:
                break
            server.is_deaf, server.is_broken = line == b"deaf\n", line == b"broken\n"
            server.is_hanging = not (server.is_hanging or server.is_deaf or server.is_broken)
            sys.stdout.write("OK\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve(Server(sys.argv[1], sys.argv[2], ASYNC_READ if sys.argv[3:] == ["async"] else 0))
