#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# root.sh PROGRAM ROOT [COPYRIGHTS]: makes the root of an image of a built pyebpf. In it: the program
# without debug information, the libraries of this machine that it is linked with, what is known of
# terminals, the certificates of public authorities, and the licenses of all that. No shell, no package
# manager. COPYRIGHTS: of the libraries within a static program (deploy/release/copyrights.py). STRIP: the
# tool (strip).
set -eu

program=$1 root=$2 copyrights=${3:-}
top=$(cd "$(dirname "$0")/../.." && pwd)
authorities=/etc/ssl/certs/ca-certificates.crt

fail() {
	echo "root.sh: $*" >&2
	exit 1
}

# Paths of what the loader maps for the program, itself included.
libraries() {
	readelf -lW "$program" >"$work/headers" || fail "$program: not a program"
	grep -q INTERP "$work/headers" || return 0 # all of it is within
	ldd "$program" >"$work/ldd" || fail "$program: ldd cannot read it"
	if grep 'not found' "$work/ldd" >&2; then
		fail "$program: a library is missing"
	fi
	awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }' "$work/ldd"
}

# What packages ask of those who hand their libraries on; libraries of no package ask nothing.
add_copyrights() {
	sed p "$1" | sed '1~2s|^|/usr|' | xargs -r dpkg-query -S 2>/dev/null | cut -d: -f1 | sort -u >"$work/packages"
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

[ -r "$authorities" ] || fail "no $authorities: install ca-certificates"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$root/etc" "$root/var/lib"
mkdir -m 1777 "$root/tmp"
mkdir -m 700 "$root/var/lib/pyebpf"
install -D -s --strip-program="${STRIP:-strip}" "$program" "$root/usr/bin/pyebpf"
libraries >"$work/libraries"
while read -r library; do
	install -D "$library" "$root$library"
done <"$work/libraries"
add_copyrights "$work/libraries"
[ -z "$copyrights" ] || install -D -m 644 -t "$root/usr/share/doc/pyebpf/copyrights" "$copyrights"/*
add_terminals
install -D -m 644 "$authorities" "$root$authorities"
install -D -m 644 -t "$root/etc/pyebpf" "$top/deploy/agent.yaml"
install -D -m 644 -t "$root/usr/share/doc/pyebpf" "$top/LICENSE" "$top"/LICENSES/*
echo "hosts: files dns" >"$root/etc/nsswitch.conf"
