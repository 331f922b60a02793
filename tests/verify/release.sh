#!/bin/sh
# Tags the last commit with its version, after everything that a release needs is true of it.
#
#   tests/verify/release.sh BUILD       (make release)
set -eu
build=$1
cd "$(dirname "$0")/../.."
version=$(cat VERSION)
fail() { echo "release: $*" >&2; exit 1; }
case $version in
  *-*) fail "VERSION is $version: a release has no suffix" ;;
esac
[ -z "$(git status --porcelain --untracked-files=no)" ] || fail "commit or remove your changes first"
grep -q "^## $version " CHANGELOG.md || fail "CHANGELOG.md has no section '## $version (date)'"
grep -q "^version: $version\$" CITATION.cff || fail "CITATION.cff does not say 'version: $version'"
! git rev-parse -q --verify "refs/tags/v$version" > /dev/null || fail "there is a tag v$version already"
REQUIRE=1 tests/verify/verify.sh "$build"
git tag -a "v$version" -m "gepolab $version"
echo "release: v$version is tagged: git push origin v$version"
