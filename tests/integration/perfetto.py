# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads Perfetto's traces by the field numbers of github.com/google/perfetto, protos/perfetto/trace.

It checks what trace_processor relies on: a sequence begins anew before it interns, each number of an
interned thing is there and means one thing, frames of a mapping differ in their address, slices of a
track close in order.
"""
import collections

from otlp import decode, number

STRING = {1: ("iid", "int"), 2: ("str", "string")}
INTERNED = {5: ("functionNames", [STRING]),
            6: ("frames", [{1: ("iid", "int"), 2: ("functionNameId", "int"),
                            3: ("mappingId", "int"), 4: ("relPc", "int"),
                            5: ("sourcePathIid", "int"), 6: ("lineNumber", "int"),
                            7: ("kind", "int")}]),
            7: ("callstacks", [{1: ("iid", "int"), 2: ("frameIds", "numbers")}]),
            17: ("mappingPaths", [STRING]), 18: ("sourcePaths", [STRING]),
            19: ("mappings", [{1: ("iid", "int"), 7: ("pathStringIds", "numbers")}])}
SAMPLE = {1: ("cpu", "int"), 2: ("pid", "int"), 3: ("tid", "int"), 4: ("callstackIid", "int"),
          5: ("cpuMode", "int"), 6: ("timebaseCount", "int"), 7: ("followerCounts", "numbers")}
DEFAULTS = {12: ("perfSampleDefaults", {
                1: ("timebase", {4: ("counter", "int"), 10: ("name", "string")}),
                4: ("followers", [{4: ("name", "string")}])}),
            58: ("timestampClockId", "int")}
TREE = {1: ("processes", [{1: ("pid", "int"), 2: ("ppid", "int"), 3: ("cmdline", "strings")}]),
        2: ("threads", [{1: ("tid", "int"), 2: ("name", "string"), 3: ("tgid", "int")}])}
EVENT = {4: ("debugAnnotations", [{6: ("stringValue", "string"), 10: ("name", "string")}]),
         9: ("type", "int"), 11: ("trackUuid", "int"), 22: ("categories", "strings"),
         23: ("name", "string")}
PACKET = {2: ("processTree", TREE),
          6: ("clockSnapshot", {1: ("clocks", [{1: ("clockId", "int"), 2: ("timestamp", "int")}]),
                                2: ("primaryTraceClock", "int")}),
          8: ("timestamp", "int"), 10: ("trustedPacketSequenceId", "int"),
          11: ("trackEvent", EVENT), 12: ("internedData", INTERNED), 13: ("sequenceFlags", "int"),
          59: ("tracePacketDefaults", DEFAULTS),
          60: ("trackDescriptor", {1: ("uuid", "int"),
                                   4: ("thread", {1: ("pid", "int"), 2: ("tid", "int")})}),
          66: ("perfSample", SAMPLE)}
TRACE = {1: ("packet", [PACKET])}
BEGINS, NEEDS = 1, 2
SLICE_BEGIN, SLICE_END = 1, 2

Frame = collections.namedtuple("Frame", "name file line module")
Sample = collections.namedtuple("Sample", "pid tid cpu ns values frames")  # root first
Slice = collections.namedtuple("Slice", "pid tid name category function begin_ns end_ns")


class Sequence:
    def __init__(self, defaults):
        self.names = []
        self.tables = {name: {} for name, _ in INTERNED.values()}
        self.places = set()
        session = defaults.get("perfSampleDefaults")
        if session:
            self.names = [session["timebase"]["name"],
                          *(follower["name"] for follower in session.get("followers", ()))]

    def intern(self, data):
        for name, entries in data.items():
            for entry in entries:
                assert entry["iid"] and entry["iid"] not in self.tables[name], (name, entry)
                self.tables[name][entry["iid"]] = entry
        for frame in data.get("frames", ()):
            place = frame["mappingId"], frame["relPc"]
            assert place not in self.places, frame
            self.places.add(place)

    def frame(self, iid):
        frame = self.tables["frames"][iid]
        paths = self.tables["mappings"][frame["mappingId"]].get("pathStringIds", ())
        file = frame.get("sourcePathIid")
        return Frame(self.tables["functionNames"][frame["functionNameId"]].get("str", ""),
                     self.tables["sourcePaths"][file]["str"] if file else "",
                     number(frame, "lineNumber"),
                     "".join(self.tables["mappingPaths"][path]["str"] for path in paths))

    def sample(self, packet):
        sample = packet["perfSample"]
        values = [sample["timebaseCount"], *sample.get("followerCounts", ())]
        assert len(values) == len(self.names)
        return Sample(sample["pid"], sample["tid"], number(sample, "cpu"), packet["timestamp"],
                      dict(zip(self.names, values)),
                      tuple(map(self.frame,
                                self.tables["callstacks"][sample["callstackIid"]]["frameIds"])))


class Trace:
    def __init__(self, data):
        self.message = decode(data, TRACE)
        self.processes, self.threads = {}, {}  # names, by pid and (pid, tid)
        self.samples = collections.defaultdict(list)  # by the name of what they count
        self.slices = []
        self.tracks, self.open = {}, {}
        sequences = {}
        for packet in self.message["packet"]:
            sequence = number(packet, "trustedPacketSequenceId")
            if packet.get("sequenceFlags") == BEGINS:
                sequences[sequence] = Sequence(packet["tracePacketDefaults"])
            elif sequence:
                assert packet["sequenceFlags"] == NEEDS, packet
            self.take(packet, sequences.get(sequence))
        assert not any(self.open.values()), self.open

    def take(self, packet, sequence):
        if "internedData" in packet:
            sequence.intern(packet["internedData"])
        if "perfSample" in packet:
            self.samples[sequence.names[0]].append(sequence.sample(packet))
        if "trackDescriptor" in packet:
            track = packet["trackDescriptor"]
            self.tracks[track["uuid"]] = track["thread"]["pid"], track["thread"]["tid"]
            self.open[track["uuid"]] = []
        if "trackEvent" in packet:
            self.take_event(packet["timestamp"], packet["trackEvent"])
        for process in packet.get("processTree", {}).get("processes", ()):
            self.processes[process["pid"]] = process.get("cmdline", [""])[0]
        for thread in packet.get("processTree", {}).get("threads", ()):
            self.threads[thread["tgid"], thread["tid"]] = thread.get("name", "")

    def take_event(self, ns, event):
        still_open = self.open[event["trackUuid"]]
        if event["type"] == SLICE_BEGIN:
            still_open.append((ns, event))
            return
        assert event["type"] == SLICE_END
        begin_ns, event = still_open.pop()
        assert begin_ns <= ns and not still_open, event
        (category,), (function,) = event["categories"], event["debugAnnotations"]
        self.slices.append(Slice(*self.tracks[event["trackUuid"]], event["name"], category,
                                 function.get("stringValue", ""), begin_ns, ns))
