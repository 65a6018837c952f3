# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One application twice, for WSGI and for ASGI servers.

A GET request spins 0.2 s in spin_here(). A POST request, {"arguments": [PATH, ...], "stdin": TEXT},
runs another workload and answers with what that prints.
"""
import contextlib
import io
import json
import runpy
import sys
import time

import spin


def run(asked):
    sys.argv, sys.stdin = asked["arguments"], io.StringIO(asked["stdin"])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(sys.argv[0], run_name="__main__")
    return out.getvalue().encode()


def work(method, body):
    if method == "POST":
        return run(json.loads(body.decode()))
    spin.spin_here(time.perf_counter() + 0.2)
    return b"done"


def wsgi(environ, start_response):
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    answer = work(environ["REQUEST_METHOD"], body)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [answer]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    body, has_more = b"", True
    while has_more:
        message = await receive()
        body += message.get("body", b"")
        has_more = message.get("more_body", False)
    answer = work(scope["method"], body)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": answer})
