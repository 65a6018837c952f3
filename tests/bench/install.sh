#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Puts py-spy and austin from PyPI into a virtual environment of their own, once.
#
# austin-dist 4 needs a libc of 2024 (glibc 2.38), so it is 3.7 that is compared.
# A network that is away is no failure: the bench then goes without them.
set -u

venv=${XDG_CACHE_HOME:-$HOME/.cache}/pyebpf/bench-venv

missing() {
	echo "bench: *** NOT COMPARED WITH $1: $2 ***" >&2
}

if [ ! -x "$venv/bin/python3" ]; then
	if ! python3 -m venv "$venv" >&2; then
		rm -rf "$venv"
		missing "py-spy and austin" "no virtual environment (package python3-venv)"
		exit 0
	fi
fi
for tool in "py-spy py-spy" "austin austin-dist>=3.7,<4"; do
	program=${tool%% *}
	requirement=${tool#* }
	[ -x "$venv/bin/$program" ] && continue
	"$venv/bin/python3" -m pip install -q --disable-pip-version-check "$requirement" >&2 ||
		missing "$program" "pip install $requirement failed (is the network away?)"
done
exit 0
