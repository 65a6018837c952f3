#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What Grafana Pyroscope gives for download, and what it says of it itself.

    pyroscope.py PROFILECLI [URL]    writes pyroscope-cpu.pb.gz and its report beside this file

Gives the Pyroscope at URL, http://localhost:4040, the profile of a Go program that is kept here, and
downloads it. Neither it nor its profilecli is a package: both are built of its sources by `go build`.
"""
import collections
import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "pyroscope-cpu.pb.gz"
KIND = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
PATIENCE_SECONDS = 120


def own_of(flamebearer):
    """{function: ns} of rows of boxes, each of (what is left of it, total, own, name)."""
    own = collections.Counter()
    for level in flamebearer["levels"]:
        for at in range(0, len(level), 4):
            own[flamebearer["names"][level[at + 3]]] += level[at + 2]
    return {name: ns for name, ns in own.items() if ns}


def rendered(url, selector, begin):
    query = urllib.parse.urlencode({"query": KIND + selector, "from": int(begin - 60) * 1000,
                                    "until": int(time.time() + 60) * 1000, "max-nodes": 100000})
    with urllib.request.urlopen("%s/pyroscope/render?%s" % (url, query)) as answer:
        return own_of(json.load(answer)["flamebearer"])


def main(profilecli, url="http://localhost:4040"):
    begin, service = time.time(), "kept-%d" % time.time()
    selector = '{service_name="%s"}' % service
    subprocess.run([profilecli, "upload", "--url", url, "--override-timestamp", "--extra-labels",
                    "service_name=" + service, os.path.join(HERE, "go-cpu.pb.gz")], check=True)
    while not (own := rendered(url, selector, begin)):
        if time.time() > begin + PATIENCE_SECONDS:
            sys.exit("pyroscope.py: it does not show what was uploaded")
        time.sleep(1)
    subprocess.run([profilecli, "query", "profile", "--url", url, "--query", selector, "--profile-type",
                    KIND, "--max-nodes", "100000", "--force", "--output",
                    "pprof=" + os.path.join(HERE, NAME)], check=True)
    path = os.path.join(HERE, "reports.json")
    with open(path, encoding="utf-8") as file:
        reports = json.load(file)
    reports[NAME] = {"cpu": own}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(reports, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
