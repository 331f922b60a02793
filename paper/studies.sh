#!/bin/sh
# Runs the studies behind the documents anew and keeps their results in paper/results.
#
#   paper/studies.sh BUILD STUDY …     (make studies)
#
# STUDY is one of the names that stand below as `known`; announcements is of the sweeps before it; of
# features the published curves are made anew where GEPOLAB_PAPER_DATA says where their exports are. Studies
# go into BUILD/studies, where a sweep that was stopped goes on. `gepolab
# results keep` refuses a program that was not built from a clean commit, which the head of every result
# names.
set -eu
build=$1
shift
gepolab=$build/gepolab
work=$build/studies
to=paper/results
mkdir -p "$work" "$to"

keep() { # NAME COMMAND RECIPE … : the JSON that the command prints, as NAME.tsv
  name=$1
  shift
  "$gepolab" "$@" --json > "$work/$name.json"
  "$gepolab" results keep "$work/$name.json" --recipe "${2:-$1}" --command "gepolab $* --json" -o "$to/$name.tsv" ${keys:+--keep "$keys"}
}

# A sweep: cells and correlations, and for its figures the evaluations and the means of each run,
# which bear the same head.
sweep() { # NAME
  "$gepolab" sweep "$1" -o "$work/$1.db" -j "$(nproc)"
  "$gepolab" analyze "$work/$1.db" --json > "$work/$1.json"
  "$gepolab" results keep "$work/$1.json" --recipe "$1" --study "$work/$1.db" -o "$to/$1.tsv"
  { grep '^#' "$to/$1.tsv"; "$gepolab" study export "$work/$1.db" -t evals -f tsv | cut -f4-; } > "$work/evals.tsv"
  { grep '^#' "$to/$1.tsv"; "$gepolab" study export "$work/$1.db" -t summary -f tsv |
    awk -F '\t' -v OFS='\t' '
      BEGIN { wanted = "algorithm seed optimizer.lr cluster.max_delay updates staleness kl_exact kl_k3_seq log_iw_variance_pq log_iw_variance_gepo estimation_error" }
      NR == 1 { n = split(wanted, name, " "); for (i = 1; i <= NF; i++) at[$i] = i }
      { line = ""; for (i = 1; i <= n; i++) line = line (i > 1 ? OFS : "") $at[name[i]]; print line }'; } > "$work/runs.tsv"
  mv "$work/evals.tsv" "$to/$1_evals.tsv"
  mv "$work/runs.tsv" "$to/$1_runs.tsv"
}

# A sweep of a recipe with other fields: only its cells.
variant() { # NAME RECIPE FIELD=VALUE …
  name=$1
  recipe=$2
  shift 2
  "$gepolab" sweep "$recipe" -o "$work/$name.db" -j "$(nproc)" "$@"
  "$gepolab" analyze "$work/$name.db" --json > "$work/$name.json"
  "$gepolab" results keep "$work/$name.json" --recipe "$recipe" --study "$work/$name.db" -o "$to/$name.tsv" --keep '^cells\['
}

# What a command says of a sweep, as JSON.
cells() { # NAME COMMAND
  "$gepolab" sweep "$1" -o "$work/$1.db" -j "$(nproc)"
  "$gepolab" "$2" "$work/$1.db" --json > "$work/$1.json"
  "$gepolab" results keep "$work/$1.json" --recipe "$1" --study "$work/$1.db" -o "$to/$1.tsv"
}

# The contrasts that a sweep's recipe declares, and beside them the outcomes and levels of its arms.
declared() { # NAME
  "$gepolab" sweep "$1" -o "$work/$1.db" -j "$(nproc)"
  "$gepolab" analyze --table contrasts "$work/$1.db" "$1" --json > "$work/$1.json"
  "$gepolab" results keep "$work/$1.json" --recipe "$1" --study "$work/$1.db" -o "$to/$1.tsv"
  "$gepolab" analyze --table outcomes "$work/$1.db" --levels --json > "$work/$1.json"
  "$gepolab" results keep "$work/$1.json" --recipe "$1" --study "$work/$1.db" -o "$to/$1_outcomes.tsv"
}

# Means over all updates of an arm, whose name ends with the delay of weights and with swept fields of gates, drops and noise: the
# fractions of wrong (A < 0) and of right responses whose gradient is left out, and the divergence a token. Needs sqlite3.
doses() { # NAME
  { grep '^#' "$to/$1.tsv"; sqlite3 -separator "$(printf '\t')" "$work/$1.db" "
      with settings as (select r.id, r.algorithm || ',' || coalesce(json_extract(r.swept, '\$.cluster.delay'), 0) || coalesce((
                                 select ',' || group_concat(value, ',') from (select value from json_each(r.swept)
                                 where key like 'algorithm.gate.%' or key like 'train.drop%' or key = 'sampling.behaviour.noise' order by key)), '') as name from runs r),
           arm as (select name, avg(s.kl_k3) as divergence, avg(coalesce(s.gated_negative, s.clipped_negative)) as wrong,
                          avg(coalesce(s.gated_positive, s.clipped_positive)) as right
                   from settings r join steps s on s.run = r.id group by 1)
      select 'doses[' || name || '].divergence', divergence from arm
      union all select 'doses[' || name || '].right', right from arm where right is not null
      union all select 'doses[' || name || '].wrong', wrong from arm where wrong is not null order by 1"; } > "$work/doses.tsv"
  mv "$work/doses.tsv" "$to/$1_doses.tsv"
}

# Outcomes of a study's runs with one learning rate. Needs sqlite3.
outcomes_at() { # STUDY RATE NAME
  cp "$work/$1.db" "$work/$3.db"
  sqlite3 "$work/$3.db" "pragma foreign_keys = on; delete from runs where abs(lr - $2) > 1e-9"
  "$gepolab" analyze --table outcomes "$work/$3.db" --levels --json > "$work/$3.json"
  "$gepolab" results keep "$work/$3.json" --recipe "$1" --study "$work/$1.db" -o "$to/$3.tsv"
}

# Of stored outcomes the sums over cells, and how many runs are down at the first evaluation: the curve's first step, where it
# is the earliest of all cells.
totals() { # NAME
  { grep '^#' "$to/$1.tsv"; awk '
      BEGIN { FS = OFS = "\t" }
      /^#/ { next }
      { cell = $1; sub(/\]\..*/, "]", cell); member = substr($1, length(cell) + 2) }
      member == "runs" { runs[cell] = $2; all += $2 }
      member == "lost_start" { lost += $2 }
      member ~ /^outcomes\.(early|late) fall$|^outcomes\.not finite$/ { after += $2 }
      member == "outcomes.late fall" { late += $2 }
      member == "curve[0].update" { at[cell] = $2; if (first == "" || $2 < first) first = $2 }
      member == "curve[0].share" { kept[cell] = $2 }
      END {
        for (cell in at) if (at[cell] == first) down += runs[cell] * (1 - kept[cell])
        print "down_at_first", sprintf("%.0f", down)
        print "falls", lost + after
        print "first_evaluation", first
        print "late", late + 0
        print "lost_start", lost
        print "runs", all
      }' "$to/$1.tsv"; } > "$work/totals.tsv"
  mv "$work/totals.tsv" "$to/$1_totals.tsv"
}

evaluations() { # NAME
  { grep '^#' "$to/$1.tsv"; "$gepolab" study export "$work/$1.db" -t evals -f tsv | cut -f4-; } > "$work/evals.tsv"
  mv "$work/evals.tsv" "$to/$1_evals.tsv"
}

# Evaluations at one rate for a figure of curves, every EVERY updates: method, seed, delay of weights, update and score.
thinned() { # NAME RATE EVERY
  { grep '^#' "$to/$1.tsv"; "$gepolab" study export "$work/$1.db" -t evals -f tsv | awk -F '\t' -v OFS='\t' -v rate="$2" -v every="$3" '
      BEGIN { n = split("algorithm seed cluster.delay step eval_score", name, " ") }
      NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
      NR == 1 || ($at["optimizer.lr"] == rate && $at["step"] % every == 0) { line = $at[name[1]]; for (i = 2; i <= n; i++) line = line OFS $at[name[i]]; print line }'; } > "$work/evals.tsv"
  mv "$work/evals.tsv" "$to/$1_evals.tsv"
}

# What announces falls in a sweep, which goes on where it is not finished.
announce() { # NAME STUDY [CHOICE OF RUNS …]
  name=announcements_$1
  study=$2
  shift 2
  "$gepolab" sweep "$study" -o "$work/$study.db" -j "$(nproc)"
  "$gepolab" analyze --table announcements "$work/$study.db" "$@" --json > "$work/$name.json"
  "$gepolab" results keep "$work/$name.json" --recipe "$study" --study "$work/$study.db" -o "$to/$name.tsv" \
    --keep '^[a-z_]*$|^rule|(auc|announced_share|false_alarm_rate|lead_updates)\.(value|low|high)$|\.(side|fallen|survived|pairs)$'
}

# Which metrics announce the next decline, within runs of a sweep; and what AUCs on few declines can say.
declines() {
  study=$work/declines.db
  "$gepolab" sweep frontier_automaton 'sweep.algorithm=[grpo, gspo]' 'sweep.optimizer.lr=[0.3, 1]' -o "$study" -j "$(nproc)"
  for least in 0 0.05; do
    name=declines_$([ $least = 0 ] && echo any || echo large)
    "$gepolab" analyze --table declines "$study" --least $least --json > "$work/$name.json"
    "$gepolab" results keep "$work/$name.json" --recipe frontier_automaton --study "$study" -o "$to/$name.tsv"
  done
  keep_power power_marin_any --events 5 --others 19 --auc 0.463 --auc 0.474 --auc 0.442 --auc 0.453 --auc 0.547 --auc 0.221
  keep_power power_marin_two --events 3 --others 21 --auc 0.524 --auc 0.603 --auc 0.619 --auc 0.333
}

keep_power() { # NAME OPTIONS …
  name=$1
  shift
  "$gepolab" analyze --table power "$@" --json > "$work/$name.json"
  "$gepolab" results keep "$work/$name.json" --recipe published --command "gepolab analyze --table power $* --json" -o "$to/$name.tsv"
}

# Features of a sweep's curves, and of the published ones where their exports are at hand.
features() { # STUDY
  "$gepolab" sweep "$1" -o "$work/$1.db" -j "$(nproc)"
  "$gepolab" analyze --table features "$work/$1.db" --json > "$work/features_$1.json"
  "$gepolab" results keep "$work/features_$1.json" --recipe "$1" --study "$work/$1.db" -o "$to/features_$1.tsv"
}
published_features() {
  set -- iw_variance_online.csv kl_maxdiff32.csv eval_train_maxdelay64.csv eval_math500_maxdelay64.csv --until 850 \
    -l eval_train_maxdelay64.csv=own -l eval_math500_maxdelay64.csv=MATH500 --json
  program=$(cd "$build" && pwd)/gepolab
  (cd "$GEPOLAB_PAPER_DATA" && "$program" features "$@") > "$work/features_published.json"
  "$gepolab" results keep "$work/features_published.json" --recipe released_online --command "gepolab features $*" -o "$to/features_published.tsv"
}

# Gradients at checkpoints of a run, which takes 340 MB while it is measured.
gradients() {
  rm -rf "$work/real_bias.run"
  "$gepolab" run real_bias --checkpoint "$work/real_bias.run" --checkpoint-every 4 checkpoint.keep=160
  set -- --at 128,640 --staleness 0,4,16,64 --batches 512 --responses 65536 -a is \
    -a '{base: gepo, log_prob: mean, name: gepo released}' -a '{base: gepo, clip: none, name: gepo unclipped}' \
    -a '{base: gspo, scale: none, eps_low: 0.2, eps_high: 0.2, name: gspo 0.2}' -a grpo -a cispo -a dr_grpo --threads 1
  "$gepolab" llm bias "$work/real_bias.run" "$@" --json > "$work/real_bias.json"
  "$gepolab" results keep "$work/real_bias.json" --recipe real_bias --command "gepolab llm bias real_bias.run $* --json" \
    --keep '(\.(bias|cosine|variance|scaled_mse|gradient_length)\.(value|low|high)|\.kl_k3_seq|\.ess|batches|responses)$' -o "$to/real_bias.tsv"
  "$gepolab" llm bias "$work/real_bias.run" "$@" -f "$work"
  rm -rf "$work/real_bias.run"
}

# Of every run the first, the best and the last evaluation, of which best and last are drawn.
ends() { # NAME
  { grep '^#' "$to/$1.tsv"; "$gepolab" study export "$work/$1.db" -t evals -f tsv | awk '
      BEGIN { FS = OFS = "\t" }
      function write(  i) { for (i = 1; i <= n; i++) if (i == 1 || i == best || i == n) print row[i]; n = 0 }
      function rest(  i, line) { line = $4; for (i = 5; i <= NF; i++) line = line OFS $i; return line }
      NR == 1 { print rest(); for (i = 1; i <= NF; i++) if ($i == "step") step = i; next }
      { run = ""; for (i = 1; i < step; i++) run = run OFS $i
        if (run != last) { write(); last = run }
        row[++n] = rest(); if (n == 1 || $NF + 0 > top) { best = n; top = $NF + 0 } }
      END { write() }'; } > "$work/ends.tsv"
  mv "$work/ends.tsv" "$to/$1_ends.tsv"
}

# The gradient of what arrives beside that of what was drawn: a grid of tasks, longest lengths, windows and what becomes
# of stale groups. Where nothing arrives there is no gradient.
dropping() {
  separator='{'
  for task in needle sum_mod sorted; do
    for horizon in 4 6 8; do
      for window in 1 2 4 8; do
        for stale in discard downweight wait; do
          set -- "world.task=$task" "world.horizon=$horizon" "cluster.window=$window" "cluster.stale=$stale"
          [ "$stale" != wait ] || set -- "$@" "cluster.ahead=$window" cluster.learner.queue=oldest_version
          printf '%s"%s,%s,%s,%s": ' "$separator" "$task" "$horizon" "$window" "$stale"
          "$gepolab" lab selection dropping "$@" --json 2> "$work/dropping.err" || {
            grep -q 'no group of the policy arrives' "$work/dropping.err" || { cat "$work/dropping.err" >&2; exit 1; }
            echo '{"probability": 0}'
          }
          separator=,
        done
      done
    done
  done
  echo '}'
}

known="delay_sweep, llm_delay_sweep, llm_delay_sweep_cuda, llm_quick, llm_rates, edges, frontier, frontier_sorting, frontier_automaton, gepo_parts, \
gepo_parts_sorting, two_bits, causes, sensitivity, screening, remedies, remedies_stale, remedies_half_rate, mixture_shares, confirmation, confirmation_mixture, tuned, long_regime, long_regime_countdown, \
long_regime_tuned, long_regime_low_rates, staleness_rate, staleness_rate_medium, staleness_rate_unclipped, staleness_rate_far, staleness_rate_larger, long_regime_far, long_regime_larger, long_regime_weights, long_regime_variance, long_regime_sgd, \
long_regime_settings, paper_divergence, which_wrong, which_wrong_placebo, lower_baseline, baseline_parts, right_only_parts, paper_divergence_48, paper_divergence_96, remedies_again, kl_directions, dynamic_sampling, replay, replay_computation, mismatch, \
announcements, declines, features, real_bias, laboratory, weights_in_flight, dropping, clock or published"
keys=
for study in "$@"; do
  case $study in
    delay_sweep | llm_delay_sweep) sweep "$study" ;;
    llm_delay_sweep_cuda) variant llm_delay_sweep_cuda llm_delay_sweep world.backend=cuda ;; # on a GPU
    edges) cells edges outcomes; evaluations edges ;;
    frontier | frontier_sorting) cells "$study" outcomes; totals "$study" ;;
    frontier_automaton | gepo_parts | gepo_parts_sorting | causes | remedies | remedies_stale | remedies_half_rate | mixture_shares) cells "$study" outcomes ;;
    mismatch)
      cells mismatch outcomes
      "$gepolab" analyze "$work/mismatch.db" --json > "$work/mismatch.json"
      "$gepolab" results keep "$work/mismatch.json" --recipe mismatch --study "$work/mismatch.db" -o "$to/mismatch_cells.tsv" \
        --keep '^cells\[.*\]\.(kl_k3_seq|last)\.(iqm|low|high)$' ;;
    weights_in_flight)
      cells weights_in_flight analyze
      variant weights_between weights_in_flight cluster.partial=wait cluster.kv_cache=null cluster.interrupt=null \
        cluster.prefill_tokens_per_s=null 'sweep={optimizer.lr: [5.0e-4, 1.0e-3], seed: {from: 1, to: 8}}' ;;
    dropping)
      dropping > "$work/dropping.json"
      "$gepolab" results keep "$work/dropping.json" --recipe dropping --command "gepolab selection dropping … --json" \
        --keep '(probability|correlation|cosine|norm_ratio|reward|length)$' -o "$to/dropping.tsv" ;;
    sensitivity) cells sensitivity analyze; ends sensitivity ;;
    screening) cells screening effects ;;
    two_bits) cells two_bits outcomes; thinned two_bits 1 100 ;;
    long_regime | long_regime_weights | long_regime_variance)
      declared "$study"
      thinned "$study" 0.0002 250
      if [ "$study" = long_regime ]; then
        outcomes_at long_regime 0.0002 long_regime_outcomes
        outcomes_at long_regime 0.0001 long_regime_slow_outcomes
      fi ;;
    long_regime_far) declared "$study"; thinned "$study" 0.0002 1000 ;;
    long_regime_larger) declared "$study"; thinned "$study" 0.00001 50 ;;
    long_regime_sgd) declared "$study"; thinned "$study" 0.03 250 ;;
    long_regime_countdown) declared "$study"; thinned "$study" 0.0004 250 ;;
    confirmation | confirmation_mixture | staleness_rate | staleness_rate_medium | staleness_rate_unclipped | staleness_rate_far | staleness_rate_larger | long_regime_tuned | long_regime_low_rates | \
      long_regime_settings | lower_baseline | baseline_parts | right_only_parts | remedies_again | kl_directions | dynamic_sampling | replay | replay_computation) declared "$study" ;;
    paper_divergence)
      declared paper_divergence
      doses paper_divergence
      variant paper_divergence_longer paper_divergence world.task.length=24 world.model.context=64 'sweep.optimizer.lr=[2.0e-6]' \
        'sweep.sampling.behaviour.noise=[0]' contrasts=null
      doses paper_divergence_longer ;;
    which_wrong | which_wrong_placebo | paper_divergence_48 | paper_divergence_96) declared "$study"; doses "$study" ;;
    tuned)
      declared tuned
      "$gepolab" analyze "$work/tuned.db" --json > "$work/tuned.json"
      "$gepolab" results keep "$work/tuned.json" --recipe tuned --study "$work/tuned.db" -o "$to/tuned_cells.tsv" \
        --keep '^cells\[.*\]\.(last\.(iqm|low|high)|lr)$' ;;
    llm_quick)
      keys='^(eval_first|best|last|steps)$'
      keep llm_quick_1 run llm_quick
      keep llm_quick_2 run llm_quick seed=2
      keep llm_quick_gepo run llm_quick algorithm=gepo optimizer.lr=3e-4
      keys= ;;
    llm_rates) variant llm_rates llm_delay_sweep tune=null \
      'sweep={algorithm: [grpo, gspo, gepo, topr], optimizer.lr: [0.002, 0.004], cluster.max_delay: [0, 1800], seed: [1, 2]}' ;;
    laboratory)
      keep four_arms bias four_arms
      keep theory theory
      keys='^(outcomes|theorem|smallest)|^together|(pairs|pairs_far|kl_median|lr|largest_constant|share_theorem1_holds|share_aw_varies_more|_far)$'
      keep theory_training_bandit theory theory_training
      keep theory_training_sequence theory theory_training_sequence
      keep theory_training_mdp theory theory_training_mdp
      keep theory_training_early theory theory_training_sequence training.updates=100 training.record_every=4
      keys=
      keys='^\[(is|snis|gepo|gepo\(clip=none\)),(2|8|64),exact\]\.(kl_exact|bias|cosine|variance|mse)$'
      keep bias_groups bias bias_groups
      keys='^\[[^#]*\]\.(kl_exact|scaled_bias|mse)$'
      keep denominators bias denominators
      keys=
      keep bias_directions bias bias_directions
      keep bias_directions_solved bias bias_directions learner_probs=[0.85,0.05,0.05,0.05] world.rewards=[1,0,0,0]
      keep bias_directions_hard bias bias_directions learner_probs=[0.05,0.35,0.3,0.3] world.rewards=[1,0,0,0]
      keep bias_directions_six bias bias_directions learner_probs=[0.3,0.25,0.2,0.1,0.1,0.05] world.rewards=[0,1,0,0,1,0]
      keys='^\[(grpo|gspo|gepo|gepo\(clip=none\)),8,exact,[0-9]*\]\.(kl_exact|cosine)$'
      keep bias_staleness bias bias_staleness
      keys='\.(kl_exact|cosine|return)$'
      keep llm_exact_bias bias llm_exact_bias
      keys='^\[(is|grpo|gspo\(eps_low=0\.2, eps_high=0\.2\)|gepo\(log_prob=mean\)|gepo\(clip=none\)),(raw|truncated|replay),(top_p=0\.(5|8|95)|top_k=2),exact'
      keep truncation bias truncation
      keep truncation_stale bias truncation 'dial.kl=[0.1]'
      keys='#20\]'
      keep sample_efficiency bias sample_efficiency
      keys= ;;
    announcements)
      announce frontier frontier
      announce frontier_fresh frontier --of cluster.preset=sync
      announce frontier_gepo frontier -a 'gepo released'
      announce frontier_gspo frontier -a 'gspo 0.2'
      announce frontier_grpo frontier -a grpo
      announce confirmation confirmation
      announce screening screening ;;
    declines) declines ;;
    features)
      features released_online
      features released_delay
      features paper_online
      features paper_delay
      if [ -n "${GEPOLAB_PAPER_DATA:-}" ]; then published_features; fi ;;
    real_bias) gradients ;;
    clock) keep heterorl_trace sim heterorl_trace ;;
    published) keep published published ;;
    *) echo "there is no study '$study': $known" >&2; exit 2 ;;
  esac
done
