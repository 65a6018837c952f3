#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Records the bundled workload before and after a change, and prints where the time went.
# usage: demo.sh PYEBPF [SECONDS]
set -eu
pyebpf=$1
seconds=${2:-5}
here=$(dirname "$0")
python=${PYTHON:-python3}

for version in before after; do
	printf '\n== %s: %s, %s s ==\n' "$version" "$($python -V 2>&1)" "$seconds"
	"$pyebpf" record -F 999 -o "demo-$version.pyebpf" -- \
		"$python" "$here/orders.py" "$version" "$seconds"
	"$pyebpf" report --no-summary --limit 10 "demo-$version.pyebpf"
done
printf '\nnext: %s report --tree demo-after.pyebpf\n' "$pyebpf"
