# The jobs of tests/freeze/freeze.sh: `jobs` prints a line of shell for each, which is run in a process
# of its own, in the folder FREEZE/scratch, with the functions below.

wants() { case "$FREEZE_PARTS" in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# What must vary from one execution to the next, or from one machine to the other.
normalised() { # wall times and rates of runs and sweeps; what memory `llm info` finds free. Checkpoints: see `state`
  sed -E -e 's/(cells?|runs?|updates?) in [0-9.]+ (ms|s|min|h)/\1 in TIME/' \
    -e 's/"(free|versions_beside_step|cells_per_s)":(\s*)[0-9.e+-]+/"\1":\2N/'
}
made_anywhere() { # a report, without its program's version, and what made its runs: version, commit, machine, hours, memory, libraries, dates
  sed -E -e 's/(<footer><p>Written by gepolab )[^ ]+/\1VERSION/' \
    -e 's/^<tr><th scope="row">[^<]*<\/th><td><code>.*/<tr>…/' -e 's/^<p>The first run was finished at .*/…/'
}

# say PART NAME WORDS…: the command line, what it prints, its exit status and what it says, into PART/NAME.
say() {
  wants "$1" || return 0
  said=$FREEZE/$1/$2; shift 2
  mkdir -p "${said%/*}"
  {
    echo "\$ gepolab $*"
    "$GEPOLAB" "$@" 2> "$said.stderr" < /dev/null && code=0 || code=$?
    echo "exit $code"
    cat "$said.stderr"
  } | normalised >> "$said"
  rm "$said.stderr"
}
# figure PART NAME WORDS…: the same, whose last word is an option for the folder; its data and scripts.
figure() {
  wants "$1" || return 0
  part=$1; name=$2; shift 2
  rm -rf "drawn/$part/$name"
  say "$part" "$name.txt" "$@" "drawn/$part/$name"
  for file in $(cd "drawn/$part/$name" 2> /dev/null && find . -name '*.tsv' -o -name '*.gp' | sort); do
    mkdir -p "$FREEZE/$part/$name"
    cp "drawn/$part/$name/$file" "$FREEZE/$part/$name/"
  done
}
# For each recipe "-llm" where its shortened form trains a transformer.
kind() { case " $shortened_llm " in *" $1 "*) echo -llm ;; esac; }

# --- recipes, figures, exports -------------------------------------------------------------------

formats() { # PART NAME WORDS…: as text, Markdown, LaTeX and JSON
  part=$1; name=$2; shift 2
  for format in text markdown latex; do say "$part" "$name.$format" "$@" --format $format; done
  say "$part" "$name.json" "$@" --json
}
study() {
  recipe=$1; llm=$(kind "$1"); db=$1.db
  "$GEPOLAB" sweep "$@" -q -j 1 -o "$db" > "$recipe.said" 2>&1 || { cat "$recipe.said" >&2; exit 1; }
  if wants "recipes$llm"; then
    mkdir -p "$FREEZE/recipes$llm/$recipe"
    normalised < "$recipe.said" > "$FREEZE/recipes$llm/$recipe/said"
    "$GEPOLAB" export "$db" --all -o "$FREEZE/recipes$llm/$recipe" > /dev/null
  fi
  figure "figures$llm" "$recipe" plot "$db" -o
  e=exports$llm
  wants "$e" || return 0
  formats $e "$recipe/analyze" analyze "$db"
  formats $e "$recipe/outcomes" outcomes "$db"
  formats $e "$recipe/effects" effects "$db" --all
  formats $e "$recipe/announcements" announcements "$db"
  formats $e "$recipe/features" features "$db"
  formats $e "$recipe/contrasts" contrasts "$db" "$recipe"
  say $e "$recipe/status" status "$db" --json
  say $e "$recipe/check" check "$db"
  say $e "$recipe/report" report "$db" --no-figures -o "$recipe.html"
  [ ! -e "$recipe.html" ] || made_anywhere < "$recipe.html" > "$FREEZE/$e/$recipe/report.html"
}
each_set() {
  figure "figures$(kind "$1")" "$1_sets" plot "$1.db" --each-set -o
  formats "exports$(kind "$1")" "$1/each_set" analyze "$1.db" --each-set
}
outcomes() { :; } # study has them
laboratory() {
  llm=$(kind "$1")
  say "recipes$llm" "$1.json" bias "$@" --json
  say "recipes$llm" "$1.txt" bias "$@"
  say "recipes$llm" "$1.tsv" bias "$@" --format tsv
  figure "figures$llm" "bias_$1" bias "$@" -f
}
table() { say recipes "$1.json" bias "$@" --json; say recipes "$1.txt" bias "$@"; }
theory() { say recipes theory.json theory --json; say recipes theory.txt theory; figure figures theory theory -f; }
training() { say recipes "$1.json" theory "$@" --json; say recipes "$1.txt" theory "$@"; }
selection() {
  say recipes "$1.json" selection "$@" --json
  say recipes "$1.txt" selection "$@"
  figure figures "$1" selection "$@" -f
}
published() {
  formats clock "published/$1" published "$1"
  figure figures "$1" published "$1" -f
}
clock() {
  recipe=$1
  schedules "recipe/$1" "$@"
  figure figures "clock_$recipe" sim "$@" --timeline --densities -f
}

