#!/bin/sh
# Draws the figures of the article, and those of the documents that have no command of their own, from the stored results.
#
#   paper/figures.sh BUILD FOLDER     (make paper, make document-figures)
#
# A study has a folder of its own in FOLDER. Results that are missing are left out.
set -eu
build=$1
work=$2
gepolab=$(cd "$build" && pwd)/gepolab
from=paper/results
mkdir -p "$work"

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
# The rate that runs survive with a clip, and without one.
if [ -e "$from/staleness_rate_outcomes.tsv" ]; then
  mkdir -p "$work/staleness_rate"
  { cat "$from/staleness_rate_outcomes.tsv"; grep '^cells' "$from/staleness_rate_unclipped_outcomes.tsv"; } > "$work/staleness_rate/all.tsv"
  renamed "$work/staleness_rate/all.tsv" > "$work/staleness_rate/cells.tsv"
  plot "$work/staleness_rate" cells.tsv -f frontier
fi
panels long_regime "=on-policy" "15=16 updates stale" "63=64 updates stale"
panels long_regime_countdown "=on-policy" "15=16 updates stale" "63=64 updates stale"
width=10
panels long_regime_weights "15=16 updates stale"
panels long_regime_far "15=16 updates stale"
width=a4
panels long_regime_larger "=on-policy" "15=16 updates stale"
panels two_bits "255=256 updates stale" "4095=frozen"
"$gepolab" lab bias bias_groups --figures "$work" --figure map --width a4 \
  'algorithms=[{base: is, name: P/Q}, {base: snis, name: normalised P/Q}, {base: gepo, clip: none, name: GEPO unclipped}, {base: gepo, name: GEPO}]' > /dev/null
"$gepolab" sim heterorl_trace cluster.compare.name=published --figures "$work" --width a4 > /dev/null

# One message at a phone's width: four of the methods, on-policy and 16 updates stale.
if [ -e "$from/long_regime_evals.tsv" ]; then
  mkdir -p "$work/long_regime_small"
  for panel in "" 15; do
    awk -F '\t' '/^updates|^#/ { next } $1 == "algorithm" || $1 ~ /^(GEPO|GSPO|GRPO|right only)$/' "$work/long_regime/delay_$panel.tsv" \
      > "$work/long_regime_small/delay_$panel.tsv"
  done
  width=icml
  plot "$work/long_regime_small" delay_.tsv delay_15.tsv -l delay_.tsv=on-policy -l "delay_15.tsv=16 updates stale" -f eval_score
  width=a4
fi

# Bias and error over 1,000 directions: a column for each world, the methods with one baseline.
world() { # STUDY TITLE : a file with the names of the figure
  grep -vE '^\[gepo (published|unclipped group mean),' "$from/$1.tsv" | awk -F '\t' -v OFS='\t' '
    BEGIN { name["is"] = "P/Q"; name["snis"] = "normalised P/Q"; name["gepo clipped"] = "GEPO"; name["gepo unclipped"] = "GEPO unclipped" }
    $1 ~ /\.algorithm$/ { $2 = name[$2] }
    { print }' > "$work/bias_directions/$2.tsv"
}
mkdir -p "$work/bias_directions"
world bias_directions "graded rewards"
world bias_directions_solved "right answer likely"
world bias_directions_hard "right answer rare"
world bias_directions_six "six actions"
plot "$work/bias_directions" "graded rewards.tsv" "right answer likely.tsv" "right answer rare.tsv" "six actions.tsv"
