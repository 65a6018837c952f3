# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One application twice, for WSGI and for ASGI servers: a request spins 0.2 s in spin_here()."""
import time

import spin


def work():
    spin.spin_here(time.perf_counter() + 0.2)


def wsgi(environ, start_response):
    work()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"done"]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    work()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})
