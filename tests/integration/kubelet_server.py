# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A small server that answers GET /pods and GET /api/v1/pods as a kubelet and an API server do.

Not the real ones: what they accept and refuse. Each answer is one of `script`, then that of `pods`.
"""
import collections
import http.server
import json
import ssl
import subprocess
import threading
import urllib.parse

# One answer out of order. body None: the list of pods; hang_s: nothing comes for so long.
Answer = collections.namedtuple("Answer", "status body hang_s", defaults=(200, None, 0))


def pod(uid, name="shop-7d9f", space="prod", labels=None, containers=None, owner=()):
    """owner: kind and name of what controls it."""
    owners = [dict(zip(("kind", "name"), owner), controller=True)] if owner else []
    return {"metadata": {"name": name, "namespace": space, "uid": uid, "labels": labels or {},
                         "ownerReferences": owners},
            "spec": {"nodeName": "node-1"},
            "status": {"containerStatuses": [{"name": each, "containerID": "containerd://" + id}
                                             for each, id in (containers or {}).items()]}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        kubelet = self.server.kubelet
        kubelet.requests.append((self.path, dict(self.headers)))
        answer = kubelet.script.popleft() if kubelet.script else Answer()
        if answer.hang_s:
            kubelet.closed.wait(answer.hang_s)
            self.close_connection = True
            return
        path, _, query = self.path.partition("?")
        query = dict(urllib.parse.parse_qsl(query, strict_parsing=bool(query)))
        if path not in ("/pods", "/api/v1/pods"):
            answer = Answer(404, b"404 page not found")
        elif path == "/api/v1/pods" and query.get("fieldSelector") != "spec.nodeName=node-1":
            answer = Answer(400, b"unable to find label selector")
        elif self.headers["Authorization"] != "Bearer " + kubelet.token:
            answer = Answer(401, b"Unauthorized")
        body = answer.body
        if body is None:
            body = json.dumps(kubelet.page(query)).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Kubelet:
    """One that runs, over TLS with a certificate of its own: `certificate`."""

    def __init__(self, folder, token, pods=(), script=(), page_pods=None):
        self.token, self.pods, self.script = token, list(pods), collections.deque(script)
        self.page_pods = page_pods  # an API server without a cache: at most so many at once
        self.requests, self.closed = [], threading.Event()
        key, self.certificate = folder / "kubelet.key", folder / "kubelet.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-days", "2", "-subj", "/CN=node-1", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", str(key), "-out", str(self.certificate)], check=True,
                       stderr=subprocess.DEVNULL)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, key)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.kubelet = self
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.url = "https://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def page(self, query):
        """The list, or what its part is that the query names: its name is no word of a URL's."""
        first = int(query.get("continue", "page &=+/0").rpartition("/")[2])
        last = len(self.pods) if self.page_pods is None else first + self.page_pods
        more = {"continue": "page &=+/%d" % last} if last < len(self.pods) else {}
        return {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7", **more},
                "items": self.pods[first:last]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closed.set()
        self.server.shutdown()
        self.server.server_close()
