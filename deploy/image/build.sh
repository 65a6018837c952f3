#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# build.sh PROGRAM NAME: makes the image NAME:VERSION of a pyebpf that was built on this machine, by podman
# or docker, from the root that root.sh makes. Releases have one for all architectures:
# deploy/release/oci.py.
set -eu

program=$1 name=$2
here=$(cd "$(dirname "$0")" && pwd)

tool=$(command -v podman || command -v docker) || {
	echo "build.sh: no podman and no docker: install one" >&2
	exit 1
}
version=$("$program" --version)
version=${version#pyebpf }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sh "$here/root.sh" "$program" "$work/root"
"$tool" build -q -f "$here/Containerfile" --build-arg VERSION="$version" -t "$name:$version" "$work/root"
echo "$name:$version: $(du -sm "$work/root" | cut -f1) MiB"
