#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# deps.sh PACKAGE...: installs those that are missing, on Debian 12. Elsewhere says what is needed.
set -eu

missing() {
	for package; do
		status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
		[ "$status" = installed ] || printf '%s ' "$package"
	done
}

# Other systems name things otherwise: check for the things themselves.
check_by_hand() {
	lacking=
	for tool in cmake clang gcc pkg-config protoc protoc-c python3; do
		command -v "$tool" >/dev/null || lacking="$lacking $tool"
	done
	PATH=$PATH:/usr/sbin:/sbin command -v bpftool >/dev/null || lacking="$lacking bpftool"
	for library in libbpf libelf zlib libzstd libcjson libprotobuf-c libcurl libmicrohttpd ncursesw nettle libpcre2-8 yaml-0.1 cmocka; do
		pkg-config --exists "$library" 2>/dev/null || lacking="$lacking $library"
	done
	if [ -n "$lacking" ]; then
		echo "make deps installs packages on Debian 12 only; install what is missing here:" >&2
		echo "$lacking" >&2
		echo "the Debian 12 packages, for their names: $*" >&2
		exit 1
	fi
}

system=$(. /etc/os-release 2>/dev/null && echo "${ID:-}${VERSION_ID:-}") || system=
if [ "$system" != debian12 ]; then
	check_by_hand "$@"
	exit 0
fi
needed=$(missing "$@")
[ -n "$needed" ] || exit 0

if [ "$(id -u)" = 0 ]; then
	as_root=
elif command -v sudo >/dev/null; then
	as_root=sudo
else
	echo "missing packages: $needed" >&2
	echo "try, as root: apt-get install $needed" >&2
	exit 1
fi
echo "installing: $needed"
apt_get() {
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -q "$@"
}
apt_get update
# shellcheck disable=SC2086 # a list of words
apt_get install -y --no-install-recommends $needed