# --- clock ---------------------------------------------------------------------------------------

schedules() { # NAME RECIPE overrides: all that `gepolab sim` says
  name=$1; shift
  say clock "$name.json" sim "$@" --json
  say clock "$name.txt" sim "$@"
  say clock "$name.csv" sim "$@" --schedule csv
  say clock "$name.selection" sim "$@" --selection
  say clock "$name.selection" sim "$@" --selection --json
  say clock "$name.theory" sim "$@" --theory
  say clock "$name.theory" sim "$@" --theory --json
  say clock "$name.replicas" sim "$@" --replicas 3 -j 1
  say clock "$name.replicas" sim "$@" --replicas 3 -j 1 --json
}
# One cluster a line: what the clock knows, each with all presets that may have it.
clusters='plain|generation: {distribution: lognormal, interval: [60, 150], confidence: 0.9}, delay: 20, learner: {step: 25}
links|generation: 60, weights_bytes: 7e9, rollout_bytes: 40e6, down: {bandwidth: 125e6, packet_bytes: 65536, loss: 0.01, rto: 0.5}, up: {bandwidth: 125e6, packet_bytes: 65536, loss: 0.02, to_bad: 0.01}
lengths|lengths: {distribution: lognormal, mu: 6, sigma: 0.8}, max_tokens: 2000, tokens_per_s: 40, concurrency: 8, learner: {step: 20}
crashes|generation: 60, mtbf: {distribution: exponential, mean: 2000}, mttr: 100, delay: {distribution: gamma, shape: 2, scale: 10}, learner: {step: 20, capacity: 5}
groups|unit: group, partial: continue, lengths: {distribution: weibull, shape: 1.2, scale: 400}, tokens_per_s: 40, concurrency: 16, interrupt: 1, prefill_tokens_per_s: 4000, learner: {step: 10}
responses|unit: response, partial: drop, lengths: {distribution: uniform, min: 10, max: 900}, tokens_per_s: 40, concurrency: 16, learner: {step: 10, tokens: 9000}
network|generation: 60, weights_bytes: 14e9, rollout_bytes: 40e6, down: {bandwidth: 1e9}, up: {bandwidth: 1e9}, network: {egress: {bandwidth: 2e9}, ingress: {bandwidth: 1e8, share: queue}, handshake: {round_trips: 2, rtt: 0.1}, delta: {share: 0.1, full_every: 4}}
tree|generation: 60, weights_bytes: 14e9, down: {bandwidth: 1e9}, up: {bandwidth: 1e9}, network: {relay: {kind: tree, fanout: 2, shards: 4}}'
presets="sync one_step_off areal verl_async prime_rl intellect2 pipelinerl streamrl asyncflow llamarl magistral laminar roll_flash slime skyrl heterorl fifo lifo"
preset() { # its own defaults, then each cluster
  say clock "preset/$1" sim quickstart steps=60 "cluster={preset: $1}" --json
  echo "$clusters" | while IFS='|' read -r name text; do
    say clock "preset/$1.$name.json" sim quickstart steps=60 "cluster={preset: $1, samplers: 4, $text}" --json
    say clock "preset/$1.$name.csv" sim quickstart steps=60 "cluster={preset: $1, samplers: 4, $text}" --schedule csv
  done
}
# Clusters of their own: groups of samplers, places, rules, laws.
special() {
  one() { name=$1; shift; schedules "special/$name" quickstart steps=80 "$@"; }
  one samplers 'cluster={preset: heterorl, samplers: [{count: 2, speed: 2}, {count: 1, speed: 0.5, delay: {distribution: pareto, scale: 20, shape: 1.5}}]}'
  one sites 'cluster={preset: fifo, generation: 60, weights_bytes: 1e9, down: {bandwidth: 1e9}, up: {bandwidth: 1e9}, samplers: [{count: 2, site: a}, {count: 2, site: b}], network: {sites: [{name: a, latency: 0.05, bandwidth: 1e9}, {name: b, latency: 0.1, outages: [[500, 900]], mtbf: {distribution: exponential, mean: 3000}}], interrupted: lost}}'
  for stale in discard downweight; do one stale_$stale "cluster={preset: fifo, samplers: 6, generation: 60, window: 2, stale: $stale, learner: {step: 30}}"; done
  for evict in oldest stalest newest; do one evict_$evict "cluster={preset: lifo, samplers: 8, generation: 60, learner: {step: 30, capacity: 2, evict: $evict}}"; done
  for queue in heterorl fifo lifo oldest_version; do one queue_$queue "cluster={preset: fifo, samplers: 5, generation: {distribution: gamma, shape: 2, scale: 30}, learner: {step: 20, queue: $queue, lookback: 3}}"; done
  for partial in wait continue drop; do one partial_$partial "cluster={preset: pipelinerl, partial: $partial, kv_cache: recompute, prefill_tokens_per_s: 3000, prompt_tokens: 50, lengths: {distribution: lognormal, mu: 6, sigma: 1}, prompt_lengths: {distribution: lognormal, mu: 0, sigma: 0.5}, batching: padded, concurrency: 8, learner: {step: 10}}"; done
  one bursts 'cluster={preset: fifo, generation: 40, data_delay: 3, jitter: {distribution: uniform, min: 0.5, max: 1.5}, delay: {distribution: gilbert_elliott, good: 5, bad: {distribution: exponential, mean: 100}, to_bad: 0.05, to_good: 0.2}, learner: {step: 15, eval_every: 8, eval_pause: 60, publish_every: 2, batches: 2}}'
  one mm1 steps=2000 'cluster={preset: sync, samplers: 4}'
  one empirical 'cluster={preset: fifo, generation: 40, delay: {distribution: empirical, file: golden/exports/wide.csv, column: gepo, scale: 100}}'
}

