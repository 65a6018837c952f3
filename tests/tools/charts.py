#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The plain Kubernetes manifests are what Helm makes of the chart: `make manifests` writes them.

Helm, and a judge of manifests made of Kubernetes' own code (manifests/main.go), are built from the
Go module proxy, once, below ${XDG_CACHE_HOME:-~/.cache}/pyebpf: that takes Go 1.25, some minutes of
one CPU, and 140 MB.
"""
import glob
import hashlib
import os
import re
import subprocess
import sys

import engines
import pythons

HELM = "v3.21.4"
KUBERNETES = "1.35.0"  # whose API the chart is rendered for
HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
CHART = os.path.join(REPOSITORY, "deploy/helm/pyebpf")
DAEMONSET = os.path.join(REPOSITORY, "deploy/kubernetes/daemonset.yaml")
HEAD = """\
# Made from deploy/helm/pyebpf by `make manifests`: change that, not this. Where it differs for you,
# beginning with the image's name and the engine's URL, edit your copy. Later give an edited ConfigMap
# another name, here and in the DaemonSet: it is immutable, so that nodes get it one after another.
# digest: %s
"""
# What is Helm's own business.
HELMS = re.compile(r"^ *(# Source: .*|app\.kubernetes\.io/managed-by: .*|helm\.sh/chart: .*)\n", re.M)


class Refused(Exception):
    """What a tool says of the chart or a manifest."""


def provided(name, revision, build):
    """The path of a program; build(go command, its path) makes it if it is not there."""
    folder = os.path.join(os.path.dirname(pythons.cache_dir()), name)
    with pythons.provided_folder(folder, revision) as new:
        if new:
            build(engines.go(), os.path.join(new, name))
    return os.path.join(folder, name)


def helm():
    """Raises pythons.Unavailable."""
    def build(go, path):
        pythons.run([go, "install", "helm.sh/helm/v3/cmd/helm@" + HELM], "building Helm",
                    env=dict(os.environ, GOBIN=os.path.dirname(path)))
    return provided("helm", HELM, build)


def digest_of(paths):
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as f:
            digest.update(f.read())
    return digest.hexdigest()


def judge():
    """Raises pythons.Unavailable."""
    source = os.path.join(HERE, "manifests")

    def build(go, path):
        pythons.run([go, "build", "-o", path, "."], "building the judge of manifests", cwd=source)
    return provided("manifests", digest_of(sorted(glob.glob(source + "/*"))), build)


def call(command, text=""):
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode:
        raise Refused(done.stderr)
    return done.stdout


def lint():
    return call([helm(), "lint", "--strict", CHART])


def render(*settings):
    """The manifests that `helm install pyebpf -n pyebpf --set SETTING...` would apply."""
    return call([helm(), "template", "pyebpf", CHART, "-n", "pyebpf", "--kube-version", KUBERNETES,
                 *(word for setting in settings for word in ("--set", setting))])


def judged(text):
    """Names of the documents, all of which are valid."""
    return call([judge()], text).split()


def digest(body):
    """Of a plain manifest and all that it was made from: neither changes alone."""
    sources = sorted(path for path in glob.glob(CHART + "/**", recursive=True) if os.path.isfile(path))
    return hashlib.sha256((digest_of(sources) + body).encode()).hexdigest()


def plain():
    """deploy/kubernetes/daemonset.yaml, as it has to be."""
    body = HELMS.sub("", render("namespace.create=true")).removeprefix("---\n")
    return HEAD % digest(body) + body


def main():
    try:
        text = plain()
    except (Refused, pythons.Unavailable) as error:
        sys.exit("charts: %s" % error)
    with open(DAEMONSET, "w", encoding="utf-8") as f:
        f.write(text)


if __name__ == "__main__":
    main()
