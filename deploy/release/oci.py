#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes one image for several architectures, as a file: an OCI image layout in a tar archive, which
`podman load -i FILE` and `skopeo copy --all oci-archive:FILE docker://...` take.

usage: oci.py FILE VERSION CONTAINERFILE ARCHITECTURE=ROOT...

ROOT is what root.sh (deploy/image) made, ARCHITECTURE as in `uname -m`. CONTAINERFILE says how the
program is run; of it ENV, ENTRYPOINT, CMD and LABEL are read. The same bytes each time: all files are
root's and of SOURCE_DATE_EPOCH. Specification: github.com/opencontainers/image-spec 1.0.
"""
import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import sys
import tarfile

NAMES = {"x86_64": "amd64", "aarch64": "arm64"}  # of Go, which the specification takes
DATE = int(os.environ.get("SOURCE_DATE_EPOCH", 0))
CREATED = datetime.datetime.fromtimestamp(DATE, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
MEDIA = "application/vnd.oci.image."


def plain(member):
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = DATE
    return member


def archive(add):
    """The bytes of a tar archive that add() fills."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        add(tar)
    return out.getvalue()


def layer(root):
    def add(tar):
        for path in sorted(pathlib.Path(root).rglob("*")):
            tar.add(path, str(path.relative_to(root)), recursive=False, filter=plain)
    return archive(add)


def run_config(containerfile, version):
    """The image's config."""
    text = re.sub(r"\\\n", " ", pathlib.Path(containerfile).read_text()).replace("${VERSION}", version)
    lines = [line.partition(" ")[::2] for line in text.splitlines()]
    words = {name: rest for name, rest in lines}
    labels = dict(word.split("=", 1) for word in shlex.split(words["LABEL"]))
    return {"Env": shlex.split(words["ENV"]), "Entrypoint": json.loads(words["ENTRYPOINT"]),
            "Cmd": json.loads(words["CMD"]), "Labels": labels}


class Layout:
    def __init__(self):
        self.blobs = {}  # digest -> bytes

    def put(self, data, kind, **more):
        """The descriptor of data."""
        if not isinstance(data, bytes):
            data = json.dumps(data, sort_keys=True).encode()
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return dict(mediaType=MEDIA + kind, digest="sha256:" + digest, size=len(data), **more)

    def image(self, architecture, root, config):
        files = layer(root)
        about = {"architecture": NAMES[architecture], "os": "linux", "created": CREATED, "config": config,
                 "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files).hexdigest()]},
                 "history": [{"created": CREATED, "created_by": "pyebpf"}]}
        packed = self.put(gzip.compress(files, 9, mtime=0), "layer.v1.tar+gzip")
        return self.put({"schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json",
                         "config": self.put(about, "config.v1+json"), "layers": [packed]},
                        "manifest.v1+json",
                        platform={"architecture": NAMES[architecture], "os": "linux"})

    def write(self, tar, top):
        files = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}',
                 "index.json": json.dumps({"schemaVersion": 2, "manifests": [top]}).encode()}
        files.update(("blobs/sha256/" + digest, data) for digest, data in sorted(self.blobs.items()))
        for name, data in files.items():
            member = plain(tarfile.TarInfo(name))
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def main(path, version, containerfile, *roots):
    config = run_config(containerfile, version)
    layout = Layout()
    images = [layout.image(architecture, root, config)
              for architecture, root in (word.split("=", 1) for word in roots)]
    top = layout.put({"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": images},
                     "index.v1+json", annotations={"org.opencontainers.image.ref.name": "pyebpf:" + version})
    pathlib.Path(path).write_bytes(archive(lambda tar: layout.write(tar, top)))


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
