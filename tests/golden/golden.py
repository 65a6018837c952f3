#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One recording, and the exact bytes that export and report make of it.

usage: golden.py PYEBPF GOLDEN_RECORDING WAITS_RECORDING [--update]

The recording has odd names, markers, threads, processes, Unicode and what is not. Its collapsed
text, pprof and OTLP are also read back by the parsers of the integration tests: they must give the
same samples. The goldens of the last two are what their parsers show.
WAITS_RECORDING makes one of wall time; its goldens are what waits_recording.c says is in it.
Each process hashes under a key of its own, so each output is made three times, by `make test` twice (PYEBPF_TIER).
With --update the files beside this script are written anew; look at what changed.
"""
import collections
import gzip
import html.parser
import json
import os
import pathlib
import pstats
import re
import subprocess
import sys
import tempfile
import unicodedata
from xml.etree import ElementTree

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = HERE.parent.parent / "user" / "export"
sys.path.insert(0, str(HERE.parent / "integration"))
import collapsed  # noqa: E402
import htmlpage  # noqa: E402
import otlp  # noqa: E402
import perfetto  # noqa: E402
import pprof  # noqa: E402
import profilejson  # noqa: E402

COLLAPSED = [
    ("plain.collapsed", []),
    ("no-lines.collapsed", ["--no-lines"]),
    ("header.collapsed", ["--header", "--threads"]),
    ("tags.collapsed", ["--threads", "--processes"]),
]
PPROF = [
    ("plain.pprof.txt", []),
    ("tags.pprof.txt", ["--threads", "--processes"]),
]
OTLP = [("tags.otlp.json", ["--threads", "--processes"])]
JSON = [
    ("plain.json", []),
    ("no-lines.json", ["--no-lines"]),
    ("limit.json", ["--limit", "6"]),
    ("min-percent.json", ["--min-percent", "5"]),
]
JSONL = [
    ("plain.jsonl", []),
    ("no-lines.jsonl", ["--no-lines"]),
]
VIEWERS = [
    ("plain.speedscope.json", []),
    ("plain.gecko.json", []),
    ("plain.script", []),
]
PERFETTO = [
    ("plain.perfetto.json", []),
]
SVG = [
    ("plain.svg", []),
]
HEATMAP = [
    ("plain.heatmap.txt", []),
]
REPORTS = [
    ("report.txt", []),
    ("report-lines.txt", ["--no-summary", "--lines", "--sort", "total", "--limit", "8"]),
    ("report-threads.txt", ["--no-summary", "--threads", "--limit", "3"]),
    ("report-tree.txt", ["--no-summary", "--tree"]),
    ("report-tree-lines.txt", ["--no-summary", "--tree", "--lines", "--min-percent", "5"]),
]
WAITS = [
    ("waits-report.txt", ["report", "--threads"]),
    ("waits-no-idle.txt", ["report", "--no-idle", "--limit", "5"]),
    ("waits-cpu.txt", ["report", "--kind", "cpu", "--limit", "3"]),
    ("waits-memory.txt", ["report", "--kind", "memory"]),
    ("waits-label.txt", ["report", "--no-summary", "--kind", "off-cpu", "--by", "label"]),
    ("waits-tree.txt", ["report", "--no-summary", "--tree"]),
    ("waits-gil.txt", ["report", "--no-summary", "--gil"]),
    ("waits-gil-of-late.txt", ["report", "--no-summary", "--gil", "--thread", "late"]),
    ("waits.json", ["export", "-f", "json"]),
]
PYTHON, NATIVE, KERNEL, MARKER = range(4)
INTERVAL_NS = 10101010  # of a tick, as golden_recording.c has it
KEYS = 3 if os.environ.get("PYEBPF_TIER", "all") == "all" else 2
SVG_HEAD, SVG_ROW, SVG_WIDTH = 58, 16, 1180
CONTROLS_OF_DIRECTION = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def text(field):
    return bytes.fromhex(field.replace(".", "")).decode("utf-8", "surrogateescape")


def frame(name, file, line, kind, arguments, has_marks):
    name, file, kind = text(name), text(file), int(kind)
    line = int(line.replace("~", "-" if has_marks else ""))
    if kind in (NATIVE, KERNEL):
        return collapsed.Frame("%s [%s]" % (name, file), "~", 0)
    if kind == MARKER or not (file or line):
        return collapsed.Frame(name, "~", 0)
    return collapsed.Frame(name, file, 0 if "--no-lines" in arguments else line)


def expected(description, arguments, has_marks=False):
    """{Stack: ticks} of the recording as golden_recording tells it; has_marks: of formats that mark
    approximate lines, which are below 0 then."""
    stacks = collections.Counter()
    for line in description.splitlines():
        process, pid, thread, tid, ticks, *rest = line.split(" ")
        tags = []
        if "--processes" in arguments:
            tags.append(("process", text(process), int(pid)))
        if "--threads" in arguments:
            tags.append(("thread", text(thread), int(tid)))
        frames = [frame(*rest[i:i + 4], arguments, has_marks) for i in range(0, len(rest), 4)]
        stacks[collapsed.Stack(tuple(tags), tuple(
            frames or [collapsed.Frame("<unknown>", "~", 0)]))] += int(ticks)
    return stacks


def run(*command):
    environment = dict(os.environ, LC_ALL="C.UTF-8", TERM="xterm")
    made = [subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment).stdout
            for _ in range(KEYS)]
    assert made == KEYS * made[:1], command
    return made[0]


def same_file(path, *command):
    """The same where the output is a file."""
    made = []
    for _ in range(KEYS):
        run(*command)
        made.append(pathlib.Path(path).read_bytes())
    assert made == KEYS * made[:1], command


def without_script(made):
    """That is as esbuild has it, or as it is in assets/ where there is none."""
    return re.sub(rb"(?s)<script>.*</script>", b"<script/>", made)


def compare(name, made, update):
    path = HERE / name
    if update:
        path.write_bytes(made)
    if made == path.read_bytes():
        return True
    sys.stderr.write("%s differs:\n" % name)
    subprocess.run(["diff", "-u", "--text", str(path), "-"], input=made, stdout=sys.stderr.fileno(),
                   check=False)
    return False


def check_collapsed(made, arguments, description):
    """What no file can tell: it reads back, it is in order, it is UTF-8 without controls."""
    decoded = made.decode("utf-8")
    lines = made.splitlines()
    lines = lines[1:] if "--header" in arguments else lines
    assert lines == sorted(lines) and len(lines) == len({x.rpartition(b" ")[0] for x in lines})
    found = collapsed.parse(decoded, tags="--threads" in arguments or "--processes" in arguments)
    wanted = expected(description, arguments, has_marks=True)
    assert found == wanted, (found - wanted, wanted - found)


def shown(text):
    """A name as formats have it that are no lines: valid UTF-8 without control characters."""
    def harmless(c):
        raw = c.encode("utf-8", "surrogateescape")
        is_control = unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or \
            unicodedata.bidirectional(c) in CONTROLS_OF_DIRECTION or c in "\u200e\u200f\u061c"
        return "".join("\\x%02x" % byte for byte in raw) if is_control else c
    return "".join(map(harmless, text))


def expected_shown(description, arguments):
    wanted = collections.Counter()
    for stack, ticks in expected(description, arguments).items():
        wanted[collapsed.Stack(
            tuple((kind, shown(name), number) for kind, name, number in stack.tags),
            tuple(collapsed.Frame(shown(f.name), shown(f.file), f.line) for f in stack.frames)
        )] += ticks
    return wanted


def protoc(message, name, packed):
    """Its word on UTF-8 and on packed fields, by the schema that the program is built with."""
    subprocess.run(["protoc", "--decode=" + message, "--proto_path=%s" % PROTOS, name],
                   input=packed, stdout=subprocess.DEVNULL, check=True)


def check_otlp(packed, arguments, description):
    message = otlp.decode(packed)
    found = sum((each.stacks() for each in otlp.Request.each(message)), collections.Counter())
    wanted = expected_shown(description, arguments)
    assert found == wanted, (found - wanted, wanted - found)
    protoc("otlp.ExportRequest", "otlp.proto", packed)
    return (json.dumps(message, indent=1, ensure_ascii=False) + "\n").encode()


def check_pprof(path, arguments, description):
    profile, wanted = pprof.Profile(path), expected_shown(description, arguments)
    assert profile.stacks() == wanted, (profile.stacks() - wanted, wanted - profile.stacks())
    assert profile.types == [("samples", "count"), ("cpu", "nanoseconds")], profile.types
    assert profile.period_type == profile.types[1]
    for sample in profile.samples:
        assert sample.values[1] == sample.values[0] * profile.period
    with gzip.open(path) as f:
        protoc("pprof.Profile", "pprof.proto", f.read())
    return "".join(profile.lines()).encode()


def replaced(text):
    """A name as JSON has it: U+FFFD for each byte that is not UTF-8."""
    return "".join("\ufffd" if unicodedata.category(c) == "Cs" else c for c in text)


def expected_json(arguments, description):
    wanted = collections.Counter()
    for stack, ticks in expected(description, arguments).items():
        frames = (collapsed.Frame(replaced(f.name), replaced(f.file) if f.file or f.line else "~",
                                  f.line) for f in stack.frames)
        wanted[collapsed.Stack((), tuple(frames))] += ticks
    return wanted


def check_json(made, arguments, description):
    """All of it, or the largest paths and nothing else."""
    profile = profilejson.Profile(made)
    found, wanted = profile.collapsed(), expected_json(arguments, description)
    if "--limit" in arguments or "--min-percent" in arguments:
        assert profile.data["truncated"] and profile.data["truncated_functions"]
        assert not found - wanted, found - wanted
    else:
        assert found == wanted, (found - wanted, wanted - found)
    if "--limit" in arguments:
        paths = [path for path in profile.paths if profile.frames[path.frame][0] != "<unknown>"]
        assert len(paths) == int(arguments[-1])
    if "--min-percent" in arguments:
        least = float(arguments[-1]) / 100 * profile.total
        assert all(path.total >= least for path in profile.paths)


def check_jsonl(made, arguments, description):
    found = collections.Counter()
    for sample in profilejson.samples(made):
        assert sample["value"] % INTERVAL_NS == 0, sample
        frames = (profilejson.collapsed_frame((*frame, frame[1])) for frame in sample["stack"])
        found[collapsed.Stack((), tuple(frames))] += sample["value"] // INTERVAL_NS
    wanted = expected_json(arguments, description)
    assert found == wanted, (found - wanted, wanted - found)


def svg_boxes(made):
    """(x, width, depth, lines of the title) of each box, in order."""
    space = "{http://www.w3.org/2000/svg}"
    root = ElementTree.fromstring(made)
    (graph,) = [inner for inner in root.iter(space + "svg") if inner.get("id") == "graph"]
    for group in graph:
        rect = group.find(space + "rect")
        y = int(rect.get("y"))
        yield (float(rect.get("x")), float(rect.get("width")), (y - SVG_HEAD) // SVG_ROW,
               group.findtext(space + "title").split("\n"))


def check_svg(made, description):
    """Each box lies on its caller's; it is as wide as its title says; the first is all there is."""
    open_boxes, names = [], set()
    total = sum(expected(description, []).values())
    for x, width, depth, title in svg_boxes(made):
        del open_boxes[depth:]
        assert len(open_boxes) == depth, title
        if depth:
            left, room = open_boxes[-1]
            assert left - 0.002 <= x and x + width <= left + room + 0.002, title
        open_boxes.append((x, width))
        share = float(re.search(r", ([\d.]+)%", title[-1]).group(1))
        assert abs(share - 100 * width / SVG_WIDTH) < 0.051, (title, width)
        names.add(title[0])
    assert names >= {"all"} and len(names) > 10, names
    first = next(svg_boxes(made))
    assert first[1] == SVG_WIDTH and first[3][0] == "all", first
    assert first[3][1].startswith("%.1f s, 100.0%%" % (total * INTERVAL_NS / 1e9)), (first, total)


