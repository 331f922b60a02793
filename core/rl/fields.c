/* Recipe fields that every study has: name, length, sweep, checkpoints, batches, optimiser and
 * sampling. */
#include "core/rl/fields.h"

#include "core/rl/sequence_task.h"

#include <math.h>
#include <stdint.h>

static const field study[] = {

    FIELD("name", "name", TEXT, "", NULL, "the study's name in the store and on figures",
          .role = ROLE_PROVENANCE, .rule = "the file's name"),
    FIELD("description", "description", TEXT, "", "",
          "one sentence that says what the recipe shows", .role = ROLE_PROVENANCE),
    FIELD("seed", "seed", INTEGER(0, INFINITY), "", "1",
          "the seed from which every random draw is addressed", .role = ROLE_SEED),
    FIELD("steps", "steps", COUNT(1, 100000000), "updates", "200", "learner updates of a run"),
    FIELD("eval_every", "evaluation interval", COUNT(1, 100000000), "updates", "10",
          "learner updates between two evaluations; the policy is also evaluated before the first "
          "update and after the last"),
};
FIELD_TABLE(study_fields, study);

static const field design[] = {
    FIELD("sweep", "sweep", SECTION, "", NULL,
          "a map of dotted paths to lists of values, whose product is the grid of runs; "
          "`algorithm` and `seed` are axes like all others",
          .role = ROLE_PROVENANCE),
    FIELD("sweep.random", "random search", SECTION, "", NULL,
          "settings that are sampled: an axis of `draws` values, each of which sets all its fields",
          .role = ROLE_PROVENANCE),
    FIELD("sweep.random.draws", "draws", COUNT(1, 100000), "", NULL,
          "how many different settings, up to 100,000. Required", .role = ROLE_PROVENANCE),
    FIELD("sweep.random.seed", "seed of the draws", INTEGER(0, INFINITY), "", "1",
          "the seed of the draws, which has nothing to do with those of runs",
          .role = ROLE_PROVENANCE),
    FIELD("sweep.random.fields", "sampled fields", SECTION, "", NULL,
          "a map of dotted paths to distributions: {distribution: NAME, from: A, to: B} with "
          "uniform, log_uniform, integer or log_integer (both ends included), {distribution: "
          "normal, mean: M, sd: S}, or {choice: […]}, each value equally likely. Required",
          .role = ROLE_PROVENANCE),
    FIELD("sweep.factorial", "factorial design", SECTION, "", NULL,
          "many fields at two levels each, changed together: an axis with a value for each "
          "combination",
          .role = ROLE_PROVENANCE),
    FIELD("sweep.factorial.factors", "factors", SECTION, "", NULL,
          "a map of capital letters to the fields that a factor sets, each with its low and its "
          "high value. Required",
          .role = ROLE_PROVENANCE),
    FIELD("sweep.factorial.generators", "generators", SECTION, "", NULL,
          "a map of factors to words: the level of G with the word ABCD is the product of those of "
          "A, B, C and D. The factors without one are run in all combinations",
          .role = ROLE_PROVENANCE),
    FIELD("sweep.factorial.blocks", "blocks", SECTION, "", NULL,
          "{words: [ACE, BDF], seeds: [1, 2, 3, 4]}: the signs of the words say which seed a "
          "combination has",
          .role = ROLE_PROVENANCE),
    FIELD("sweep.factorial.blocks.words", "block words", LIST, "", NULL,
          "words of base factors, n of them for 2^n blocks. Required", .role = ROLE_PROVENANCE),
    FIELD("sweep.factorial.blocks.seeds", "block seeds", LIST, "", NULL,
          "a seed for each block. Required", .role = ROLE_PROVENANCE),
    FIELD("sweep.one_at_a_time", "one-at-a-time design", SECTION, "", NULL,
          "a map of dotted paths to lists of values, the base first: an axis of the base and of "
          "settings that differ from it in one field",
          .role = ROLE_PROVENANCE),
    FIELD("contrasts", "contrasts", LIST, "", NULL,
          "comparisons declared before the runs, for `gepolab analyze --table contrasts`: a list "
          "of {name, measure: "
          "fall | late_fall | last | last_level | best_to_last | below_start, of: ARM, against: "
          "ARM}, an ARM being {algorithm: NAME, PATH: VALUE, …}",
          .role = ROLE_PROVENANCE),
    FIELD("tune", "tune", SECTION, "", NULL,
          "before the grid is run, each algorithm's learning rate, or other fields, are chosen on "
          "other seeds",
          .role = ROLE_PROVENANCE),
    FIELD("tune.lr", "tuned rates", LIST, "", NULL,
          "learning rates to try, each once; this or `fields` is required",
          .role = ROLE_PROVENANCE),
    FIELD("tune.fields", "tuned fields", SECTION, "", NULL,
          "a map of dotted paths to lists of values to try, or to ranges; all their combinations "
          "are tried, with those of `lr`. At most eight fields",
          .role = ROLE_PROVENANCE),
    FIELD("tune.halving", "successive halving", SECTION, "", NULL,
          "settings are tried in `rungs` of ever longer runs, and of each rung the best 1/`eta` go "
          "on to the next, whose runs are `eta` times as long; those of the last have `steps` "
          "updates",
          .role = ROLE_PROVENANCE),
    FIELD("tune.halving.eta", "halving factor", COUNT(2, 1000), "", "3", "2 or more",
          .role = ROLE_PROVENANCE),
    FIELD("tune.halving.rungs", "halving rungs", COUNT(2, 20), "", "3", "2 or more",
          .role = ROLE_PROVENANCE),
    FIELD("tune.seeds", "tuning seeds", LIST, "", NULL,
          "seeds to try them on, none of them a seed of the sweep; required",
          .role = ROLE_PROVENANCE),
    FIELD("checkpoint", "checkpoint", SECTION, "", NULL,
          "how often a run that keeps checkpoints writes one", .role = ROLE_PROVENANCE),
    FIELD("checkpoint.every", "checkpoint interval", COUNT(1, 100000000), "updates", NULL,
          "learner updates between two checkpoints; not together with `seconds`. "
          "`--checkpoint-every N` wins over either",
          .role = ROLE_PROVENANCE),
    FIELD("checkpoint.seconds", "checkpoint time", REAL(0, 1e9), "s", "300",
          "wall-clock seconds between two checkpoints, which are written at the end of an update",
          .role = ROLE_PROVENANCE),
    FIELD("checkpoint.keep", "checkpoints kept", COUNT(1, 1000000), "", "2",
          "how many checkpoints stay; older ones are deleted", .role = ROLE_PROVENANCE),
};
FIELD_TABLE(design_fields, design);

