/* Mistakes of people who come from other programs: each is answered by what to type here. */
#include "core/base/utf8.h"
#include "tests/support/cli.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

SUITE("cli: mistakes");

typedef struct mistake {
  const char *arguments[6];
  const char *answer; /* part of the message */
} mistake;

static void refuse_each(const mistake *all, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    cli_result r = cli_run(NULL, all[i].arguments);
    CU_ASSERT_EQUAL(r.code, 2);
    CU_ASSERT_STRING_EQUAL(r.out, "");
    if (strstr(r.err, all[i].answer) == NULL) {
      fprintf(stderr, "%s %s: no '%s' in: %s", all[i].arguments[0], all[i].arguments[1],
              all[i].answer, r.err);
      CU_FAIL("the answer does not say what to type");
    }
  }
}

#define VERL "tests/golden/trainer_logs/verl.jsonl"
#define RUN(word)                                                                                  \
  { "run", "quickstart", "steps=2", word }

/* Fields under the names that TRL, verl, AReaL and network engineers give them. */
TEST(names_of_other_programs_are_answered_with_ours) {
  static const mistake all[] = {
      {RUN("lr=0.1"), "write optimizer.lr"},
      {RUN("learning_rate=0.1"), "write optimizer.lr"},
      {RUN("optimizer.learning_rate=0.1"), "write optimizer.lr"},
      {RUN("batch_size=8"), "write train.groups (prompts of a batch"},
      {RUN("num_generations=4"), "write train.group_size"},
      {RUN("group_size=4"), "write train.group_size"},
      {RUN("temperature=0.7"), "write sampling.temperature"},
      {RUN("max_steps=20"), "write steps"},
      {RUN("rtt=0.2"), "write cluster.delay (one way, so half of the round trip"},
      {RUN("cluster.latency=0.2"), "write cluster.delay"},
      {RUN("packet_loss=0.1"), "write cluster.up.loss (of batches; cluster.down.loss"},
      {RUN("bandwidth=100Mbit/s"), "write cluster.up.bandwidth"},
      {RUN("staleness=4"), "write cluster.window"},
      {RUN("max_delay=60"), "write cluster.max_delay"},
      {RUN("preset=areal"), "write cluster.preset"},
      {RUN("cluster.preset=verl"), "write cluster.preset=verl_async"},
      {RUN("world.kind=gsm8k"), "task: {kind: math, path: gsm8k.jsonl}"},
      {RUN("model=Qwen/Qwen3-0.6B"), "write world.model.path"},
      {RUN("beta=0.04"), "write algorithm.ref_kl_coef"},
      {RUN("eps_low=0.1"), "write algorithm.eps_low"},
      {RUN("algorithm.epsilon=0.2"), "write algorithm.eps_low (and algorithm.eps_high)"},
      {RUN("loss_type=dr_grpo"), "as in algorithm=dr_grpo"},
      {RUN("num_workers=8"), "write cluster.samplers"},
      {{"list", "fields", "num_generations"}, "train.group_size"}};
  refuse_each(all, sizeof all / sizeof *all);
}

TEST(a_field_written_as_an_option_is_answered_as_a_field) {
  static const mistake all[] = {
      {{"run", "quickstart", "--steps", "20"}, "key=value: steps=20"},
      {{"run", "quickstart", "--lr=0.1"}, "key=value: optimizer.lr=0.1"},
      {{"run", "quickstart", "--algorithm", "gspo"}, "key=value: algorithm=gspo"},
      {{"run", "quickstart", "--learning-rate"}, "key=value: optimizer.lr=VALUE"},
      {{"sim", "quickstart", "--cluster.max_delay", "60"}, "key=value: cluster.max_delay=60"},
      {{"run", "quickstart", "--jsn"}, "'--json'"}};
  refuse_each(all, sizeof all / sizeof *all);
}

/* Forty things that somebody types on the first day. */
TEST(forty_mistakes_of_the_first_day_are_answered) {
  static const mistake all[] = {
      {{"train", "quickstart"}, "use `gepolab run`"},
      {{"compare", "a.db"}, "use `gepolab analyze`"},
      {{"draw", "a.db"}, "use `gepolab plot`"},
      {{"version", "x"}, "use `gepolab --version`"},
      {{"-v", "x"}, "use `gepolab --version`"},
      {{"--steps", "20"}, "as in `gepolab run quickstart steps=20`"},
      {{"runn", "quickstart"}, "'run'"},
      {{"list", "worlds"}, "use `gepolab list kinds`"},
      {{"list", "losses"}, "use `gepolab list algorithms`"},
      {{"list", "preset"}, "'presets'"},
      {{"list", "algorithms", "geppo"}, "'gepo'"},
      {{"llm", "train", "llm_quick"}, "use `gepolab llm rl`"},
      {{"study", "open", "x.db"}, "use `gepolab study info`"},
      {{"lab", "variance"}, "use `gepolab lab bias`"},
      {{"run", "quickstart.yml"}, "'quickstart'"},
      {{"run", "gepo"}, "as in quickstart algorithm=gepo"},
      {{"sim", "areal"}, "as in quickstart cluster.preset=areal"},
      {{"run", "one_node"}, "`gepolab plan one_node`"},
      {{"sim", "one_node", "--print"}, "`gepolab plan one_node --print`"},
      {{"plan", "quickstart"}, "`gepolab run quickstart`"},
      {{"plan", "my_cluster"}, "one_node"},
      {{"run", "delay_sweep"}, "gepolab sweep"},
      {{"sweep", "delay_sweep"}, "add -o study.db"},
      {{"plot", "delay_sweep"}, "`gepolab sweep` or `run delay_sweep -o delay_sweep.db` first"},
      {{"analyze", "delay_sweep"}, "then delay_sweep.db"},
      {{"report", "delay_sweep"}, "then delay_sweep.db"},
      {{"run", "quickstart", "steps", "20"}, "without blanks: steps=20"},
      {{"run", "quickstart", "steps", "=", "20"}, "without blanks: steps=20"},
      {RUN("seed=[1,2,3]"), "an axis of a sweep: sweep.seed=[...]"},
      {RUN("seeds=3"), "write sweep.seed (a list"},
      {RUN("algorithm=[gepo,grpo]"), "an axis of a sweep: sweep.algorithm=[...]"},
      {RUN("algorithm=ppo"), "write algorithm=grpo"},
      {RUN("algorithm=gepoo"), "'gepo'"},
      {RUN("optimizer=adam"), "write optimizer.kind=adam"},
      {RUN("optimizer.kind=Adam"), "'adam'"},
      {RUN("world=bandit"), "write world.kind=bandit"},
      {RUN("world.kind=mdp"), "write world.kind=gridworld"},
      {RUN("cluster=areal"), "write cluster.preset=areal"},
      {RUN("cluster.up.loss=5%"), "5% is 0.05"},
      {RUN("cluster.delay=lognormal"), "{distribution: lognormal, interval: [60, 1800]}"},
      {RUN("cluster.max_delay=10ms"), "0 for none"},
      {RUN("clutser.window=3"), "'cluster'"},
      {RUN("--gpu"), "world.backend=VALUE"},
      {RUN("--jsn"), "'--json'"}};
  refuse_each(all, sizeof all / sizeof *all);
}

