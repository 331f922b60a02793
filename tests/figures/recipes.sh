# How each shipped recipe is shortened to seconds, whatever is then done with it: sourced by
# tests/figures/check.sh, which draws, and tests/freeze/freeze.sh, which compares. A recipe without a
# line below fails.
#
# Who sources it defines these, each with a recipe and its overrides behind:
#   study       a sweep into a study        clock      its simulated cluster, without learning
#   laboratory  `gepolab bias`              table      `gepolab bias`, of which there is no figure
#   theory      `gepolab theory`            training   `gepolab theory` of a recipe of training, a table
#   selection   `gepolab selection`         published  `gepolab published`
#   each_set    of the study just made      outcomes   of the study just made

# Toy worlds stand in for transformers: what follows from the sweep and not from the world needs no more.
toy='world={kind: sequence, vocabulary: 3, horizon: 2, prompts: 2, task: sum_mod}'
small="world.model.layers=1 world.warmup.steps=20 world.evaluation.prompts=8 train.groups=2 train.group_size=4 steps=12 eval_every=2"
tiny="$small world.model.hidden=16 world.model.heads=2"

# Recipes whose shortened form trains a transformer.
shortened_llm="weights_in_flight confirmation_mixture long_regime long_regime_larger long_regime_weights long_regime_variance long_regime_sgd long_regime_settings paper_divergence long_regime_countdown long_regime_tuned long_regime_low_rates staleness_rate staleness_rate_medium staleness_rate_unclipped staleness_rate_far staleness_rate_larger which_wrong which_wrong_placebo lower_baseline baseline_parts right_only_parts long_regime_far paper_divergence_48 paper_divergence_96 remedies_again kl_directions dynamic_sampling replay replay_computation remedies_half_rate mixture_shares remedies remedies_stale tuned gepo_parts_sorting screening benchmarks \
released_online released_delay paper_online paper_delay llm_delay_sweep llm_quick llm_exact_bias llm_exact_gradient"