static const field learner[] = {

    /* train */
    FIELD("train", "train", SECTION, "", NULL, "the batch of an update and how it is used"),
    FIELD("train.groups", "groups", COUNT(1, 1u << 20), "", "8", "prompts of a batch"),
    FIELD("train.group_size", "group size", COUNT(1, 1u << 20), "", "8",
          "responses to each prompt"),
    FIELD("train.minibatches", "minibatches", COUNT(1, 1u << 20), "", "1",
          "parts into which the groups of an update's batches are split; each part is one "
          "optimiser step"),
    FIELD("train.filter_groups", "dynamic sampling", SECTION, "", NULL,
          "samplers leave out groups whose responses all have one reward and continue to sample "
          "(DAPO, "
          "verl's filter_groups); with `cluster: {coupled: true}`, which counts the time of all "
          "that is sampled"),
    FIELD("train.filter_groups.enable", "group filter", FLAG, "", "false",
          "whether groups of equal rewards are left out"),
    FIELD("train.filter_groups.max_num_gen_batches", "generation batches", COUNT(1, 100000), "",
          "10", "most rounds of drawing for a batch",
          .when = {{"train.filter_groups.enable", "true"}, {"cluster.coupled", "true"}}),
    FIELD("train.filter_groups.gen_batch_size", "generation batch size", COUNT(1, 1u << 20), "",
          NULL, "groups of a round; those beyond a full batch are left out too", .rule = "groups"),
    FIELD("train.filter_groups.exhausted", "exhausted filter", CHOICE("fill", "fail"), "", "fill",
          "what happens where the last round leaves a batch short: fill (with groups of equal "
          "rewards, those sampled first) or fail (the run ends with an error, as in verl)",
          .when = {{"train.filter_groups.enable", "true"}, {"cluster.coupled", "true"}}),
    FIELD(
        "train.unsolvable", "unsolvable prompts", REAL(0, 1), "", "0",
        "fraction of the prompts whose responses all have reward 0 in training; evaluations score "
        "them as they are"),
    FIELD("train.reward_noise", "noise of training rewards", SECTION, "", NULL,
          "what is wrong with the rewards that training sees; evaluations see them right"),
    FIELD("train.reward_noise.flip", "flipped rewards", REAL(0, 1), "", "0",
          "fraction of the rewards r, which must be in [0, 1], that become 1 - r"),
    FIELD(
        "train.weight_noise", "variance of weight noise", REAL(0, 1e6), "", "0",
        "variance of a random factor, of mean 1, by which each response's part of the gradient is "
        "multiplied: it adds variance and no bias. Up to 65,536 minibatches × epochs"),
    FIELD("train.drop_negative", "random drop of wrong responses", REAL(0, 1), "", "0",
          "probability that a response whose reward is below its group's mean has no gradient, "
          "drawn anew for every response and update: a placebo for masks and clips, which choose "
          "by likelihood. Not together with `weight_noise`; up to 65,536 minibatches × epochs"),
    FIELD("train.drop_positive", "random drop of right responses", REAL(0, 1), "", "0",
          "the same of responses whose reward is above the mean"),
    FIELD("train.drop_equal", "random drop of groups of equal rewards", REAL(0, 1), "", "0",
          "the same of responses of groups whose rewards are all equal. Such responses have a "
          "gradient where the baseline is not the group's mean"),
    FIELD("train.replay", "replay of right responses", SECTION, "", NULL,
          "responses of reward 1 are kept after their update, and later updates raise their "
          "log-probability too. Of the metrics only grad_norm and grad_cosine include replay; the "
          "clock does not count its time",
          .when = {{"world.kind", "llm"}}),
    FIELD("train.replay.coef", "replay coefficient", REAL(0, 1e6), "", "0",
          "coefficient in the objective of the mean log-probability of the replayed tokens; 0: no "
          "replay",
          .when = {{"world.kind", "llm"}}),
    FIELD("train.replay.responses", "replayed responses", COUNT(1, 65536), "", "32",
          "responses drawn from the kept ones, with replacement, for the optimiser updates of a "
          "step",
          .when = {{"world.kind", "llm"}}),
    FIELD("train.replay.size", "replay buffer", COUNT(1, 65536), "", "1024",
          "most responses kept; the oldest leave first", .when = {{"world.kind", "llm"}}),
    FIELD("train.epochs", "epochs", COUNT(1, 1u << 20), "", "1",
          "passes over the batches of an update, each in an order of its own"),

    /* optimizer */
    FIELD("optimizer", "optimizer", SECTION, "", NULL, "how gradients become updates"),
    FIELD("optimizer.kind", "optimizer kind", CHOICE("sgd", "adam", "adamw"), "", "adam",
          "sgd, adam or adamw"),
    FIELD("optimizer.lr", "learning rate", REAL(0, 1e6), "", "1e-05",
          "learning rate; with `tune` it is chosen", .when = {{"world.kind", "llm"}}),
    FIELD("optimizer.lr", "learning rate", REAL(0, 1e6), "", "0.05", NULL),
    FIELD("optimizer.momentum", "momentum", REAL(0, FIELD_BELOW_1), "", "0", "momentum of sgd",
          .when = {{"optimizer.kind", "sgd"}}),
    FIELD("optimizer.beta1", "beta1", REAL(0, FIELD_BELOW_1), "", "0.9",
          "decay of the mean of gradients in adam and adamw", .unless = {"optimizer.kind", "sgd"}),
    FIELD("optimizer.beta2", "beta2", REAL(0, FIELD_BELOW_1), "", "0.999",
          "decay of the mean of squared gradients in adam and adamw",
          .unless = {"optimizer.kind", "sgd"}),
    FIELD("optimizer.eps", "optimizer eps", POSITIVE, "", "1e-08",
          "added to the root of the mean square in adam and adamw",
          .unless = {"optimizer.kind", "sgd"}),
    FIELD("optimizer.weight_decay", "weight decay", REAL(0, 1e6), "", "0",
          "decoupled from the gradient in adamw, added to it in sgd and adam; a transformer's norm "
          "weights do not decay"),
    FIELD("optimizer.clip_grad_norm", "gradient norm limit", REAL(0, 1e300), "", "0",
          "a longer gradient is scaled down to this norm; 0: no limit. The metric grad_norm is "
          "measured before"),
    FIELD("optimizer.warmup", "rate warm-up", COUNT(0, (uint64_t)1 << 40), "updates", "0",
          "learner updates over which the rate rises linearly"),
    FIELD("optimizer.decay", "rate decay", CHOICE("none", "linear", "cosine"), "", "none",
          "how the rate decreases from the end of the warm-up to the last update: none, linear or "
          "cosine"),
    FIELD(
        "optimizer.ess_scaling", "ESS scaling", CHOICE("none", "sqrt", "linear"), "", "none",
        "sqrt or linear: each update's rate is multiplied by the effective sample size of P/Q, as "
        "a fraction of its responses, or by its square root (VCPO)"),

    /* sampling */
    FIELD("sampling", "sampling", SECTION, "", NULL,
          "the distribution that responses are sampled from"),
    FIELD("sampling.temperature", "temperature", POSITIVE, "", "1",
          "divides the logits of sampler and learner alike"),
    FIELD("sampling.top_k", "top-k", COUNT(0, INFINITY), "", "0",
          "keeps the k most probable tokens, and every token as probable as the k-th; 0: all"),
    FIELD("sampling.top_p", "top-p", REAL(0, 1), "", "1",
          "of what top_k left, keeps the fewest most probable tokens with this fraction of the "
          "probability; of equally probable tokens the lower number comes first"),
    FIELD("sampling.weights", "weights seen", CHOICE("raw", "truncated", "replay"), "", "raw",
          "which log-probabilities importance weights are made of: raw (the policies'), truncated "
          "(the learner's against those of the distribution really sampled from, after top_k and "
          "top_p) or "
          "replay (both renormalised over the tokens that the sampler kept; over more than 1,024 "
          "tokens of a transformer it needs top_k)"),
    FIELD("sampling.logq", "recorded by", CHOICE("sampler", "learner"), "", "sampler",
          "who computes the recorded log-probabilities of sampled tokens: the sampler, of its own "
          "distribution, "
          "or the learner, from the parameters of the version that drew, without what `behaviour` "
          "adds"),
    FIELD("sampling.behaviour", "behaviour", SECTION, "", NULL,
          "how samplers compute otherwise than the learner; evaluations do not"),
    FIELD("sampling.behaviour.noise", "noise of logits", REAL(0, 1e6), "", "0",
          "standard deviation of a normal number added to every logit of a sampler"),
    FIELD("sampling.behaviour.precision", "precision of logits", CHOICE("float32", "bfloat16"), "",
          "float32", "bfloat16 rounds a sampler's logits to that format; float32 leaves them"),
    FIELD("sampling.behaviour.temperature_error", "temperature error", REAL(-0.99, 1e6), "", "0",
          "samplers divide by temperature × (1 + this)"),
    FIELD("sampling.behaviour_mixture", "behaviour mixture", SECTION, "", NULL,
          "a fraction of the responses comes from another policy, and all are recorded with the "
          "mixture's probability; without top_k and top_p, in a transformer also without "
          "behaviour.noise and precision"),
    FIELD("sampling.behaviour_mixture.with", "mixed policy", CHOICE("initial", "uniform"), "",
          "initial", "initial (the parameters before the first update) or uniform (over tokens)"),
    FIELD("sampling.behaviour_mixture.share", "mixed fraction", REAL(0, 0.99), "", "0",
          "fraction of the responses, below 1; 0: none"),
};
FIELD_TABLE(rl_fields, learner);