/* Tried by hand, after the forty. */
TEST(more_mistakes_of_the_first_day_are_answered) {
  static const mistake all[] = {
      {RUN("max_delay=10"), "write cluster.max_delay"},
      {{"run", "quickstart", "cluster.max_delay=10", "min"}, "cluster.max_delay=10min"},
      {RUN("seed=1,2,3"), "sweep.seed=[1,2,3]"},
      {RUN("optimizer.lr=1e-3,1e-4"), "sweep.optimizer.lr=[1e-3,1e-4]"},
      {{"run", "quickstart", "steps=\"10\""}, "a number has no quotes around it"},
      {RUN("world.model=Qwen/Qwen3-0.6B"),
       "unknown key 'model' in 'world' of this kind (`gepolab list fields world.model`"},
      {{"run", "recipes/quickstart"}, "did you mean 'quickstart'?"},
      {{"run", "quick", "start"}, "an override has the form key=value"},
      {{"quickstart", "steps=2"}, "use `gepolab run quickstart`"},
      {{"one_node", "-q"}, "use `gepolab plan one_node`"},
      {{"help", "quickstart"}, "use `gepolab run quickstart`"},
      {{"sweep", "quickstart", "algorithm=[grpo,gepo]", "-o", "s.db"}, "sweep.algorithm=[...]"},
      {{"sweep", "quickstart", "seed=[1,2]", "-o", "s.db"}, "sweep.seed=[...]"},
      {{"sweep", "quickstart", "sweep.algorithm=grpo,gepo", "-o", "s.db"},
       "in brackets: sweep.algorithm=[grpo,gepo]"},
      {{"report", "mine.db", "mine.html"}, "a file to write is -o mine.html"},
      {{"study", "ls", "mine.db"}, "it has status, info, check, merge, export"},
  };
  refuse_each(all, sizeof all / sizeof *all);
}