shortened() { # RECIPE
  case $1 in
    delay_sweep) study $1 steps=30 eval_every=5 tune=null 'sweep.seed=[1,2]'; clock $1 ;;
    packet_loss | shared_egress) study $1 steps=20; clock $1 ;;
    relay_tree) clock $1 cluster.samplers=6 cluster.learner.batches=6 steps=12 ;;
    heterogeneous_samplers) study $1 steps=30; clock $1 ;;
    heterorl_trace) clock $1 ;;
    ten_thousand_samplers | slow_prompts | three_continents | restarts | staleness_counters | decoding_load | prefix_cache | grader | environment | colocated | cancelling | rejection | lengths | oversampling | sources) clock $1 steps=60 ;;
    weights_in_flight) study $1 $tiny 'world.warmup={steps: 20}' 'sweep.optimizer.lr=[5.0e-4]' 'sweep.seed=[1, 2]' ;;
    what_arrives | dropping) selection $1 steps=60 ;;
    quickstart) study $1 steps=30 'cluster={preset: heterorl}' 'sweep={algorithm: [gepo, grpo], seed: [1, 2], cluster.delay: [30, {distribution: uniform, min: 1, max: 60}]}' ;;
    frontier_automaton) study $1 steps=40 eval_every=2 world.vocabulary=4 world.horizon=4 'sweep.optimizer.lr=[0.3, 3, 30, 300]' 'sweep.seed=[1, 2]' ;;
    confirmation_mixture | mixture_shares | remedies | remedies_stale | tuned | gepo_parts_sorting)
      study $1 $tiny 'world.warmup={steps: 20}' 'sweep.seed=[1, 2]' $([ $1 != tuned ] || echo tune=null) ;;
    edges | frontier | frontier_sorting | gepo_parts | causes | mismatch)
      study $1 "$toy" steps=40 eval_every=2 'sweep.optimizer.lr=[0.3, 3, 30, 300]' 'sweep.seed=[1, 2, 3]'
      outcomes $1 ;;
    confirmation) study $1 "$toy" steps=40 eval_every=2 'sweep.seed=[1, 2, 3]' ;;
    screening) study $1 steps=12 eval_every=2 world.model.layers=1 'world.warmup={steps: 20}' world.evaluation.prompts=8 train.groups=2 train.group_size=4 ;;
    remedies_half_rate | which_wrong | which_wrong_placebo | lower_baseline | baseline_parts | right_only_parts | long_regime_far | paper_divergence_48 | paper_divergence_96 | long_regime_weights | long_regime_variance | long_regime_sgd | paper_divergence) study $1 $tiny 'world.warmup={steps: 20}' 'sweep.seed=[1, 2]' ;;
    long_regime_settings) study $1 world.model.layers=1 world.model.hidden=16 world.model.heads=2 world.evaluation.prompts=8 steps=12 eval_every=2 'world.warmup={steps: 20}' 'sweep.seed=[1]' ;;
    long_regime_countdown | remedies_again | kl_directions | dynamic_sampling | replay) study $1 $tiny 'world.warmup={steps: 20}' 'sweep.seed=[1]' ;;
    replay_computation) study $1 world.model.layers=1 world.model.hidden=16 world.model.heads=2 world.evaluation.prompts=8 train.groups=2 train.group_size=4 eval_every=2 'world.warmup={steps: 20}' 'sweep.seed=[1]' 'sweep.steps=[8, 12]' ;;
    long_regime_tuned | long_regime_low_rates) study $1 $tiny 'world.warmup={steps: 20}' 'sweep.seed=[1, 2]' tune=null ;;
    long_regime) study $1 $tiny 'world.warmup={steps: 20}' 'sweep.seed=[1, 2]' 'sweep.optimizer.lr=[2.0e-4]' ;;
    staleness_rate | staleness_rate_medium | staleness_rate_unclipped | staleness_rate_far) study $1 $tiny 'world.warmup={steps: 20}' 'sweep.seed=[1]' 'sweep.optimizer.lr=[2.0e-4]' ;;
    staleness_rate_larger) study $1 $tiny world.model.kv_heads=2 world.backend=cpu world.dtype=float32 'world.warmup={steps: 20}' 'sweep.seed=[1]' 'sweep.optimizer.lr=[2.0e-5]' ;;
    long_regime_larger) study $1 $tiny world.model.kv_heads=2 world.backend=cpu world.dtype=float32 'world.warmup={steps: 20}' 'sweep.seed=[1]' ;;
    two_bits) study $1 steps=100 eval_every=20 'sweep.optimizer.lr=[1, 16]' 'sweep.seed=[11, 12]'; outcomes $1 ;;
    sensitivity) study $1 "$toy" steps=40 eval_every=4 'sweep.optimizer.lr=[1]' 'sweep.seed=[1, 2]' ;;
    benchmarks) study $1 $small world.model.intermediate=48 'sweep.seed=[1, 2]'; each_set $1 ;;
    released_online | released_delay | paper_online | paper_delay) study $1 $tiny 'world.warmup={steps: 20}' 'sweep.seed=[1, 2]' ;;
    llm_delay_sweep) study $1 $small world.model.intermediate=48 tune=null 'sweep.seed=[1, 2]' ;;
    llm_quick) study $1 $tiny 'world.warmup={steps: 20}' 'sweep={seed: [1, 2]}' ;;
    bias_vs_kl) laboratory $1 dial.kl.points=6 ;;
    bias_directions) laboratory $1 dial.directions=20 ;;
    bias_groups) laboratory $1 dial.kl.points=8 ;;
    four_arms) table $1 ;;
    bias_staleness | denominators | truncation | llm_exact_bias) laboratory $1 ;;
    llm_exact_gradient) laboratory $1 samples=256 ;;
    sample_efficiency) laboratory $1 training.updates=40 training.seeds=1 training.tuning_seeds=1 'training.lr=[1]' ;;
    theory) theory $1 ;;
    theory_training | theory_training_sequence | theory_training_mdp)
      training $1 training.updates=70 training.seeds=1 training.tuning_seeds=1 'training.lr=[1]' ;;
    published_verl | published_one_step_off | published_areal | published_headlines) published $1 ;;
    real_bias) ;; # a run whose checkpoints `gepolab llm bias` measures; so short a one has no gradients
    qwen3_math | released_qwen3) ;; # need weights, data and a GPU
    *) echo "tests/figures/recipes.sh does not know the recipe $1: say there how it is shortened" >&2; exit 1 ;;
  esac
}
