#!/bin/sh
# Runs every check of this project on the last commit, in parts, and prints a table of them.
#
#   tests/verify/verify.sh BUILD [PART …]     (make verify, make verify PART='check torture')
#
# Without parts: those that have not passed on this commit, the one whose last run is oldest first.
#
# BUDGET     no part begins that, by its expected time, would end later than this: 90s, 120m or 3h
# TABLE=1    prints the table and runs nothing
# REQUIRE=1  prints the table; exit 1 unless every part has passed on this commit (make release)
# WITHOUT    parts that REQUIRE does not ask for, because what they need cannot be had: WITHOUT='bundle deb'
#
# A part runs in a clone of the commit, BUILD/verify/tree, without a terminal, in a session of its own, which ends with
# it. Its output is BUILD/verify/PART.log, its result a line of BUILD/verify/record.tsv, which keeps all results.
# A part that is stopped has no line and runs again. A part all of whose tests are skipped has not passed.
# Parts are listed in tests/verify/parts.txt.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1/verify"
folder=$(cd "$1/verify" && pwd)
shift
cd "$here"
list=$here/tests/verify/parts.txt
record=$folder/record.tsv
tab=$(printf '\t')
header="part${tab}commit${tab}machine${tab}when${tab}exit${tab}passed${tab}failed${tab}skipped${tab}seconds${tab}reason"
[ -s "$record" ] || printf '%s\n' "$header" > "$record"
commit=$(git rev-parse HEAD)
parts=$(sed -n 's/^\([a-z][a-z-]*\) .*/\1/p' "$list")

# The last result of a part on this commit, or on any (WHERE = any): its line of the record.
last() { # PART [any]
  awk -F "$tab" -v part="$1" -v commit="$commit" -v any="${2:-}" \
    '$1 == part && (any != "" || $2 == commit) {line = $0} END {if (line != "") print line}' "$record"
}
field() { printf '%s\n' "$1" | cut -f "$2"; }
# passed, FAILED or skipped, of a line of the record. Lines of an unknown form have not passed.
result() {
  printf '%s\n' "$1" | awk -F "$tab" '{
    if (NF != 10 || $5 !~ /^[0-9]+$/ || $5 > 0 || $7 > 0) print "FAILED"
    else if ($6 == 0) print "skipped"
    else print "passed"
  }'
}

print_table() {
  printf '%-10s %-9s %-21s %-16s %7s %6s %7s %7s  %s\n' part commit machine when passed failed skipped seconds result
  for p in $parts; do
    line=$(last "$p")
    if [ -z "$line" ]; then
      line=$(last "$p" any)
      earlier="not run"
      [ -z "$line" ] || earlier="not run on this commit (last on $(field "$line" 2 | cut -c 1-9), $(field "$line" 4): $(result "$line"))"
      printf '%-10s %-9s %-21s %-16s %7s %6s %7s %7s  %s\n' "$p" - - - - - - - "$earlier"
      continue
    fi
    said=$(result "$line")
    why=$(field "$line" 10)
    case $said in
      FAILED) said="FAILED: $folder/$p.log" ;;
      skipped) said="skipped: $why" ;;
      passed) [ -z "$why" ] || said="passed; skipped: $why" ;;
    esac
    printf '%-10s %-9s %-21s %-16s %7s %6s %7s %7s  %s\n' "$p" "$(field "$line" 2 | cut -c 1-9)" "$(field "$line" 3 | cut -c 1-21)" \
      "$(field "$line" 4)" "$(field "$line" 6)" "$(field "$line" 7)" "$(field "$line" 8)" "$(field "$line" 9)" "$said"
  done
}
missing() { # parts that have not passed on this commit
  for p in $parts; do
    line=$(last "$p")
    [ -n "$line" ] && [ "$(result "$line")" = passed ] || echo "$p"
  done
}
# Ends with a message where a word is no part.
require_parts() {
  for p in "$@"; do
    printf '%s\n' "$parts" | grep -qx -e "$p" || { echo "verify: there is no part $p:" $parts >&2; exit 1; }
  done
}
if [ -n "${TABLE:-}" ]; then print_table; exit 0; fi
if [ -n "${REQUIRE:-}" ]; then
  require_parts ${WITHOUT:-}
  print_table
  left=
  for p in $(missing); do
    case " ${WITHOUT:-} " in *" $p "*) ;; *) left="$left $p" ;; esac
  done
  [ -z "$left" ] || { echo "verify: not passed on $commit:$left (make verify PART='${left# }')" >&2; exit 1; }
  exit 0
fi

require_parts "$@"
case ${BUDGET:-} in
  '') budget=0 ;;
  *[!0-9]?*) budget=bad ;;
  [0-9]*h) budget=$((${BUDGET%h} * 3600)) ;;
  [0-9]*m) budget=$((${BUDGET%m} * 60)) ;;
  [0-9]*s) budget=${BUDGET%s} ;;
  *) budget=bad ;;
esac
[ "$budget" != bad ] || { echo "verify: BUDGET is 90s, 120m or 3h, not $BUDGET" >&2; exit 1; }

# One at a time. A part that goes on after its verify.sh was killed holds the lock, too: its clone is in use.
exec 9> "$folder/lock"
flock -n 9 || { echo "verify: another make verify, or a part that it left, runs in $folder/tree" >&2; exit 1; }

