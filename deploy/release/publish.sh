#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# publish.sh [--dry-run] FOLDER TARGET...: hands on what release.sh left in FOLDER. For a CI elsewhere:
# deploy/ci/release.yml. Checksums and the version are looked at before anything leaves; --dry-run says
# what would be run. TARGET, each with the rights that its tool takes from the environment:
#
#   github           a release of tag vVERSION with all files: gh, GH_TOKEN
#   pypi             the wheels: twine, TWINE_USERNAME and TWINE_PASSWORD, or TWINE_REPOSITORY_URL
#   image=NAME       the image of all architectures, as NAME:VERSION: skopeo, `skopeo login`
set -eu

fail() {
	echo "publish.sh: $1" >&2
	[ -z "${2:-}" ] || echo "try: $2" >&2
	exit 1
}

usage() {
	sed -n 's/^# \{0,1\}//; /^publish.sh/,/^set -eu/p' "$0" | grep -v '^set' >&2
	exit 2
}

run=
if [ "${1:-}" = --dry-run ]; then
	run=echo
	shift
fi
[ $# -ge 2 ] || usage
folder=$1
shift

need() {
	[ -n "$run" ] || command -v "$1" >/dev/null || fail "$1 is not installed" "$2"
}

# All is looked at before anything leaves.
for target; do
	case $target in
	github) need gh "apt-get install gh" ;;
	pypi) need twine "python3 -m pip install twine" ;;
	image=?*) need skopeo "apt-get install skopeo" ;;
	*) usage ;;
	esac
done
[ -f "$folder/SHA256SUMS" ] || fail "$folder: no SHA256SUMS" "make release"
(cd "$folder" && sha256sum --check --strict --quiet SHA256SUMS) ||
	fail "$folder: not what release.sh left there" "make release"
image=$(cd "$folder" && ls pyebpf-*-linux.oci.tar)
version=${image#pyebpf-}
version=${version%-linux.oci.tar}
tag=$(git -C "$(dirname "$0")" describe --exact-match --tags 2>/dev/null || true)
[ -n "$run" ] || [ "$tag" = "v$version" ] ||
	fail "the files are of version $version, but this commit has ${tag:-no tag}" "git tag v$version"

for target; do
	case $target in
	github)
		$run gh release create "v$version" --verify-tag --title "pyebpf $version" \
			--notes-file "$(dirname "$0")/../../CHANGELOG.md" "$folder"/*
		;;
	pypi) $run twine upload --non-interactive "$folder"/*.whl ;;
	image=*) $run skopeo copy --all "oci-archive:$folder/$image:pyebpf:$version" "docker://${target#image=}:$version" ;;
	esac
done
