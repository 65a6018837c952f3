# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a recording says of itself, the last one of a file: its metadata, its counters, whether it is finished. Format:
user/store/FORMAT.md."""
import collections

METADATA, FLUSH, SEGMENT, INDEX, END, RECORDING = range(1, 7)
COUNTERS = 7  # section of a flush
START_NS, DURATION_NS, HAS_ENDED = 2, 3, 7  # fields of the metadata

# counters: of the last flush that has them; samples: of the index, None without one.
Recording = collections.namedtuple("Recording", "metadata counters samples is_finished")


class Bytes:
    def __init__(self, content):
        self.content, self.at = content, 0

    def __bool__(self):
        return self.at < len(self.content)

    def take(self, count):
        if self.at + count > len(self.content):
            raise EOFError
        self.at += count
        return self.content[self.at - count:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte, = self.take(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def block(self):
        return Bytes(self.take(self.varint()))


def read(path):
    with open(path, "rb") as f:
        file = Bytes(f.read())
    assert file.take(8) == b"\x89PYEBPF\n", path
    file.take(4)
    metadata, counters, samples, is_finished = {}, {}, None, False
    while file:
        try:
            file.take(4)
            kind, = file.take(1)
            content = file.block()
        except EOFError:
            break
        if kind == RECORDING:
            metadata, counters = {}, {}
        if kind in (METADATA, RECORDING):
            while content:
                field = content.varint()
                value = content.block()
                metadata[field] = value.varint() if field <= HAS_ENDED else value.content
        elif kind == FLUSH:
            while content:
                section, = content.take(1)
                rows = content.block()
                if section == COUNTERS:
                    for _ in range(rows.varint()):
                        name = rows.block().content.decode()
                        counters[name] = rows.varint()
        elif kind == INDEX:
            samples = content.varint()
        elif kind == END:
            is_finished = True
    return Recording(metadata, counters, samples, is_finished)