# --- policy --------------------------------------------------------------------------------------

algorithm() { # NAME: on every group, and with every change of fields
  for group in groups/*.json; do say policy "$1/groups" policy -a "$1" --json "$group"; done
  for group in by_hand ragged; do say policy "$1/text" policy -a "$1" groups/$group.json; done
  awk -F '\t' -v a="$1" '$1 == a' cases | while IFS='	' read -r name group fields; do
    IFS='	'; set -- $fields; unset IFS
    say policy "$name/changed" policy -a "$name" "$@" --json "groups/$group.json"
  done
}
whatif() {
  for log in log log_short; do
    say policy "whatif/$log.txt" whatif $log.jsonl
    say policy "whatif/$log.json" whatif $log.jsonl --json
    say policy "whatif/$log.some" whatif $log.jsonl -a gepo -a gspo
    figure policy "whatif/$log.figures" whatif $log.jsonl -f
  done
}

# --- checkpoints ---------------------------------------------------------------------------------

state() { # PART NAME WORDS…: a run's checkpoints, final state and summary
  part=$1; name=$2; shift 2
  wants "$part" || return 0
  mkdir -p "$part.runs"
  say "$part" "$name/summary" run "$@" -q --json -t 1 --checkpoint "$part.runs/$name" --checkpoint-every 7 --save "$part.runs/$name.state"
  [ ! -e "$part.runs/$name.state" ] || cp "$part.runs/$name.state" "$FREEZE/$part/$name/state"
  for file in "$part.runs/$name"/*.checkpoint; do # without the build and the wall time in its head, and the checksum at its end
    [ ! -e "$file" ] || { head -c 24 "$file"; tail -c +33 "$file" | head -c 56; tail -c +97 "$file" | head -c -8; } > "$FREEZE/$part/$name/${file##*/}"
  done
}
worlds='bandit|{kind: bandit}
contexts|{kind: bandit, contexts: 3, arms: 5}
sequence|{kind: sequence, vocabulary: 3, horizon: 4, prompts: 4, task: needle, needle_length: 2}
ended|{kind: sequence, vocabulary: 3, horizon: 5, prompts: 3, end_token: true, task: sum_mod}
automaton|{kind: automaton, vocabulary: 6, horizon: 6, automaton: count, modulus: 3, prompts: 2}'
row_names() { # of all algorithms
  "$GEPOLAB" algorithms --json | sed -n 's/.*"name":[[:space:]]*"\([^"]*\)".*/\1/p'
}
world() { # NAME: with several algorithms
  text=$(echo "$worlds" | sed -n "s/^$1|//p")
    for a in gepo grpo gspo vtrace m2po; do state checkpoints "$1.$a" quickstart steps=24 eval_every=8 "world=$text" algorithm=$a; done
}
toy_runs() {
    one() { name=$1; shift; state checkpoints "$name" quickstart steps=24 eval_every=8 "$@"; }
  for a in $(row_names); do one "row.$a" "algorithm=$a"; done
  for o in sgd adam adamw; do one "optimizer.$o" "optimizer={kind: $o, lr: 0.02, warmup: 4, clip_grad_norm: 1}"; done
  one epochs train.epochs=2 train.minibatches=2 train.groups=4 train.group_size=4
  one minibatches train.minibatches=4 train.groups=8 train.group_size=4
  one groups 'cluster={preset: verl_async, lengths: {distribution: lognormal, mu: 3, sigma: 0.5}}' 'world={kind: sequence, vocabulary: 3, horizon: 5, prompts: 3, end_token: true, task: sum_mod}'
  one coupled 'cluster={preset: pipelinerl, coupled: true, tokens_per_s: 0.5, learner: {step: 10}}' 'world={kind: sequence, vocabulary: 3, horizon: 5, prompts: 3, end_token: true, task: sum_mod}' train.groups=4 train.group_size=4
  one filtered train.filter_groups.enable=true train.group_size=2 'cluster={preset: fifo, coupled: true, tokens_per_s: 2, learner: {step: 10}}'
  one mixture 'sampling.behaviour_mixture={share: 0.2}'
  one noise train.weight_noise=0.5
  one top 'sampling={temperature: 0.8, top_k: 3, top_p: 0.9}' 'world={kind: sequence, vocabulary: 4, horizon: 4, prompts: 2, task: sum_mod}'
}
llm_runs() {
    one() { name=$1; shift; state checkpoints-llm "$name" llm_quick $tiny 'world.warmup={steps: 20}' steps=16 "$@"; }
  for a in gepo grpo gspo cispo m2po; do one "row.$a" "algorithm=$a"; done
  one epochs train.epochs=2 train.minibatches=2
  one minibatches train.minibatches=2 train.groups=4
  one stale 'cluster={preset: heterorl, window: 8, samplers: 4, generation: 90, max_delay: 600, learner: {step: 30}}'
  one groups 'cluster={preset: pipelinerl, coupled: true, tokens_per_s: 2, learner: {step: 10}}'
  one addition 'world.task={kind: addition, digits: 2, min_digits: 2}'
  one top 'sampling={temperature: 0.8, top_k: 5, top_p: 0.9}'
  one filtered train.filter_groups.enable=true train.group_size=2 'cluster={preset: fifo, coupled: true, tokens_per_s: 2, learner: {step: 10}}'
}