/* Settings and options of TRL, verl, AReaL and W&B, as their users type them. */
TEST(settings_of_trainers_are_answered) {
#define SWEEP(word)                                                                                \
  { "sweep", "quickstart", word, "-o", "s.db" }
  static const mistake all[] = {
      {SWEEP("sweep.lr=1e-3,1e-4"), "in brackets: sweep.optimizer.lr=[1e-3,1e-4]"},
      {SWEEP("sweep.lr="), "write sweep.optimizer.lr=[VALUE, ...]"},
      {SWEEP("sweep.seeds=3"), "in brackets: sweep.seed=[3]"},
      {{"sweep", "quickstart", "--seeds", "3", "-o", "s.db"}, "key=value: sweep.seed=[3]"},
      {RUN("optimizer.lr="), "write optimizer.lr=VALUE (null: the default)"},
      {{"run", "quickstart", "optimizer.lr"}, "without blanks: optimizer.lr=VALUE"},
      {{"plan", "one_node", "gpus=16"}, "write plan.sites.0.gpus=N,"},
      {RUN("cluster.loss=0.1"),
       "write cluster.up.loss (of batches; cluster.down.loss: of weights)"},
      {RUN("cluster.learner.time=5"), "write cluster.learner.step"},
      {RUN("cluster.step_time=5"), "write cluster.learner.step"},
      {RUN("cluster.gen_time=5"), "write cluster.generation"},
      {RUN("cluster.network.sites=[a,b]"), "as in sites: [{name: paris}, {name: tokyo"},
      {RUN("cluster.network.sites={a: 1}"), "as in [{name: paris}, {name: tokyo"},
      {{"plan", "one_node", "nodes=2"}, "plan.sites=[{name: a, gpus: 8}]"},
      {{"plan", "--gpus", "16"}, "plan.sites.0.gpus"},
      {RUN("algorithm=PPO-clip"), "write algorithm=grpo (the same clip"},
      {RUN("algorithm=REINFORCE++"), "write algorithm=reinforce_plus_plus"},
      {{"list", "algorithms", "PPO-clip"}, "here grpo (the same clip"},
      {RUN("algorithm={base: grpo, clip: 0.2}"), "write algorithm.eps_low (and algorithm.eps_high"},
      {RUN("clip=0.2"), "write algorithm.eps_low (and algorithm.eps_high"},
      {RUN("actor_rollout_ref.actor.optim.lr=1e-6"), "write optimizer.lr"},
      {RUN("actor_rollout_ref.rollout.n=8"), "write train.group_size"},
      {RUN("actor_rollout_ref.rollout.tensor_model_parallel_size=2"), "cluster.tokens_per_s is"},
      {RUN("data.train_batch_size=64"), "write train.groups"},
      {RUN("trainer.save_freq=10"), "write checkpoint.every"},
      {RUN("trainer.logger=wandb"), "kept with -o runs.db"},
      {RUN("async_training.staleness_threshold=2"), "write cluster.ahead"},
      {RUN("algorithm.kl_ctrl.kl_coef=0.001"), "write algorithm.reward_kl_coef"},
      {RUN("algorithm.rollout_is=true"), "write algorithm.tis_level (token or sequence"},
      {RUN("loss_mode=gspo"), "as in algorithm=gspo"},
      {RUN("kl_loss_type=k3"), "write algorithm.ref_kl_form"},
      {RUN("entropy_coeff=0.01"), "no algorithm here has a bonus for entropy"},
      {RUN("lam=0.95"), "there is no critic"},
      {RUN("use_vllm=true"), "no engine is called"},
      {RUN("gradient_checkpointing=true"), "write world.recompute"},
      {RUN("lora_rank=16"), "all parameters are trained"},
      {RUN("logging_steps=10"), "eval_every: updates between evaluations"},
      {RUN("report_to=wandb"), "kept with -o runs.db"},
      {RUN("run_name=first"), "write name"},
      {{"run", "quickstart", "--project", "x"}, "kept with -o runs.db"},
      {{"run", "quickstart", "--output_dir", "out"}, "-o runs.db"},
      {{"run", "quickstart", "--resume"}, "--checkpoint DIR goes on"},
      {{"run", "--config", "my.yaml"}, "gepolab run my.yaml"},
      {RUN("world=countdown"), "write 'world={kind: llm, task: countdown}'"},
      {RUN("cluster=verl"), "write cluster.preset=verl_async"},
      {RUN("cluster.delay=[1,2]"), "{distribution: uniform, interval: [60, 1800]}"},
      {{"fit", "quickstart"}, "usage: gepolab fit LOG"},
      {{"list", "fields", "report_to"}, "kept with -o runs.db"},
  };
#undef SWEEP
  refuse_each(all, sizeof all / sizeof *all);
}

/* What was accepted without a word although it could not do what was meant. */
TEST(what_would_have_no_effect_is_refused) {
  static const mistake all[] = {
      {RUN("cluster.delay=0"), "leave it out, as with cluster.max_delay=null"},
      {RUN("cluster.delay=5"), "max_delay (600) would replace this delay of 5"},
      {RUN("cluster.delay={value: 30m}"), "would replace this delay of 1800"},
      {RUN("cluster.delay={distribution: exponential, mean: 9}"), "cluster.max_delay=null"},
      {RUN("cluster.delay={dist: exponential, mean: 9}"), "did you mean 'distribution'?"},
      {RUN("cluster.up.loss=1"), "a loss of 1 lets no packet through"},
      {{"sim", "quickstart", "cluster.down.loss=1"}, "lower cluster.down.loss"},
      {{"sim", "quickstart", "cluster.network={sites: [{name: a}, {name: b, loss: 1}]}"},
       "a loss of 1 lets no packet through"},
      {RUN("world.vocabulary=1"), "give 2 letters or more"},
      {{"sim", "quickstart", "--width", "14"}, "needs --figures FOLDER"},
      {{"sim", "quickstart", "--highlight", "gepo"}, "needs --figures FOLDER"},
      {{"sim", "quickstart", "-f", "/dev/null/x", "--width", "wide"}, "--width"},
      {{"sim", "quickstart", "--timeline", "--between", "9,1"}, "--between"},
      {{"sim", "quickstart", "-f", "figs", "--measured", "/nowhere.csv"}, "/nowhere.csv"},
      {{"lab", "bias", "four_arms", "--format", "tsv", "--json"}, "exclude each other"},
      {{"list", "published", "--format", "latex", "--json"}, "exclude each other"},
      {{"policy", "-a", "grpo", "-a", "gepo", "-"}, "--algorithm is given twice, 'grpo' and"},
      {{"whatif", "-a", "is", "-a", "is", "-"}, "--algorithm is is given twice"},
      {{"whatif", "-", "-"}, "- is given twice; give it once"},
      {{"fit", "Makefile", "./Makefile"}, "./Makefile is given twice; give it once"},
      {{"plan", "one_node", "world.model.path=x"}, "a plan reads no model"},
      {{"plot", "-o", "fig.pdf", "--list"}, "write -o FOLDER, and --figure NAME for one of them"},
      {{"sim", "quickstart", "-f", "fig.pdf"}, "figures go into a folder"},
      {{"plan", "one_node", "-f", "fig.png"}, "figures go into a folder"},
      {{"lab", "bias", "four_arms", "-f", "fig.svg"}, "and --figure NAME"},
      {{"lab", "selection", "dropping", "-f", "fig.pdf"}, "figures go into a folder"},
      {{"list", "formats", "wandbx"}, "nothing in this list has 'wandbx'"},
      {{"run", "quickstart", "-o", "out.csv"}, "name it out.db"},
      {{"calibrate", "a.csv", "quickstart", "-o", "fitted.json"}, "name it fitted.yaml"},
      {{"diagnose", "a.jsonl", "-o", "page.pdf"}, "name it page.html"},
      {{"report", "a.db", "-o", "page.pdf"}, "name it page.html"},
      {{"study", "status", "a.db", "--every", "5"}, "--every needs --watch"},
      {{"run", "quickstart", "--checkpoint-every", "2"}, "needs --checkpoint DIR"},
      {{"sweep", "delay_sweep", "-o=a.db", "--checkpoint-every", "2"}, "needs --checkpoint DIR"},
      {{"diagnose", VERL, "--group-size", "4"}, "--group-size is for token-level logs, and " VERL},
      {{"plan", VERL, "--group-size", "4"}, "--group-size is for token-level logs, and " VERL},
      {{"calibrate", VERL, "quickstart"}, "are needed"},
      {{"whatif", "-", "--algorithms", "tests/golden/no.yaml"}, "path of a file that may be read"}};
  refuse_each(all, sizeof all / sizeof *all);
}