static const field evaluation[] = {
    FIELD("world.evaluation", "evaluation", SECTION, "", NULL,
          "what the evaluation score is: a kind, or {kind: …, temperature: …, …}"),
    FIELD(
        "world.evaluation.kind", "evaluation kind", CHOICE("exact", "greedy", "sampled"), "",
        "greedy",
        "exact (bandit, sequence and automaton: the expected reward of responses sampled by the "
        "evaluation's distribution, without sampling), greedy (the reward of the response of most "
        "probable tokens) or "
        "sampled (llm: the mean reward of sampled responses)",
        .shorthand = "world.evaluation", .when = {{"world.kind", "llm"}}),
    FIELD("world.evaluation.kind", "evaluation kind", CHOICE("exact", "greedy", "sampled"), "",
          "exact", NULL, .shorthand = "world.evaluation"),
    FIELD("world.evaluation.temperature", "evaluation temperature", POSITIVE, "", "1",
          "divides the logits in evaluations; not for greedy"),
    FIELD("world.evaluation.top_k", "evaluation top-k", COUNT(0, INFINITY), "", "0",
          "top_k of evaluations; not for greedy"),
    FIELD("world.evaluation.top_p", "evaluation top-p", REAL(0, 1), "", "1",
          "top_p of evaluations; not for greedy"),
    FIELD("world.evaluation.prompts", "evaluation prompts", COUNT(1, 1u << 24), "", "128",
          "of llm: held-out problems that are asked, or all if there are fewer",
          .when = {{"world.kind", "llm"}}),
    FIELD("world.evaluation.samples", "evaluation samples", COUNT(1, 1u << 12), "", "1",
          "of llm: responses sampled per problem; not for greedy",
          .when = {{"world.kind", "llm"}, {"world.evaluation.kind", "sampled"}}),
    FIELD("world.evaluation.sets", "evaluation sets", LIST, "", NULL,
          "several evaluations side by side, a list of {name: …, …}: a set has the evaluation's "
          "values for fields that it does not name, and the first set's score is the run's score. "
          "Of llm: kind, "
          "temperature, top_k, top_p, prompts, samples, max_tokens and task, the fields in which "
          "its problems differ from the world's (or another kind of task). Of toy worlds: kind, "
          "temperature, top_k, top_p, prompts (a list of their numbers) and world, the fields in "
          "which its rewards differ; sizes and policy are the world's",
          .rule = "one evaluation, without a name", .items = {"world.evaluation", "world"}),
    FIELD("world.evaluation.halves", "evaluation halves", FLAG, "", "false",
          "also scores every set, or the only evaluation, on its first, third, … and on its "
          "second, fourth, … problems apart, so that what chooses the best evaluation need not "
          "score it"),
};
FIELD_TABLE(evaluation_fields, evaluation);

