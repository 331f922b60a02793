#!/bin/sh
# Runs every check of this project on the last commit, in parts, and prints a table of them.
#
#   tests/verify/verify.sh BUILD [PART …]     (make verify, make verify PART='check torture')
#
# Without parts: those that have not passed on this commit, the one whose last run is oldest first.
#
# BUDGET    no part begins that, by its expected time, would end later than this: 90s, 120m or 3h
# TABLE=1   prints the table and runs nothing
# REQUIRE=1 prints the table; exit 1 unless every part has passed on this commit (make release)
#
# A part runs in a clone of the commit, BUILD/verify/tree, without a terminal. Its output is
# BUILD/verify/PART.log, its result a line of BUILD/verify/record.tsv, which keeps all results.
# Parts that are stopped have no line and run again. Parts are listed in tests/verify/parts.txt.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1/verify"
folder=$(cd "$1/verify" && pwd)
shift
cd "$here"
list=$here/tests/verify/parts.txt
record=$folder/record.tsv
tab=$(printf '\t')
[ -s "$record" ] || printf 'part\tcommit\tmachine\twhen\texit\tpassed\tfailed\tskipped\tseconds\n' > "$record"
commit=$(git rev-parse HEAD)
parts=$(sed -n 's/^\([a-z][a-z-]*\) .*/\1/p' "$list")

# The last result of a part on this commit, or on any (WHERE = any): its line of the record.
last() { # PART [any]
  awk -F "$tab" -v part="$1" -v commit="$commit" -v any="${2:-}" \
    '$1 == part && (any != "" || $2 == commit) {line = $0} END {if (line != "") print line}' "$record"
}
field() { printf '%s\n' "$1" | cut -f "$2"; }

print_table() {
  printf '%-14s %-9s %-22s %-16s %7s %7s %7s %8s  %s\n' part commit machine when passed failed skipped seconds result
  for p in $parts; do
    line=$(last "$p")
    if [ -z "$line" ]; then
      line=$(last "$p" any)
      if [ -n "$line" ]; then earlier="not run on this commit (last on $(field "$line" 2 | cut -c 1-9))"; else earlier="not run"; fi
      printf '%-14s %-9s %-22s %-16s %7s %7s %7s %8s  %s\n' "$p" - - - - - - - "$earlier"
      continue
    fi
    result=passed
    [ "$(field "$line" 5)" = 0 ] || result="FAILED: $folder/$p.log"
    printf '%-14s %-9s %-22s %-16s %7s %7s %7s %8s  %s\n' "$p" "$(field "$line" 2 | cut -c 1-9)" "$(field "$line" 3 | cut -c 1-22)" \
      "$(field "$line" 4)" "$(field "$line" 6)" "$(field "$line" 7)" "$(field "$line" 8)" "$(field "$line" 9)" "$result"
  done
}
missing() { # parts that have not passed on this commit
  for p in $parts; do
    line=$(last "$p")
    [ -n "$line" ] && [ "$(field "$line" 5)" = 0 ] || echo "$p"
  done
}
if [ -n "${TABLE:-}" ]; then print_table; exit 0; fi
if [ -n "${REQUIRE:-}" ]; then
  print_table
  left=$(missing | tr '\n' ' ')
  [ -z "$left" ] || { echo "verify: not passed on $commit: $left(make verify PART='$left')" >&2; exit 1; }
  exit 0
fi

for p in "$@"; do
  printf '%s\n' "$parts" | grep -qx "$p" || { echo "verify: there is no part $p: $(echo $parts)" >&2; exit 1; }
done
if [ $# = 0 ]; then # never run first, then the oldest
  set -- $(missing | while read -r p; do
    line=$(last "$p" any)
    printf '%s\t%s\n' "${line:+$(field "$line" 4)}" "$p"
  done | sort -s -t "$tab" -k 1,1 | cut -f 2)
fi

case ${BUDGET:-} in
  '') budget=0 ;;
  *h) budget=$((${BUDGET%h} * 3600)) ;;
  *m) budget=$((${BUDGET%m} * 60)) ;;
  *s) budget=$((${BUDGET%s})) ;;
  *) echo "verify: BUDGET is 90s, 120m or 3h, not $BUDGET" >&2; exit 1 ;;
esac
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "verify: changes that are not committed are not verified"

# The clone: kept while the commit is the same, so that parts share what they built.
tree=$folder/tree
if [ "$(git -C "$tree" rev-parse HEAD 2> /dev/null || true)" != "$commit" ]; then
  rm -rf "$tree"
  git clone -q --no-checkout "$here" "$tree"
  git -C "$tree" checkout -q --detach "$commit"
fi

# What a log says of tests: CUnit's summaries, pytest's line, the torture's total, "N passed, N failed" lines.
# Parts that print none of them are one test.
counts() { # LOG EXIT
  awk -v status="$2" '
    $1 == "tests" && NF >= 6 && $2 ~ /^[0-9]+$/ {passed += $4; failed += $5; seen = 1}
    /^=* *[0-9]+ (passed|failed).* in [0-9.]+s/ || /^[a-z:]* *[0-9]+ passed, [0-9]+ failed/ {
      for (i = 2; i <= NF; i++) {
        if ($i ~ /^passed/) passed += $(i - 1)
        if ($i ~ /^failed/) failed += $(i - 1)
        if ($i ~ /^skipped/) skipped += $(i - 1)
      }
      seen = 1
    }
    $1 == "all" && $6 == "seed" {passed += $2 - $3 - $4; failed += $3; skipped += $4; seen = 1}
    /^skipped: [0-9]+ of [0-9]+/ {skipped += $2}
    END {
      if (!seen) {passed = status == 0; failed = status != 0}
      printf "%d\t%d\t%d", passed, failed, skipped
    }' "$1"
}

begun=$(date +%s)
failures=0
for p in "$@"; do
  expected=$(sed -n "s/^$p  *\([0-9]*\) .*/\1/p" "$list")
  spent=$(($(date +%s) - begun))
  if [ $budget -gt 0 ] && [ $((spent + expected)) -gt $budget ]; then
    echo "verify: $p is left for later: it takes about $((expected / 60 + 1)) minutes, $(((budget - spent) / 60)) are left"
    continue
  fi
  command=$(sed -n "s/^$p  *[0-9]*  *//p" "$list")
  printf 'verify: %-14s about %d minutes: %s\n' "$p" $((expected / 60 + 1)) "$command"
  from=$(date +%s)
  status=0
  (cd "$tree" && unset MAKEFLAGS MFLAGS MAKELEVEL && sh -c "$command") > "$folder/$p.log" 2>&1 < /dev/null || status=$?
  [ "$status" -le 128 ] || { echo "verify: $p was stopped by signal $((status - 128))" >&2; exit 1; }
  seconds=$(($(date +%s) - from))
  printf '%s\t%s\t%s\t%s\t%d\t%s\t%d\n' "$p" "$commit" "$(. /etc/os-release; echo "$ID ${VERSION_ID:-} $(nproc) cores")" \
    "$(date -u '+%Y-%m-%d %H:%M')" "$status" "$(counts "$folder/$p.log" $status)" "$seconds" >> "$record"
  if [ $status != 0 ]; then
    failures=$((failures + 1))
    echo "verify: $p FAILED (exit $status), the end of $folder/$p.log:"
    tail -15 "$folder/$p.log" | sed 's/^/  /'
  fi
done
print_table
[ $failures = 0 ]
