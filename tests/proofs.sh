#!/bin/sh
# Checks that every source file of the rooms is proved by a test: by a test file at the same place
# below tests/, or by the suite that tests/proofs.txt names for it (FILE SUITE, one a line; - for a
# file that has nothing to run, with the reason behind it).
#
#   tests/proofs.sh BUILD
set -eu
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rooms=$(sed 's/#.*//' tests/arrows/rooms.txt | awk 'NF {print $1}' | cut -d/ -f1 | sort -u)
"$build/gepolab-tests" --list | grep -v '^  ' > "$work/suites"
grep -rhoE '^SUITE\("[^"]*"' tests/emulate | sed 's/.*"\(.*\)"/\1/' >> "$work/suites"
find $rooms -name '*.c' -o -name '*.cu' | sort > "$work/sources"
awk -v suites="$work/suites" -v sources="$work/sources" -v table=tests/proofs.txt '
  BEGIN {
    while ((getline line < suites) > 0) suite[line] = 1
    while ((getline line < sources) > 0) source[line] = 1
    while ((getline line < table) > 0) {
      if (line ~ /^#/ || line == "") continue
      file = line; sub(/ .*/, "", file); name = line; sub(/^[^ ]* +/, "", name)
      if (!(file in source)) { print table ": there is no " file; bad = 1 }
      else if (name !~ /^- / && !(name in suite)) { print table ": " file ": there is no suite \"" name "\""; bad = 1 }
      proof[file] = name
    }
    for (file in source) {
      test = "tests/" file; sub(/\.cu$/, ".c", test)
      if ((getline line < test) >= 0) { close(test); same++; continue }
      if (!(file in proof)) { print file ": no test file " test " and no line in " table; bad = 1 } else listed++
    }
    if (bad) exit 1
    printf "proofs: %d source files have a test file of their name, %d a suite in %s\n", same, listed, table
  }'