if [ $# = 0 ]; then # never run first, then the oldest
  set -- $(missing | while read -r p; do
    line=$(last "$p" any)
    printf '%s\t%s\n' "${line:+$(field "$line" 4)}" "$p"
  done | sort -s -t "$tab" -k 1,1 | cut -f 2)
fi
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "verify: changes that are not committed are not verified"

# The clone: kept while the commit is the same, so that parts share what they built; it has its name when it is whole.
tree=$folder/tree
if [ "$(git -C "$tree" rev-parse HEAD 2> /dev/null || true)" != "$commit" ]; then
  rm -rf "$tree" "$tree.new"
  git clone -q --no-checkout "$here" "$tree.new"
  git -C "$tree.new" checkout -q --detach "$commit"
  mv "$tree.new" "$tree"
fi

# What a log says of tests, and why some were skipped: CUnit's summaries, pytest's line, the torture's total,
# "N passed, N failed" and "skipped: N of M: why" lines. Parts that print none of them are one test.
# Skipped tests are among CUnit's passed ones.
counts() { # LOG EXIT
  awk -v status="$2" '
    function because(text) {
      if (text != "" && !(text in told)) reasons = reasons (reasons == "" ? "" : ", ") text
      told[text]
    }
    {gsub(/[\t\r]/, " ")}
    $1 == "tests" && NF >= 6 && $2 ~ /^[0-9]+$/ {passed += $4; failed += $5; seen = 1; units = 1}
    /^=* *[0-9]+ (passed|failed).* in [0-9.]+s/ || /^[a-z:]* *[0-9]+ passed, [0-9]+ failed/ {
      for (i = 2; i <= NF; i++) {
        if ($i ~ /^passed/) passed += $(i - 1)
        if ($i ~ /^failed/ || $i ~ /^error/) failed += $(i - 1)
        if ($i ~ /^skipped/) skipped += $(i - 1)
      }
      seen = 1
    }
    $1 == "all" && $6 == "seed" {passed += $2 - $3 - $4; failed += $3; skipped += $4; seen = 1}
    /^skipped: [0-9]+ of [0-9]+/ {
      skipped += $2
      if ($2 > 0) {
        text = $0
        sub(/^skipped: [0-9]+ of [0-9]+:? */, "", text)
        if ($4 + 0 > 1 && text ~ /\(.*\)/)
          while (match(text, /\([^()]*\)/)) {
            because(substr(text, RSTART + 1, RLENGTH - 2))
            text = substr(text, RSTART + RLENGTH)
          }
        else because(text)
      }
      if ($4 + 0 > 1) inside += $2
    }
    END {
      if (units) passed -= inside
      if (!seen) {passed = status == 0 && skipped == 0; failed = status != 0}
      printf "%d\t%d\t%d\t%.200s", passed < 0 ? 0 : passed, failed, skipped, reasons
    }' "$1"
}

# The part runs in a session of its own, so that all of it ends when this script is stopped, and with the signals of
# a terminal, which a shell's background programs ignore.
running=
stop() {
  trap '' INT TERM HUP
  [ -z "$running" ] || { kill -TERM -"$running" 2> /dev/null || true; wait "$running" 2> /dev/null || true; }
  echo "verify: stopped; ${p:-nothing} runs again next time" >&2
  exit 1
}
trap stop INT TERM HUP

run_part() { # PART: prints how it ended where it did not pass; exit 1 then
  command=$(sed -n "s/^$1  *[0-9]*  *//p" "$list")
  git -C "$tree" reset -q --hard "$commit" || exit 1
  from=$(date +%s)
  status=0
  (cd "$tree" && unset MAKEFLAGS MFLAGS MAKELEVEL BUILD BUDGET PART TABLE && exec env --default-signal=INT,QUIT CUDA=0 setsid sh -c "$command") > "$folder/$1.log" 2>&1 < /dev/null &
  running=$!
  wait "$running" || status=$?
  kill -TERM -"$running" 2> /dev/null || true # what it left
  running=
  case $status in # by HUP, INT, KILL or TERM: of somebody, and not of the code
    129 | 130 | 137 | 143) echo "verify: $1 was stopped by signal $((status - 128))" >&2; exit 1 ;;
  esac
  line=$(printf '%s\t%s\t%s\t%s\t%d\t%s\t%d' "$1" "$commit" "$(. /etc/os-release; echo "$ID ${VERSION_ID:-} $(nproc) cores")" \
    "$(date -u '+%Y-%m-%d %H:%M')" "$status" "$(counts "$folder/$1.log" $status | cut -f 1-3)" "$(($(date +%s) - from))")
  line=$line$tab$(counts "$folder/$1.log" $status | cut -f 4)
  printf '%s\n' "$line" >> "$record"
  case $(result "$line") in
    FAILED)
      echo "verify: $1 FAILED (exit $status), the end of $folder/$1.log:"
      tail -15 "$folder/$1.log" | sed 's/^/  /'
      return 1 ;;
    skipped) echo "verify: $1 was skipped: $(field "$line" 10)" ;;
  esac
}

begun=$(date +%s)
failures=0
for p in "$@"; do
  expected=$(sed -n "s/^$p  *\([0-9]*\) .*/\1/p" "$list")
  spent=$(($(date +%s) - begun))
  if [ "$budget" -gt 0 ] && [ $((spent + expected)) -gt "$budget" ]; then
    echo "verify: $p is left for later: it takes about $((expected / 60 + 1)) minutes, $(((budget - spent) / 60)) are left"
    continue
  fi
  printf 'verify: %-10s about %d minutes\n' "$p" $((expected / 60 + 1))
  run_part "$p" || failures=$((failures + 1))
done
print_table
[ $failures = 0 ]
