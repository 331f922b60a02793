#!/bin/sh
# Draws every figure of every shipped recipe that needs no GPU, shortened, at the widths of NeurIPS and
# of an ICML column, and has tests/figures/check.py read them. Needs poppler-utils and Python 3.
set -eu
for tool in pdftotext pdffonts pdfinfo python3 gnuplot; do
  command -v $tool >/dev/null || { echo "make check-figures needs $tool: install poppler-utils, python3 and gnuplot-nox" >&2; exit 1; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
study() { # name, then the arguments of sweep: a study and its figures at both widths
  name=$1; shift
  "$GEPOLAB" sweep "$@" -q -o "$folder/$name.db" -j 2
  "$GEPOLAB" plot "$folder/$name.db" -o "$folder/neurips/$name" >/dev/null
  "$GEPOLAB" plot "$folder/$name.db" -o "$folder/icml/$name" --width icml >/dev/null
}
laboratory() { # the arguments of bias
  for width in neurips icml; do "$GEPOLAB" bias "$@" -f "$folder/$width/bias" --width $width >/dev/null; done
}
study delay_sweep delay_sweep steps=30 eval_every=5 tune= 'sweep.seed=[1,2]'
study packet_loss packet_loss steps=20
study samplers heterogeneous_samplers steps=30
study quickstart quickstart steps=30 'cluster={preset: heterorl}' 'sweep={algorithm: [gepo, grpo], seed: [1, 2], cluster.delay: [30, {law: uniform, min: 1, max: 60}]}'
laboratory bias_vs_kl dial.kl.points=6
laboratory bias_groups dial.kl.points=8
laboratory bias_staleness
laboratory denominators
laboratory sample_efficiency training.updates=40 training.seeds=1 training.tuning_seeds=1 'training.lr=[1]'
for width in neurips icml; do
  "$GEPOLAB" theory -f "$folder/$width/theory" --width $width >/dev/null
  for recipe in heterorl_trace packet_loss heterogeneous_samplers delay_sweep; do
    "$GEPOLAB" sim $recipe --timeline --densities -f "$folder/$width/$recipe" --width $width >/dev/null
  done
done
# A run's log of sixty updates of two groups, whose learner goes away from the sampler.
awk 'BEGIN { srand(7); for (u = 0; u < 60; u++) { printf "{\"step\": %d, \"groups\": [", u
  for (g = 0; g < 2; g++) { p = ""; q = ""; v = ""; r = ""
    for (i = 0; i < 4; i++) { a = ""; b = ""; c = ""
      for (t = 0; t < 6; t++) { x = -0.2 - 2 * rand(); a = a (t ? "," : "") x; b = b (t ? "," : "") x - (rand() - 0.5) * (u % 13) / 40; c = c (t ? "," : "") u % 13 }
      p = p (i ? "," : "") "[" a "]"; q = q (i ? "," : "") "[" b "]"; v = v (i ? "," : "") "[" c "]"; r = r (i ? "," : "") (i + u) % 2 }
    printf "%s{\"rewards\": [%s], \"logp\": [%s], \"logq\": [%s], \"version_gap\": [%s]}", g ? "," : "", r, p, q, v }
  print "]}" } }' > "$folder/run.jsonl"
for width in neurips icml; do "$GEPOLAB" whatif "$folder/run.jsonl" -f "$folder/$width/whatif" --width $width >/dev/null; done
python3 tests/figures/check.py 13.97 "$folder/neurips"
python3 tests/figures/check.py 8.255 "$folder/icml"
