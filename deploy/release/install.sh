#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# install.sh URL [FOLDER]: installs the program of a release for this machine into FOLDER
# (/usr/local/bin). URL: of the folder with the release's files, or the folder itself.
#
#   curl -fsSL URL/install.sh | sudo sh -s -- URL
#
# Nothing is installed unless its checksum is right. Exit status: 2 where the download or the command
# line is wrong, 4 where there is no program for this machine, 1 else.
set -eu

fail() {
	status=$1
	echo "install.sh: $2" >&2
	echo "try: $3" >&2
	exit "$status"
}

fetch() {
	case $url in
	*://*)
		if command -v curl >/dev/null; then
			curl -fsSL -o "$work/$1" "$url/$1" 2>"$work/said" && return
		elif command -v wget >/dev/null; then
			wget -q -O "$work/$1" "$url/$1" 2>"$work/said" && return
		else
			fail 1 "neither curl nor wget is installed" "apt-get install curl"
		fi
		;;
	*) cp "$url/$1" "$work/$1" 2>"$work/said" && return ;;
	esac
	fail 2 "$url/$1: $(tail -n 1 "$work/said" | sed 's/^\(curl\|wget\|cp\): *//')" "once more, or another URL"
}

# All of it is read before any of it runs: a script that came in half does nothing.
main() {
	[ $# = 1 ] || [ $# = 2 ] || fail 2 "usage: install.sh URL [FOLDER]" "sh install.sh . ~/bin"
	url=${1%/} folder=${2:-/usr/local/bin}
	system=$(uname -s) machine=$(uname -m)
	[ "$system" = Linux ] || fail 4 "pyebpf is for Linux, this is $system" "the machine that Python runs on"
	case $machine in
	x86_64) ;;
	aarch64 | arm64) machine=aarch64 ;;
	*) fail 4 "no program for $machine: x86_64 and aarch64 have one" "building it: README.md" ;;
	esac
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	fetch SHA256SUMS
	row=$(grep -E "^[0-9a-f]{64}  pyebpf-[^ /]*-linux-$machine\$" "$work/SHA256SUMS") ||
		fail 2 "$url/SHA256SUMS: has no program for $machine" "once more, or another URL"
	name=${row#*  }
	fetch "$name"
	echo "$row" | (cd "$work" && sha256sum -c >/dev/null 2>&1) ||
		fail 2 "$url/$name: not as its checksum says: cut short, or changed" "once more"
	{ mkdir -p "$folder" && cp "$work/$name" "$folder/.pyebpf.$$" && chmod 755 "$folder/.pyebpf.$$" &&
		mv "$folder/.pyebpf.$$" "$folder/pyebpf"; } 2>"$work/said" ||
		fail 1 "$(tail -n 1 "$work/said")" "sudo, or another folder: install.sh $url ~/.local/bin"
	echo "$folder/pyebpf: $("$folder/pyebpf" --version)"
	echo "next: $folder/pyebpf doctor"
}

main "$@"
