# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads OTLP profiles: bytes by the field numbers of opentelemetry-proto 1.10, and JSON.

Both give one shape, that of protobuf's JSON: lowerCamelCase, what is zero left out, 64-bit numbers
as text. So what we wrote, what the official package made of it and what a Collector passed on are
judged by one function, stacks().
"""
import base64
import collections

import collapsed
from pprof import varint

ANY_VALUE = {1: ("stringValue", "string"), 2: ("boolValue", "int"), 3: ("intValue", "int"),
             8: ("stringValueStrindex", "int")}
KEY_VALUE = {1: ("key", "string"), 2: ("value", ANY_VALUE), 3: ("keyStrindex", "int")}
VALUE_TYPE = {1: ("typeStrindex", "int"), 2: ("unitStrindex", "int")}
SAMPLE = {1: ("stackIndex", "int"), 2: ("attributeIndices", "ints"), 3: ("linkIndex", "int"),
          4: ("values", "ints"), 5: ("timestampsUnixNano", "ints")}
PROFILE = {1: ("sampleType", VALUE_TYPE), 2: ("samples", [SAMPLE]), 3: ("timeUnixNano", "int"),
           4: ("durationNano", "int"), 5: ("periodType", VALUE_TYPE), 6: ("period", "int"),
           7: ("profileId", "string"), 11: ("attributeIndices", "ints")}
SCOPE = {1: ("name", "string"), 2: ("version", "string")}
SCOPE_PROFILES = {1: ("scope", SCOPE), 2: ("profiles", [PROFILE]), 3: ("schemaUrl", "string")}
RESOURCE_PROFILES = {1: ("resource", {1: ("attributes", [KEY_VALUE])}),
                     2: ("scopeProfiles", [SCOPE_PROFILES]), 3: ("schemaUrl", "string")}
MAPPING = {1: ("memoryStart", "int"), 2: ("memoryLimit", "int"), 3: ("fileOffset", "int"),
           4: ("filenameStrindex", "int"), 5: ("attributeIndices", "ints")}
LINE = {1: ("functionIndex", "int"), 2: ("line", "int"), 3: ("column", "int")}
LOCATION = {1: ("mappingIndex", "int"), 2: ("address", "int"), 3: ("lines", [LINE]),
            4: ("attributeIndices", "ints")}
FUNCTION = {1: ("nameStrindex", "int"), 2: ("systemNameStrindex", "int"),
            3: ("filenameStrindex", "int"), 4: ("startLine", "int")}
KEY_VALUE_AND_UNIT = {1: ("keyStrindex", "int"), 2: ("value", ANY_VALUE), 3: ("unitStrindex", "int")}
DICTIONARY = {1: ("mappingTable", [MAPPING]), 2: ("locationTable", [LOCATION]),
              3: ("functionTable", [FUNCTION]), 4: ("linkTable", [{1: ("traceId", "id"), 2: ("spanId", "id")}]),
              5: ("stringTable", "strings"), 6: ("attributeTable", [KEY_VALUE_AND_UNIT]),
              7: ("stackTable", [{1: ("locationIndices", "ints")}])}
REQUEST = {1: ("resourceProfiles", [RESOURCE_PROFILES]), 2: ("dictionary", DICTIONARY)}
TABLES = [name for name, _ in DICTIONARY.values()]


def decode(data, table=None):
    """The message as a dict. An unknown field, or one twice that is not repeated, is an error."""
    message, at = {}, 0
    table = REQUEST if table is None else table
    while at < len(data):
        tag, at = varint(data, at)
        name, kind = table[tag >> 3]
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            assert wire == 2, (name, wire)
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length, "%s is cut off" % name
        if kind == "numbers":  # not packed, as proto2 has them
            message.setdefault(name, []).append(value)
        elif kind == "ints":
            assert wire == 2, "%s is not packed" % name
            inner = 0
            while inner < length:
                number, inner = varint(value, inner)
                message.setdefault(name, []).append(number)
        elif kind == "id":
            message[name] = base64.b64encode(value).decode()  # as protobuf's JSON has bytes
        elif kind in ("string", "strings"):
            text = value.decode("utf-8")
            message.setdefault(name, []).append(text) if kind == "strings" else \
                message.update({name: text})
        elif isinstance(kind, list):
            message.setdefault(name, []).append(decode(value, kind[0]))
        else:
            assert name not in message, "%s twice" % name
            message[name] = value if kind == "int" else decode(value, kind)
    return message


def number(message, name):
    return int(message.get(name, 0))


class Request:
    """An export request in the shape above, of one profile; or one of its resources, or profiles."""

    def __init__(self, message, resource=None, profile=None):
        self.dictionary = message["dictionary"]
        self.strings = self.dictionary["stringTable"]
        for name in TABLES:
            zero = self.dictionary[name][0]  # a Collector writes {"value": {}} of an attribute
            assert not (any(zero.values()) if isinstance(zero, dict) else zero), (name, zero)
        resource_profiles, = message["resourceProfiles"] if resource is None else [resource]
        scope_profiles, = resource_profiles["scopeProfiles"]
        self.scope = scope_profiles["scope"]
        self.profile, = scope_profiles["profiles"] if profile is None else [profile]
        self.resource = dict(map(self.attribute, resource_profiles["resource"]["attributes"]))

    @classmethod
    def each(cls, message):
        """Of an export request of several resources."""
        return [cls(message, resource) for resource in message["resourceProfiles"]]

    @classmethod
    def each_profile(cls, message):
        """Of an export request of several kinds of samples."""
        return [cls(message, resource, profile) for resource in message["resourceProfiles"]
                for scope in resource["scopeProfiles"] for profile in scope["profiles"]]

    def string(self, message, name):
        return self.strings[number(message, name)]

    def attribute(self, entry):
        key = entry.get("key") or self.string(entry, "keyStrindex")
        value = entry["value"]
        if "intValue" in value:
            return key, int(value["intValue"])
        return key, value.get("stringValue") or self.string(value, "stringValueStrindex")

    def attributes(self, message):
        return dict(self.attribute(self.dictionary["attributeTable"][i])
                    for i in message.get("attributeIndices", ()))

    def value_type(self, name):
        return tuple(self.string(self.profile[name], part)
                     for part in ("typeStrindex", "unitStrindex"))

    def frame(self, index):
        assert index
        location = self.dictionary["locationTable"][index]
        line, = location["lines"]
        function = self.dictionary["functionTable"][line["functionIndex"]]
        name, file = (self.string(function, part) for part in ("nameStrindex", "filenameStrindex"))
        kind = self.attributes(location).get("profile.frame.type")
        if kind in ("native", "kernel"):
            mapping = self.dictionary["mappingTable"][location["mappingIndex"]]
            return collapsed.Frame(
                "%s [%s]" % (name, self.string(mapping, "filenameStrindex")), "~", 0)
        if not file and not number(line, "line"):
            return collapsed.Frame(name, "~", 0)
        assert kind == "cpython", (name, kind)
        return collapsed.Frame(name, file, number(line, "line"))

    def link(self, sample):
        """(trace id, span id), hexadecimal; None: it has none."""
        if not sample.get("linkIndex"):
            return None
        link = self.dictionary["linkTable"][sample["linkIndex"]]
        return tuple(base64.b64decode(link[name]).hex() for name in ("traceId", "spanId"))

    def frames(self, sample):
        """The outermost one first."""
        stack = self.dictionary["stackTable"][sample["stackIndex"]]
        return tuple(self.frame(i) for i in reversed(stack["locationIndices"]))

    def stacks(self):
        """{collapsed.Stack: samples}, as export -f collapsed with the same options has them."""
        counts = collections.Counter()
        for sample in self.profile["samples"]:
            assert sample["stackIndex"] and "timestampsUnixNano" not in sample
            value, = sample["values"]
            told = self.attributes(sample)
            tags = [(kind, told[name], told[key]) for kind, name, key in (
                ("process", "process.executable.name", "process.pid"),
                ("thread", "thread.name", "thread.id")) if key in told]
            counts[collapsed.Stack(tuple(tags), self.frames(sample))] += int(value)
        return counts
