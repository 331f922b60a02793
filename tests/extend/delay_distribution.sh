#!/bin/sh
# A delay distribution that was added is drawn from, fits an interval, and is the nearest name of a misspelt one.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/late.yaml" <<'YAML'
name: late
steps: 400
world: {kind: bandit}
cluster:
  preset: fifo
  samplers: 40
  generation: {distribution: loglogistic, interval: [60, 240], confidence: 0.9}
  learner: {step: 0}
YAML
# The interval's ends are the 5 % and the 95 % quantile: of the trained batches' generation times
# about nine in ten lie between them.
"$GEPOLAB" sim "$folder/late.yaml" --schedule csv >"$folder/batches.csv"
awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i; next }
  { t = $at["generated_s"] - $at["start_s"]; ++n; inside += t >= 60 && t <= 240 }
  END { exit !(n == 400 && inside > 0.84 * n && inside < n) }' "$folder/batches.csv"
if "$GEPOLAB" sim "$folder/late.yaml" 'cluster.generation={distribution: logistic, shape: 2}' 2>"$folder/why"; then exit 1; fi
grep -q "did you mean 'loglogistic'" "$folder/why"
