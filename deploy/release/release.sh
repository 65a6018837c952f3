#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# release.sh BUILD FOLDER: leaves in FOLDER what a release is made of, from a static build: the program,
# a tarball with man pages and completions, a wheel, packages for Debian's and Red Hat's systems, the list
# of what is in the program, and checksums. The same source makes the same bytes.
set -eu

build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
umask 022

# Of the build: architecture; of a cross-built one what runs its programs, and the root of its libraries.
run= strip= deps= sysroot=
. "$build/release.env"

# shellcheck disable=SC2086 # a list of words
version=$($run "$build/pyebpf" --version)
version=${version#pyebpf }
name=pyebpf-$version-linux-$architecture
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$folder"/*

"$strip" -o "$folder/$name" "$build/pyebpf"
cmake --install "$build" --strip --prefix "$work/$name" >/dev/null
tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
	-cf "$work/$name.tar" "$name"
xz -9 -T1 -c "$work/$name.tar" >"$folder/$name.tar.xz"
python3 -B "$top/deploy/release/wheel.py" "$folder/$name" "$version" "$architecture" "$folder" >/dev/null
for kind in DEB RPM; do
	(cd "$build" && PYEBPF_PACKAGE=$kind cpack -G "$kind" -B "$work/$kind" >"$work/$kind.log" 2>&1) || {
		cat "$work/$kind.log" >&2
		exit 1
	}
done
cp "$work"/DEB/*.deb "$work"/RPM/*.rpm "$folder/"
python3 -B "$top/deploy/release/sbom.py" "$folder/$name" "$version" "$build/pyebpf.map" \
	"$deps" $sysroot >"$folder/$name.cdx.json"
(cd "$folder" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
ls -l "$folder"
