#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# arm64_sysroot.sh FOLDER PACKAGE...: Debian 12's arm64 packages and all they depend on, unpacked in
# FOLDER/root: what a cross compiler needs for headers and libraries. Nothing is installed, apt checks
# signatures. Which package each .a is of: FOLDER/packages. Done once for a list of packages: FOLDER/done.
set -eu

folder=$1
shift
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ "$(cat "$folder/done" 2>/dev/null)" != "$*" ] || [ ! -f "$folder/packages" ] || exit 0

# A place of apt's own, where nothing is installed and the architecture is another one.
apt="$folder/apt"
rm -rf "$apt" "$folder/root" "$folder/done"
mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache/archives/partial" "$folder/root"
: > "$apt/status"
for list in /etc/apt/sources.list.d/*.sources; do
	[ -f "$list" ] && grep -q '^Suites:.*bookworm' "$list" &&
		sed '/^Architectures:/d' "$list" > "$apt/sources/${list##*/}"
done
if [ -f /etc/apt/sources.list ]; then
	sed -n '/^deb .*bookworm/p' /etc/apt/sources.list > "$apt/sources/old.list"
fi
apt_get() {
	apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 \
		-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$apt/sources" \
		-o "Dir::State::Lists=$apt/lists" -o "Dir::State::status=$apt/status" \
		-o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -o Acquire::Retries=3 "$@"
}
apt_get update
apt_get install -y --download-only --no-install-recommends "$@"
for package in "$apt"/cache/archives/*.deb; do
	dpkg-deb -x "$package" "$folder/root"
	# Whose a library is: deploy/release/packages.py
	whose=$(dpkg-deb -W --showformat '${source:Package} ${source:Version} ${Package}' "$package")
	dpkg-deb --fsys-tarfile "$package" | tar -t | sed -n "s|^\./\(.*\.a\)\$|\1 $whose|p"
done > "$folder/packages"
# Links that begin at the root lead out of it.
find "$folder/root" -type l -lname '/*' | while read -r link; do
	ln -snf "$(realpath -m --relative-to="${link%/*}" "$folder/root$(readlink "$link")")" "$link"
done
rm -r "$apt"
echo "$*" > "$folder/done"