/* A constant delay beside max_delay is refused only where they differ; 0 and null are as before. */
TEST(a_delay_that_max_delay_repeats_or_leaves_is_taken) {
  CU_ASSERT(CLI_GIVES(0, "sim", "quickstart", "steps=5", "cluster.delay=600"));
  CU_ASSERT(CLI_GIVES(0, "sim", "quickstart", "steps=5", "cluster.delay=5", "cluster.max_delay=0"));
  cli_result now = CLI("sim", "quickstart", "steps=200", "cluster.delay=5",
                       "cluster.max_delay=null", "--json"),
             slow = CLI("sim", "quickstart", "steps=200", "cluster.delay=600", "--json");
  CU_ASSERT_EQUAL(now.code, 0);
  CU_ASSERT(number_at(member_at(json_of(&now), "staleness"), "mean") <
            number_at(member_at(json_of(&slow), "staleness"), "mean"));
}

/* The answer is in the form of the command that was called, and not in that of `run`. */
TEST(answers_are_in_the_commands_own_form) {
  static const mistake all[] = {
      {{"policy", "-a", "grpo", "algorithm.eps_low=0.3", "-"}, "write eps_low=0.3"},
      {{"policy", "-a", "grpo", "algorithm=gepo", "-"}, "write -a gepo"},
      {{"policy", "-a", "grpo", "epsilon=0.2", "-"}, "write eps_low=0.2 (and eps_high)"},
      {{"policy", "-a", "grpo", "--eps_high", "0.3"}, "key=value: eps_high=0.3"},
      {{"policy", "-a", "grpo", "lr=1e-3", "-"}, "it has those of the algorithm"},
      {{"policy", "-a", "group.json", "grpo"}, "write -a NAME group.json"},
      {{"policy", "group.json", "grpo"}, "an algorithm's name is -a grpo"},
      {{"whatif", "grpo", "gepo"}, "write -a grpo"},
      {{"whatif", "eps_low=0.1"}, "-a '{base: NAME, FIELD: VALUE}'"},
      {{"whatif", "-", "-a", "grpo,gepo"}, "give one at a time"},
      {{"whatif", "-", "-a", "gspo-token"}, "'gspo_token'"},
      {{"lab", "bias", "four_arms", "G=4"}, "write group_size"},
      {{"lab", "bias", "four_arms", "train.group_size=8"}, "write group_size"},
      {{"lab", "bias", "four_arms", "optimizer.lr=0.1"}, "'optimizer' in 'recipe'; it knows:"},
      {{"lab", "bias", "four_arms", "--algorithm", "gepo"}, "write algorithms=["},
      {{"lab", "bias", "four_arms", "algorithm=gepo"}, "write algorithms=["},
      {{"plan", "one_node", "plan.gpus=16"}, "write plan.sites.0.gpus=N,"},
      {{"plan", "one_node", "staleness=1"}, "write plan.limits.staleness=1"},
      {{"plan", "one_node", "model=Qwen3-8B"}, "a plan reads no model"},
      {{"plan", "one_node", "--trainer", "verl"}, "write --for TRAINER"},
      {{"list", "fields", "algorithm.eps_low"}, "gepolab list algorithms --fields"},
      {{"list", "fields", "cluster.widnow"}, "'cluster.window'"},
      {{"llm", "generate", "llm_quick", "world.warmup.steps=1"}, "--set world.warmup.steps=1"},
      {{"calibrate", "quickstart", "verl.jsonl"}, "gepolab calibrate verl.jsonl quickstart"},
      {{"sweep", "x.db", "delay_sweep"}, "gepolab sweep delay_sweep -o x.db"},
      {{"sweep", "four_arms", "-o", "x.db"}, "this is a recipe for `gepolab lab bias`"},
      {{"sweep", "quickstart", "sweep.max_delay=[0,60]", "-o", "x.db"},
       "write sweep.cluster.max_delay="},
      {{"sweep", "quickstart", "sweep.lr=[1,2]", "-o", "x.db"}, "write sweep.optimizer.lr="},
      {{"sweep", "quickstart", "sweep.seed=1..5", "-o", "x.db"}, "{from: 1, to: 5, n: 5}"},
      {{"sweep", "quickstart", "sweep.seed=[1..5]", "-o", "x.db"}, "{from: 1, to: 5, n: 5}"}};
  refuse_each(all, sizeof all / sizeof *all);
}

