#!/bin/sh
# Holds tests/verify/verify.sh and release.sh to what they promise, in a repository of small parts.
#
#   tests/verify/check.sh       (make check-verify)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "verify: $*"; [ ! -f "$work/said" ] || sed 's/^/  /' "$work/said"; exit 1; }
mkdir -p "$work/r/tests/verify"
cd "$work/r"
cp "$here/verify.sh" "$here/release.sh" tests/verify/
cat > tests/verify/parts.txt <<'PARTS'
# NAME SECONDS COMMAND
good        30 test -z "${BUILD:-}" || exit 1; echo good >> ran; echo '               tests     12     12     12      0        0'; echo 'skipped: 2 of 12: a (no GPU), b (no GPU)'
bad         30 echo '  3 passed, 1 failed'; test -f mended
none        30 echo 'skipped: 1 of 1: no such program'
slow      3600 echo $$ > "$MARK"; sleep 60 & wait; echo over
crash       30 kill -SEGV $$
quiet       30 echo '= 5 passed, 1 failed, 2 skipped in 0.25s ='; echo changed > VERSION
PARTS
echo 0.9.0 > VERSION
echo '## 0.9.0 (2020-01-01)' > CHANGELOG.md
echo 'version: 0.9.0' > CITATION.cff
git init -q .
git config user.name a && git config user.email a@b.c # machines without an identity commit and tag nothing
commit() { git add -A && git commit -qm "$1"; }
commit first
export MARK="$work/mark"
verify() { BUILD="$work/b" tests/verify/verify.sh "$work/b" "$@" > "$work/said" 2>&1; }
row() { # PART TEXT: the table's line of a part, blanks made one
  TABLE=1 tests/verify/verify.sh "$work/b" | tr -s ' ' | grep "^$1 " | grep -q -e "$2" || {
    TABLE=1 tests/verify/verify.sh "$work/b" > "$work/said"; fail "the table says of $1 another thing than $2"; }
}

# Results and exit codes.
row good 'not run$'
verify good || fail "a part that passes fails"
row good ' 10 0 2 [0-9]* passed; skipped: no GPU$'
! verify bad || fail "a part that fails gives exit 0"
row bad ' 3 1 0 [0-9]* FAILED: '
verify none || fail "a skipped part is an error"
row none ' 0 0 1 [0-9]* skipped: no such program$'
! verify crash good || fail "a part that crashes gives exit 0"
row crash FAILED
! verify quiet || fail "failures that the exit code does not have are lost"
row quiet ' 5 1 2 [0-9]* FAILED'
verify good || fail "what a part changed in the clone stays"
! verify another || fail "a part that there is not is accepted"
grep -q 'there is no part another: good bad none slow crash quiet' "$work/said" || fail "an unknown part is not named"
for budget in 5 h 1x 2.5h -1m 0x5m; do
  ! BUDGET=$budget verify good || fail "BUDGET=$budget is accepted"
done

# Without parts: what has not passed; within the budget.
rm -f "$work/b/verify/tree/ran"
! BUDGET=10m verify || fail "the parts that fail are left out"
[ ! -f "$work/b/verify/tree/ran" ] || fail "a part that passed runs again"
grep -q 'slow is left for later' "$work/said" || fail "the budget has no say"

# Stopped half way: no line, nothing left running, and it runs again; one at a time.
started() { i=0; while [ ! -s "$MARK" ]; do i=$((i + 1)); [ $i -lt 200 ] || fail "a part does not begin"; sleep 0.05; done; }
# Waits until no process of the session runs; from /proc, because an empty Debian has no ps.
runs() { cat /proc/[0-9]*/stat 2> /dev/null | awk -v session="$1" '{ sub(/.*\) /, ""); if ($4 == session && $1 != "Z") found = 1 } END { exit !found }'; }
gone() { i=0; while runs "$1"; do i=$((i + 1)); [ $i -lt 200 ] || return 1; sleep 0.05; done; }
session() { cat "$MARK"; }
lines=$(wc -l < "$work/b/verify/record.tsv")
tests/verify/verify.sh "$work/b" slow > "$work/slow" 2>&1 & pid=$!
started; s=$(session)
! verify good || fail "two run at once"
grep -q 'another make verify' "$work/said" || fail "the second does not say why it is refused"
kill -TERM $pid
wait $pid && fail "a stopped verification gives exit 0"
gone "$s" || fail "a stopped part goes on"
[ "$(wc -l < "$work/b/verify/record.tsv")" = "$lines" ] || fail "a stopped part has a line"
rm "$MARK"
tests/verify/verify.sh "$work/b" slow > "$work/slow" 2>&1 & pid=$!
started; s=$(session)
kill -KILL $pid
wait $pid 2> /dev/null || true
! verify good || fail "the clone of a part that still runs is used"
kill -TERM -"$s"
gone "$s" || fail "a part does not end"
verify good || fail "after a kill nothing runs any more"
row slow 'not run$'

# A clone that was not finished is made anew.
rm -rf "$work/b/verify/tree/tests" "$work/b/verify/tree/VERSION"
verify good || fail "a damaged clone is used"

# Another commit: nothing has passed on it, and releases are refused until everything has.
sed -i '/^slow/d; /^crash/d; /^quiet/d' tests/verify/parts.txt
touch mended && sed -i "s/ 3 passed, 1 failed/ 4 passed, 0 failed/" tests/verify/parts.txt
commit second
row good 'not run on this commit (last on .*: passed)'
row bad 'not run on this commit (last on .*: FAILED)'
release() { WITHOUT="${1:-}" tests/verify/release.sh "$work/b" > "$work/said" 2>&1; }
! release || fail "a release without any part is made"
grep -q 'not passed on .*: good bad none (make verify PART' "$work/said" || fail "the missing parts are not named"
verify || fail "the second commit does not pass"
! release || fail "a release with a skipped part is made"
grep -q 'not passed on .*: none (make' "$work/said" || fail "the skipped part is not named"
! release another || fail "WITHOUT accepts what is no part"
echo >> VERSION
! release none || fail "a release with changes is made"
git checkout -q VERSION
release none || fail "a release that has all is refused"
git rev-parse -q --verify refs/tags/v0.9.0 > /dev/null || fail "the release has no tag"
! release none || fail "a second release of the version is made"
echo 0.9.1-dev > VERSION
commit third
! release none || fail "a development version is released"
echo "verify: results, budget, interruptions and releases as promised"
