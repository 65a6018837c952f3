# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""pyebpf agent: how an engine is told who asks, and that what it is told can be renewed."""
import base64
import os
import ssl
import subprocess

import pytest
from engine_server import Engine
from harness import PATIENCE, run, wait_until
from test_agent import SERVICE, Agent, spinning

pytestmark = [pytest.mark.usefixtures("pyebpf"), pytest.mark.xdist_group("agent")]


def replace(path, text):
    """As Kubernetes and certificate managers do it: another file."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)


def test_password_and_headers_are_read_anew(some_python, tmp_path):
    """And nobody else gets them: not the log, not --check, not the spool."""
    password, headers = tmp_path / "password", tmp_path / "headers"
    password.write_text("s3cret-one\n")
    headers.write_text("# of the hosted engine\nX-Api-Key: s3cret-key\n\nX-Other: b\n")
    with Engine("pyroscope") as engine, spinning(some_python):
        with Agent(tmp_path, "pyroscope", engine.url,
                   output="  username: '4711'\n  password_file: %s\n  headers: ['X-Team: web']\n"
                   "  headers_file: %s\n" % (password, headers)) as agent:
            wait_until(lambda: engine.requests, PATIENCE, "the first request")
            replace(password, "s3cret-two")
            replace(headers, "X-Api-Key: s3cret-new\n")
            wait_until(lambda: engine.requests[-1][1].get("X-Api-Key") == "s3cret-new", PATIENCE,
                       "the new ones are used")
            wait_until(lambda: engine.total(SERVICE) > 0, PATIENCE, "samples arrive")
            replace(headers, "no header s3cret\n")
            wait_until(lambda: "headers:1: not a header" in agent.text(), PATIENCE, "it is said")
            metrics = agent.fetch("/metrics")[1]
            agent.stop()
        first, last = engine.requests[0][1], engine.requests[-1][1]
    for got, word in ((first, "one"), (last, "two")):
        assert got["Authorization"] == "Basic " + base64.b64encode(
            b"4711:s3cret-" + word.encode()).decode()
        assert got["X-Team"] == "web"
    assert (first["X-Api-Key"], first["X-Other"]) == ("s3cret-key", "b")
    shown = run("agent", "--check", "--config", agent.config)
    assert "headers: ['X-Team: web']" in shown.stdout
    for text in (agent.text(), metrics, shown.stdout, shown.stderr):
        assert "s3cret" not in text


def certificate(folder, name):
    """Certificate and key, of an engine and of us alike, that trusts itself alone."""
    key, path = folder / (name + ".key"), folder / (name + ".pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key),
                    "-out", str(path)], check=True, stderr=subprocess.DEVNULL)
    return path, key


def context(path, key):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(path, key)
    made.load_verify_locations(path)
    made.verify_mode = ssl.CERT_REQUIRED
    return made


def test_certificates_are_read_anew(some_python, tmp_path):
    """Of both sides, while connections are kept: the agent need not be restarted."""
    old, new = certificate(tmp_path, "old"), certificate(tmp_path, "new")
    ours, our_key = tmp_path / "ours.pem", tmp_path / "ours.key"
    replace(ours, old[0].read_text())
    replace(our_key, old[1].read_text())
    output = "  ca_file: %s\n  cert_file: %s\n  key_file: %s\n" % (ours, ours, our_key)
    with spinning(some_python), Engine("pyroscope", tls=context(*old)) as engine:
        with Agent(tmp_path, "pyroscope", engine.url, output=output) as agent:
            wait_until(lambda: engine.total(SERVICE) > 0, PATIENCE, "samples arrive")
            port, before = engine.port, engine.total
            engine.close()
            with Engine("pyroscope", port, tls=context(*new)) as renewed:
                replace(our_key, new[1].read_text())
                replace(ours, new[0].read_text())
                wait_until(lambda: renewed.total(SERVICE) > 0, PATIENCE, "it is trusted")
                wait_until(lambda: agent.metric("spool_entries") == 0, PATIENCE, "all are sent")
                agent.stop()
                assert before() + renewed.total() == agent.recorded()


def test_check_refuses_what_shows_a_secret(tmp_path):
    config = tmp_path / "agent.yaml"
    config.write_text("output: {engine: otlp, url: https://h, headers: ['Authorization: s3cret']}\n")
    done = run("agent", "--check", "--config", config)
    assert done.returncode == 2 and "output.headers: must not contain secrets" in done.stderr
    assert "s3cret" not in done.stderr