/* Letters and options that other programs, or other commands, have. */
TEST(options_of_other_commands_are_answered) {
  static const mistake all[] = {
      {RUN("-j4"), "one run has --threads N"},
      {RUN("-a"), "write algorithm=NAME"},
      {RUN("-cmy.yaml"), "the recipe is the first word"},
      {RUN("--dry-run"), "`gepolab sweep --dry-run` has it"},
      {RUN("--multirun"), "several runs are a sweep"},
      {{"run", "quickstart", "-steps", "20"}, "key=value: steps=20"},
      {{"run", "quickstart", "\xe2\x80\x93steps", "20"}, "write --steps"},
      {{"sim", "quickstart", "--output", "sim.csv"}, "--json > FILE"},
      {{"sweep", "quickstart", "--workers", "4"}, "write -j N"},
      {{"sweep", "quickstart", "--resume"}, "the same command goes on"},
      {{"sweep", "quickstart", "--array=1-10"}, "--shard I/N"},
      {{"sweep", "quickstart", "--time", "01:00:00"}, "sbatch"},
      {{"sweep", "quickstart", "--no-tune"}, "tune=null"},
      {{"fit", "a.csv", "--delay", "x"}, "--column delay=HEADING"},
      {{"fit", "a.csv", "-o", "x"}, "> FILE"},
      {{"analyze", "a.db", "-o", "x"}, "> FILE"},
      {{"analyze", "--effects", "a.db"}, "--table effects"},
      {{"plot", "a.db", "--format", "png"}, "all written"},
      {{"study", "check", "a.db", "--fix"}, "--repair"},
      {{"llm", "sft", "llm_quick", "--epochs", "1"}, "world.warmup.steps=N"},
      {{"llm", "answer", "-5"}, "put -- before"},
      {{"list", "figures"}, "`gepolab plot --list`"},
      {{"list", "fields", "--format", "json"}, "JSON is --json"},
      {{"study", "export", "a.db", "--format", "json"}, "did you mean 'jsonl'"},
      {{"resume", "a.db"}, "--checkpoint DIR"},
      {{"init"}, "--print"}};
  refuse_each(all, sizeof all / sizeof *all);
}

/* Values that the shell has split, or that are written as in other languages. */
TEST(values_that_are_not_yaml_are_answered) {
  static const mistake all[] = {
      {{"run", "quickstart", "algorithm={base:", "gepo,", "clip:", "none}"},
       "in quotes: 'algorithm={base: gepo, clip: none}'"},
      {{"sweep", "quickstart", "sweep.seed=[1,", "2]"}, "in quotes: 'sweep.seed=[1, 2]'"},
      {RUN("algorithm={base:gepo, clip: none}"), "a blank behind a colon"},
      {RUN("algorithm=clip:none"), "in quotes"},
      {RUN("algorithm=rloo"), "write algorithm=reinforce"},
      {RUN("world.kind=llm"), "replace the whole section, 'world={kind: llm, ...}'"},
      {RUN("optimizer.lr=0,05"), "a decimal point is a point: 0.05"},
      {RUN("cluster.learner.publish_every=none"), "null: the default"},
      {RUN("tune=false"), "tune=null leaves it out"},
      {{"run", "Qwen/Qwen3-0.6B"}, "hf download Qwen/Qwen3-0.6B --local-dir Qwen3-0.6B"},
      {{"run", "what_arrive"}, "'what_arrives'"},
      {{"run", "algorithm=gepo"}, "no recipe is named"}};
  refuse_each(all, sizeof all / sizeof *all);
}

/* What a stranger typed on his first day; each answer says what to write instead. */
TEST(a_strangers_mistakes_are_answered_with_a_remedy) {
  static const mistake all[] = {
      {{"run", "quickstart", "steps=3", "--print"}, "leave steps=3 out"},
      {{"run", "quickstart", "--print", "--json"}, "leave --json out"},
      {{"run", "quickstart", "-qo", "q.db"}, "write them apart: -q -o"},
      {{"run"}, "a recipe is missing"},
      {{"report"}, "a file of runs is missing"},
      {RUN("wandb_project=x"), "-o runs.db"},
      {RUN("max_prompt_length=3"), "world.max_tokens"},
      {RUN("minibatch_size=3"), "write train.minibatches"},
      {RUN("num_envs=3"), "write train.groups"},
      {RUN("episodes=3"), "write steps"},
      {RUN("optimizer.name=adam"), "write optimizer.kind"},
      {RUN("optimizer.momentum=0.9"), "(optimizer.momentum=null)"},
      {RUN("optimizer.lr=0.05s"), "('0.05s'); it must be a number from 0 to 1000000, and it takes"},
      {RUN("train.filter_groups=true"), "write train.filter_groups.enable=true"},
      {RUN("world.policy=tabular"), "write world.policy.kind=tabular"},
      {RUN("train=8"), "as in train.groups=VALUE; train=null"},
      {RUN("checkpoint=10"), "as in checkpoint.every=VALUE"},
      {RUN("world.model=Qwen/Qwen3-0.6B"), "replace the whole section, 'world={kind: llm, ...}'"},
      {RUN("world.max_tokens=64"), "replace the whole section, 'world={kind: llm, ...}'"},
      {RUN("world.task.path=x"), "'world={kind: llm, ...}'"},
      {{"run", "quickstart", "steps=1,000"}, "not at all: 1_000"},
      {{"sweep", "quickstart", "-o", "x.db", "sweep.seed=1-3"}, "{from: 1, to: 5, n: 5}"},
      {{"sweep", "quickstart", "-o", "x.db", "sweep.seed=[1-3]"}, "{from: 1, to: 5, n: 5}"},
      {{"list", "presets", "nosuch"}, "lifo, not 'nosuch'"},
      {{"lab", "selection", "four_arms"}, "as one for `gepolab lab selection`"},
      {RUN("cluster.delay={interval: [1, 2], mu: 3}"), "give either interval"},
      {{"run", "quickstart", "cluster.max_delay=null",
        "cluster.delay={distribution: exponential, mean: 3, clamp: [10, 2]}"},
       "10 is above 2"},
      {{"llm", "bias", "quickstart"}, "is no folder with checkpoints"},
  };
  refuse_each(all, sizeof all / sizeof *all);
  cli_result r = CLI("list", "fields", "batch_size");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "train.groups"));
}

