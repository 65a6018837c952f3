# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads pprof files by the field numbers of github.com/google/pprof, proto/profile.proto.

    python3 pprof.py FILE    one line a field, as it stands in the file

It checks what readers rely on: ids are unique and lead somewhere, the first string is empty, texts
are UTF-8, each sample has a value for each type.
"""
import collections
import gzip
import sys

import collapsed

STRING, NUMBER, NUMBERS = "string", "number", "numbers"
# {field: (name, kind)}; the kind of a message is its own table.
VALUE_TYPE = {1: ("type", NUMBER), 2: ("unit", NUMBER)}
LABEL = {1: ("key", NUMBER), 2: ("str", NUMBER), 3: ("num", NUMBER), 4: ("num_unit", NUMBER)}
SAMPLE = {1: ("location_id", NUMBERS), 2: ("value", NUMBERS), 3: ("label", LABEL)}
MAPPING = {1: ("id", NUMBER), 2: ("memory_start", NUMBER), 3: ("memory_limit", NUMBER),
           4: ("file_offset", NUMBER), 5: ("filename", NUMBER), 6: ("build_id", NUMBER),
           7: ("has_functions", NUMBER), 8: ("has_filenames", NUMBER),
           9: ("has_line_numbers", NUMBER), 10: ("has_inline_frames", NUMBER)}
LINE = {1: ("function_id", NUMBER), 2: ("line", NUMBER), 3: ("column", NUMBER)}
LOCATION = {1: ("id", NUMBER), 2: ("mapping_id", NUMBER), 3: ("address", NUMBER),
            4: ("line", LINE), 5: ("is_folded", NUMBER)}
FUNCTION = {1: ("id", NUMBER), 2: ("name", NUMBER), 3: ("system_name", NUMBER),
            4: ("filename", NUMBER), 5: ("start_line", NUMBER)}
PROFILE = {1: ("sample_type", VALUE_TYPE), 2: ("sample", SAMPLE), 3: ("mapping", MAPPING),
           4: ("location", LOCATION), 5: ("function", FUNCTION), 6: ("string_table", STRING),
           7: ("drop_frames", NUMBER), 8: ("keep_frames", NUMBER), 9: ("time_nanos", NUMBER),
           10: ("duration_nanos", NUMBER), 11: ("period_type", VALUE_TYPE), 12: ("period", NUMBER),
           13: ("comment", NUMBERS), 14: ("default_sample_type", NUMBER)}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data, table):
    """(name, value) of each field; packed numbers one by one."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        name, kind = table[tag >> 3]
        if tag & 7 == 0:
            value, at = varint(data, at)
            assert kind in (NUMBER, NUMBERS), name
            yield name, value
            continue
        assert tag & 7 == 2, (name, tag & 7)
        length, at = varint(data, at)
        part, at = data[at:at + length], at + length
        assert len(part) == length, "%s is cut off" % name
        if isinstance(kind, dict):
            yield name, list(fields(part, kind))
        elif kind == STRING:
            yield name, part.decode("utf-8")
        else:
            assert kind == NUMBERS, name
            inner = 0
            while inner < length:
                value, inner = varint(part, inner)
                yield name, value


def several(message, name):
    return [value for key, value in message if key == name]


def one(message, name, default=0):
    found = several(message, name)
    assert len(found) <= 1, (name, found)
    return found[0] if found else default


Value = collections.namedtuple("Value", "type unit")
Sample = collections.namedtuple("Sample", "frames values labels")


class Profile:
    """What a file says. samples: frames are collapsed.Frame, root first."""

    def __init__(self, path):
        with gzip.open(path) as f:
            self.fields = list(fields(f.read(), PROFILE))
        self.strings = several(self.fields, "string_table")
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings)
        self.types = [self.value_type(t) for t in several(self.fields, "sample_type")]
        self.period_type = self.value_type(one(self.fields, "period_type", ()))
        self.period, self.time_ns, self.duration_ns = (
            one(self.fields, name) for name in ("period", "time_nanos", "duration_nanos"))
        self.comments = [self.strings[c] for c in several(self.fields, "comment")]
        self.mappings = self.by_id("mapping")
        self.functions = self.by_id("function")
        self.locations = {key: self.frame(v) for key, v in self.by_id("location").items()}
        self.samples = [self.sample(s) for s in several(self.fields, "sample")]

    def by_id(self, name):
        found = {one(message, "id"): message for message in several(self.fields, name)}
        assert 0 not in found and len(found) == len(several(self.fields, name)), name
        return found

    def value_type(self, message):
        return Value(self.strings[one(message, "type")], self.strings[one(message, "unit")])

    def frame(self, location):
        line, = several(location, "line")
        function = self.functions[one(line, "function_id")]
        name = self.strings[one(function, "name")]
        file = self.strings[one(function, "filename")]
        assert not one(function, "system_name")
        mapping = one(location, "mapping_id")
        if mapping and not file:
            module = self.strings[one(self.mappings[mapping], "filename")]
            return collapsed.Frame("%s [%s]" % (name, module), "~", 0)
        if not file and not one(line, "line"):
            return collapsed.Frame(name, "~", 0)
        return collapsed.Frame(name, file, one(line, "line"))

    def sample(self, message):
        values = several(message, "value")
        assert len(values) == len(self.types)
        labels = {}
        for label in several(message, "label"):
            text = one(label, "str")
            labels[self.strings[one(label, "key")]] = \
                self.strings[text] if text else one(label, "num")
        frames = [self.locations[key] for key in several(message, "location_id")]
        return Sample(tuple(reversed(frames)), values, labels)

    def stacks(self):
        """{collapsed.Stack: samples}, as export -f collapsed with the same options has them."""
        counts = collections.Counter()
        for sample in self.samples:
            tags = [(kind, sample.labels.get(kind, ""), sample.labels[number])
                    for kind, number in (("process", "pid"), ("thread", "tid"))
                    if number in sample.labels]
            counts[collapsed.Stack(tuple(tags), sample.frames)] += sample.values[0]
        return counts

    def lines(self):
        """The file as text: each field of the outermost message on a line."""
        for name, value in self.fields:
            if isinstance(value, list):
                value = " ".join("%s=%s" % (k, v if not isinstance(v, list) else "(%s)" % " ".join(
                    "%s=%s" % pair for pair in v)) for k, v in value)
            yield "%s: %s\n" % (name, value)


if __name__ == "__main__":
    sys.stdout.writelines(Profile(sys.argv[1]).lines())
