#!/bin/sh
# Draws every figure of every shipped recipe that needs no GPU, shortened, at the widths of NeurIPS and
# of an ICML column, and has tests/figures/check.py read them.
# Needs poppler-utils and Python 3.
#
#   tests/figures/check.sh [RECIPE …]      (all)
set -eu
for tool in pdftotext pdffonts pdfinfo python3 gnuplot; do
  command -v $tool >/dev/null || { echo "make check-figures needs $tool: install poppler-utils, python3 and gnuplot-nox" >&2; exit 1; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
widths="neurips icml"
both() { # FOLDER, then a command that draws: at both widths
  to=$1; shift
  pids=
  for width in $widths; do
    "$GEPOLAB" "$@" --width $width "$option" "$folder/$width/$to" > /dev/null 2> "$folder/said.$width" & pids="$pids $!"
  done
  for pid in $pids; do wait $pid || { cat "$folder"/said.* >&2; exit 1; }; done
}
study() { "$GEPOLAB" sweep "$@" -q -o "$folder/$1.db" -j 2; option=-o; both "$1" plot "$folder/$1.db"; }
each_set() { option=-o; both "$1_sets" plot "$folder/$1.db" --each-set; }
outcomes() { "$GEPOLAB" outcomes "$folder/$1.db" --json > "$folder/$1.json"; }
laboratory() { option=-f; both bias bias "$@"; }
table() { "$GEPOLAB" bias "$@" > /dev/null; }
theory() { option=-f; both theory theory; }
training() { "$GEPOLAB" theory "$@" > /dev/null; }
selection() { option=-f; both "$1" selection "$@"; }
published() { option=-f; both "$1" published "$@"; }
clock() { recipe=$1; shift; option=-f; both "clock_$recipe" sim "$recipe" "$@" --timeline --densities; }
. tests/figures/recipes.sh
asked=${*:-$("$GEPOLAB" recipes | awk '/^[a-z]/ && $2 != "plan" { print $1 }')}
for recipe in $asked; do shortened "$recipe"; done
option=-f; both plan plan one_node -q train.groups=4 plan.selection.updates=24 plan.selection.most=12 plan.limits.staleness=1.5
# A run's log of sixty updates of two groups, whose learner goes away from the sampler.
awk 'BEGIN { srand(7); for (u = 0; u < 60; u++) { printf "{\"step\": %d, \"groups\": [", u
  for (g = 0; g < 2; g++) { p = ""; q = ""; v = ""; r = ""
    for (i = 0; i < 4; i++) { a = ""; b = ""; c = ""
      for (t = 0; t < 6; t++) { x = -0.2 - 2 * rand(); a = a (t ? "," : "") x; b = b (t ? "," : "") x - (rand() - 0.5) * (u % 13) / 40; c = c (t ? "," : "") u % 13 }
      p = p (i ? "," : "") "[" a "]"; q = q (i ? "," : "") "[" b "]"; v = v (i ? "," : "") "[" c "]"; r = r (i ? "," : "") (i + u) % 2 }
    printf "%s{\"rewards\": [%s], \"logp\": [%s], \"logq\": [%s], \"version_gap\": [%s]}", g ? "," : "", r, p, q, v }
  print "]}" } }' > "$folder/run.jsonl"
option=-f; both whatif whatif "$folder/run.jsonl"
python3 tests/figures/check.py 13.97 "$folder/neurips"
python3 tests/figures/check.py 8.255 "$folder/icml"
