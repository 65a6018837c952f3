# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A Flask application with a thread a request: 6 ms of CPU time in heavy(), 2 ms in light().

READY and its port; then it serves. /truth: {"heavy": CPU seconds, "light": ..., "requests": ...}.
"""
import sys
import threading
import time

import flask
import werkzeug.serving

application = flask.Flask(__name__)
spent = {"heavy": 0.0, "light": 0.0, "requests": 0}
lock = threading.Lock()


def heavy(end):
    while time.thread_time() < end: pass


def light(end):
    while time.thread_time() < end: pass


@application.route("/")
def work():
    start = time.thread_time()
    heavy(start + 0.006)
    middle = time.thread_time()
    light(middle + 0.002)
    end = time.thread_time()
    with lock:
        spent["heavy"] += middle - start
        spent["light"] += end - middle
        spent["requests"] += 1
    return flask.jsonify(done=True)


@application.route("/truth")
def truth():
    with lock:
        return flask.jsonify(spent)


werkzeug.serving.WSGIRequestHandler.log = lambda *ignored: None
server = werkzeug.serving.make_server("127.0.0.1", 0, application, threaded=True)
print("READY", server.port, flush=True)
sys.stdin.close()
server.serve_forever()