# --- commands ------------------------------------------------------------------------------------

rows() { "$GEPOLAB" help --completion bash | sed -n "s/^$1\t\([^\t]*\)\t.*/\1/p"; }
help() {
  say commands help/gepolab
  say commands help/gepolab --help
  say commands help/version --version
  rows c | while read -r c; do
    name=$(printf '%s' "$c" | tr -d - | tr -s ' ' _)
    say commands "help/$name" $c --help
    say commands "help/$name.bare" $c --no-such-option
  done
  for c in $(rows a); do say commands help/old_words "$c" --help; done
  say commands help/man help --man
  for shell in bash zsh; do say commands "help/completion.$shell" help --completion $shell; done
}
catalogues() {
  for c in algorithms recipes fields kinds presets metrics; do say commands "$c/text" $c; say commands "$c/json" $c --json; done
  say commands algorithms/fields algorithms --fields
  say commands algorithms/one algorithms gepo
  say commands algorithms/one algorithms gepo --json
  for r in $("$GEPOLAB" recipes | cut -d ' ' -f 1); do say commands "recipes/$r" recipes "$r"; done
  for c in fields presets; do say commands "$c/markdown" $c --format markdown; done
  say commands fields/units fields --units
  say commands fields/only fields cluster --only
  say commands plot/list plot --list
  say commands export/list export --list
  say commands export/list export --list -t cells
  say commands llm/tasks llm tasks
  say commands llm/tasks llm tasks --json
}
documents() {
  for r in README.md paper/findings.md; do say commands results/check results check source/$r -d paper/results; done
  say commands results/define results define paper/gepolab.tex -d paper/results -o defined.tex
  [ ! -e defined.tex ] || cp defined.tex "$FREEZE/commands/results/defined.tex"
  for e in panel_eval.csv panel_kl.csv long.csv tidy.csv wide.csv wide.tsv runs.jsonl history.jsonl hostile.csv; do
    formats commands "imports/$e.analyze" analyze "golden/exports/$e"
    formats commands "imports/$e.features" features "golden/exports/$e"
    figure commands "imports/$e.plot" plot "golden/exports/$e" -o
  done
  say commands imports/together analyze golden/exports/panel_eval.csv golden/exports/tidy.csv -l tidy.csv=other --at common
  say commands imports/published analyze golden/exports/panel_eval.csv --published golden/exports/published.tsv
}
plans() {
  for c in one_node data_centre three_continents; do
    say commands "plan/$c.txt" plan $c -q -j 1 train.groups=4 plan.selection.updates=24 plan.selection.most=12
    say commands "plan/$c.json" plan $c -q -j 1 train.groups=4 plan.selection.updates=24 plan.selection.most=12 --json
  done
  say commands plan/limits plan one_node -q -j 1 train.groups=4 plan.selection.updates=24 plan.selection.most=12 plan.limits.staleness=1.5 -o planned.yaml
  [ ! -e planned.yaml ] || cp planned.yaml "$FREEZE/commands/plan/planned.yaml"
  figure figures plan plan one_node -q -j 1 train.groups=4 plan.selection.updates=24 plan.selection.most=12 plan.limits.staleness=1.5 -f
}
fits() { # the times and lengths of a log of 300 lines
  awk 'BEGIN {s = 12345; print "delay_ms,tokens"; for (i = 0; i < 300; i++) {
    s = (s * 1103515245 + 12345) % 2147483648; u = (s + 0.5) / 2147483648; s = (s * 1103515245 + 12345) % 2147483648; v = (s + 0.5) / 2147483648
    printf "%.3f,%d\n", -40 * log(u) + 5, v < 0.1 ? 900 : 1 + int(900 * v * v)}}' > fit.csv
  say commands fit/delay fit fit.csv -c delay=delay_ms -u ms
  say commands fit/delay.json fit fit.csv -c delay=delay_ms -u ms --json
  say commands fit/lengths fit fit.csv -c lengths=tokens --at-most lengths=900
  say commands fit/censored fit fit.csv -c lengths=tokens --at-most lengths=900 --censored --json
}
# What is said of every field that has a value of another kind, and of numbers out of bounds.
refused() { # RECIPE COMMAND PATHS OVERRIDES: the fields whose path matches the expression
  recipe=$1; command=$2
  "$GEPOLAB" fields --json | sed -n 's/^.*"path":[[:space:]]*"\([^"]*\)".*/\1/p' | grep -E "$3" > "paths.$recipe"
  shift 3
  while read -r path; do
    for value in '[[x]]' -7.5 '{zz: 1}'; do say commands "refused/$recipe" "$command" "$recipe" "$@" "$path=$value"; done
  done < "paths.$recipe"
}
arguments() { # what is said of wrong command lines
  one() { say commands refused/arguments "$@"; }
  one nonsense; one runn; one run; one run nosuch; one run quickstart stepz=3; one run quickstart steps=; one run quickstart steps
  one run quickstart algorithm=gepoo; one run quickstart 'algorithm={base: gepo, clipp: none}'; one run quickstart 'algorithm={base: gepo, clip: nonee}'
  one run quickstart 'world={kind: bandits}'; one run quickstart 'world={kind: chain, states: 1}'; one run quickstart 'cluster={preset: fifoo}'
  one run quickstart 'cluster={delay: {distribution: lognorml}}'; one run quickstart 'cluster={delay: {distribution: uniform, min: 3, max: 1}}'
  one run quickstart 'cluster={delay: {distribution: pareto}}'; one run quickstart 'cluster={delay: 3 parsecs}'; one run quickstart 'cluster.samplers=[{cuont: 2}]'
  one run quickstart 'optimizer={kind: adam, betta1: 0.9}'; one run quickstart 'steps: 3'; one run quickstart '{'; one run quickstart 'seed=9223372036854775808'
  one sweep quickstart; one sweep quickstart -o; one sweep quickstart -o /nonexistent/x.db; one sweep delay_sweep -o a.db --shard 3/2; one sweep delay_sweep -o a.db -j 0
  one policy; one policy -a gepo; one policy -a gepo /nonexistent; one policy -a nosuch groups/even.json; one policy -a gepo eps=3 groups/even.json
  one status /nonexistent.db; one info golden/exports/wide.csv; one analyze /nonexistent; one analyze golden/policy_cases.json; one plot; one plot -f nosuch golden/exports/wide.csv
  one export /nonexistent.db; one export golden/exports/wide.csv -t nosuch; one merge; one merge a.db; one check; one fields nosuch; one presets nosuch; one recipes nosuch; one algorithms nosuch
  one plan nosuch; one plan one_node plan.limits.staleness=-1; one fit fit.csv; one fit /nonexistent -c delay=x; one whatif /nonexistent; one whatif log.jsonl -a nosuch
  one sim quickstart --schedule tsv; one sim quickstart --width 3; one sim quickstart --between 5,1 --timeline; one bias quickstart; one bias four_arms algorithms=[nosuch]; one theory nosuch; one selection quickstart
  one llm; one llm nosuch; one llm info nosuch; one llm eval; one llm generate; one llm answer; one results; one results check /nonexistent; one contrasts golden/exports/wide.csv quickstart; one help --completion fish; one bench nosuch; one doctor nosuch
}
small_commands() {
  say commands run/text run quickstart -q
  say commands run/json run quickstart -q --json algorithm=grpo
  "$GEPOLAB" run quickstart steps=40 -q -o run.db > /dev/null
  say commands run/study analyze run.db
  "$GEPOLAB" sweep quickstart steps=20 -q -j 1 -o part.db --shard 0/2 'sweep={algorithm: [gepo, grpo], seed: [1, 2]}' > part.said 2>&1
  say commands sweep/shard merge joined.db part.db.shard0
  say commands sweep/status status joined.db --missing
  "$GEPOLAB" sweep quickstart steps=20 -q -j 1 -o two_rates.db 'sweep={algorithm: [gepo, grpo], seed: [1, 2]}' 'tune={lr: [0.01, 0.1], seeds: [7, 8]}' > two_rates.said 2>&1 || cat two_rates.said
  for t in runs summary cells recipes axes axis_values steps evals set_evals staleness fates clock tuned tuning bias; do
    for f in csv tsv jsonl; do say commands "export/$t.$f" export two_rates.db -t $t -f $f; done
  done
  say commands sweep/tuned analyze two_rates.db
  say commands llm/answer llm answer '\boxed{\frac{1}{2}}' 0.5
  say commands llm/answer llm answer '42' 43
}