def check_marks_of_svg(pyebpf, folder):
    made = pathlib.Path(folder, "marked.collapsed")
    made.write_text("main (app.py:~3);work (app.py:9) 10\n")
    places = [title[1] for _, _, depth, title in svg_boxes(run(pyebpf, "export", "-f", "svg", made)) if depth]
    assert places == ["app.py:~3", "app.py:9"], places


# perf script's own line, by the fields that readers take: name, pid/tid, [CPU], time, period, event.
SCRIPT_HEAD = re.compile(r"(\S.*?) +(\d+)/(\d+) +\[\d+\] +\d+\.\d{6}: +(\d+) (\S+):$")
SCRIPT_FRAME = re.compile(r"\s+[0-9a-f]+ (.+) \((\S*)\)$")


def check_script(made, description):
    """As many ticks of as many frames of each depth as there are stacks."""
    found = collections.Counter()
    for sample in made.decode().strip("\n").split("\n\n"):
        head, *frames = sample.split("\n")
        period = int(SCRIPT_HEAD.match(head).group(4))
        assert period % INTERVAL_NS == 0 and all(map(SCRIPT_FRAME.match, frames)), sample
        found[len(frames)] += period // INTERVAL_NS
    wanted = collections.Counter()
    for stack, ticks in expected(description, []).items():
        wanted[len(stack.frames)] += ticks
    assert found == wanted, (found, wanted)


