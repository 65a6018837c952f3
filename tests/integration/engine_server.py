# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small server that answers as Pyroscope 2.2, Parca 0.28 and an OpenTelemetry Collector 0.159 do.

Not the engines: what they were seen to accept, refuse and say, a check a case. What it stores is
what they would count. `script` holds answers that come before those: one a request, in order.
"""
import base64
import collections
import contextlib
import gzip
import http.server
import json
import os
import tempfile
import threading
import time
import zlib

import otlp
import pprof

HOUR, MIB = 3600, 1 << 20

# One answer out of order. hang_up: the connection is closed instead; delay_s: before it; until: a
# threading.Event that it waits for; text: what it says.
Answer = collections.namedtuple("Answer", "status headers delay_s hang_up until text",
                                defaults=(503, (), 0, False, None, "scripted"))


class Refusal(Exception):
    """status, then what the body says."""


def series_of(message, is_wrapped):
    """(labels, pprof.Profile, its size) of each series."""
    for series in message["series"]:
        pairs = series["labels"]["labels"] if is_wrapped else series["labels"]
        for sample in series["samples"]:
            packed = base64.b64decode(sample["rawProfile"], validate=True)
            with tempfile.NamedTemporaryFile() as f:
                f.write(packed)
                f.flush()
                yield [(p["name"], p["value"]) for p in pairs], pprof.Profile(f.name), \
                    len(gzip.decompress(packed))


def type_of(series, sample_type, period_type):
    """As engines write a profile type: SERIES:TYPE:UNIT:PERIOD TYPE:PERIOD UNIT."""
    return ":".join([series, *sample_type, *period_type])


def type_of_pprof(labels, profile):
    return type_of(dict(labels).get("__name__", ""), profile.types[-1], profile.period_type)


def check_pyroscope(labels, profile, size):
    if not profile.samples:
        raise Refusal(500, "empty profile")
    age = time.time() - profile.time_ns / 1e9
    if age > HOUR or age < -600:
        raise Refusal(400, "profile with an invalid timestamp")
    if len(labels) > 30:
        raise Refusal(400, "%d label names; limit 30" % len(labels))
    if len(dict(labels)) < len(labels):
        raise Refusal(400, "duplicate label name")
    if len(profile.samples) > 16000:
        raise Refusal(400, "the profile with %d samples exceeds the limit" % len(profile.samples))
    if size > 4 * MIB:
        raise Refusal(400, "uncompressed profile payload exceeds limit of 4 MiB")


def take_pyroscope(request):
    """Of several series it stores those that are right, and names the others by their index."""
    if request.path != "/push.v1.PusherService/Push":
        raise Refusal(404, "page not found")
    if request.headers["Content-Type"] != "application/json":
        raise Refusal(415, "")
    failed = []
    for index, (labels, profile, size) in enumerate(
            series_of(json.loads(request.body), is_wrapped=False)):
        service = dict(labels).get("service_name", "unknown_service")
        try:
            check_pyroscope(labels, profile, size)
            if request.server.engine.refuses(service):
                raise Refusal(429, "rate limit of the tenant")
        except Refusal as refusal:
            failed.append((refusal.args[0], "push series with index %d and id  failed: %s" % (
                index, refusal.args[1])))
            continue
        note_labels(request, profile)
        yield service, profile.stacks(), dict(labels), type_of_pprof(labels, profile)
    if failed:
        raise Refusal(failed[0][0], json.dumps({"code": "unknown", "message": "%d errors: %s" % (
            len(failed), "; ".join(text for _, text in failed))}))


def note_labels(request, profile):
    request.server.engine.labelled += [([frame.name for frame in sample.frames], sample.labels, None)
                                       for sample in profile.samples]


def take_parca(request):
    if request.path != "/api/profiles/writeraw":
        raise Refusal(200, "<!doctype html>")  # its web page, whatever the path
    if len(request.body) > 64 * MIB:
        raise Refusal(429, "")
    for labels, profile, _ in series_of(json.loads(request.body), is_wrapped=True):
        if not profile.duration_ns:
            raise Refusal(400, "duration must be set")
        note_labels(request, profile)
        yield (dict(labels)["service_name"], profile.stacks(), dict(labels),
               type_of_pprof(labels, profile))


def take_otlp(request):
    if request.path != "/v1development/profiles":
        raise Refusal(404, "404 page not found")
    if request.headers["Content-Type"] != "application/x-protobuf":
        raise Refusal(415, "415 unsupported media type")
    try:
        message = otlp.Request(otlp.decode(request.body))
    except (AssertionError, IndexError, KeyError, ValueError) as error:
        raise Refusal(400, repr(error)) from error
    request.server.engine.labelled += [
        ([frame.name for frame in message.frames(sample)], message.attributes(sample), message.link(sample))
        for sample in message.profile["samples"]]
    period = message.value_type("periodType") if "periodType" in message.profile else ("", "")
    yield (message.resource["service.name"], message.stacks(), dict(message.resource),
           type_of("", message.value_type("sampleType"), period))


TAKERS = {"pyroscope": take_pyroscope, "parca": take_parca, "otlp": take_otlp}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        engine = self.server.engine
        self.body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            self.body = gzip.decompress(self.body)
        with engine.lock:
            engine.requests.append((time.monotonic(), dict(self.headers)))
            engine.connections.add(self.client_address)
            answer = engine.script.popleft() if engine.script else None
            engine.under_way += 1
            engine.under_way_most = max(engine.under_way_most, engine.under_way)
        try:
            time.sleep(engine.delay_s)
            self.answer(engine, answer)
        finally:
            with engine.lock:
                engine.under_way -= 1

    def answer(self, engine, answer):
        if answer:
            time.sleep(answer.delay_s)
            if answer.until:
                answer.until.wait()
            if answer.hang_up:
                self.close_connection = True
                return
            if answer.status != 200:
                self.say(answer.status, answer.text, answer.headers)
                return
        taken, refusal = [], None
        try:
            for each in TAKERS[engine.kind](self):
                taken.append(each)
        except Refusal as error:
            refusal = error
        if refusal and engine.kind != "pyroscope":
            taken = []
        with engine.lock:
            engine.stored += [(service, stacks) for service, stacks, _, _ in taken]
            engine.labels += [labels for _, _, labels, _ in taken]
            engine.types += [name for _, _, _, name in taken]
            engine.answered.append((time.monotonic(), len(taken)))
        if refusal:
            self.say(*refusal.args)
        else:
            self.say(200, "{}" if engine.kind != "otlp" else "")

    def say(self, status, text, headers=()):
        is_page = text.startswith("<")
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "text/html" if is_page else "application/json")
        if "Content-Length" not in dict(headers):  # longer: the answer is cut
            self.send_header("Content-Length", str(len(text)))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # who asked has left
            self.end_headers()
            self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Engine:
    """One that runs. stored: (service, {Stack: samples}), one a profile; labels, types: of each; answered:
    when, and how many profiles were stored, a request each. delay_s: how long one takes. refuses:
    of which services it takes nothing now."""

    def __init__(self, kind, port=0, script=(), tls=None, address="127.0.0.1", delay_s=0,
                 refuses=lambda service: False):
        self.kind, self.script, self.lock = kind, collections.deque(script), threading.Lock()
        self.requests, self.stored, self.labels, self.answered = [], [], [], []
        self.types = []
        self.labelled = []  # (names of frames, labels of the sample, its link) of each that came
        self.delay_s, self.refuses = delay_s, refuses
        self.connections, self.under_way, self.under_way_most = set(), 0, 0
        self.server = http.server.ThreadingHTTPServer((address, port), Handler)
        self.server.daemon_threads = True
        self.server.engine = self
        self.port = self.server.server_address[1]
        self.url = "http%s://127.0.0.1:%d" % ("s" if tls else "", self.port)
        if tls:  # an ssl.SSLContext
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def total(self, service=None):
        with self.lock:
            return sum(sum(stacks.values()) for name, stacks in self.stored
                       if service in (None, name))

    def stacks(self, service):
        counts = collections.Counter()
        with self.lock:
            for name, stacks in self.stored:
                if name == service:
                    counts.update(stacks)
        return counts

    def stacks_of_type(self, service, profile_type):
        counts = collections.Counter()
        with self.lock:
            for (name, stacks), its_type in zip(self.stored, self.types):
                if name == service and its_type == profile_type:
                    counts.update(stacks)
        return counts

    def labels_of(self, service):
        """Of its last profile."""
        with self.lock:
            return next((labels for (name, _), labels in
                         zip(reversed(self.stored), reversed(self.labels)) if name == service), {})

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def make_series(labels, profile, is_wrapped=False):
    """The body of a request, as the agent writes it."""
    pairs = [{"name": name, "value": value} for name, value in labels]
    return json.dumps({"series": [{
        "labels": {"labels": pairs} if is_wrapped else pairs,
        "samples": [{"rawProfile": base64.b64encode(profile).decode()}]}]}).encode()


def spool_put(folder, number, samples, body, kind, time_ns=None):
    """Puts an entry into a spool as the agent does."""
    name = "%016d-%d-%d-%08x.%s" % (number, time_ns or time.time_ns(), samples, zlib.crc32(body), kind)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(body)
