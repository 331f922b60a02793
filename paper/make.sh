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

# A method has one name in the article. Of a table of runs or of results: stored name=name there.
names='gepo released=GEPO
gepo mean unclipped=GEPO unclipped
gepo unclipped=GEPO whole unclipped
gepo(log_prob=mean)=GEPO
gepo=GEPO whole
gspo 0.2=GSPO
gspo=GSPO narrow
grpo 0.2 std=GRPO std
grpo 0.2=GRPO
grpo=GRPO std
dr_grpo=Dr. GRPO
decoupled_ppo=decoupled PPO
topr=TOPR
tis=truncated P/Q
is=P/Q'

renamed() { # FILE : its algorithms under their names in the article
  printf '%s\n' "$names" | awk -F '\t' -v OFS='\t' '
    NR == FNR { at = length($0); while (substr($0, at, 1) != "=") at--; name[substr($0, 1, at - 1)] = substr($0, at + 1); next }
    $1 in name { $1 = name[$1] }
    $2 in name && $1 ~ /\.algorithm$/ { $2 = name[$2] }
    match($1, /^cells\[[^,]*/) { arm = substr($1, 7, RLENGTH - 6); if (arm in name) $1 = "cells[" name[arm] substr($1, RLENGTH + 1) }
    { print }' - "$1"
}

width=a4
plot() { # FOLDER FILE … OPTIONS : draws there, in the width of the text (or $width) and without notes
  (cd "$1" && shift && "$gepolab" plot "$@" --width "$width" --no-notes -o . > /dev/null)
}

draw() { # STUDY : its figures that the article shows
  [ -e "$from/$1_evals.tsv" ] || return 0
  mkdir -p "$work/$1"
  for table in evals runs; do renamed "$from/$1_$table.tsv" > "$work/$1/$table.tsv"; done
  plot "$work/$1" evals.tsv -f eval_score
  plot "$work/$1" runs.tsv -f divergence
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
    renamed "$from/${study}_evals.tsv" | awk -F '\t' -v OFS='\t' -v want="${panel%%=*}" '
      /^#/ { next }
      !head { for (i = 1; i <= NF; i++) if ($i == "cluster.delay") at = i; head = 1 }
      $at == "cluster.delay" || $at == want { line = ""; for (i = 1; i <= NF; i++) if (i != at) line = line (line == "" ? "" : OFS) $i; print line }' > "$work/$file"
    labels="$labels|-l|$(basename "$file")=${panel#*=}"
  done
  (
    IFS='|'
    # shellcheck disable=SC2046,SC2086
    plot "$work/$study" $(cd "$work/$study" && echo delay_*.tsv | tr ' ' '|') ${labels#|} -f eval_score
  )
}
# Of the thirteen methods of frontier the article draws the four that its second task has, too.
for study in frontier frontier_sorting; do
  [ -e "$from/$study.tsv" ] || continue
  mkdir -p "$work/$study"
  grep -E '^#|^cells\[(gepo released|gepo unclipped|gspo 0\.2|grpo),' "$from/$study.tsv" > "$work/$study/four.tsv"
  renamed "$work/$study/four.tsv" > "$work/$study/cells.tsv"
  plot "$work/$study" cells.tsv -f frontier
done
panels long_regime "=on-policy" "15=16 updates stale" "63=64 updates stale"
width=10
panels long_regime_weights "15=16 updates stale"
width=a4
panels two_bits "255=256 updates stale" "4095=frozen"
"$gepolab" lab bias bias_groups --figures "$work" --figure map --width a4 \
  'algorithms=[{base: is, name: P/Q}, {base: snis, name: normalised P/Q}, {base: gepo, clip: none, name: GEPO unclipped}, {base: gepo, name: GEPO}]' > /dev/null
"$gepolab" sim heterorl_trace cluster.compare.name=published --figures "$work" --width a4 > /dev/null

cd "$work"
for pass in 1 2 3; do
  pdflatex -interaction=batchmode -halt-on-error gepolab.tex > /dev/null || { tail -20 gepolab.log >&2; exit 1; }
  [ $pass != 1 ] || bibtex -terse gepolab >&2
done
cd - > /dev/null
cp "$work/gepolab.pdf" paper/gepolab.pdf
echo "the paper is paper/gepolab.pdf"