def check_perfetto(packed, description):
    """Each sample with its stack, thread, line and time."""
    trace = perfetto.Trace(packed)
    found = collections.Counter()
    for sample in trace.samples["cpu, ns"]:
        frames = [collapsed.Frame("%s [%s]" % (f.name, f.module) if f.module and not f.file
                                  else f.name, f.file or ("" if f.line else "~"), f.line) for f in sample.frames]
        tags = [("process", trace.processes[sample.pid], sample.pid),
                ("thread", trace.threads[sample.pid, sample.tid], sample.tid)]
        assert sample.values["cpu, ns"] % INTERVAL_NS == 0, sample
        found[collapsed.Stack(tuple(tags), tuple(frames))] += \
            sample.values["cpu, ns"] // INTERVAL_NS
    wanted = expected_shown(description, ["--threads", "--processes"])
    assert found == wanted, (found - wanted, wanted - found)
    protoc("perfetto.Trace", "perfetto.proto", packed)
    return (json.dumps(trace.message, indent=1, ensure_ascii=False) + "\n").encode()


class HeatPage(html.parser.HTMLParser):
    """Rows of tables as lists of texts, and the file that a page is of."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.paragraphs, self.into = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append(dict(attributes).get("title", ""))
            self.rows[-1].append("")
            self.into = self.rows[-1]
        if tag == "p":
            self.paragraphs.append("")
            self.into = self.paragraphs
        if tag in ("details", "div"):
            self.into = None

    def handle_data(self, text):
        if self.into:
            self.into[-1] += text


def seconds(text):
    number, unit = text.split(" ")
    return float(number) * {"ms": 1e-3, "s": 1}[unit]


def check_heatmap(folder, description):
    """Values of lines, counted again from the stacks; nothing of the names is markup."""
    own, total = collections.Counter(), collections.Counter()
    for stack, ticks in expected_shown(description, []).items():
        lines = [(f.file, f.line) for f in stack.frames if f.file not in ("", "~")]
        total.update({line: ticks for line in set(lines)})
        if lines:
            own[lines[-1]] += ticks
    found_own, found_total = {}, {}
    pages = {path.name: path.read_text() for path in sorted(folder.glob("*.html"))}
    for name, text in pages.items():
        assert text.startswith("<!DOCTYPE html>") and text.count("<script>") == 1, name
        page = HeatPage(text)
        if name == "index.html":
            continue
        for _, line, own_value, _, total_value, *_ in page.rows[1:]:
            place = page.paragraphs[0].rstrip(), int(line) if line != "?" else 0
            for counts, value in (found_own, own_value), (found_total, total_value):
                if value:
                    counts[place] = seconds(value) * 1e9 / INTERVAL_NS
    for found, wanted in (found_own, own), (found_total, total):
        assert set(found) == set(wanted), set(found) ^ set(wanted)
        for place, ticks in wanted.items():  # of which the page tells two or three digits
            assert abs(found[place] - ticks) < 0.05 * ticks, (place, found[place], ticks)
    plain = "".join("== %s\n%s" % page for page in pages.items())
    plain = re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>|<meta http[^>]*>", "", plain)
    return plain.encode()


def check_pstats(path, description):
    """Own time, time with callees and calls, each sample once: counted again from the stacks."""
    own, total, calls = (collections.Counter() for _ in range(3))
    for stack, ticks in expected_shown(description, []).items():
        chain = [(f.file or "~", f.name) for f in stack.frames]
        own[chain[-1]] += ticks
        total.update({function: ticks for function in set(chain)})
        calls.update({call: ticks for call in set(zip(chain, chain[1:]))})
    found_own, found_total, found_calls = (collections.Counter() for _ in range(3))
    loaded = pstats.Stats(path)
    for (file, _, name), (primitive, number, tt, ct, callers) in loaded.stats.items():
        assert primitive == number and abs(ct * 1e9 - number * INTERVAL_NS) < 1, name
        found_own[file, name] += round(tt * 1e9 / INTERVAL_NS)
        found_total[file, name] += number
        for (caller_file, _, caller), (_, times, _, _) in callers.items():
            found_calls[(caller_file, caller), (file, name)] += times
    assert +found_own == +own, (found_own - own, own - found_own)
    # What is one here, of two lines or kinds of frames, is two there.
    assert set(found_total) == set(total), set(found_total) ^ set(total)
    assert set(found_calls) == set(calls), set(found_calls) ^ set(calls)
    assert all(found_total[f] >= total[f] for f in total), found_total
    assert sum(found_calls.values()) >= sum(calls.values())


def compare_foreign(pyebpf, update):
    """Files of other profilers, of which the integration tests know what is in them."""
    is_same = True
    for path in sorted((HERE.parent / "integration" / "foreign").glob("*.gz")):
        name = "foreign-%s.txt" % path.name[:-len(".gz")]
        is_same &= compare(name, run(pyebpf, "report", "-n", "10", "-q", str(path)), update)
    return is_same


def check_losses(pyebpf, recording, folder):
    """A comparison's page says of each side what the recording's own page says of it."""
    page = os.path.join(folder, "page.html")
    same_file(page, pyebpf, "report", "-o", page, recording)
    alone = htmlpage.Page(page).facts["notes"]
    assert alone[0].startswith("Lost: 5 of 172 (2.9%): ") and alone[1].startswith("Samples "), alone
    same_file(page, pyebpf, "diff", "-o", page, recording, recording)
    told = [side + rest for side in ("Baseline", "Current")
            for rest in (" lost" + alone[0][4:], " s" + alone[1][1:])]
    assert htmlpage.Page(page).facts["notes"][:4] == told, told


def compare_waits(pyebpf, waits_recording, folder, update):
    recording = os.path.join(folder, "waits.pyebpf")
    run(waits_recording, recording)
    made = [compare(name, run(pyebpf, *arguments, recording), update) for name, arguments in WAITS]
    return all(made)


def main(pyebpf, golden_recording, waits_recording, update):
    is_same = True
    with tempfile.TemporaryDirectory() as folder:
        recording = os.path.join(folder, "golden.pyebpf")
        description = run(golden_recording, recording).decode()
        for name, arguments in COLLAPSED:
            made = run(pyebpf, "export", "-f", "collapsed", *arguments, recording)
            check_collapsed(made, arguments, description)
            is_same &= compare(name, made, update)
        for name, arguments in PPROF:
            made = os.path.join(folder, "golden.pb.gz")
            same_file(made, pyebpf, "export", *arguments, "-o", made, recording)
            is_same &= compare(name, check_pprof(made, arguments, description), update)
        for name, arguments in OTLP:
            made = run(pyebpf, "export", "-f", "otlp", *arguments, recording)
            is_same &= compare(name, check_otlp(made, arguments, description), update)
        for name, arguments in JSON:
            made = run(pyebpf, "export", "-f", "json", *arguments, recording)
            check_json(made, arguments, description)
            is_same &= compare(name, made, update)
        for name, arguments in JSONL:
            made = run(pyebpf, "export", "-f", "jsonl", *arguments, recording)
            check_jsonl(made, arguments, description)
            is_same &= compare(name, made, update)
        check_script(run(pyebpf, "export", "-f", "script", recording), description)
        made = os.path.join(folder, "golden.pstats")
        same_file(made, pyebpf, "export", "-o", made, recording)
        check_pstats(made, description)
        for name, arguments in VIEWERS:
            made = run(pyebpf, "export", "-f", name.split(".")[1], *arguments, recording)
            is_same &= compare(name, re.sub(rb"pyebpf \d[^\"]*", b"pyebpf VERSION", made), update)
        for name, arguments in PERFETTO:
            made = run(pyebpf, "export", "-f", "perfetto", *arguments, recording)
            is_same &= compare(name, check_perfetto(made, description), update)
        for name, arguments in SVG:
            made = run(pyebpf, "export", "-f", "svg", *arguments, recording)
            check_svg(made, description)
            is_same &= compare(name, without_script(made), update)
        check_marks_of_svg(pyebpf, folder)
        for name, arguments in HEATMAP:
            made = pathlib.Path(folder, "heat")
            run(pyebpf, "export", "-f", "heatmap", "-o", made, *arguments, recording)
            is_same &= compare(name, check_heatmap(made, description), update)
        for name, arguments in REPORTS:
            is_same &= compare(name, run(pyebpf, "report", *arguments, recording), update)
        for suffix in "json", "md", "xml", "svg":
            made = os.path.join(folder, "diff." + suffix)
            same_file(made, pyebpf, "diff", "-o", made, recording, recording)
        check_losses(pyebpf, recording, folder)
        is_same &= compare_waits(pyebpf, waits_recording, folder, update)
        is_same &= compare_foreign(pyebpf, update)
    print("%d golden files compared" % len(
        COLLAPSED + PPROF + OTLP + JSON + JSONL + SVG + PERFETTO + HEATMAP + VIEWERS + REPORTS +
        WAITS))
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], "--update" in sys.argv[4:]))
