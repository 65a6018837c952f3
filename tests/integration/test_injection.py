# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Names that a target chose, full of what drives terminals, in every output: all stays text, on its line, and
names are the same ones after .pyebpf, JSON and collapsed text."""
import base64
import gzip
import html.parser
import json
import marshal
import os
import pty
import re
import select
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import otlp
import perfetto
import pprof
import pytest
from engine_server import Engine, Handler
from harness import PATIENCE, PYEBPF, Workload, run, wait_until
from kubelet_server import Kubelet, pod
from test_agent import Agent
from test_agent_kubernetes import TOKEN, settings
from test_agent_origin import CONTAINER, POD, enter, pod_cgroups

pytestmark = pytest.mark.usefixtures("pyebpf")

# As utf8_is_control() has them; newlines are the output's own, and tabs those of perf's text and of pages.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufdd0-\ufdef%s]" %
                      "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xfffe, 0xffff)))
IN_TERMINAL = (b"\x1b]", b"\x07", b"\xc2\x9b", b"\xe2\x80\xae", b"\xe2\x80\xa8", b"\xe2\x81\xa6", b"\xef\xbb\xbf",
               b"\x1b[31mX", b"\x1b[31mR", b"\x1b[2J.py", b"\xef\xbf\xbe")
START = "\x1b]0;PWNED\x07\x1b[31mR\x9b31m\u202eevil\u2066\u200b\u2028\ufeff</script>"
ARGUMENT = ("FAKE ARGUMENT\x1b]0;PWNED\x07\x1b[31mR\x9b31m\u202eevil\u2066\u2028\ufeff\r\nFAKE LINE\t'\"\\</script>"
            "<img src=x onerror=alert(1)>")
EXPORTS = ("collapsed", "html", "svg", "speedscope", "gecko", "json", "jsonl", "script")


@pytest.fixture(scope="module")
def outputs(some_python, tmp_path_factory):
    """{name: bytes} of what commands write about the program while it runs, and the folder with the recording."""
    folder = tmp_path_factory.mktemp("injection")
    with Workload(some_python, "inject.py", 60, folder, ARGUMENT) as workload:
        made = {}
        done = run("record", "-p", workload.pid, "-d", "2s", "--mode", "wall", "--async", "--label",
                   "route=contextvar:route", "-o", folder / "x.pyebpf", "-o", folder / "r.html", "-v")
        assert done.returncode == 0, done.stderr
        made["record"] = done.stdout + done.stderr
        for words in ("dump --locals=full --self", "dump --json --locals=full --self", "dump --async --locals",
                      "dump --async --json", "doctor"):
            command, *more = words.split()
            done = run(command, "-p", workload.pid, *more)
            assert command == "doctor" or done.returncode == 0, done.stderr
            made[words] = done.stdout + done.stderr
        made["top"] = watch_top(workload.pid)
    return made, folder


def watch_top(pid):
    """All that top writes to a terminal: of functions, processes, threads and tasks, with one opened."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([PYEBPF, "top", "-p", str(pid), "--async"],
                               stdin=follower, stdout=follower, stderr=follower, close_fds=True,
                               env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8", LINES="40", COLUMNS="250"))
    os.close(follower)
    written, keys, end = b"", [b"1", b"2", b"3", b"4", b"1", b"\r", b"q"], time.monotonic() + 60
    due = time.monotonic() + 1
    while time.monotonic() < end:
        if select.select([leader], [], [], 0.1)[0]:
            try:
                got = os.read(leader, 1 << 16)
            except OSError:
                break
            written += got
        if time.monotonic() > due and b"alert" in written and keys:
            os.write(leader, keys.pop(0))
            due = time.monotonic() + 0.3
    process.kill()
    process.wait()
    os.close(leader)
    assert not keys, written[-2000:]
    return written


def check_text(name, text):
    assert not re.search("[\udc80-\udcff]", text), (name, "no UTF-8")
    found = CONTROLS.search(text)
    assert not found, (name, text[max(0, found.start() - 60):found.end() + 60])


