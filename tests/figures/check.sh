#!/bin/sh
# Draws every figure of every shipped recipe that needs no GPU, shortened, at the widths of NeurIPS and
# of an ICML column, and has tests/figures/check.py read them. A recipe without a line below fails.
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
# Toy worlds stand in for transformers: what is drawn follows from the sweep and not from the world.
toy='world={kind: sequence, vocabulary: 3, horizon: 2, prompts: 2, task: sum_mod}'
small="world.model.layers=1 world.warmup.steps=20 world.evaluation.prompts=8 train.groups=2 train.group_size=4 steps=12 eval_every=2"
both() { # FOLDER, then a command that draws: at both widths
  to=$1; shift
  pids=
  for width in $widths; do
    "$GEPOLAB" "$@" --width $width "$option" "$folder/$width/$to" > /dev/null 2> "$folder/said.$width" & pids="$pids $!"
  done
  for pid in $pids; do wait $pid || { cat "$folder"/said.* >&2; exit 1; }; done
}
study() { # RECIPE, then overrides: a study and its figures
  "$GEPOLAB" sweep "$@" -q -o "$folder/$1.db" -j 2
  option=-o; both "$1" plot "$folder/$1.db"
}
laboratory() { option=-f; both bias bias "$@"; }
clock() { recipe=$1; shift; option=-f; both "clock_$recipe" sim "$recipe" "$@" --timeline --densities; }

drawn() { # RECIPE
  case $1 in
    delay_sweep) study $1 steps=30 eval_every=5 tune= 'sweep.seed=[1,2]'; clock $1 ;;
    packet_loss | shared_egress) study $1 steps=20; clock $1 ;;
    relay_tree) clock $1 cluster.samplers=6 cluster.learner.batches=6 steps=12 ;;
    heterogeneous_samplers) study $1 steps=30; clock $1 ;;
    heterorl_trace) clock $1 ;;
    ten_thousand_samplers | slow_prompts) clock $1 steps=60 ;;
    weights_in_flight) study $1 $small world.model.hidden=16 world.model.heads=2 'world.warmup={steps: 20}' 'sweep.optimizer.lr=[5.0e-4]' 'sweep.seed=[1, 2]' ;;
    what_arrives | dropping) option=-f; both $1 selection $1 steps=60 ;;
    quickstart) study $1 steps=30 'cluster={preset: heterorl}' 'sweep={algorithm: [gepo, grpo], seed: [1, 2], cluster.delay: [30, {law: uniform, min: 1, max: 60}]}' ;;
    frontier_automaton) study $1 steps=40 eval_every=2 world.vocabulary=4 world.horizon=4 'sweep.optimizer.lr=[0.3, 3, 30, 300]' 'sweep.seed=[1, 2]' ;;
    confirmation_mixture | mixture_shares | remedies | remedies_stale | tuned | gepo_parts_sorting)
      study $1 $small world.model.hidden=16 world.model.heads=2 'world.warmup={steps: 20}' 'sweep.seed=[1, 2]' $([ $1 != tuned ] || echo tune=) ;;
    edges | frontier | frontier_sorting | gepo_parts | causes | mismatch)
      study $1 "$toy" steps=40 eval_every=2 'sweep.optimizer.lr=[0.3, 3, 30, 300]' 'sweep.seed=[1, 2, 3]'
      "$GEPOLAB" outcomes "$folder/$1.db" --json > "$folder/$1.json" ;;
    confirmation) study $1 "$toy" steps=40 eval_every=2 'sweep.seed=[1, 2, 3]' ;;
    screening) study $1 steps=12 eval_every=2 world.model.layers=1 'world.warmup={steps: 20}' world.evaluation.prompts=8 train.groups=2 train.group_size=4 ;;
    sensitivity) study $1 "$toy" steps=40 eval_every=4 'sweep.optimizer.lr=[1]' 'sweep.seed=[1, 2]' ;;
    benchmarks)
      study $1 $small world.model.intermediate=48 'sweep.seed=[1, 2]'
      option=-o; both benchmarks_sets plot "$folder/benchmarks.db" --each-set ;;
    released_online | released_delay | paper_online | paper_delay)
      study $1 $small world.model.hidden=16 world.model.heads=2 'world.warmup={steps: 20}' 'sweep.seed=[1, 2]' ;;
    llm_delay_sweep) study $1 $small world.model.intermediate=48 tune= 'sweep.seed=[1, 2]' ;;
    llm_quick) study $1 $small world.model.hidden=16 world.model.heads=2 'world.warmup={steps: 20}' 'sweep={seed: [1, 2]}' ;;
    bias_vs_kl) laboratory $1 dial.kl.points=6 ;;
    bias_groups) laboratory $1 dial.kl.points=8 ;;
    four_arms) "$GEPOLAB" bias $1 > /dev/null ;; # a table alone
    bias_staleness | denominators | truncation | llm_exact_bias) laboratory $1 ;;
    llm_exact_gradient) laboratory $1 samples=256 ;;
    sample_efficiency) laboratory $1 training.updates=40 training.seeds=1 training.tuning_seeds=1 'training.lr=[1]' ;;
    theory) option=-f; both theory theory ;;
    theory_training | theory_training_sequence | theory_training_mdp) # a table alone
      "$GEPOLAB" theory $1 training.updates=70 training.seeds=1 training.tuning_seeds=1 'training.lr=[1]' > /dev/null ;;
    published_verl | published_one_step_off | published_areal | published_headlines) option=-f; both $1 published $1 ;;
    three_continents) clock $1 steps=60 ;;
    real_bias) ;; # a run whose checkpoints `gepolab llm bias` measures; so short a one has no gradients
    qwen3_math | released_qwen3) ;; # need weights, data and a GPU
    *) echo "tests/figures/check.sh does not know the recipe $1: say there how its figures are drawn" >&2; exit 1 ;;
  esac
}
asked=${*:-$("$GEPOLAB" recipes | cut -d ' ' -f 1)}
for recipe in $asked; do drawn "$recipe"; done
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
