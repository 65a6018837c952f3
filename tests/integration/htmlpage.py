# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads the data of a page by its specification (assets/README.md, "The blob"), apart from both
the program that writes it and the scripts that show it."""
import base64
import collections
import json
import re
import zlib

DATA = re.compile(r'<script id="pyebpf-data" type="application/octet-stream">([^<]*)</script>')
STATUS = ["embedded", "changed", "missing", "unknown", "too large"]


class Numbers:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def column(self, count):
        return [self.number() for _ in range(count)]

    def bytes(self, length):
        self.at += length
        return self.data[self.at - length:self.at]


class Page:
    def __init__(self, path):
        self.html = open(path, encoding="utf-8").read()
        data = zlib.decompress(base64.b64decode(DATA.search(self.html).group(1), validate=True))
        assert data.startswith(b"pyebpf-page/4\n")
        n = Numbers(data)
        n.at = 14
        self.facts = json.loads(n.bytes(n.number()).decode())
        lengths = n.column(n.number())
        self.strings = [n.bytes(length).decode("utf-8", "replace") for length in lengths]
        self.read_tree(n)
        self.read_sources(n)
        assert n.at == len(n.data)

    def read_tree(self, n):
        count = n.number()
        names, files, _, _, lines, _ = (n.column(count) for _ in range(6))
        count = n.number()
        levels, self.function = n.column(count), n.column(count)
        self.name = [self.strings[i] for i in names]
        self.file = [self.strings[i] for i in files]
        path, self.parent = [0], [None]
        for node in range(1, count):
            del path[len(path) - levels[node]:]
            self.parent.append(path[-1])
            path.append(node)
        sides = [1, 0] if any(run["side"] == 0 for run in self.facts["runs"]) else [1]
        own = {side: n.column(count) for side in sides}
        self.waits = n.column(count) if self.facts.get("shown") == "wall" else None
        self.idle = n.column(count) if "idle" in self.facts else None
        self.classes = [n.column(count) for _ in range(3)] if n.number() else None
        counts = n.column(count)
        self.node = [node for node in range(count) for _ in range(counts[node])]
        first = [sum(counts[:node]) for node in range(count)] if count < 2000 else self.sums(counts)
        callers, distances = n.column(len(self.node)), n.column(len(self.node))
        self.caller = [first[self.parent[node]] + caller if node else None
                       for node, caller in zip(self.node, callers)]
        self.line = [0 if not d else lines[self.function[node]] + (d - 1 >> 1 ^ -(d - 1 & 1))
                     for node, d in zip(self.node, distances)]
        count = n.number()
        self.rows = list(zip(*(n.column(count) for _ in range(4))))
        names = self.facts.get("opcodes")
        self.opcodes = [names[i] for i in n.column(count)] if names else [""] * count
        for side, ticks in own.items():
            sums = collections.Counter()
            for site, weight in self.weights(side):
                sums[self.node[site]] += weight
            assert [sums[node] for node in range(len(ticks))] == ticks

    @staticmethod
    def sums(counts):
        first, at = [], 0
        for count in counts:
            first.append(at)
            at += count
        return first

    def read_sources(self, n):
        count = n.number()
        files, status = n.column(count), n.column(count)
        count = n.number()
        owners, lines, lengths = (n.column(count) for _ in range(3))
        self.status = {self.strings[f]: STATUS[s] for f, s in zip(files, status)}
        self.source = collections.defaultdict(dict)
        for owner, line, length in zip(owners, lines, lengths):
            text = n.bytes(length).decode("utf-8", "replace")
            for i, source in enumerate(text.splitlines()):
                self.source[self.strings[files[owner]]][line + i] = source

    def factors(self):
        """What a value of 1 counts in what is shown first, by tag."""
        kinds, shown = self.facts.get("kinds"), self.facts.get("shown")
        names = ("cpu", "off-cpu") if shown == "wall" else (shown,)
        own = [kind for kind in kinds or () if kind["name"] in names]
        if not shown:
            return [1] * (len(self.facts.get("tags", self.facts["threads"])) or 1)
        return [(kinds[kind]["period"] if len(own) > 1 else 1) if kinds[kind] in own else 0
                for _, _, kind in self.facts["tags"]]

    def weights(self, side):
        """(site, ticks) of each row of a side, of what is shown first."""
        factors = self.factors()
        site, thread, slot = 0, None, 0
        for distance, tag, more, weight in self.rows:
            is_same = distance == 0 and tag == thread
            site, thread, slot = site + distance, tag, slot + more if is_same else more
            if self.facts["runs"][slot // self.facts["blocks"]]["side"] == side:
                yield site, weight * factors[tag]

    def stacks(self, side=1):
        """Ticks by stack, root first: ((name, file, line), ...)."""
        ticks = collections.Counter()
        for site, weight in self.weights(side):
            ticks[self.stack(site)] += weight
        return ticks

    def opcodes_of(self, name):
        """Ticks by (line, instruction) of the samples whose leaf is the function `name`."""
        ticks, site = collections.Counter(), 0
        for (distance, _, _, weight), opcode in zip(self.rows, self.opcodes):
            site += distance
            if self.name[self.function[self.node[site]]] == name:
                ticks[self.line[site], opcode] += weight
        return ticks

    def stack(self, site):
        frames = []
        while site:
            function = self.function[self.node[site]]
            # A marker has no file: "~", as in collapsed text.
            frames.append((self.name[function], self.file[function] or "~", self.line[site]))
            site = self.caller[site]
        return tuple(reversed(frames))
