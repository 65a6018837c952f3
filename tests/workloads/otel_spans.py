# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Spans of OpenTelemetry, nested, in threads, in tasks; whatever runs in one is in a function that is named after it.

    otel_spans.py SECONDS [FOLDER]

FOLDER: has the packages opentelemetry-api and opentelemetry-sdk; without, classes of the same shapes stand in.
Functions in_<trace id>_<span id> run in that span, in_none in none, or in one whose ids are 0.
Truth: the names of those that ran.
"""
import asyncio
import contextvars
import json
import random
import sys
import threading
import time
import typing

from named_spins import NAMES, spin

SECONDS = float(sys.argv[1])


class StandIn:
    """As opentelemetry-api and -sdk 1.x have it."""

    class Context(typing.Dict[str, object]):
        def __setitem__(self, key, value):
            raise ValueError

    class SpanContext(typing.Tuple[int, int, bool, int]):
        def __new__(cls, trace_id, span_id):
            return tuple.__new__(cls, (trace_id, span_id, False, 1))

        trace_id = property(lambda self: self[0])
        span_id = property(lambda self: self[1])

    class NonRecordingSpan:
        def __init__(self, context):
            self._context = context

    class Span:
        def __init__(self, context):
            self._name = "name"
            self._context = context
            self._kind, self._parent, self._attributes, self._events = 0, None, {}, []
            self._start_time = self._end_time = self._status = self._resource = None

    KEY = "current-span-9c1a2f50-4be2-4a7e-9d19-6b8f5fd3a7b1"

    def __init__(self):
        self.variable = contextvars.ContextVar("current_context", default=self.Context())

    def attach(self, key, value):
        values = self.variable.get().copy()
        values[key] = value
        return self.variable.set(self.Context(values))

    def started(self, is_recording=True):
        ids = self.SpanContext(random.getrandbits(128), random.getrandbits(64))
        return (self.Span if is_recording else self.NonRecordingSpan)(ids)

    def enter(self, span):
        return self.attach(self.KEY, span)

    def leave(self, token):
        self.variable.reset(token)

    def invalid(self):
        return self.NonRecordingSpan(self.SpanContext(0, 0))

    @staticmethod
    def ids_of(span):
        return span._context


class Real:
    def __init__(self, folder):
        sys.path.insert(0, folder)
        from opentelemetry import baggage, context, trace
        from opentelemetry.sdk.trace import TracerProvider
        self.context, self.trace = context, trace
        self.set_baggage = baggage.set_baggage
        self.tracer = TracerProvider().get_tracer(__name__)

    def attach(self, key, value):
        return self.context.attach(self.set_baggage(key, value))

    def started(self, is_recording=True):
        span = self.tracer.start_span("work", attributes={"a": 1})
        return span if is_recording else self.trace.NonRecordingSpan(span.get_span_context())

    def enter(self, span):
        return self.context.attach(self.trace.set_span_in_context(span))

    def leave(self, token):
        self.context.detach(token)

    def invalid(self):
        return self.trace.INVALID_SPAN

    @staticmethod
    def ids_of(span):
        return span.get_span_context()


API = Real(sys.argv[2]) if len(sys.argv) > 2 else StandIn()


def spin_in(span):
    ids = API.ids_of(span)
    spin("in_%032x_%016x" % (ids.trace_id, ids.span_id))


def nested():
    spin("in_none")
    outer = API.started()
    token = API.enter(outer)
    spin_in(outer)
    beside = API.attach("user", "somebody")
    spin_in(outer)
    inner = API.started(is_recording=False)
    inner_token = API.enter(inner)
    spin_in(inner)
    API.leave(inner_token)
    vars(outer)["late"] = 1  # its attributes are in a dict from here on
    spin_in(outer)
    none = API.enter(API.invalid())
    spin("in_none")
    API.leave(none)
    API.leave(beside)
    API.leave(token)
    spin("in_none")


async def task():
    span = API.started()
    token = API.enter(span)
    for _ in range(3):
        spin_in(span)
        await asyncio.sleep(0)
    API.leave(token)


async def tasks():
    await asyncio.gather(*(asyncio.ensure_future(task()) for _ in range(4)))


def run(work):
    end = time.thread_time() + SECONDS / 2
    while time.thread_time() < end:
        work()


def main():
    print("READY", flush=True)
    sys.stdin.readline()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=run, args=(nested,))
    thread.start()
    run(lambda: loop.run_until_complete(tasks()))
    thread.join()
    loop.close()
    print(json.dumps(sorted(NAMES)), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
