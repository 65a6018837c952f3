#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Records a benchmark before and after a change, compares, and tells the pull request.
#
#   pyebpf-gate.sh run    BASE_TREE HEAD_TREE COMMAND   both sides now, in turns, on this machine
#   pyebpf-gate.sh record DIR COMMAND                   one side: DIR/run-1.pyebpf, ...
#   pyebpf-gate.sh check  BASE_DIR HEAD_DIR             compares what was recorded
#   pyebpf-gate.sh comment REPORT.md NUMBER             the report as a comment on a pull request
#
# COMMAND is one line for sh, run in the tree. What it takes from the environment:
#
#   PYEBPF            the program (pyebpf)
#   PYEBPF_RUNS       recordings a side (10)
#   PYEBPF_FREQ       samples a second (999)
#   PYEBPF_THRESHOLD  slower by more than this fails (10%)
#   PYEBPF_FLOOR      ... if it costs more than this of the whole (0.5%)
#   PYEBPF_SETUP      a line for sh, run once in each tree first: builds, dependencies
#   PYEBPF_OPTIONS    further options of `pyebpf diff`, divided by spaces: --group-by test_*
#   PYEBPF_OUT        where recordings and reports go (pyebpf-gate)
#   PYEBPF_STRICT     1: inconclusive fails too
#
# Exit codes: those of `pyebpf diff --gate`: 0 pass, 5 regression, 6 inconclusive (0 unless
# PYEBPF_STRICT is 1, with a warning); others: it could not be told, the message says why.
set -euf

program=${PYEBPF:-pyebpf}
runs=${PYEBPF_RUNS:-10}
freq=${PYEBPF_FREQ:-999}
out=${PYEBPF_OUT:-pyebpf-gate}

fail() {
	printf 'pyebpf-gate: %s\n' "$1" >&2
	exit "${2:-2}"
}

usage() {
	sed -n 's/^#   \(pyebpf-gate.sh .*\)/usage: \1/p' "$0" >&2
	exit 2
}

absolute() {
	case $1 in
	/*) printf '%s\n' "$1" ;;
	*) printf '%s/%s\n' "$PWD" "$1" ;;
	esac
}

# One recording: TREE FILE COMMAND. Whatever COMMAND prints goes to FILE.log.
record_once() {
	status=0
	(cd "$1" && exec "$program" record -F "$freq" -o "$2" -- sh -c "$3") >"$2.log" 2>&1 ||
		status=$?
	if [ "$status" -ne 0 ] || [ ! -s "$2" ]; then
		tail -n 20 "$2.log" >&2
		fail "'$3' in $1 ended with $status: nothing to compare" 1
	fi
	# a run without samples would be taken for one that cost nothing
	"$program" report "$2" >/dev/null 2>>"$2.log" || {
		tail -n 20 "$2.log" >&2
		fail "'$3' in $1 has no samples of Python code: nothing to compare" 1
	}
}

prepare() { # TREE DIR
	mkdir -p "$2"
	if [ -n "${PYEBPF_SETUP:-}" ]; then
		(cd "$1" && sh -c "$PYEBPF_SETUP") >"$2/setup.log" 2>&1 || {
			tail -n 20 "$2/setup.log" >&2
			fail "'$PYEBPF_SETUP' failed in $1" 1
		}
	fi
}

# In turns, so that a machine that becomes slower or faster meanwhile does so for both.
run_both() { # BASE_TREE HEAD_TREE COMMAND
	base=$(absolute "$out/base") head=$(absolute "$out/head")
	prepare "$1" "$base"
	prepare "$2" "$head"
	i=1
	while [ "$i" -le "$runs" ]; do
		record_once "$1" "$base/run-$i.pyebpf" "$3"
		record_once "$2" "$head/run-$i.pyebpf" "$3"
		i=$((i + 1))
	done
	check "$base" "$head"
}

record_side() { # DIR COMMAND
	side=$(absolute "$1")
	prepare . "$side"
	i=1
	while [ "$i" -le "$runs" ]; do
		record_once . "$side/run-$i.pyebpf" "$2"
		i=$((i + 1))
	done
}

# Numbered from 1 without a gap; nothing else in the folder counts.
count_runs() {
	count=0
	while [ -s "$1/run-$((count + 1)).pyebpf" ]; do
		count=$((count + 1))
	done
	echo "$count"
}

check() { # BASE_DIR HEAD_DIR
	bases=$(count_runs "$1") heads=$(count_runs "$2")
	if [ "$bases" -eq 0 ]; then
		echo "pyebpf-gate: no baseline in $1 yet: nothing to compare with" >&2
		return 0
	fi
	[ "$heads" -gt 0 ] || fail "no recordings in $2" 1
	mkdir -p "$out"
	threshold=${PYEBPF_THRESHOLD:-10%} floor=${PYEBPF_FLOOR:-0.5%}
	base_dir=$1 head_dir=$2
	set -- "$base_dir/run-1.pyebpf"
	i=1
	while [ "$i" -le "$heads" ]; do
		set -- "$@" "$head_dir/run-$i.pyebpf"
		i=$((i + 1))
	done
	i=2
	while [ "$i" -le "$bases" ]; do
		set -- "$@" --baseline "$base_dir/run-$i.pyebpf"
		i=$((i + 1))
	done
	status=0
	# shellcheck disable=SC2086 # options are words; set -f keeps their globs
	"$program" diff "$@" --gate --threshold "$threshold" --floor "$floor" \
		-o "$out/report.md" -o "$out/report.json" -o "$out/report.xml" \
		${PYEBPF_OPTIONS:-} || status=$?
	[ -z "${GITHUB_STEP_SUMMARY:-}" ] || [ ! -s "$out/report.md" ] ||
		cat "$out/report.md" >>"$GITHUB_STEP_SUMMARY"
	if [ "$status" -eq 6 ] && [ "${PYEBPF_STRICT:-0}" != 1 ]; then
		echo "pyebpf-gate: inconclusive: more runs would tell (PYEBPF_RUNS=$((runs * 2)))" >&2
		status=0
	fi
	return "$status"
}

# Updates the comment that an earlier run left, else writes one. By `gh`, as GitHub's runners have
# it; needs GH_TOKEN with permission to write to pull requests, and GITHUB_REPOSITORY.
comment() { # REPORT NUMBER
	[ -s "$1" ] || fail "$1: no report"
	marker=$(sed -n '1s/^\(<!-- pyebpf-diff[^>]*-->\).*/\1/p' "$1")
	[ -n "$marker" ] || fail "$1: not written by pyebpf diff"
	old=$(gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$2/comments" \
		--jq ".[] | select(.body | startswith(\"$marker\")) | .id" | head -n 1)
	if [ -n "$old" ]; then
		gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$old" -F "body=@$1"
	else
		gh api --method POST "repos/$GITHUB_REPOSITORY/issues/$2/comments" -F "body=@$1"
	fi >/dev/null
}

case "$#:${1:-}" in
4:run) run_both "$2" "$3" "$4" ;;
3:record) record_side "$2" "$3" ;;
3:check) check "$2" "$3" ;;
3:comment) comment "$2" "$3" ;;
*) usage ;;
esac