# --- library -------------------------------------------------------------------------------------

library() {
  (cd "$FREEZE/../.." && cd source 2> /dev/null || cd "$FREEZE/scratch/source" && cat library/symbols.txt) > "$FREEZE/library/symbols.txt"
  libs=$(dirname "$FREEZE")
  ${CC:-gcc} -std=c11 -I source/library -o consumer source/tests/library/consumer/consumer.c "$libs/libgepolab.so.0"
  LD_LIBRARY_PATH=$libs ./consumer > "$FREEZE/library/consumer.txt"
  nm -D --defined-only "$libs/libgepolab.so.0" | awk '$2 ~ /^[A-Z]$/ && $2 != "A" {sub(/@.*/, "", $3); print $3}' | sort > "$FREEZE/library/exported.txt"
}

# --- all -----------------------------------------------------------------------------------------

# A line of shell for each job of the parts that are asked for, the longest first.
jobs() {
  recipes=$("$GEPOLAB" recipes | awk '/^[a-z]/ && $2 != "plan" { print $1 }')
  for r in $recipes; do
    llm=$(kind "$r")
    if wants "recipes$llm" || wants "figures$llm" || wants "exports$llm"; then echo "shortened $r"
    elif wants clock; then echo "study() { :; }; shortened $r"; fi
  done
  if wants clock; then
    for p in $presets; do echo "preset $p"; done
    echo special
    for r in $recipes; do
      case $r in published_* | ten_thousand*) ;; *) echo "say clock sim/$r sim $r --json" ;; esac
    done
  fi
  if wants checkpoints-llm; then echo llm_runs; fi
  if wants checkpoints; then
    echo toy_runs
    for w in $(echo "$worlds" | cut -d '|' -f 1); do echo "world $w"; done
  fi
  if wants commands; then
    echo "refused quickstart run . steps=1"; echo "refused heterorl_trace sim '^cluster' steps=20"; echo "refused llm_quick run '^(world|train|sampling|optimizer|eval)' \$tiny steps=1 'world.warmup={steps: 2}'"
    echo "refused denominators bias '^[^.]*$|^(world|dial|training|theory|outcomes)' dial.kl.points=2 group_size=[2]"
    echo plans; echo documents; echo catalogues; echo help; echo fits; echo small_commands; echo arguments
  elif wants figures; then echo plans
  fi
  if wants policy; then
    echo whatif
    for a in $(row_names); do echo "algorithm $a"; done
  fi
  if wants library; then echo library; fi
}
