/* The fields of a learner: its batches, its optimiser, and how responses are sampled. */
#include "core/config/fields/tables.h"

static const field entries[] = {

    /* train */
    ENTRY("train", "train", SECTION, "", NULL, "the batch of an update and how it is used"),
    ENTRY("train.groups", "groups", NUMBER, "", "8", "prompts of a batch"),
    ENTRY("train.group_size", "group size", NUMBER, "", "8", "responses to each prompt"),
    ENTRY("train.minibatches", "minibatches", NUMBER, "", "1",
          "parts into which the groups of an update's batches are split; each part is one "
          "optimiser step"),
    ENTRY("train.filter_groups", "dynamic sampling", SECTION, "", NULL,
          "samplers leave out groups whose responses all have one reward and go on drawing (DAPO, "
          "verl's filter_groups); with `cluster: {coupled: true}`, which counts the time of all "
          "that is drawn"),
    ENTRY("train.filter_groups.enable", "group filter", FLAG, "", "false",
          "whether groups of equal rewards are left out"),
    ENTRY("train.filter_groups.max_num_gen_batches", "generation batches", NUMBER, "", "10",
          "most rounds of drawing for a batch",
          .when = {{"train.filter_groups.enable", "true"}, {"cluster.coupled", "true"}}),
    ENTRY("train.filter_groups.gen_batch_size", "generation batch size", NUMBER, "", NULL,
          "groups of a round; those beyond a full batch are left out too", .rule = "groups"),
    ENTRY("train.filter_groups.exhausted", "exhausted filter", CHOICE, "", "fill",
          "what happens where the last round leaves a batch short: fill (with groups of equal "
          "rewards, those drawn first) or fail (the run ends with an error, as in verl)",
          .when = {{"train.filter_groups.enable", "true"}, {"cluster.coupled", "true"}}),
    ENTRY("train.unsolvable", "unsolvable prompts", NUMBER, "", "0",
          "share of the prompts whose responses all have reward 0 in training; evaluations score "
          "them as they are"),
    ENTRY("train.reward_noise", "noise of training rewards", SECTION, "", NULL,
          "what is wrong with the rewards that training sees; evaluations see them right"),
    ENTRY("train.reward_noise.flip", "flipped rewards", NUMBER, "", "0",
          "share of the rewards r, which must be in [0, 1], that become 1 - r"),
    ENTRY(
        "train.weight_noise", "variance of weight noise", NUMBER, "", "0",
        "variance of a random factor, of mean 1, by which each response's part of the gradient is "
        "multiplied: it adds variance and no bias"),
    ENTRY("train.epochs", "epochs", NUMBER, "", "1",
          "passes over the batches of an update, each in an order of its own"),

    /* optimizer */
    ENTRY("optimizer", "optimizer", SECTION, "", NULL, "how gradients become updates"),
    ENTRY("optimizer.kind", "optimizer kind", CHOICE, "", "adam", "sgd, adam or adamw"),
    ENTRY("optimizer.lr", "learning rate", NUMBER, "", "0.05",
          "learning rate; with `tune` it is chosen", .when = {{"world.kind", "bandit"}}),
    ENTRY("optimizer.lr", "learning rate", NUMBER, "", "0.05", NULL,
          .when = {{"world.kind", "sequence"}}),
    ENTRY("optimizer.lr", "learning rate", NUMBER, "", "0.05", NULL,
          .when = {{"world.kind", "automaton"}}),
    ENTRY("optimizer.lr", "learning rate", NUMBER, "", "1e-05", NULL,
          .when = {{"world.kind", "llm"}}),
    ENTRY("optimizer.momentum", "momentum", NUMBER, "", "0", "momentum of sgd"),
    ENTRY("optimizer.beta1", "beta1", NUMBER, "", "0.9",
          "decay of the mean of gradients in adam and adamw"),
    ENTRY("optimizer.beta2", "beta2", NUMBER, "", "0.999",
          "decay of the mean of squared gradients in adam and adamw"),
    ENTRY("optimizer.eps", "optimizer eps", NUMBER, "", "1e-08",
          "added to the root of the mean square in adam and adamw"),
    ENTRY("optimizer.weight_decay", "weight decay", NUMBER, "", "0",
          "decoupled from the gradient in adamw, added to it in sgd and adam; a transformer's norm "
          "weights do not decay"),
    ENTRY("optimizer.clip_grad_norm", "gradient norm limit", NUMBER, "", "0",
          "a longer gradient is scaled down to this norm; 0: no limit. The metric grad_norm is "
          "measured before"),
    ENTRY("optimizer.warmup", "rate warm-up", NUMBER, "updates", "0",
          "learner updates over which the rate rises linearly"),
    ENTRY("optimizer.decay", "rate decay", CHOICE, "", "none",
          "how the rate falls from the end of the warm-up to the last update: none, linear or "
          "cosine"),
    ENTRY(
        "optimizer.ess_scaling", "ESS scaling", CHOICE, "", "none",
        "sqrt or linear: each update's rate is multiplied by the effective sample size of P/Q, as "
        "a share of its responses, or by its square root (VCPO)"),

    /* sampling */
    ENTRY("sampling", "sampling", SECTION, "", NULL, "the law that responses are drawn from"),
    ENTRY("sampling.temperature", "temperature", NUMBER, "", "1",
          "divides the logits of sampler and learner alike"),
    ENTRY("sampling.top_k", "top-k", NUMBER, "", "0",
          "keeps the k most probable tokens, and every token as probable as the k-th; 0: all"),
    ENTRY("sampling.top_p", "top-p", NUMBER, "", "1",
          "of what top_k left, keeps the fewest most probable tokens with this share of the "
          "probability; of equally probable tokens the lower number comes first"),
    ENTRY("sampling.weights", "weights seen", CHOICE, "", "raw",
          "which log-probabilities importance weights are made of: raw (the policies'), truncated "
          "(the learner's against those of the law really drawn from, after top_k and top_p) or "
          "replay (both renormalised over the tokens that the sampler kept; over more than 1,024 "
          "tokens of a transformer it needs top_k)"),
    ENTRY(
        "sampling.logq", "recorded by", CHOICE, "", "sampler",
        "who computes the recorded log-probabilities of drawn tokens: the sampler, of its own law, "
        "or the learner, from the parameters of the version that drew, without what `behaviour` "
        "adds"),
    ENTRY("sampling.behaviour", "behaviour", SECTION, "", NULL,
          "how samplers compute otherwise than the learner; evaluations do not"),
    ENTRY("sampling.behaviour.noise", "noise of logits", NUMBER, "", "0",
          "standard deviation of a normal number added to every logit of a sampler"),
    ENTRY("sampling.behaviour.precision", "precision of logits", CHOICE, "", "float32",
          "bfloat16 rounds a sampler's logits to that format; float32 leaves them"),
    ENTRY("sampling.behaviour.temperature_error", "temperature error", NUMBER, "", "0",
          "samplers divide by temperature × (1 + this)"),
    ENTRY("sampling.behaviour_mixture", "behaviour mixture", SECTION, "", NULL,
          "a share of the responses comes from another policy, and all are recorded with the "
          "mixture's probability; without top_k and top_p, in a transformer also without "
          "behaviour.noise and precision"),
    ENTRY("sampling.behaviour_mixture.with", "mixed policy", CHOICE, "", "initial",
          "initial (the parameters before the first update) or uniform (over tokens)"),
    ENTRY("sampling.behaviour_mixture.share", "mixed share", NUMBER, "", "0",
          "share of the responses, below 1; 0: none"),
};

const field_table fields_of_learner = {entries, sizeof entries / sizeof *entries};
