# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads collapsed text: `thread NAME (TID);qualname (file:line);... COUNT`, root first.

A frame splits at its last " (". \\xHH stands for one byte of UTF-8; any other backslash is itself.
"""
import collections
import functools
import re

# file is "~" and line 0 for a marker, which has no "(file:line)"; line 0 with --no-lines, below 0
# where it is approximate ("(file:~line)").
Frame = collections.namedtuple("Frame", "name file line")
Stack = collections.namedtuple("Stack", "tags frames")

TAG = re.compile(r"(thread|process) (.*) \((\d+)\)\Z", re.S)
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def unescape(text):
    raw = re.sub(rb"\\x([0-9a-fA-F]{2})", lambda m: bytes([int(m.group(1), 16)]),
                 text.encode("utf-8", "surrogateescape"))
    return raw.decode("utf-8", "surrogateescape")


@functools.lru_cache(maxsize=1 << 16)  # deep stacks repeat their frames
def parse_frame(text):
    name, found, place = text.rpartition(" (")
    if not found or not place.endswith(")"):
        return Frame(unescape(text), "~", 0)
    file, colon, line = place[:-1].rpartition(":")
    if colon and line.lstrip("~").isdigit():
        return Frame(unescape(name), unescape(file), int(line.replace("~", "-")))
    return Frame(unescape(name), unescape(place[:-1]), 0)


def parse(text, tags=False):
    """{Stack: count}. tags: whether leading thread and process tags are to be expected."""
    stacks = collections.Counter()
    for number, line in enumerate(text.split("\n"), 1):
        if not line or (number == 1 and line.startswith("# pyebpf-collapsed")):
            continue
        path, space, count = line.rpartition(" ")
        if not space or not count.isdigit() or int(count) == 0:
            raise ValueError("line %d has no count: %r" % (number, line))
        if CONTROL.search(line):
            raise ValueError("line %d has an unescaped control character: %r" % (number, line))
        frames = path.split(";") if path else []
        found = []
        while tags and frames and TAG.match(frames[0]):
            kind, name, ident = TAG.match(frames.pop(0)).groups()
            found.append((kind, unescape(name), int(ident)))
        stacks[Stack(tuple(found), tuple(map(parse_frame, frames)))] += int(count)
    return stacks
