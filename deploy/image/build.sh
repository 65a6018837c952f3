#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# build.sh PROGRAM NAME: makes the image NAME:VERSION of a built pyebpf, by podman or docker. In it:
# the program, the libraries of this machine that it is linked with, the certificates of public
# authorities, and the licenses of all that. No shell, no package manager.
set -eu

program=$1 name=$2
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
authorities=/etc/ssl/certs/ca-certificates.crt

fail() {
	echo "build.sh: $*" >&2
	exit 1
}

# Paths of what the loader maps for the program, itself included.
libraries() {
	ldd "$program" >"$work/ldd" || fail "$program: ldd cannot read it"
	if grep 'not found' "$work/ldd" >&2; then
		fail "$program: a library is missing"
	fi
	awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' "$work/ldd"
}

# What packages ask of those who hand their libraries on; libraries of no package ask nothing.
add_copyrights() {
	sed p "$1" | sed '1~2s|^|/usr|' | xargs dpkg-query -S 2>/dev/null | cut -d: -f1 | sort -u >"$work/packages"
	while read -r package; do
		install -D -m 644 -t "$root/usr/share/doc/$package" "/usr/share/doc/$package/copyright"
	done <"$work/packages"
}

# What `top` has to know of terminals: those that people come with, as far as this machine knows them.
add_terminals() {
	for terminal in linux screen screen-256color tmux tmux-256color vt100 xterm xterm-256color; do
		first=$(printf %.1s "$terminal")
		description=/lib/terminfo/$first/$terminal
		[ ! -f "$description" ] || install -D -m 644 "$description" "$root$description"
	done
}

make_root() {
	mkdir -p "$root/etc" "$root/var/lib"
	mkdir -m 1777 "$root/tmp"
	mkdir -m 700 "$root/var/lib/pyebpf"
	install -D -s "$program" "$root/usr/bin/pyebpf"
	libraries >"$work/libraries"
	while read -r library; do
		install -D "$library" "$root$library"
	done <"$work/libraries"
	add_copyrights "$work/libraries"
	add_terminals
	install -D -m 644 "$authorities" "$root$authorities"
	install -D -m 644 -t "$root/etc/pyebpf" "$top/deploy/agent.yaml"
	install -D -m 644 -t "$root/usr/share/doc/pyebpf" "$top/LICENSE" "$top"/LICENSES/*
	echo "hosts: files dns" >"$root/etc/nsswitch.conf"
}

tool=$(command -v podman || command -v docker) || fail "no podman and no docker: install one"
[ -r "$authorities" ] || fail "no $authorities: install ca-certificates"
version=$("$program" --version)
version=${version#pyebpf }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
make_root
"$tool" build -q -f "$here/Containerfile" --build-arg VERSION="$version" -t "$name:$version" "$root"
echo "$name:$version: $(du -sm "$root" | cut -f1) MiB"