TEST(what_has_no_effect_is_noted) {
  cli_result r = CLI("run", "quickstart", "-q", "steps=2", "algorithm=reinforce",
                     "algorithm.eps_low=0.9", "optimizer.warmup=1000");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "no effect with clip: none"));
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "never reaches optimizer.lr"));
  r = CLI("sweep", "quickstart", "--dry-run", "steps=2", "optimizer.warmup=5000",
          "sweep.algorithm=[{base: grpo, clip: none, eps_low: 0.1}, {base: gspo, clip: none, "
          "eps_low: 0.2}, grpo]",
          "sweep.seed=[1, 2]");
  const char *note = strstr(r.err, "no effect with clip: none");
  CU_ASSERT(note != NULL && strstr(note + 1, "no effect with clip: none") == NULL);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "never reaches optimizer.lr"));
  r = CLI("sweep", "quickstart", "--dry-run", "steps=2", "algorithm.eps_low=0.1",
          "sweep.algorithm.clip=[none, ppo]");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NULL(strstr(r.err, "no effect"));
  r = CLI("run", "quickstart", "-q", "steps=2", "algorithm=gspo", "algorithm.eps_low=3");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "a ratio is never below 1 - 3"));
  r = CLI("run", "quickstart", "-q", "steps=2", "algorithm.eps_high=9", "algorithm=grpo");
  CU_ASSERT_PTR_NOT_NULL(
      strstr(r.err, "note: algorithm.eps_high=9 has no effect, because algorithm"));
}

/* -o=FILE is -o FILE; a log of text is no JSON array; a prompt is needed before the model is made.
 */
TEST(files_and_inputs_of_the_first_day) {
  char folder[64], path[128], option[140];
  cli_scratch_make(folder);
  snprintf(option, sizeof option, "-o=%s", cli_path(path, folder, "one.db"));
  CU_ASSERT(CLI_GIVES(0, "run", "quickstart", "steps=2", "-q", option));
  CU_ASSERT(CLI_GIVES(0, "study", "status", path));
  REFUSED(2, "leave --metric out", "plot", path, "--metric", "kl", "--figure", "eval_score");
  REFUSED(2, "leave --metric out", "analyze", path, "--metric", "kl");
  REFUSED(2, "there are eval_score,", "plot", path, "--figure", "figs");
  REFUSED(2, "takes one study", "report", path, path);
  static const char log[] = "[2024-01-01] INFO step 1\n[2024-01-01] INFO step 2\n";
  cli_write(cli_path(path, folder, "slurm.out"), log, sizeof log - 1);
  REFUSED(2, "no table of several columns", "analyze", path);
  cli_write(path, "[1, 2]\n", 7);
  REFUSED(2, "this is a JSON array", "analyze", path);
  cli_write(cli_path(path, folder, "fetch.csv"), "fetch_ms\n1\n2\n", 13);
  REFUSED(2, "there are fetch_ms", "fit", path, "--column", "delay=fetch");
  REFUSED(1, "batches (or groups, or responses) were lost", "sim", "quickstart", "steps=5",
          "cluster.up.loss=0.9", "cluster.rollout_bytes=10MB");
  REFUSED(2, "no prompt; give one", "llm", "generate", "llm_quick");
  REFUSED(1, "there is no folder", "sweep", "delay_sweep", "--dry-run", "-o",
          cli_path(path, folder, "none/x.db"));
  cli_result r = CLI("run", "quickstart", "steps=2", "algorithm.kl_coef=0.001");
  CU_ASSERT_PTR_NOT_NULL(strstr(r.err, "is algorithm.ref_kl_coef"));
}

/* A file of another kind where a recipe is read. */
TEST(a_file_that_is_no_recipe_is_answered_by_what_it_is) {
  char folder[64], study[128], text[128];
  cli_scratch_make(folder);
  cli_path(study, folder, "study.db");
  CU_ASSERT_TRUE_FATAL(CLI_GIVES(0, "run", "quickstart", "steps=2", "-q", "-o", study));
  REFUSED(2, "is a study and no recipe; `gepolab analyze`, plot and report read it", "run", study);
  REFUSED(2, "is a study, which `gepolab analyze`, plot and report read; usage: gepolab fit LOG",
          "fit", study);
  REFUSED(2, "is a study, which `gepolab analyze`", "whatif", study);
  REFUSED(2, "is a study, which `gepolab analyze`", "policy", "-a", "grpo", study);
  REFUSED(2, "is a study, which `gepolab analyze`", "plan", study);
  REFUSED(2, "--format csv", "study", "export", study, "-o", cli_path(text, folder, "t.parquet"));
  CU_ASSERT(CLI_GIVES(0, "study", "export", study, "-o", cli_path(text, folder, "t.tsv")));
  char *tsv = cli_read(text);
  CU_ASSERT_EQUAL(strncmp(tsv, "study\t", 6), 0);
  static const char assigned[] = "steps=10\nworld.kind=bandit\n";
  cli_write(cli_path(text, folder, "assigned.yaml"), assigned, sizeof assigned - 1);
  REFUSED(2, "a file has key: value", "run", text);
}

TEST(a_recipe_for_another_command_says_for_which) {
  static const mistake all[] = {
      {{"lab", "bias", "quickstart"}, "a recipe for `gepolab run`; as one for `gepolab lab bias`"},
      {{"run", "four_arms"}, "a recipe for `gepolab lab bias`"},
      {{"sim", "theory"}, "a recipe for `gepolab lab theory`"},
      {{"lab", "theory", "four_arms"}, "a recipe for `gepolab lab bias`"}};
  refuse_each(all, sizeof all / sizeof *all);
}

