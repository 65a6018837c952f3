# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs as people run them, in the midst of their work: where `dump` and py-spy are compared.

    served.py flask | django | aiohttp | pandas | pool

READY and the process to look at, when all waiting. GO: {thread id: [[function, file, line,
{variable: repr()}], ... root first]}, of which the thread that answers is left out; then it goes on. What it
serves waits in gate().
"""
import asyncio
import concurrent.futures
import json
import multiprocessing
import os
import sys
import threading
import time
import urllib.request

REQUESTS = 4
closed, waiting = threading.Event(), threading.Semaphore(0)


def gate(request_id, payload, *rest, retries=3, **options):
    """What each request comes to: arguments and variables of the usual kinds."""
    headers = {"Content-Type": "text/plain", "X-Request": request_id}
    total, ratio, done, body = 2 ** 70, 0.25, None, b"\x00raw"
    seen = {request_id, "other"}
    waiting.release()
    closed.wait()
    return headers, total, ratio, done, body, seen, payload, rest, retries, options


def ask(port):
    def get(i):
        urllib.request.urlopen("http://127.0.0.1:%d/orders/%d?page=2" % (port, i)).read()
    for i in range(REQUESTS):
        threading.Thread(target=get, args=(i,), daemon=True, name="client-%d" % i).start()
    for _ in range(REQUESTS):
        waiting.acquire()


def flask():
    import flask
    import werkzeug.serving
    application = flask.Flask(__name__)

    @application.route("/orders/<int:order>")
    def orders(order):
        return repr(gate("r-%d" % order, dict(flask.request.args), order, retries=1, user="u"))

    server = werkzeug.serving.make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True, name="server").start()
    ask(server.server_port)


def django():
    import wsgiref.simple_server
    import socketserver
    from django import http, urls
    from django.conf import settings
    from django.core import wsgi

    def orders(request, order):
        return http.HttpResponse(repr(gate("r-%d" % order, request.GET.dict(), order, user="u")))

    class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
        daemon_threads = True
    settings.configure(DEBUG=True, SECRET_KEY="none", ROOT_URLCONF=type(
        "urlconf", (), {"urlpatterns": [urls.path("orders/<int:order>", orders)]}),
        MIDDLEWARE=["django.middleware.common.CommonMiddleware",
                    "django.middleware.security.SecurityMiddleware"])
    server = wsgiref.simple_server.make_server("127.0.0.1", 0, wsgi.get_wsgi_application(), Server)
    threading.Thread(target=server.serve_forever, daemon=True, name="server").start()
    ask(server.server_port)


def aiohttp():
    from aiohttp import web

    async def orders(request):
        loop = asyncio.get_running_loop()
        order = request.match_info["order"]
        return web.Response(text=repr(await loop.run_in_executor(
            None, gate, "r-" + order, dict(request.query), order)))

    async def serve(started):
        application = web.Application()
        application.router.add_get("/orders/{order}", orders)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        started.append(site._server.sockets[0].getsockname()[1])
        await asyncio.sleep(600)
    started = []
    threading.Thread(target=lambda: asyncio.run(serve(started)), daemon=True, name="loop").start()
    while not started:
        time.sleep(0.01)
    ask(started[0])


def pandas():
    import pandas
    frame = pandas.DataFrame({"group": list("abca"), "amount": [1.5, 2.5, 3.5, 4.5]})

    def report(part):
        mean = part["amount"].mean()
        gate("r-0", {"mean": float(mean)}, part.shape)
        return mean
    threading.Thread(target=lambda: frame.groupby("group")[["amount"]].apply(report), daemon=True,
                     name="report").start()
    waiting.acquire()


def pool():
    """A worker that takes tasks from a queue and hands them on to threads, as Celery's do."""
    tasks = multiprocessing.SimpleQueue()
    with concurrent.futures.ThreadPoolExecutor(REQUESTS) as executor:
        for i in range(REQUESTS):
            tasks.put(("resize", (i, "a.png"), {"width": 640, "retries": i}))
        for i in range(REQUESTS):
            name, arguments, options = tasks.get()
            executor.submit(gate, "r-%d" % i, {"task": name}, *arguments, **options)
        for _ in range(REQUESTS):
            waiting.acquire()
        tell()


def frames_of(frame):
    found = []
    while frame:
        code = frame.f_code
        found.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno,
                      {name: safe_repr(value) for name, value in frame.f_locals.items()}])
        frame = frame.f_back
    return found[::-1]


def safe_repr(value):
    try:
        return repr(value)
    except Exception:  # of objects that are being made
        return None


def tell():
    me = threading.get_native_id()
    print("READY", os.getpid(), flush=True)
    sys.stdin.readline()
    ids = {thread.ident: thread.native_id for thread in threading.enumerate()}
    print(json.dumps({ids[ident]: frames_of(frame) for ident, frame in
                      sys._current_frames().items() if ids.get(ident, me) != me}), flush=True)
    sys.stdin.readline()
    os._exit(0)


if __name__ == "__main__":
    {"flask": flask, "django": django, "aiohttp": aiohttp, "pandas": pandas,
     "pool": pool}[sys.argv[1]]()
    tell()
