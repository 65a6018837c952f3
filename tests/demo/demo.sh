#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Records the bundled workload before and after a change, prints where the time went and what
# changed in each order handled, and leaves demo.html and demo-diff.html.
# usage: demo.sh PYEBPF [SECONDS]
set -eu
pyebpf=$1
seconds=${2:-5}
here=$(dirname "$0")
python=${PYTHON:-python3}
work=

for version in before after; do
	printf '\n== %s: %s, %s s ==\n' "$version" "$($python -V 2>&1)" "$seconds"
	said=$("$pyebpf" record -F 999 -o "demo-$version.pyebpf" -- \
		"$python" "$here/orders.py" "$version" "$seconds")
	echo "$said" # "before: 5150 orders handled"
	orders=$(echo "$said" | sed -n 's/.*: \([0-9]*\) orders handled$/\1/p')
	work=${work:+$work,}$orders
	"$pyebpf" report --no-summary --limit 10 "demo-$version.pyebpf"
done

printf '\n== what changed in each order ==\n'
"$pyebpf" diff --work "$work" -o demo-diff.html demo-before.pyebpf demo-after.pyebpf
"$pyebpf" report -o demo.html demo-after.pyebpf
printf '\nopen in a browser: file://%s/demo.html\n' "$PWD"
printf '                   file://%s/demo-diff.html\n' "$PWD"