TEST(algorithms_are_found_in_any_case) {
  cli_result a = CLI("run", "quickstart", "algorithm=GSPO", "steps=5", "-q", "--json"),
             b = CLI("run", "quickstart", "algorithm=gspo", "steps=5", "-q", "--json");
  CU_ASSERT_EQUAL(a.code, 0);
  CU_ASSERT_STRING_EQUAL(a.out, b.out);
  a = CLI("list", "algorithms", "GePO"), b = CLI("list", "algorithms", "gepo");
  CU_ASSERT_EQUAL(a.code, 0);
  CU_ASSERT_STRING_EQUAL(a.out, b.out);
}

/* Both spellings are one cell: the second sweep finds it done. */
TEST(the_case_of_a_name_makes_no_other_cell) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "s.db");
  CU_ASSERT(CLI_GIVES(0, "run", "quickstart", "algorithm=GSPO", "steps=2", "-q", "-o", path));
  CU_ASSERT(CLI_GIVES(0, "run", "quickstart", "algorithm=gspo", "steps=2", "-q", "-o", path));
  cli_result r = CLI("study", "export", path, "--table", "runs", "--format", "csv");
  size_t lines = 0;
  for (const char *c = r.out; *c != '\0'; ++c) lines += *c == '\n';
  CU_ASSERT_EQUAL(lines, 2);
}

TEST(fields_and_metrics_are_searched) {
  cli_result r = CLI("list", "fields", "staleness");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "cluster.window "));
  CU_ASSERT_PTR_NULL(strstr(r.out, "optimizer.lr "));
  r = CLI("list", "metrics", "ESS");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT(strncmp(r.out, "ess ", 4) == 0); /* and not "staleness" before it */
  CU_ASSERT_PTR_NULL(strstr(r.out, "entropy "));
  REFUSED(2, "without words `gepolab list metrics` lists all", "list", "metrics", "sharpe");
}

TEST(recipes_are_listed_with_their_commands) {
  static const char *const pairs[][2] = {{"quickstart", "run"},
                                         {"delay_sweep", "sweep"},
                                         {"four_arms", "lab bias"},
                                         {"theory", "lab theory"},
                                         {"relay_tree", "sim"},
                                         {"what_arrives", "lab selection"},
                                         {"paper_delay", "sweep"},
                                         {"truncation", "lab bias"},
                                         {"theory_training", "lab theory"},
                                         {"published_verl", "list published"}};
  cJSON *list = CLI_JSON("list", "recipes", "--json"), *item = NULL;
  size_t found = 0;
  cJSON_ArrayForEach(item, list) for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    if (strcmp(text_at(item, "name"), pairs[i][0]) != 0) continue;
    CU_ASSERT_STRING_EQUAL(text_at(item, "command"), pairs[i][1]);
    ++found;
  }
  CU_ASSERT_EQUAL(found, sizeof pairs / sizeof *pairs);
}

TEST(lists_fit_80_columns) {
  static const char *const lists[][5] = {{"list", "recipes"},
                                         {"list", "metrics"},
                                         {"list", "kinds"},
                                         {"list", "fields"},
                                         {"list", "algorithms"},
                                         {"list", "algorithms", "--fields"},
                                         {"list", "presets"},
                                         {"list", "published", "published_headlines", "steps=40"},
                                         {"lab", "theory", "pairs=20", "starts=2"},
                                         {"lab", "bias", "four_arms"},
                                         {"sim", "quickstart", "steps=40", "--replicas", "3"},
                                         {"lab", "bias", "four_arms", "algorithms=[gspo,gepo]"}};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
    cli_result r = CLI(lists[i][0], lists[i][1], lists[i][2], lists[i][3], lists[i][4]);
    CU_ASSERT_EQUAL(r.code, 0);
    CU_ASSERT(cli_fits(r.out, strlen(r.out)));
  }
}

TEST(help_of_help_is_the_overview) {
  cli_result help = CLI("help"), of_help = CLI("help", "help"), asked = CLI("help", "--help");
  CU_ASSERT_EQUAL(of_help.code, 0);
  CU_ASSERT_STRING_EQUAL(help.out, of_help.out);
  CU_ASSERT_STRING_EQUAL(help.out, asked.out);
}

/* Letters that stand for one option in all commands that show them; others are still understood. */
TEST(a_letter_has_one_meaning) {
  static const char *const letters[] = {"-f", "-o", "-t"}, *const names[] = {"--figures",
                                                                             "--output", "--table"};
  cli_result r = CLI("help", "--completion", "bash");
  size_t found = 0;
  for (const char *row = strstr(r.out, "\no\t"); row != NULL; row = strstr(row + 1, "\no\t")) {
    char letter[4], name[64];
    if (sscanf(row, "\no\t%*[^\t]\t%3[^\t]\t%63[^\t]", letter, name) != 2) continue;
    for (size_t i = 0; i < sizeof letters / sizeof *letters; ++i) {
      if (strcmp(letter, letters[i]) != 0) continue;
      CU_ASSERT_STRING_EQUAL(name, names[i]);
      ++found;
    }
  }
  CU_ASSERT(found > 10);
  cli_result old = CLI("list", "fields", "steps", "-f", "markdown"),
             now = CLI("list", "fields", "steps", "--format", "markdown");
  CU_ASSERT_EQUAL(old.code, 0);
  CU_ASSERT_STRING_EQUAL(old.out, now.out);
}