class Markup(html.parser.HTMLParser):
    """Reads a page as a browser would: texts of its scripts, attributes that hold one, sources."""

    def __init__(self, text):
        super().__init__(convert_charrefs=False)
        self.scripts, self.handlers, self.sources, self.is_script = [], [], [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.is_script = tag == "script"
        self.handlers += [name for name, _ in attributes if name.startswith("on")]
        self.sources += [value for name, value in attributes if name == "src"]

    def handle_endtag(self, tag):
        self.is_script = False

    def handle_data(self, data):
        if self.is_script:
            self.scripts.append(data)


def check_markup(name, text):
    check_text(name, text)
    found = Markup(text)
    assert not found.handlers and not found.sources, (name, found.handlers, found.sources)
    assert not [script for script in found.scripts if "alert(1)" in script], name


def read_json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


READERS = {"html": Markup, "svg": ElementTree.fromstring, "speedscope": json.loads, "gecko": json.loads, "json": json.loads,
           "jsonl": read_json_lines}


def strings_in(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from strings_in(key)
            yield from strings_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from strings_in(inner)


def test_live_commands(outputs):
    made, folder = outputs
    for name in made:
        if name != "top":
            check_text(name, made[name])
    assert "PWNED" in made["record"] and "FAKE LINE" in made["dump --locals=full --self"]
    assert "FAKE ARGUMENT" in made["dump --json --locals=full --self"] and "FAKE ARGUMENT" in made["doctor"]
    for name in ("dump --json --locals=full --self", "dump --async --json"):
        assert json.loads(made[name])
    assert "Waiting\\x1b]0;PWNED" in made["dump --async --locals"]


def test_a_live_terminal(outputs):
    top = outputs[0]["top"]
    assert b"alert" in top
    assert not [each for each in IN_TERMINAL if each in top]


def test_reports(outputs):
    recording = outputs[1] / "x.pyebpf"
    for words in ([], ["--tree"], ["--tree", "--lines", "--threads"], ["--threads"], ["--by", "label:route"],
                  ["--by", "label:task", "--kind", "task"], ["--by", "thread"], ["--by", "process"], ["--by", "module"], ["--by", "file"],
                  ["--by", "interpreter"], ["--by", "label"], ["--by", "*PWNED*"], ["--gil"], ["--json"]):
        done = run("report", *words, recording)
        assert done.returncode == 0, done.stderr
        check_text(words, done.stdout + done.stderr)
        assert words != ["--json"] or json.loads(done.stdout)
        assert words[-1:] in (["process"], ["--gil"]) or "PWNED" in done.stdout, words


@pytest.mark.parametrize("form", EXPORTS)
def test_texts(form, outputs):
    done = run("export", "-f", form, outputs[1] / "x.pyebpf")
    assert done.returncode == 0, done.stderr
    (check_markup if form in ("html", "svg") else check_text)(form, done.stdout)
    assert form == "html" or "FAKE LINE" in done.stdout
    assert READERS.get(form, str)(done.stdout)


def test_pages(outputs):
    check_markup("record", (outputs[1] / "r.html").read_text())
    folder = outputs[1] / "x.heatmap"
    done = run("export", "-o", folder, outputs[1] / "x.pyebpf")
    assert done.returncode == 0, done.stderr
    for path in folder.iterdir():
        check_text(path.name, path.name)
        check_markup(path.name, path.read_text())


def test_strings_of_binary_formats(outputs):
    """They are UTF-8, and escaped as in text: viewers print them."""
    recording = outputs[1] / "x.pyebpf"

    def made(form, *more):
        path = outputs[1] / ("made." + form)
        done = run("export", "-f", form, *more, "-o", path, recording)
        assert done.returncode == 0, done.stderr
        return path.read_bytes()

    profile = dict.fromkeys(pprof.several(
        list(pprof.fields(gzip.decompress(made("pprof", "--threads", "--processes", "--labels")), pprof.PROFILE)),
        "string_table"))
    found = {
        "pprof": [text if isinstance(text, str) else text.decode() for text in profile],
        "otlp": list(strings_in(otlp.decode(made("otlp", "--threads", "--processes", "--labels")))),
        "perfetto": list(strings_in(otlp.decode(made("perfetto"), perfetto.TRACE))),
        "pstats": list(strings_in(marshal.loads(made("pstats")))),
    }
    for form, texts in found.items():
        assert any("FAKE LINE" in text for text in texts), form
        for text in texts:
            check_text(form, text)
            assert "\n" not in text and "\t" not in text, (form, text)


def test_comparisons(outputs):
    folder = outputs[1]
    recording = folder / "x.pyebpf"
    part = folder / "part.pyebpf"
    text = folder / "part.collapsed"
    assert run("export", "--header", "--ignore", "a;b c", "-o", text, recording).returncode == 0
    assert run("import", text, "-o", part).returncode == 0
    for suffix in ("json", "md", "xml", "html", "svg"):
        path = folder / ("diff." + suffix)
        done = run("diff", "--force", "-o", path, part, recording)
        assert done.returncode == 0, done.stderr
        (check_markup if suffix in ("html", "svg") else check_text)(suffix, path.read_text())
        assert READERS.get(suffix, str)(path.read_text())
    for words in (["-n", "0", part, recording], ["--current-label", "route=x*", recording]):
        done = run("diff", "--force", *words)
        assert done.returncode == 0 and "PWNED" in done.stdout, done.stderr
        check_text(words, done.stdout + done.stderr)


def names(recording, *more):
    """{(name, file)} of the frames of samples."""
    done = run("export", "-f", "json", *more, recording)
    assert done.returncode == 0, done.stderr
    return {(frame[0], frame[1]) for frame in json.loads(done.stdout)["frames"] if frame[3] == "python"}


@pytest.mark.parametrize("form", ["pyebpf", "speedscope", "collapsed"])
def test_names_survive_a_round_trip(form, outputs):
    """But for functions without a name and a file, which are markers in speedscope."""
    folder = outputs[1]
    recording, copy = folder / "x.pyebpf", folder / (form + ".copy.pyebpf")
    between = folder / ("between." + form)
    if form == "pyebpf":
        done = run("cat", recording, "-o", copy)
    else:
        done = run("export", "-f", form, "--kind", "wall", "-o", between, recording)
        assert done.returncode == 0, done.stderr
        done = run("import", between, "-o", copy)
    assert done.returncode == 0, done.stderr
    before = names(recording, "--kind", "wall")
    after = names(copy, *(["--kind", "wall"] if form == "pyebpf" else []))
    nameless = {(None, None)} if form == "speedscope" else set()
    assert any(START in (name or "") for name, _ in before)
    assert before - nameless == after, before ^ after


HOSTILE = "svc\x1b]0;PWNED\x07\x9b31m\u202eevil\u2028\ufeff\r\nFAKE LINE\t'\"\\{}</script>"
AGENT_LABELS = "sample_labels: ['route=contextvar:route']\nmode: wall\n"


class Bodies(Engine):
    """bodies: of each request, unpacked."""

    def __init__(self, kind):
        self.bodies = []
        super().__init__(kind)

        class Keeping(Handler):
            def answer(handler, engine, answer):
                self.bodies.append(handler.body)
                super().answer(engine, answer)

        self.server.RequestHandlerClass = Keeping


def texts_of(kind, body):
    """Labels of series, and the strings of their profiles."""
    if kind == "otlp":
        return list(strings_in(otlp.decode(body)))
    message, found = json.loads(body), []
    for series in message["series"]:
        found += strings_in(series["labels"])
        for sample in series["samples"]:
            packed = gzip.decompress(base64.b64decode(sample["rawProfile"]))
            found += [text if isinstance(text, str) else text.decode()
                      for text in pprof.several(list(pprof.fields(packed, pprof.PROFILE)), "string_table")]
    return found


def hostile_pod():
    """A pod of that container. Its names are hostile, but its own and those that find it."""
    return pod(POD, labels={"team": HOSTILE, "app.kubernetes.io/name": HOSTILE, "tier\x1b]0;PWNED\x07": "x"},
               containers={HOSTILE: CONTAINER}, owner=("Replica\x1b[31mSet", HOSTILE))


@pytest.mark.xdist_group("agent")
@pytest.mark.parametrize("kind", ["pyroscope", "otlp", "parca"])
def test_agent(kind, some_python, tmp_path):
    """The agent's log, its metrics and pages of state, and the strings of all that it pushes. A pod's names that are not
    plain text are left out."""
    with pod_cgroups(CONTAINER) as (own,), Kubelet(tmp_path, TOKEN, [hostile_pod()]) as kubelet, Bodies(kind) as engine, \
            Workload(some_python, "inject.py", 120, tmp_path, ARGUMENT, env={"OTEL_SERVICE_NAME": HOSTILE}) as workload:
        enter(own, workload.pid)
        with Agent(tmp_path, kind, engine.url, more=AGENT_LABELS + settings(kubelet, tmp_path)) as agent:
            wait_until(lambda: any("shop-7d9f" in text for body in list(engine.bodies) for text in texts_of(kind, body)),
                       PATIENCE, "the pod's name arrives")
            wait_until(lambda: any("PWNED" in text for body in list(engine.bodies) for text in texts_of(kind, body)),
                       PATIENCE, "names arrive")
            wait_until(lambda: engine.total() > 100, PATIENCE, "samples arrive")
            check_text("metrics", agent.fetch("/metrics")[1])
            agent.process.send_signal(signal.SIGHUP)
            wait_until(lambda: agent.metric("reloads_total") == 1, PATIENCE, "it has read its file again")
            agent.stop()
            check_text("log", agent.text())
    found = [text for body in engine.bodies for text in texts_of(kind, body)]
    assert any("FAKE LINE" in text for text in found)
    for text in found:
        check_text(kind, text)
        assert "\n" not in text and "\t" not in text, text


@pytest.mark.xdist_group("agent")
def test_files_of_an_agent(some_python, tmp_path):
    """Their names, the log, and what commands show of them."""
    with Workload(some_python, "inject.py", 120, tmp_path, ARGUMENT, env={"OTEL_SERVICE_NAME": HOSTILE}), \
            Agent(tmp_path, "files", more=AGENT_LABELS) as agent:
        folder = tmp_path / "out"

        def have_come():
            return any("PWNED" in run("report", "--threads", path).stdout for path in folder.glob("*.pyebpf"))
        wait_until(have_come, PATIENCE, "names arrive")
        check_text("metrics", agent.fetch("/metrics")[1])
        agent.stop()
        check_text("log", agent.text())
    files = sorted(folder.iterdir())
    assert not [path.name for path in files if not re.fullmatch(r"pyebpf-\d{8}T\d{6}Z\.pyebpf", path.name)]
    for words in (["report", "--threads"], ["report", "--by", "label:route"], ["report", "--json"], ["export", "-f", "jsonl"]):
        done = run(*words, *files)
        assert done.returncode == 0, done.stderr
        check_text(words, done.stdout + done.stderr)
        assert "PWNED" in done.stdout, words
