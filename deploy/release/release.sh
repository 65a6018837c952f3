#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# release.sh FOLDER BUILD...: leaves in FOLDER what a release is made of, from static builds, one an
# architecture: of each the program, a tarball with man pages, completions and licenses, a wheel, packages
# for Debian's and Red Hat's systems, the list of what is in the program; an image for all; checksums. The
# same source makes the same bytes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$folder"/*

pack() {
	build=$(cd "$1" && pwd)
	# Of the build: architecture; of a cross-built one what runs its programs, and the root of its libraries.
	run= strip= deps= sysroot=
	. "$build/release.env"
	# shellcheck disable=SC2086 # a list of words
	version=$($run "$build/pyebpf" --version)
	version=${version#pyebpf }
	name=pyebpf-$version-linux-$architecture

	"$strip" -o "$folder/$name" "$build/pyebpf"
	cmake --install "$build" --strip --prefix "$work/$name" >/dev/null
	tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
		-cf "$work/$name.tar" "$name"
	xz -9 -T1 -c "$work/$name.tar" >"$folder/$name.tar.xz"
	python3 -B "$here/wheel.py" "$folder/$name" "$version" "$architecture" "$build/copyrights" "$folder" >/dev/null
	for kind in DEB RPM; do
		(cd "$build" && PYEBPF_PACKAGE=$kind cpack -G "$kind" -B "$work/$kind" >"$work/$kind.log" 2>&1) || {
			cat "$work/$kind.log" >&2
			exit 1
		}
	done
	cp "$work"/DEB/*.deb "$work"/RPM/*.rpm "$folder/"
	rm -r "$work/DEB" "$work/RPM"
	python3 -B "$here/sbom.py" "$folder/$name" "$version" "$build/pyebpf.map" \
		"$deps" $sysroot >"$folder/$name.cdx.json"
	STRIP=$strip sh "$top/deploy/image/root.sh" "$build/pyebpf" "$work/root-$architecture" "$build/copyrights"
	roots="$roots $architecture=$work/root-$architecture"
}

roots=
for build; do
	pack "$build"
done
# shellcheck disable=SC2086 # a list of words
python3 -B "$here/oci.py" "$folder/pyebpf-$version-linux.oci.tar" "$version" \
	"$top/deploy/image/Containerfile" $roots
cp "$here/install.sh" "$folder/"
(cd "$folder" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
ls -l "$folder"
