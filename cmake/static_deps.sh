#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# static_deps.sh FOLDER: the three libraries that Debian 12 has no fit static form of (none of cJSON;
# those of libcurl and libmicrohttpd take Kerberos, LDAP and PKCS #11 along), built from Debian's own
# sources, whose signatures apt checks, into FOLDER/{include,lib}. Done once: FOLDER/done.
set -eu

folder=$1
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
[ ! -f "$folder/done" ] || exit 0

# A place of apt's own that knows the sources of what is installed here.
apt="$folder/apt"
mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache" "$folder/source"
for list in /etc/apt/sources.list.d/*.sources; do
	[ -f "$list" ] && grep -q '^Suites:.*bookworm' "$list" &&
		sed 's/^Types:.*/Types: deb-src/' "$list" > "$apt/sources/${list##*/}"
done
if [ -f /etc/apt/sources.list ]; then
	sed -n 's/^deb \(.*bookworm.*\)/deb-src \1/p' /etc/apt/sources.list > "$apt/sources/old.list"
fi
apt_get() {
	apt-get -q -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$apt/sources" \
		-o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root \
		-o Acquire::Retries=3 "$@"
}
apt_get update
for package in cjson curl libmicrohttpd; do
	[ ! -d "$folder/source/$package" ] || continue
	# The name of its folder has a version.
	mkdir -p "$folder/source/$package.part"
	(cd "$folder/source/$package.part" && apt_get source "$package" && mv "$package"-*/ ../"$package")
	rm -r "$folder/source/$package.part"
done

export CFLAGS="-O2 -g0 -fPIC -ffile-prefix-map=$folder=."
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-0}"
configure() {
	(cd "$folder/source/$1" && shift && ./configure --quiet --prefix="$folder" ${HOST:+--host=$HOST} \
		--disable-shared --enable-static --disable-dependency-tracking "$@" &&
		make -s -j"$(nproc)" && make -s install >/dev/null)
}

# The agent serves /metrics and /healthz in plain HTTP.
configure libmicrohttpd --disable-https --disable-doc --disable-examples --disable-tools \
	--disable-curl --disable-bauth --disable-dauth --disable-postprocessor
# It pushes by HTTP and HTTPS.
configure curl --with-openssl --without-zlib --without-brotli --without-zstd --without-libpsl \
	--without-libidn2 --without-nghttp2 --without-librtmp --without-libssh2 --without-gssapi \
	--disable-ldap --disable-ftp --disable-file --disable-dict --disable-telnet --disable-tftp \
	--disable-rtsp --disable-pop3 --disable-imap --disable-smb --disable-smtp --disable-gopher \
	--disable-mqtt --disable-manual --disable-docs --disable-libcurl-option --disable-ntlm \
	--with-ca-fallback --without-ca-bundle --without-ca-path

# shellcheck disable=SC2086 # a list of words
(cd "$folder/source/cjson" && ${CC:-gcc} $CFLAGS -c cJSON.c -o cJSON.o && rm -f "$folder/lib/libcjson.a" &&
	${AR:-ar} rcsD "$folder/lib/libcjson.a" cJSON.o && mkdir -p "$folder/include/cjson" &&
	cp cJSON.h "$folder/include/cjson/")
version=$(sed -n 's/^#define CJSON_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$folder/include/cjson/cJSON.h" | paste -sd.)
cat > "$folder/lib/pkgconfig/libcjson.pc" << PC
Name: libcjson
Description: JSON
Version: $version
Libs: -L$folder/lib -lcjson
Cflags: -I$folder/include -I$folder/include/cjson
PC
touch "$folder/done"
