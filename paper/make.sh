#!/bin/sh
# Builds paper/gepolab.pdf from the stored results in paper/results.
#
#   paper/make.sh BUILD [RESULTS THAT MAY BE MISSING …]     (make paper)
#
# Figures of sweeps are drawn from stored evaluations and means; those of the laboratory and of the
# clock, which have no random part or a fixed seed, are computed. All numbers of the text are
# definitions that `gepolab results define` writes.
set -eu
build=$1
shift
gepolab=$(cd "$build" && pwd)/gepolab
work=$build/paper
from=paper/results
without=
for name in "$@"; do without="$without --without $name"; done

rm -rf "$work"
mkdir -p "$work"
cp paper/gepolab.tex paper/gepolab.bib "$work/"
"$gepolab" results define paper/gepolab.tex -d "$from" -o "$work/numbers.tex" $without

draw() { # STUDY : its figures that the article shows
  [ -e "$from/$1_evals.tsv" ] || return 0
  mkdir -p "$work/$1"
  "$gepolab" plot "$from/$1_evals.tsv" -f eval_score -o "$work/$1" > /dev/null
  "$gepolab" plot "$from/$1_runs.tsv" -f divergence -o "$work/$1" > /dev/null
}
draw delay_sweep
draw llm_delay_sweep

# A panel for each setting, named in words: --label FILE=NAME for the rows with that weight delay.
panels() { # STUDY DELAY=NAME … : column cluster.delay, empty without delay
  study=$1
  shift
  [ -e "$from/${study}_evals.tsv" ] || return 0
  mkdir -p "$work/$study"
  labels=
  for panel in "$@"; do
    file=$study/delay_${panel%%=*}.tsv
    awk -F '\t' -v OFS='\t' -v want="${panel%%=*}" '
      /^#/ { next }
      !head { for (i = 1; i <= NF; i++) if ($i == "cluster.delay") at = i; head = 1 }
      $at == "cluster.delay" || $at == want { line = ""; for (i = 1; i <= NF; i++) if (i != at) line = line (line == "" ? "" : OFS) $i; print line }' \
      "$from/${study}_evals.tsv" > "$work/$file"
    labels="$labels|-l|$(basename "$file")=${panel#*=}"
  done
  (
    cd "$work/$study"
    IFS='|'
    # shellcheck disable=SC2086
    "$gepolab" plot delay_*.tsv ${labels#|} -f eval_score --no-notes -o . > /dev/null
  )
}
for study in frontier frontier_sorting; do
  [ -e "$from/$study.tsv" ] || continue
  "$gepolab" plot "$from/$study.tsv" -f frontier -o "$work/$study" > /dev/null
done
panels long_regime "=on-policy" "15=16 updates stale" "63=64 updates stale"
panels two_bits "255=256 updates stale" "4095=frozen"
"$gepolab" bias bias_groups --figures "$work" > /dev/null
"$gepolab" sim heterorl_trace --figures "$work" > /dev/null

cd "$work"
for pass in 1 2 3; do
  pdflatex -interaction=batchmode -halt-on-error gepolab.tex > /dev/null || { tail -20 gepolab.log >&2; exit 1; }
  [ $pass != 1 ] || bibtex -terse gepolab >&2
done
cd - > /dev/null
cp "$work/gepolab.pdf" paper/gepolab.pdf
echo "the paper is paper/gepolab.pdf"
