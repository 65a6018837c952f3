# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Spans, in context variables: their ids as tracers have them, ints or text, and what is no id.

    traced.py SECONDS

Truth: {trace id as it is told: [trace id, span id] of the link; null: there is none}.
"""
import contextvars
import json
import sys
import time

SECONDS = float(sys.argv[1])
TRACE, SPAN = contextvars.ContextVar("trace"), contextvars.ContextVar("span")
TRACE_TEXT, SPAN_TEXT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SMALL = "%032x" % 7
SPANS = [
    (TRACE_TEXT, SPAN_TEXT, [TRACE_TEXT, SPAN_TEXT]),
    (2 ** 127 + 1, 2 ** 64 - 1, ["8" + "0" * 30 + "1", "f" * 16]),
    (7, 9, [SMALL, "%016x" % 9]),
    ("not an id", SPAN_TEXT, None),
    (0, 1, None),
]


def spin(seconds):
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass


def span(trace, number, seconds):
    TRACE.set(trace)
    SPAN.set(number)
    spin(seconds)


def main():
    print("READY", flush=True)
    sys.stdin.readline()
    for trace, number, _ in SPANS:
        contextvars.copy_context().run(span, trace, number, SECONDS / len(SPANS))
    told = [trace if isinstance(trace, str) else "%032x" % trace for trace, _, _ in SPANS]
    print(json.dumps(dict(zip(told, (link for _, _, link in SPANS)))), flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
