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
cp paper/gepolab.tex "$work/"
"$gepolab" results define paper/gepolab.tex -d "$from" -o "$work/numbers.tex" $without

draw() { # STUDY : its figures that the article shows
  [ -e "$from/$1_evals.tsv" ] || return 0
  mkdir -p "$work/$1"
  "$gepolab" plot "$from/$1_evals.tsv" -f eval_score -o "$work/$1" > /dev/null
  "$gepolab" plot "$from/$1_runs.tsv" -f divergence -o "$work/$1" > /dev/null
}
draw delay_sweep
draw llm_delay_sweep
for study in frontier frontier_sorting; do
  [ -e "$from/$study.tsv" ] || continue
  "$gepolab" plot "$from/$study.tsv" -f frontier -o "$work/$study" > /dev/null
done
"$gepolab" bias bias_groups --figures "$work" > /dev/null
"$gepolab" sim heterorl_trace --figures "$work" > /dev/null

cd "$work"
for pass in 1 2; do
  pdflatex -interaction=batchmode -halt-on-error gepolab.tex > /dev/null || { tail -20 gepolab.log >&2; exit 1; }
done
cd - > /dev/null
cp "$work/gepolab.pdf" paper/gepolab.pdf
echo "the paper is paper/gepolab.pdf"