static const field sequence[] = {
    FIELD("world.vocabulary", "vocabulary", COUNT(1, TREE_MAX_RESPONSES), "letters", "4",
          "letters that a response is made of", .when = {{"world.kind", "sequence"}},
          .rule = "4; kind token: 3"),
    FIELD("world.horizon", "horizon", COUNT(1, TREE_MAX_PATH), "tokens", "4", "longest response",
          .when = {{"world.kind", "sequence"}}, .rule = "4; kind automaton: 8, at most 64"),
    FIELD("world.end_token", "end token", FLAG, "", "false",
          "adds a token that ends a response, so that lengths vary", .rule = "false"),
    FIELD("world.prompts", "prompts", COUNT(1, SEQUENCE_MAX_PROMPTS), "", "4", "number of prompts",
          .when = {{"world.kind", "sequence"}}, .rule = "4; kind automaton: 1"),
    FIELD("world.task", "sequence task", CHOICE("target", "sum_mod", "parity", "sorted", "needle"),
          "", "sum_mod",
          "of sequence: target (a hidden sequence per prompt), sum_mod (the tokens sum to the "
          "prompt's number), parity (the number of 1s), sorted (not descending, with a wanted "
          "number of distinct letters) or needle (contains a hidden sequence)",
          .when = {{"world.kind", "sequence"}},
          .rule = "sum_mod (kind sequence); required (kind llm)"),
    FIELD("world.task", "task", SECTION, "", NULL,
          "of llm: a section with prompts, the answers that warm-up teaches, and the rule that "
          "scores a response"),
    FIELD("world.reward", "reward", CHOICE("exact", "graded"), "", "exact",
          "exact: 1 if the task is solved, else 0; graded: the task's score in [0, 1]",
          .when = {{"world.kind", "sequence"}}, .rule = "exact"),
    FIELD("world.modulus", "modulus", COUNT(1, TREE_MAX_RESPONSES), "", NULL,
          "modulus of the task sum_mod and of the features `sum` and `remainder`, and of the "
          "automaton count",
          .when = {{"world.kind", "sequence"}}, .rule = "vocabulary; kind automaton: 4"),
    FIELD("world.needle_length", "needle length", COUNT(1, INFINITY), "tokens", NULL,
          "length of the hidden sequence of the task needle",
          .rule = "2, or 1 where the horizon is 1"),
    FIELD(
        "world.rewards_path", "rewards file", TEXT, "", NULL,
        "of a sequence world, in place of `task`: a CSV file with lines prompt,response,reward: a "
        "prompt is a number or * for all, a response its letters as numbers between blanks; "
        "responses that are not named have reward 0",
        .is_file = true, .when = {{"world.kind", "sequence"}}),
};
FIELD_TABLE(sequence_fields, sequence);
