#!/bin/sh
# Shows that additions stay small. Every tests/extend/NAME.patch begins with a line "Limit: N files";
# it is applied to a copy of the tracked tree beside BUILD's objects, the files outside tests/ that it
# touches are counted, the copy is built, and tests/extend/NAME.sh runs there with $GEPOLAB set to the
# new binary.
#
#   tests/extend/check.sh BUILD [NAME ...]
set -eu
build=$1
shift
here=$(pwd)
[ $# -gt 0 ] || set -- $(ls tests/extend/*.patch | sed 's#.*/##; s/\.patch$//')
failed=0
passed=0
for name; do
  copy=build-extend/$name
  rm -rf "$copy" && mkdir -p "$copy"
  git ls-files -z | xargs -0 cp --parents -pt "$copy" 2> /dev/null || true
  mkdir -p "$copy/build" && cp -rp "$build/." "$copy/build/"
  limit=$(sed -n '1s/^Limit: \([0-9]*\) files$/\1/p' "tests/extend/$name.patch")
  [ -n "$limit" ] || { echo "$name: the first line of its patch is not \"Limit: N files\""; failed=1; continue; }
  touched=$(grep '^diff --git' "tests/extend/$name.patch" | sed 's#.* b/##' | grep -v '^tests/')
  n=$(echo "$touched" | wc -l)
  if ! (cd "$copy" && patch -p1 --quiet --no-backup-if-mismatch) < "tests/extend/$name.patch"; then
    echo "$name: the patch does not apply"; failed=1; continue; fi
  if ! make -C "$copy" --no-print-directory -j"$(nproc)" CUDA=0 build/gepolab > "$copy/extend.log" 2>&1; then
    tail -20 "$copy/extend.log"; echo "$name: does not build"; failed=1; continue; fi
  if ! (cd "$copy" && GEPOLAB="$PWD/build/gepolab" sh "$here/tests/extend/$name.sh") > "$copy/run.log" 2>&1; then
    tail -20 "$copy/run.log"; echo "$name: tests/extend/$name.sh fails"; failed=1; continue; fi
  if [ "$n" -gt "$limit" ]; then echo "$name: touches $n files, more than $limit"; failed=1; fi
  printf '%-12s %d of at most %d files: %s\n' "$name" "$n" "$limit" "$(echo $touched)"
  [ "$n" -gt "$limit" ] || passed=$((passed + 1))
  rm -rf "$copy"
done
echo "extend: $passed passed, $(($# - passed)) failed"
exit $failed
