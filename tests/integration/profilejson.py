# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A reader of `pyebpf export -f json` that takes nothing on trust: docs/json.md says what must hold."""
import collections
import json
import subprocess

import collapsed

KEYS = ["schema", "recordings", "kinds", "frames", "path_fields", "paths", "functions", "threads",
        "gil", "lost", "truncated", "truncated_functions", "left_out"]
RECORDING_KEYS = ["start", "seconds", "command", "target", "host", "python", "mode", "part", "rate_hz", "work"]
KIND_KEYS = ["name", "unit", "period", "samples", "total"]
THREAD_KEYS = ["pid", "tid", "process", "name", "start", "end"]
TYPES = ["python", "native", "kernel", "marker", "task"]

SAMPLE_KEYS = ["recording", "time", "duration", "pid", "tid", "process", "thread", "cpu", "kind",
               "unit", "value", "flags", "opcode", "labels", "stack"]
UNITS = ["ns", "bytes", "count"]

Path = collections.namedtuple("Path", "parent frame self total")


class Profile:
    """One kind of it, in `unit`s: self.paths, self.functions, self.total."""

    def __init__(self, text):
        self.data = data = json.loads(text)
        assert list(data) == KEYS, list(data)
        assert data["schema"] == "pyebpf-profile/1"
        for recording in data["recordings"]:
            assert list(recording) == RECORDING_KEYS, recording
        self.kind = kind = data["kinds"][0]
        assert len(data["kinds"]) == 1 and list(kind) == KIND_KEYS, data["kinds"]
        self.name, self.total, self.period = kind["name"], kind["total"], kind["period"]
        assert data["path_fields"] == ["parent", "frame", self.name + ".self", self.name + ".total"]
        self.frames = data["frames"]
        for name, file, line, kind_of_frame, module in self.frames:
            assert isinstance(name, str) and kind_of_frame in TYPES
            assert (file is None or isinstance(file, str)) and (line is None or line > 0)
            assert module is None or isinstance(module, str)
        self.paths = [Path(*row) for row in data["paths"]]
        self._check_paths()
        self._check_functions()
        self._check_threads()
        self._check_left_out()

    def _check_paths(self):
        inside = [path.self for path in self.paths]
        roots = 0
        seen = set()
        for i, path in enumerate(self.paths):
            assert -1 <= path.parent < i and 0 <= path.frame < len(self.frames), path
            assert 0 <= path.self <= path.total > 0, path
            # preorder: the parent is the row before, or one that row is in
            above = i - 1
            while above > path.parent and above >= 0:
                above = self.paths[above].parent
            assert above == path.parent, (i, path)
            assert (path.parent, path.frame) not in seen, path
            seen.add((path.parent, path.frame))
            if path.parent < 0:
                roots += path.total
            else:
                inside[path.parent] += path.total
        for path, total in zip(self.paths, inside):
            assert total <= path.total and (total == path.total or self.data["truncated"]), path
        assert roots <= self.total and (roots == self.total or self.data["truncated"])

    def _check_functions(self):
        totals = [function[self.name][1] for function in self.data["functions"]]
        known = [f for f in self.data["functions"] if f["name"] != "<unknown>"]
        assert [f[self.name][1] for f in known] == sorted((f[self.name][1] for f in known),
                                                          reverse=True)
        assert all(0 < total <= self.total for total in totals)
        if not self.data["truncated_functions"]:
            assert sum(f[self.name][0] for f in self.data["functions"]) == self.total

    def _check_threads(self):
        for thread in self.data["threads"]:
            assert list(thread) == THREAD_KEYS + [self.name], thread
            assert thread["start"] is None or 0 <= thread["start"] <= thread["end"], thread
        if self.data["threads"] and not self.data["left_out"]["threads"]["count"]:
            assert sum(thread[self.name] for thread in self.data["threads"]) == self.total

    def _check_left_out(self):
        """What is there and what is said not to be are the whole."""
        data = self.data
        left_out = data["left_out"]
        assert list(left_out) == ["paths", "functions", "threads", "gil"], left_out
        for key, rows in ("paths", self.paths), ("functions", data["functions"]), ("threads", data["threads"]):
            own = sum(row.self if key == "paths" else row[self.name][0] if key == "functions" else row[self.name]
                      for row in rows)
            assert list(left_out[key]) == ["count", "share"], left_out
            if rows or left_out[key]["count"]:
                assert abs(own / self.total + left_out[key]["share"] - 1) < 1e-5 or not self.total, (key, own)
        assert data["truncated"] == left_out["paths"]["count"]
        assert data["truncated_functions"] == left_out["functions"]["count"]

    def stacks(self):
        """{(frame, ...) root first: value}, frames as (name, file, line, type, module)."""
        chains, found = [], collections.Counter()
        for path in self.paths:
            chains.append((chains[path.parent] if path.parent >= 0 else ())
                          + (tuple(self.frames[path.frame]),))
            if path.self:
                found[chains[-1]] += path.self
        return found

    def collapsed(self):
        """The same as `export -f collapsed` has it: samples of stacks."""
        stacks = collections.Counter()
        for chain, value in self.stacks().items():
            assert value % self.period == 0
            stacks[collapsed.Stack((), tuple(map(collapsed_frame, chain)))] += value // self.period
        return stacks


def collapsed_frame(frame):
    name, file, line, kind, module = frame
    if kind in ("native", "kernel"):
        return collapsed.Frame("%s [%s]" % (name, module or kind), "~", 0)
    if kind == "python" and (file or line):
        return collapsed.Frame(name, file or "", line or 0)
    return collapsed.Frame(name, "~", 0)


def export(pyebpf, *arguments):
    made = subprocess.run([pyebpf, "export", "-f", "json", *arguments], stdout=subprocess.PIPE,
                          check=True)
    return Profile(made.stdout)


def samples(text):
    """The objects of `export -f jsonl`, each checked."""
    made = [json.loads(line) for line in text.splitlines()]
    for sample in made:
        assert list(sample) == SAMPLE_KEYS, sample
        assert sample["unit"] in UNITS and sample["value"] > 0, sample
        assert sample["time"] is None or sample["time"] >= 0, sample
        assert sample["duration"] is None or sample["duration"] > 0, sample
        for name, file, line, kind in sample["stack"]:
            assert isinstance(name, str) and kind in TYPES
            assert (file is None or isinstance(file, str)) and (line is None or line > 0)
        assert sample["stack"], sample
    return made
