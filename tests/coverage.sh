#!/bin/sh
# Prints which share of lines the last run of tests in BUILD (made with --coverage) executed, by room,
# and every file below 90 %.
#
#   tests/coverage.sh BUILD
#
# GCOV: the compiler's reader of counts, gcov unless given.
set -eu
build=$1
cd "$build"
rooms=$(sed 's/#.*//' ../tests/arrows/rooms.txt | awk 'NF {print $1}' | cut -d/ -f1 | sort -u)
find $rooms -name '*.gcno' | sed 's/\.gcno$/.o/' | while read -r o; do
  if [ -f "../${o%.o}.c" ]; then echo "$build/$o"; fi
done > coverage.objects
cd ..
# gcov tells each file it meets once per object: the best count of a header that several include.
xargs ${GCOV:-gcov} -n < "$build/coverage.objects" 2> /dev/null | awk -F"'" '
  /^File / { file = $2; next }
  /^Lines executed:/ && file !~ /^\// {
    split($0, part, /[:% ]+/); n = part[5]; run = part[3] * n / 100
    if (!(file in lines) || run > ran[file]) { lines[file] = n; ran[file] = run }
    file = "/"
  }
  END { for (f in lines) printf "%s %d %.0f\n", f, lines[f], ran[f] }' | sort > "$build/coverage.files"
awk '{ room = $1; sub(/\/[^\/]*$/, "", room); n[room] += $2; r[room] += $3; N += $2; R += $3 }
  END {
    for (x in n) printf "%-22s %7d lines %6.1f %%\n", x, n[x], 100 * r[x] / n[x] | "sort"
    close("sort"); printf "%-22s %7d lines %6.1f %%\n", "all", N, 100 * R / N
  }' "$build/coverage.files"
awk '$2 > 0 && $3 < 0.9 * $2 { printf "below 90 %%: %-44s %5d lines %6.1f %%\n", $1, $2, 100 * $3 / $2 }' "$build/coverage.files"