TEST(what_is_inside_the_program_is_printed) {
  cli_result r = CLI("run", "quickstart", "--print"), same = CLI("list", "recipes", "quickstart");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_STRING_EQUAL(r.out, same.out);
  r = CLI("plan", "one_node", "--print"), same = CLI("list", "recipes", "one_node");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_STRING_EQUAL(r.out, same.out);
  REFUSED(2, "`gepolab plan one_node`", "run", "one_node");
  REFUSED(2, "`gepolab run quickstart`", "plan", "quickstart");
  REFUSED(2, "/dev/stdin", "run", "-");
}

/* The recipe describes a model of its own; a folder takes its place. */
TEST(another_model_takes_the_place_of_the_recipes) {
  REFUSED(2, "there is no folder '/nowhere'", "run", "llm_quick", "world.model.path=/nowhere");
}

TEST(a_seed_above_2_53_is_printed_whole) {
  cli_result r = CLI("run", "quickstart", "seed=9007199254740993", "steps=2", "-q", "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "\"seed\":\t9007199254740993,"));
  r = CLI("sim", "quickstart", "seed=9007199254740993", "steps=100", "--replicas", "2", "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  CU_ASSERT_PTR_NOT_NULL(strstr(r.out, "\"first_seed\":\t9007199254740993,"));
}

/* Bytes that are no UTF-8 are shown in JSON as they are elsewhere. */
TEST(names_that_are_not_utf_8_leave_json_valid) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_path(path, folder, "s\xff.db");
  CU_ASSERT(CLI_GIVES(0, "run", "quickstart", "steps=2", "-q", "-o", path));
  cli_result r = CLI("study", "status", path, "--json");
  cJSON *json = json_of(&r);
  CU_ASSERT_PTR_NOT_NULL(strstr(text_at(json, "file"), "s\\xff.db"));
  for (const char *c = r.out; *c != '\0'; ++c) CU_ASSERT((unsigned char)*c < 0x80);
  char data[128], package[160];
  CU_ASSERT(
      CLI_GIVES(0, "study", "export", path, "--all", "-o", cli_path(data, folder, "data\xff")));
  snprintf(package, sizeof package, "%s/datapackage.json", data);
  char *text = cli_read(package);
  CU_ASSERT_EQUAL(utf8_valid_prefix(text, strlen(text)), strlen(text));
  json = json_parsed(text);
  CU_ASSERT(cJSON_GetArraySize(member_at(json, "resources")) > 0);
  cli_path(path, folder, "q\xff.yaml");
  cli_write(path, "world: {kind: bandit}\n", 22);
  REFUSED(2, "rename the file, or give the recipe a name", "run", path);
}

TEST(files_without_a_run_say_how_to_get_one) {
  char folder[64], path[128];
  cli_scratch_make(folder);
  cli_write(cli_path(path, folder, "empty.db"), "", 0);
  REFUSED(1, "run the sweep again", "study", "status", path);
  REFUSED(1, "run the sweep again", "analyze", path);
  REFUSED(1, "run the sweep again", "plot", path);
  REFUSED(1, "write what it gives into a file", "study", "status", "/dev/zero");
  REFUSED(1, "name a file in it", "study", "status", folder);
}

/* The uniform policy over two letters in two places has the mean of what the file says. */
TEST(rewards_of_a_sequence_world_come_from_a_file) {
  static const char text[] = "prompt,response,reward\n*,0 0,1\n0,0 1,2\n0,1 1,5\n1,1 1,7\n",
                    wrong[] = "0,0 2,1\n";
  static const char recipe[] =
      "steps: 1\nworld: {kind: sequence, vocabulary: 2, horizon: 2, prompts: 2, "
      "rewards_path: rewards.csv}\n";
  char folder[64], path[128], rewards[128];
  cli_scratch_make(folder);
  cli_write(cli_path(rewards, folder, "rewards.csv"), text, sizeof text - 1);
  cli_write(cli_path(path, folder, "own.yaml"), recipe, sizeof recipe - 1);
  cli_result r = CLI("run", path, "-q", "--json");
  CU_ASSERT_EQUAL(r.code, 0);
  ASSERT_CLOSE(printed_number(&r, "eval_first"), ((1 + 2 + 5) / 4.0 + (1 + 7) / 4.0) / 2, 1e-12);
  REFUSED(2, "add world.task=null", "run", path, "world.task=parity");
  cli_write(rewards, wrong, sizeof wrong - 1);
  REFUSED(2, "rewards.csv:1: the response has something that is no letter", "run", path);
  cli_write(rewards, "0,0,1\n", 6);
  REFUSED(2, "rewards.csv:1: the response is too short", "run", path);
  CU_ASSERT_EQUAL(remove(rewards), 0);
  REFUSED(2, "rewards_path", "run", path);
}

/* Ctrl-C prints the summary so far and says how to go on another time. */
TEST(a_run_that_is_stopped_says_how_far_it_came) {
  char folder[64], err[128], out[128];
  cli_scratch_make(folder);
  const pid_t pid = CLI_START_WRITING(cli_path(out, folder, "out"), cli_path(err, folder, "err"),
                                      "run", "quickstart", "cluster.preset=sync", "steps=2000000",
                                      "cluster.max_delay=0", "--json");
  cli_wait_for_work(pid, 1);
  kill(pid, SIGINT);
  CU_ASSERT_EQUAL(cli_wait(pid), 130);
  char *printed = cli_read(out), *told = cli_read(err);
  cJSON *json = json_parsed(printed);
  CU_ASSERT_STRING_EQUAL(text_at(json, "status"), "stopped");
  CU_ASSERT(number_at(json, "steps") > 0);
  CU_ASSERT(cJSON_IsNumber(member_at(json, "best")));
  CU_ASSERT_PTR_NOT_NULL(strstr(told, "with --checkpoint DIR"));
}
