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

paper/figures.sh "$build" "$work"

cd "$work"
for pass in 1 2 3; do
  pdflatex -interaction=batchmode -halt-on-error gepolab.tex > /dev/null || { tail -20 gepolab.log >&2; exit 1; }
  [ $pass != 1 ] || bibtex -terse gepolab >&2
done
cd - > /dev/null
cp "$work/gepolab.pdf" paper/gepolab.pdf
echo "the paper is paper/gepolab.pdf"
