# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/dump.md: a server that does not answer, and a queue that nobody empties."""
import queue
import socket
import threading
import urllib.request

results = queue.Queue(maxsize=8)
server = socket.create_server(("127.0.0.1", 0))


def fetch():
    url = "http://127.0.0.1:%d/" % server.getsockname()[1]
    urllib.request.urlopen(url).read()


def produce():
    while True:
        results.put(object())


threading.Thread(target=fetch, name="fetcher").start()
for i in range(24):
    threading.Thread(target=produce, name="producer-%d" % i).start()
