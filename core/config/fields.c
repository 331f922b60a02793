/* The table of a recipe's fields, and looking a field up in it. */
#include "core/config/fields.h"

#include <assert.h>
#include <string.h>

/* path, label, kind, unit, default, documentation, and what else there is to say. */
#define ENTRY(p, l, k, u, d, a, ...)                                                               \
  { .path = p, .label = l, .kind = VALUE_##k, .unit = u, .fallback = d, .about = a, __VA_ARGS__ }

/* Entries of one path stand together, those with conditions first. */
static const field table[] = {

    /* the top level */
    ENTRY("name", "name", TEXT, "", NULL, "the study's name in the store and on figures",
          .role = ROLE_PROVENANCE, .rule = "the file's name"),
    ENTRY("description", "description", TEXT, "", "",
          "one sentence that says what the recipe shows", .role = ROLE_PROVENANCE),
    ENTRY("seed", "seed", NUMBER, "", "1", "the seed from which every random draw is addressed",
          .role = ROLE_SEED),
    ENTRY("steps", "steps", NUMBER, "updates", "200", "learner updates of a run"),
    ENTRY("eval_every", "evaluation interval", NUMBER, "updates", "10",
          "learner updates between two evaluations; the policy is also evaluated before the first "
          "update and after the last"),
    ENTRY("algorithm", "algorithm", SECTION, "", NULL,
          "an algorithm's name, or {base: NAME, FIELD: value, …}; `gepolab algorithms --fields` "
          "lists the fields",
          .role = ROLE_ALGORITHM),
    ENTRY("algorithm.base", "base", CHOICE, "", "grpo",
          "the algorithm whose fields are taken where none is stated", .role = ROLE_ALGORITHM,
          .shorthand = "algorithm"),
    ENTRY("algorithm.name", "shown name", TEXT, "", NULL,
          "how the algorithm is called in tables and figures; it may not be the name of a "
          "published algorithm whose fields differ",
          .role = ROLE_PROVENANCE, .rule = "the base and what was changed, as in gepo(clip=none)"),
    ENTRY("algorithm.gate", "gate", SECTION, "", NULL,
          "which responses leave the policy term by their own likelihood: {negative_below, "
          "positive_above, of: group_expectation | sampler, scope: prompt | microbatch, log_prob: "
          "mean | sum}, for any algorithm but disco's",
          .role = ROLE_ALGORITHM),
    ENTRY("sweep", "sweep", SECTION, "", NULL,
          "a map of dotted paths to lists of values, whose product is the grid of runs; "
          "`algorithm` and `seed` are axes like all others",
          .role = ROLE_PROVENANCE),
    ENTRY("sweep.random", "random search", SECTION, "", NULL,
          "settings that are drawn: an axis of `draws` values, each of which sets all its fields",
          .role = ROLE_PROVENANCE),
    ENTRY("sweep.random.draws", "draws", NUMBER, "", NULL,
          "how many different settings, up to 100,000. Required", .role = ROLE_PROVENANCE),
    ENTRY("sweep.random.seed", "seed of the draws", NUMBER, "", NULL,
          "the seed of the draws, which has nothing to do with those of runs",
          .role = ROLE_PROVENANCE, .rule = "1"),
    ENTRY("sweep.random.fields", "drawn fields", SECTION, "", NULL,
          "a map of dotted paths to laws: {law: NAME, from: A, to: B} with uniform, log_uniform, "
          "integer or log_integer (both ends included), {law: normal, mean: M, sd: S}, or {choice: "
          "[…]}, each value as likely. Required",
          .role = ROLE_PROVENANCE),
    ENTRY("sweep.factorial", "factorial design", SECTION, "", NULL,
          "many fields at two levels each, changed together: an axis with a value for each "
          "combination",
          .role = ROLE_PROVENANCE),
    ENTRY("sweep.factorial.factors", "factors", SECTION, "", NULL,
          "a map of capital letters to the fields that a factor sets, each with its low and its "
          "high value. Required",
          .role = ROLE_PROVENANCE),
    ENTRY("sweep.factorial.generators", "generators", SECTION, "", NULL,
          "a map of factors to words: the level of G with the word ABCD is the product of those of "
          "A, B, C and D. The factors without one are run in all combinations",
          .role = ROLE_PROVENANCE),
    ENTRY("sweep.factorial.blocks", "blocks", SECTION, "", NULL,
          "{words: [ACE, BDF], seeds: [1, 2, 3, 4]}: the signs of the words say which seed a "
          "combination has",
          .role = ROLE_PROVENANCE),
    ENTRY("sweep.factorial.blocks.words", "block words", LIST, "", NULL,
          "words of base factors, n of them for 2^n blocks. Required", .role = ROLE_PROVENANCE),
    ENTRY("sweep.factorial.blocks.seeds", "block seeds", LIST, "", NULL,
          "a seed for each block. Required", .role = ROLE_PROVENANCE),
    ENTRY("sweep.one_at_a_time", "one-at-a-time design", SECTION, "", NULL,
          "a map of dotted paths to lists of values, the base first: an axis of the base and of "
          "settings that differ from it in one field",
          .role = ROLE_PROVENANCE),
    ENTRY("tune", "tune", SECTION, "", NULL,
          "before the grid is run, each algorithm's learning rate is chosen on other seeds",
          .role = ROLE_PROVENANCE),
    ENTRY("tune.lr", "tuned rates", LIST, "", NULL, "learning rates to try, each once; required",
          .role = ROLE_PROVENANCE),
    ENTRY("tune.seeds", "tuning seeds", LIST, "", NULL,
          "seeds to try them on, none of them a seed of the sweep; required",
          .role = ROLE_PROVENANCE),
    ENTRY("checkpoint", "checkpoint", SECTION, "", NULL,
          "how often a run that keeps checkpoints writes one", .role = ROLE_PROVENANCE),
    ENTRY("checkpoint.every", "checkpoint interval", NUMBER, "updates", NULL,
          "learner updates between two checkpoints; not together with `seconds`. "
          "`--checkpoint-every N` wins over either",
          .role = ROLE_PROVENANCE),
    ENTRY("checkpoint.seconds", "checkpoint time", NUMBER, "s", "300",
          "wall-clock seconds between two checkpoints, which are written at the end of an update",
          .role = ROLE_PROVENANCE),
    ENTRY("checkpoint.keep", "checkpoints kept", NUMBER, "", "2",
          "how many checkpoints stay; older ones are deleted", .role = ROLE_PROVENANCE),

    /* train */
    ENTRY("train", "train", SECTION, "", NULL, "the batch of an update and how it is used"),
    ENTRY("train.groups", "groups", NUMBER, "", "8", "prompts of a batch"),
    ENTRY("train.group_size", "group size", NUMBER, "", "8", "responses to each prompt"),
    ENTRY("train.minibatches", "minibatches", NUMBER, "", "1",
          "parts into which the groups of an update's batches are split; each part is one "
          "optimiser step"),
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

    /* cluster */
    ENTRY("cluster", "cluster", SECTION, "", NULL,
          "samplers, links, learner and rules of the simulated clock"),
    ENTRY("cluster.preset", "preset", CHOICE, "", "sync",
          "a set of defaults: sync, one_step_off, areal, heterorl, fifo or lifo"),
    ENTRY("cluster.samplers", "samplers", LIST, "", "1",
          "a count of equal samplers, or a list of groups {count, speed, …}. A group may have its "
          "own generation, lengths, max_tokens, tokens_per_s, concurrency, batching, jitter, "
          "delay, data_delay, mtbf, mttr, up and down",
          .when = {{"cluster.preset", "sync"}}),
    ENTRY("cluster.samplers", "samplers", LIST, "", "1", NULL,
          .when = {{"cluster.preset", "one_step_off"}}),
    ENTRY("cluster.samplers", "samplers", LIST, "", "4", NULL,
          .when = {{"cluster.preset", "areal"}}),
    ENTRY("cluster.samplers", "samplers", LIST, "", "4", NULL,
          .when = {{"cluster.preset", "heterorl"}}),
    ENTRY("cluster.samplers", "samplers", LIST, "", "4", NULL,
          .when = {{"cluster.preset", "fifo"}}),
    ENTRY("cluster.samplers", "samplers", LIST, "", "4", NULL,
          .when = {{"cluster.preset", "lifo"}}),
    ENTRY("cluster.samplers", "samplers", LIST, "", NULL, NULL),
    ENTRY("cluster.samplers.count", "samplers of a group", NUMBER, "", "1",
          "samplers of this group"),
    ENTRY("cluster.samplers.speed", "speed of a group", NUMBER, "", "1",
          "the time of a batch is divided by it"),
    ENTRY("cluster.generation", "generation", LAW, "s", "120",
          "time of a batch at speed 1, more than 0; with `lengths` or `coupled`, time added once "
          "per batch",
          .when = {{"cluster.lengths", NULL},
                   {"cluster.coupled", "false"},
                   {"cluster.samplers", NULL}},
          .rule = "120; with `lengths` or `coupled`: 0"),
    ENTRY("cluster.generation", "generation", LAW, "s", NULL, NULL),
    ENTRY("cluster.lengths", "response lengths", LAW, "tokens", NULL,
          "law of response lengths, rounded to whole tokens from 1 to `max_tokens`",
          .rule = "none: `generation` says how long a batch takes"),
    ENTRY("cluster.max_tokens", "longest response", NUMBER, "tokens", "32768",
          "longest response that `lengths` may give"),
    ENTRY("cluster.tokens_per_s", "tokens per second", NUMBER, "tokens/s", "50",
          "decoding speed of one response"),
    ENTRY("cluster.concurrency", "concurrency", NUMBER, "", NULL,
          "responses that a sampler decodes side by side", .rule = "all responses of a batch"),
    ENTRY("cluster.batching", "batching", CHOICE, "", "continuous",
          "whether a slot that is free takes the next response at once (continuous) or waits until "
          "the longest response is done (padded)"),
    ENTRY("cluster.bytes_per_token", "bytes per token", NUMBER, "bytes", "0",
          "bytes added to `rollout_bytes` for every token of a batch"),
    ENTRY("cluster.jitter", "jitter", LAW, "", "1", "factor on the generation time of each batch"),
    ENTRY("cluster.delay", "weight delay", LAW, "s", NULL,
          "delay of the weights. With `sync: pull`: time since the last fetch before the next one, "
          "looked at between batches. With `push`: time on the way",
          .rule = "0; preset heterorl: log-normal, see `max_delay`"),
    ENTRY("cluster.max_delay", "max delay", NUMBER, "s", "1800",
          "replaces the upper end of the interval of `delay` and must be above its lower end; 0 or "
          "none: no delay. Where no `delay` is given, the law is log-normal from 60 s to this, at "
          "99.5 %, clamped",
          .when = {{"cluster.preset", "heterorl"},
                   {"cluster.delay", NULL},
                   {"cluster.samplers", NULL}},
          .rule = "1800 with the preset heterorl where no `delay` is given; else none"),
    ENTRY("cluster.max_delay", "max delay", NUMBER, "s", NULL, NULL),
    ENTRY("cluster.data_delay", "data delay", LAW, "s", "0",
          "time that a batch is on its way to the learner, after its transmission"),
    ENTRY("cluster.shared_delays", "shared delays", FLAG, "", "true",
          "all samplers draw the same sequence of weight delays",
          .when = {{"cluster.preset", "heterorl"}}),
    ENTRY("cluster.shared_delays", "shared delays", FLAG, "", "false", NULL,
          .when = {{"cluster.preset", "sync"}}),
    ENTRY("cluster.shared_delays", "shared delays", FLAG, "", "false", NULL,
          .when = {{"cluster.preset", "one_step_off"}}),
    ENTRY("cluster.shared_delays", "shared delays", FLAG, "", "false", NULL,
          .when = {{"cluster.preset", "areal"}}),
    ENTRY("cluster.shared_delays", "shared delays", FLAG, "", "false", NULL,
          .when = {{"cluster.preset", "fifo"}}),
    ENTRY("cluster.shared_delays", "shared delays", FLAG, "", "false", NULL,
          .when = {{"cluster.preset", "lifo"}}),
    ENTRY("cluster.sync", "weight transfer", CHOICE, "", "pull",
          "who starts a transfer of weights: the sampler (pull) or the learner (push)",
          .when = {{"cluster.preset", "heterorl"}}),
    ENTRY("cluster.sync", "weight transfer", CHOICE, "", "push", NULL,
          .when = {{"cluster.preset", "sync"}}),
    ENTRY("cluster.sync", "weight transfer", CHOICE, "", "push", NULL,
          .when = {{"cluster.preset", "one_step_off"}}),
    ENTRY("cluster.sync", "weight transfer", CHOICE, "", "push", NULL,
          .when = {{"cluster.preset", "areal"}}),
    ENTRY("cluster.sync", "weight transfer", CHOICE, "", "push", NULL,
          .when = {{"cluster.preset", "fifo"}}),
    ENTRY("cluster.sync", "weight transfer", CHOICE, "", "push", NULL,
          .when = {{"cluster.preset", "lifo"}}),
    ENTRY("cluster.in_flight", "in-flight weights", FLAG, "", "false",
          "weights that arrive during generation are used at once; the batch then has several "
          "segments",
          .when = {{"cluster.preset", "heterorl"}}),
    ENTRY("cluster.in_flight", "in-flight weights", FLAG, "", "false", NULL,
          .when = {{"cluster.preset", "sync"}}),
    ENTRY("cluster.in_flight", "in-flight weights", FLAG, "", "false", NULL,
          .when = {{"cluster.preset", "one_step_off"}}),
    ENTRY("cluster.in_flight", "in-flight weights", FLAG, "", "true", NULL,
          .when = {{"cluster.preset", "areal"}}),
    ENTRY("cluster.in_flight", "in-flight weights", FLAG, "", "false", NULL,
          .when = {{"cluster.preset", "fifo"}}),
    ENTRY("cluster.in_flight", "in-flight weights", FLAG, "", "false", NULL,
          .when = {{"cluster.preset", "lifo"}}),
    ENTRY(
        "cluster.unit", "unit", CHOICE, "", "batch",
        "what samplers send and an update takes: whole batches, groups of responses to one prompt, "
        "or single responses. Groups and responses stream: a decoding slot that is free takes the "
        "next response at once, a unit is sent when its last response has ended, and each has its "
        "own version. An update takes as many units as make up `learner.batches` batches, or "
        "`learner.tokens`. Needs `lengths` or `coupled`"),
    ENTRY("cluster.partial", "partial units", CHOICE, "", NULL,
          "with `unit: group` or `response` and `sync: push`, what becomes of units under way when "
          "new weights come: the weights wait until these are finished (wait), the responses go on "
          "under the new weights (continue), or the units are thrown away (drop)",
          .rule = "continue where the preset has `in_flight`; else wait"),
    ENTRY(
        "cluster.prompt_lengths", "prompt lengths", LAW, "", NULL,
        "factor on the lengths of all responses to one prompt, drawn for every group: some prompts "
        "are slow",
        .rule = "none"),
    ENTRY("cluster.coupled", "coupled", FLAG, "", "false",
          "the lengths of real responses drive the clock"),
    ENTRY("cluster.ahead", "ahead", NUMBER, "updates", "0",
          "a sampler begins the b-th batch only when floor(b / batches) is at most the version it "
          "has + ahead; a batch lost or dropped gives its place back",
          .when = {{"cluster.preset", "sync"}},
          .rule = "0 (preset sync); 1 (preset one_step_off); 4 (preset areal); else no limit"),
    ENTRY("cluster.ahead", "ahead", NUMBER, "updates", "1", NULL,
          .when = {{"cluster.preset", "one_step_off"}}),
    ENTRY("cluster.ahead", "ahead", NUMBER, "updates", "4", NULL,
          .when = {{"cluster.preset", "areal"}}),
    ENTRY("cluster.ahead", "ahead", NUMBER, "updates", NULL, NULL),
    ENTRY("cluster.window", "window", NUMBER, "updates", NULL,
          "largest staleness that is trained; staler batches are dropped. With the queue rule "
          "heterorl this is D, and the largest staleness is 2D. The gate of `ahead` counts batches "
          "begun, so those of slow samplers may come too late all the same",
          .rule = "`ahead`; preset heterorl: 32, or `ahead` if that is less"),
    ENTRY(
        "cluster.stale", "stale data", CHOICE, "", "discard",
        "what becomes of data staler than `window`: thrown away (discard); there is none, for the "
        "learner waits for what is on its way before an update that would leave it too stale "
        "(wait, which needs `ahead` and the queue oldest_version); or it is trained with less "
        "weight (downweight, in `gepolab sim`)"),
    ENTRY("cluster.stale_decay", "stale decay", NUMBER, "", "0.5",
          "with `stale: downweight`, the weight's factor for every version beyond `window`"),
    ENTRY(
        "cluster.mtbf", "time to a crash", LAW, "s", "none",
        "time until a sampler crashes, which loses the batch in work and the weights; none: never"),
    ENTRY("cluster.mttr", "time to repair", LAW, "s", "600",
          "time from a crash until the sampler is back"),
    ENTRY("cluster.weights_bytes", "size of weights", NUMBER, "bytes", "0",
          "size of the weights that are sent to a sampler"),
    ENTRY("cluster.rollout_bytes", "size of a batch", NUMBER, "bytes", "0",
          "size of a batch, apart from `bytes_per_token`"),
    ENTRY("cluster.samples_per_batch", "responses per batch", NUMBER, "", NULL,
          "responses of a batch: as many lengths are drawn, and samples per second count them",
          .rule = "train.groups × train.group_size"),
    ENTRY("cluster.up", "link up", SECTION, "", NULL,
          "the links from samplers to the learner. A link sends one message at a time and sends "
          "lost packets again in rounds"),
    ENTRY("cluster.up.bandwidth", "bandwidth up", NUMBER, "bytes/s", "inf",
          "bandwidth of each link; where it is left out, transmission takes no time",
          .rule = "no limit"),
    ENTRY("cluster.up.packet_bytes", "packet size up", NUMBER, "bytes", "1500", "size of a packet"),
    ENTRY("cluster.up.loss", "loss up", NUMBER, "", "0", "probability that a packet is lost"),
    ENTRY("cluster.up.loss_bad", "loss in bursts up", NUMBER, "", "0.5",
          "that probability while the link is in its bad state"),
    ENTRY("cluster.up.to_bad", "to bad up", NUMBER, "", "0",
          "probability per packet that the link turns bad; above 0, losses come in bursts"),
    ENTRY("cluster.up.to_good", "to good up", NUMBER, "", "0.1",
          "probability per packet that a bad link turns good again"),
    ENTRY("cluster.up.rto", "retransmission timeout up", NUMBER, "s", "0.2",
          "time before lost packets are sent again"),
    ENTRY("cluster.up.backoff", "backoff up", NUMBER, "", "2",
          "factor on that time from round to round"),
    ENTRY("cluster.up.max_retries", "most retries up", NUMBER, "", "15",
          "rounds after which the message is given up"),
    ENTRY("cluster.down", "link down", SECTION, "", NULL,
          "the links from the learner to samplers, with the fields of `up`"),
    ENTRY("cluster.down.bandwidth", "bandwidth down", NUMBER, "bytes/s", "inf",
          "bandwidth of each link; where it is left out, transmission takes no time",
          .rule = "no limit"),
    ENTRY("cluster.down.packet_bytes", "packet size down", NUMBER, "bytes", "1500",
          "size of a packet"),
    ENTRY("cluster.down.loss", "loss down", NUMBER, "", "0", "probability that a packet is lost"),
    ENTRY("cluster.down.loss_bad", "loss in bursts down", NUMBER, "", "0.5",
          "that probability while the link is in its bad state"),
    ENTRY("cluster.down.to_bad", "to bad down", NUMBER, "", "0",
          "probability per packet that the link turns bad; above 0, losses come in bursts"),
    ENTRY("cluster.down.to_good", "to good down", NUMBER, "", "0.1",
          "probability per packet that a bad link turns good again"),
    ENTRY("cluster.down.rto", "retransmission timeout down", NUMBER, "s", "0.2",
          "time before lost packets are sent again"),
    ENTRY("cluster.down.backoff", "backoff down", NUMBER, "", "2",
          "factor on that time from round to round"),
    ENTRY("cluster.down.max_retries", "most retries down", NUMBER, "", "15",
          "rounds after which the message is given up"),
    ENTRY("cluster.learner", "learner", SECTION, "", NULL,
          "the learner node: its speed, queue and pauses"),
    ENTRY("cluster.learner.step", "step time", LAW, "s", "30", "time of an update"),
    ENTRY("cluster.learner.batches", "batches per update", NUMBER, "", "1",
          "batches trained in one update", .when = {{"cluster.preset", "heterorl"}},
          .rule = "one of each sampler; presets heterorl, fifo and lifo: 1"),
    ENTRY("cluster.learner.batches", "batches per update", NUMBER, "", "1", NULL,
          .when = {{"cluster.preset", "fifo"}}),
    ENTRY("cluster.learner.batches", "batches per update", NUMBER, "", "1", NULL,
          .when = {{"cluster.preset", "lifo"}}),
    ENTRY("cluster.learner.batches", "batches per update", NUMBER, "", NULL, NULL),
    ENTRY(
        "cluster.learner.tokens", "tokens per update", NUMBER, "tokens", "0",
        "an update takes units until they hold so many tokens, instead of `batches`; 0: it counts "
        "batches"),
    ENTRY("cluster.learner.queue", "queue", CHOICE, "", "heterorl",
          "which waiting batch is trained next: heterorl, fifo, lifo or oldest_version",
          .when = {{"cluster.preset", "heterorl"}}),
    ENTRY("cluster.learner.queue", "queue", CHOICE, "", "fifo", NULL,
          .when = {{"cluster.preset", "sync"}}),
    ENTRY("cluster.learner.queue", "queue", CHOICE, "", "fifo", NULL,
          .when = {{"cluster.preset", "one_step_off"}}),
    ENTRY("cluster.learner.queue", "queue", CHOICE, "", "oldest_version", NULL,
          .when = {{"cluster.preset", "areal"}}),
    ENTRY("cluster.learner.queue", "queue", CHOICE, "", "fifo", NULL,
          .when = {{"cluster.preset", "fifo"}}),
    ENTRY("cluster.learner.queue", "queue", CHOICE, "", "lifo", NULL,
          .when = {{"cluster.preset", "lifo"}}),
    ENTRY("cluster.learner.lookback", "lookback", NUMBER, "", "64",
          "how many of the newest batches the queue rule heterorl looks at"),
    ENTRY("cluster.learner.capacity", "queue capacity", NUMBER, "", "0",
          "most units that wait; beyond it `evict` says which is dropped. 0: no limit"),
    ENTRY("cluster.learner.evict", "eviction", CHOICE, "", "oldest",
          "what a full queue drops: what arrived first (oldest), what is of the oldest version "
          "(stalest), or what arrives (newest)"),
    ENTRY("cluster.learner.eval_every", "pause interval", NUMBER, "updates", "64",
          "learner updates between two pauses for evaluation"),
    ENTRY("cluster.learner.eval_pause", "evaluation pause", LAW, "s", "600", "time of such a pause",
          .when = {{"cluster.preset", "heterorl"}}),
    ENTRY("cluster.learner.eval_pause", "evaluation pause", LAW, "s", "0", NULL,
          .when = {{"cluster.preset", "sync"}}),
    ENTRY("cluster.learner.eval_pause", "evaluation pause", LAW, "s", "0", NULL,
          .when = {{"cluster.preset", "one_step_off"}}),
    ENTRY("cluster.learner.eval_pause", "evaluation pause", LAW, "s", "0", NULL,
          .when = {{"cluster.preset", "areal"}}),
    ENTRY("cluster.learner.eval_pause", "evaluation pause", LAW, "s", "0", NULL,
          .when = {{"cluster.preset", "fifo"}}),
    ENTRY("cluster.learner.eval_pause", "evaluation pause", LAW, "s", "0", NULL,
          .when = {{"cluster.preset", "lifo"}}),
    ENTRY("cluster.learner.publish_every", "publishing interval", NUMBER, "updates", "1",
          "learner updates between two versions that samplers may get"),
    ENTRY("cluster.compare", "compare", SECTION, "", NULL,
          "measured staleness of updates, for `ks_distance` and the figure of `gepolab sim "
          "--figures`; either `histogram` or `trace` is needed",
          .role = ROLE_PROVENANCE),
    ENTRY("cluster.compare.trace", "measured trace", TEXT, "", NULL,
          "a CSV file with the staleness of one update per line", .role = ROLE_PROVENANCE,
          .is_file = 1),
    ENTRY("cluster.compare.column", "measured column", TEXT, "", NULL,
          "the file's column; needed where it has several", .role = ROLE_PROVENANCE,
          .rule = "the only one"),
    ENTRY("cluster.compare.histogram", "measured histogram", LIST, "", NULL,
          "how many updates had staleness 0, 1, 2, …", .role = ROLE_PROVENANCE),
    ENTRY("cluster.compare.name", "measured name", TEXT, "", NULL,
          "what the measurement is called in output and figures",
          .rule = "the column, the file or measured", .role = ROLE_PROVENANCE),
    ENTRY("cluster.compare.source", "measured source", TEXT, "", NULL,
          "where the measurement comes from, shown with the distance", .role = ROLE_PROVENANCE),

    /* world: all kinds */
    ENTRY("world", "world", SECTION, "", NULL, "what is learned"),
    ENTRY(
        "world.kind", "world kind", CHOICE, "", NULL,
        "bandit, sequence, automaton or llm; for `gepolab bias` also chain, gridworld, garnet and "
        "token. "
        "Required"),
    ENTRY("world.evaluation", "evaluation", SECTION, "", NULL,
          "what the evaluation score is: a kind, or {kind: …, temperature: …, …}"),
    ENTRY("world.evaluation.kind", "evaluation kind", CHOICE, "", "exact",
          "exact (bandit, sequence and automaton: the expected reward of responses drawn by the "
          "evaluation's law, without sampling), greedy (the reward of the response of most "
          "probable tokens) or "
          "sampled (llm: the mean reward of drawn responses)",
          .shorthand = "world.evaluation", .when = {{"world.kind", "bandit"}}),
    ENTRY("world.evaluation.kind", "evaluation kind", CHOICE, "", "exact", NULL,
          .shorthand = "world.evaluation", .when = {{"world.kind", "sequence"}}),
    ENTRY("world.evaluation.kind", "evaluation kind", CHOICE, "", "exact", NULL,
          .shorthand = "world.evaluation", .when = {{"world.kind", "automaton"}}),
    ENTRY("world.evaluation.kind", "evaluation kind", CHOICE, "", "greedy", NULL,
          .shorthand = "world.evaluation", .when = {{"world.kind", "llm"}}),
    ENTRY("world.evaluation.temperature", "evaluation temperature", NUMBER, "", "1",
          "divides the logits in evaluations; not for greedy"),
    ENTRY("world.evaluation.top_k", "evaluation top-k", NUMBER, "", "0",
          "top_k of evaluations; not for greedy"),
    ENTRY("world.evaluation.top_p", "evaluation top-p", NUMBER, "", "1",
          "top_p of evaluations; not for greedy"),
    ENTRY("world.evaluation.prompts", "evaluation prompts", NUMBER, "", "128",
          "of llm: held-out problems that are asked, or all if there are fewer",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.evaluation.samples", "evaluation samples", NUMBER, "", "1",
          "of llm: responses drawn to each problem; not for greedy",
          .when = {{"world.kind", "llm"}, {"world.evaluation.kind", "sampled"}}),

    ENTRY("world.evaluation.sets", "evaluation sets", LIST, "", NULL,
          "several evaluations side by side, a list of {name: …, …}: what a set leaves out is as "
          "the evaluation has it, and the first set's score is the run's score. Of llm: kind, "
          "temperature, top_k, top_p, prompts, samples, max_tokens and task, the fields in which "
          "its problems differ from the world's (or another kind of task). Of toy worlds: kind, "
          "temperature, top_k, top_p, prompts (a list of their numbers) and world, the fields in "
          "which its rewards differ; sizes and policy are the world's",
          .rule = "one evaluation, without a name"),
    ENTRY("world.evaluation.halves", "evaluation halves", FLAG, "", "false",
          "also scores every set, or the only evaluation, on its first, third, … and on its "
          "second, fourth, … problems apart, so that what chooses the best evaluation need not "
          "score it"),

    /* world: bandit */
    ENTRY("world.rewards", "rewards", LIST, "", NULL,
          "of bandit: mean rewards, a number per arm, such a list per context, or the law that "
          "they are drawn from. Of llm in `gepolab bias`: a number per response (by length, then "
          "lexicographically), or such a list per prompt, instead of a task",
          .rule = "the uniform law"),
    ENTRY("world.rewards.law", "law of rewards", CHOICE, "", "uniform",
          "uniform, normal or bernoulli", .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.low", "lowest reward", NUMBER, "", "0", "least mean reward of uniform",
          .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.high", "highest reward", NUMBER, "", "1", "largest mean reward of uniform",
          .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.mean", "mean of rewards", NUMBER, "", "0", "mean of normal",
          .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.sd", "deviation of rewards", NUMBER, "", "1",
          "standard deviation of normal", .when = {{"world.kind", "bandit"}}),
    ENTRY("world.rewards.p", "share of rewards", NUMBER, "", "0.5",
          "of bernoulli: probability that an arm has mean reward 1, else 0",
          .when = {{"world.kind", "bandit"}}),
    ENTRY("world.arms", "arms", NUMBER, "", NULL, "actions to choose from",
          .when = {{"world.kind", "bandit"}}, .rule = "length of `rewards`, or 10"),
    ENTRY("world.contexts", "contexts", NUMBER, "", NULL, "prompts, each with rewards of its own",
          .when = {{"world.kind", "bandit"}}, .rule = "number of lists in `rewards`, or 1"),
    ENTRY("world.noise", "reward noise", TEXT, "", "none",
          "none, bernoulli (rewards are probabilities of a reward of 1), or the standard deviation "
          "of Gaussian noise; exact quantities use the mean",
          .when = {{"world.kind", "bandit"}}),

    /* world: sequence, and its tasks for a transformer in `gepolab bias` */
    ENTRY("world.vocabulary", "vocabulary", NUMBER, "letters", "4",
          "letters that a response is made of", .when = {{"world.kind", "sequence"}},
          .rule = "4; kind token: 3"),
    ENTRY("world.vocabulary", "vocabulary", NUMBER, "letters", "4", NULL,
          .when = {{"world.kind", "automaton"}}),
    ENTRY("world.vocabulary", "vocabulary", NUMBER, "letters", NULL, NULL),
    ENTRY("world.horizon", "horizon", NUMBER, "tokens", "4", "longest response",
          .when = {{"world.kind", "sequence"}}, .rule = "4; kind automaton: 8, at most 64"),
    ENTRY("world.horizon", "horizon", NUMBER, "tokens", "8", NULL,
          .when = {{"world.kind", "automaton"}}),
    ENTRY("world.horizon", "horizon", NUMBER, "tokens", NULL, NULL),
    ENTRY("world.end_token", "end token", FLAG, "", "false",
          "adds a token that ends a response, so that lengths vary",
          .when = {{"world.kind", "sequence"}}, .rule = "false"),
    ENTRY("world.end_token", "end token", FLAG, "", "false", NULL,
          .when = {{"world.kind", "automaton"}}),
    ENTRY("world.end_token", "end token", FLAG, "", NULL, NULL),
    ENTRY("world.prompts", "prompts", NUMBER, "", "4", "number of prompts",
          .when = {{"world.kind", "sequence"}}, .rule = "4; kind automaton: 1"),
    ENTRY("world.prompts", "prompts", NUMBER, "", "1", NULL, .when = {{"world.kind", "automaton"}}),
    ENTRY("world.prompts", "prompts", NUMBER, "", NULL, NULL),
    ENTRY("world.task", "sequence task", CHOICE, "", "sum_mod",
          "of sequence: target (a hidden sequence per prompt), sum_mod (the tokens sum to the "
          "prompt's number), parity (the number of 1s), sorted (not descending, with a wanted "
          "number of distinct letters) or needle (contains a hidden sequence)",
          .when = {{"world.kind", "sequence"}},
          .rule = "sum_mod (kind sequence); required (kind llm)"),
    ENTRY("world.task", "task", SECTION, "", NULL,
          "of llm: a section with prompts, the answers that warm-up teaches, and the rule that "
          "scores a response"),
    ENTRY("world.reward", "reward", CHOICE, "", "exact",
          "exact: 1 if the task is solved, else 0; graded: the task's score in [0, 1]",
          .when = {{"world.kind", "sequence"}}, .rule = "exact"),
    ENTRY("world.reward", "reward", CHOICE, "", NULL, NULL),
    ENTRY("world.modulus", "modulus", NUMBER, "", "4",
          "modulus of the task sum_mod and of the features `sum` and `remainder`, and of the "
          "automaton count",
          .when = {{"world.kind", "automaton"}, {"world.automaton", "count"}},
          .rule = "vocabulary; kind automaton: 4"),
    ENTRY("world.modulus", "modulus", NUMBER, "", NULL, NULL),
    ENTRY("world.needle_length", "needle length", NUMBER, "tokens", NULL,
          "length of the hidden sequence of the task needle",
          .rule = "2, or 1 where the horizon is 1"),

    /* world: automaton */
    ENTRY(
        "world.automaton", "automaton", CHOICE, "", "parity",
        "of automaton: parity (of the number of `letter`, as the prompt's), count (the number of "
        "`letter` modulo `modulus` is the prompt's), contains (`word` occurs), balanced (letter 0 "
        "opens, letter 1 closes, all is closed at the end, and the nesting is exactly 1 + prompt "
        "modulo `depth` deep) or table",
        .when = {{"world.kind", "automaton"}}),
    ENTRY("world.letter", "counted letter", NUMBER, "", NULL,
          "of the automata parity and count: the letter that is counted",
          .rule = "1, or 0 where that is the only letter"),
    ENTRY("world.depth", "depth", NUMBER, "", "2",
          "of the automaton balanced: the deepest nesting that a prompt asks for, up to 32",
          .when = {{"world.kind", "automaton"}, {"world.automaton", "balanced"}}),
    ENTRY("world.word", "word", LIST, "", NULL,
          "of the automaton contains: a list of letters, counted from 0, or one such list per "
          "prompt; required there"),
    ENTRY("world.table", "automaton's table", SECTION, "", NULL,
          "of the automaton table: its states, up to 1,024, and what they earn; required there"),
    ENTRY("world.table.start", "first state", NUMBER, "", NULL, "the state before the first letter",
          .rule = "0"),
    ENTRY("world.table.next", "next states", LIST, "", NULL,
          "a list per state with the state that follows each letter; letters beyond the end of the "
          "list leave the state as it is. Required"),
    ENTRY("world.table.accept", "accepted states", LIST, "", NULL,
          "the states that earn a reward of 1 where a response ends, or one such list per prompt; "
          "this or `rewards` is required"),
    ENTRY("world.table.rewards", "rewards of states", LIST, "", NULL,
          "a reward for each state, or one such list per prompt"),
    ENTRY("world.listed", "listed responses", FLAG, "", "false",
          "of automaton: list all responses, where they are few enough, as a sequence world does; "
          "`gepolab bias` then enumerates groups",
          .when = {{"world.kind", "automaton"}}),

    /* world: policy of bandit, sequence and automaton */
    ENTRY("world.policy", "policy", SECTION, "", NULL,
          "the policy of bandit, sequence, automaton and decision processes"),
    ENTRY("world.policy.kind", "policy kind", CHOICE, "", "loglinear",
          "tabular: a logit per prompt, prefix and token; loglinear: features that prompts and "
          "prefixes share",
          .when = {{"world.kind", "automaton"}}, .rule = "tabular; kind automaton: loglinear"),
    ENTRY("world.policy.kind", "policy kind", CHOICE, "", "tabular", NULL),
    ENTRY("world.policy.features", "features", LIST, "", NULL,
          "of loglinear: templates of bias, prompt, position, last, second_last, sum and remainder "
          "(prompt − sum, modulo `modulus`), joined by `*`; or random; or, for a bandit, a list of "
          "numbers per arm",
          .rule =
              "[position, last, prompt*position, prompt*last, prompt*sum]; kind automaton, whose "
              "policy sees prompt and last letter only: [last, prompt*last]"),
    ENTRY("world.policy.dimension", "feature dimension", NUMBER, "", "8",
          "number of random features"),
    ENTRY("world.policy.hash", "feature buckets", NUMBER, "", "0",
          "number of buckets that the templates' features share; 0: none are shared"),
    ENTRY("world.policy.init", "initial policy", SECTION, "", NULL,
          "the policy that the learner starts from"),
    ENTRY("world.policy.init.kind", "initial logits", CHOICE, "", "zeros",
          "zeros, normal (random logits) or probs (given probabilities, tabular only)"),
    ENTRY("world.policy.init.scale", "initial scale", NUMBER, "", "0.1",
          "standard deviation of normal logits"),
    ENTRY("world.policy.init.probs", "initial probabilities", LIST, "", NULL,
          "of probs: the probability of each response"),
    ENTRY("world.policy.reference", "toy reference policy", CHOICE, "", "initial",
          "the reference policy of ref_kl_coef and kl_ref: initial or uniform"),

    /* world: decision processes of `gepolab bias` */
    ENTRY("world.states", "states", NUMBER, "", "5", "states of a chain or garnet",
          .when = {{"world.kind", "chain"}}),
    ENTRY("world.states", "states", NUMBER, "", "4", NULL, .when = {{"world.kind", "garnet"}}),
    ENTRY("world.slip", "slip", NUMBER, "", "0.1",
          "of chain and gridworld: probability that another move is made"),
    ENTRY("world.distraction", "distraction", NUMBER, "", "0.05",
          "of chain: reward of going left at the start; the right end pays 1"),
    ENTRY("world.width", "grid width", NUMBER, "", "3", "columns of a gridworld"),
    ENTRY("world.height", "grid height", NUMBER, "", "3",
          "rows of a gridworld, whose far corner pays 1 and the square below it −1"),
    ENTRY("world.actions", "actions", NUMBER, "", "2",
          "actions of a garnet, which has random transitions and normal rewards"),
    ENTRY("world.branching", "branching", NUMBER, "", NULL,
          "states that an action of a garnet may lead to",
          .rule = "2, or 1 where there is one state"),

    /* world: llm */
    ENTRY("world.backend", "backend", CHOICE, "", "auto",
          "cpu, cuda, or auto: CUDA where there is a device. Runs on the CPU are bit for bit the "
          "same whatever the number of threads; a GPU's differ from them in rounding",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.dtype", "number format", CHOICE, "", "float32",
          "float32; bfloat16 (CUDA only; parameters, moments and sums stay in float32); float64 "
          "(CPU only)",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.devices", "devices", NUMBER, "", "1",
          "data parallelism: so many replicas of the model, each on a GPU of its own, share "
          "generation and updates. Responses do not depend on it; gradients are summed in another "
          "order, so runs differ in rounding. On the CPU replicas share its threads and memory",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.model", "model", SECTION, "", NULL,
          "a folder {path: FOLDER}, or the shape of a decoder whose weights are drawn at random"),
    ENTRY("world.model.path", "model folder", TEXT, "", NULL,
          "a folder with Hugging Face's config.json and model.safetensors, also in shards. A key "
          "of config.json that asks for what is not computed here is refused, and one that is not "
          "known is named",
          .is_file = 1),
    ENTRY("world.model.layers", "layers", NUMBER, "", "2", "decoder layers",
          .when = {{"world.model.path", NULL}}),
    ENTRY("world.model.hidden", "hidden size", NUMBER, "", "64", "width of the residual stream",
          .when = {{"world.model.path", NULL}}),
    ENTRY("world.model.intermediate", "intermediate size", NUMBER, "", NULL,
          "width of the feed-forward layer", .rule = "3 × hidden"),
    ENTRY("world.model.heads", "heads", NUMBER, "", "4", "query heads",
          .when = {{"world.model.path", NULL}}),
    ENTRY("world.model.kv_heads", "key-value heads", NUMBER, "", NULL,
          "key and value heads; divides `heads`", .rule = "heads / 2, or heads where that is odd"),
    ENTRY("world.model.head_dim", "head size", NUMBER, "", NULL, "width of a head, an even number",
          .rule = "hidden / heads, rounded down to an even number"),
    ENTRY("world.model.context", "context", NUMBER, "tokens", "256",
          "longest sequence of prompt and response", .when = {{"world.model.path", NULL}}),
    ENTRY("world.model.tied", "tied embedding", FLAG, "", "true",
          "the output weights are those of the embedding", .when = {{"world.model.path", NULL}}),
    ENTRY("world.model.rope_theta", "rotary base", NUMBER, "", "10000",
          "base of the rotary embedding", .when = {{"world.model.path", NULL}}),
    ENTRY("world.model.rms_eps", "norm eps", NUMBER, "", "1e-06",
          "added to the mean square in RMS norms", .when = {{"world.model.path", NULL}}),
    ENTRY("world.model.initializer_range", "initial weights", NUMBER, "", "0.02",
          "standard deviation of weights drawn at random", .when = {{"world.model.path", NULL}}),
    ENTRY("world.tokenizer", "tokenizer", SECTION, "", NULL,
          "what the transformer reads and writes: a kind, or {kind: …, unused: …}"),
    ENTRY("world.tokenizer.kind", "tokenizer kind", TEXT, "", NULL,
          "char (the task's alphabet), byte, or the path of a tokenizer.json (byte-level BPE)",
          .rule = "the folder's, or char", .is_file = 1, .shorthand = "world.tokenizer"),
    ENTRY(
        "world.tokenizer.unused", "unused tokens", NUMBER, "tokens", "0",
        "tokens without a meaning that are added to char or byte: a tail of the vocabulary that no "
        "right answer has",
        .when = {{"world.kind", "llm"}}),
    ENTRY("world.template", "prompt template", TEXT, "", "{prompt}",
          "text around a prompt, such as a chat's turns", .when = {{"world.kind", "llm"}}),
    ENTRY(
        "world.stop", "stop token", LIST, "", NULL,
        "special token, or list of them, that ends a response; the first one ends a taught answer",
        .rule = "</s> of the built-in tokenizers, else eos_token_id of config.json"),
    ENTRY("world.max_tokens", "longest answer", NUMBER, "tokens", NULL,
          "most tokens of a response, its end included",
          .rule = "longest answer + 1; required for math"),
    ENTRY("world.slots", "slots", NUMBER, "", "0",
          "responses decoded side by side, on each device; 0: as many as memory allows",
          .role = ROLE_PROVENANCE, .when = {{"world.kind", "llm"}}),
    ENTRY("world.micro_batch", "micro-batch", NUMBER, "tokens", "4096",
          "most packed tokens of one forward and backward, on each device; one that holds a whole "
          "update saves a forward",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.recompute", "recompute", FLAG, "", "false",
          "keep only each layer's input for the backward and compute the rest again, which saves "
          "memory and costs time",
          .role = ROLE_PROVENANCE, .when = {{"world.kind", "llm"}}),
    ENTRY("world.stochastic_rounding", "stochastic rounding", FLAG, "", "false",
          "with bfloat16: after each update of reinforcement learning, the copy of the parameters "
          "that generation and forward read is rounded up or down at random, so that its mean is "
          "the float32 master's value. No update is lost without it: the master has them all",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.tf32", "TF32", FLAG, "", "false",
          "a GPU's products of float32 may round their factors to TF32 (10 bits of mantissa "
          "instead of 23), which is several times as fast: training's log-probabilities and "
          "gradients are then off by about 1e-3, generation's stay float32. Only with `dtype: "
          "float32`, not with `backend: cpu`; without effect where auto finds no GPU",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup", "supervised warm-up", SECTION, "", NULL,
          "supervised training on the task's answers before reinforcement learning"),
    ENTRY("world.warmup.steps", "warm-up steps", NUMBER, "steps", "0",
          "optimiser steps (AdamW) on the cross-entropy of answers; 0: no warm-up",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.batch", "warm-up batch", NUMBER, "", "64", "problems of each step",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.lr", "warm-up learning rate", NUMBER, "", "0.001", "learning rate",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.rise", "warm-up rise", NUMBER, "steps", NULL,
          "steps over which the rate rises linearly", .when = {{"world.kind", "llm"}},
          .rule = "steps / 20"),
    ENTRY("world.warmup.decay", "warm-up decay", CHOICE, "", "cosine",
          "how the rate falls until `steps`: none, linear or cosine",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.beta1", "warm-up beta1", NUMBER, "", "0.9", "of AdamW, as optimizer.beta1",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.beta2", "warm-up beta2", NUMBER, "", "0.99", "of AdamW, as optimizer.beta2",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.eps", "warm-up eps", NUMBER, "", "1e-08", "of AdamW, as optimizer.eps",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.weight_decay", "warm-up weight decay", NUMBER, "", "0",
          "of AdamW, as optimizer.weight_decay", .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.clip_grad_norm", "warm-up gradient norm limit", NUMBER, "", "1",
          "a longer gradient is scaled down to this norm; 0: no limit",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.until", "warm-up target", NUMBER, "", NULL,
          "stop as soon as the evaluation score is this high", .when = {{"world.kind", "llm"}},
          .rule = "never"),
    ENTRY("world.warmup.check_every", "warm-up check interval", NUMBER, "steps", "50",
          "steps between two looks at that score", .when = {{"world.kind", "llm"}}),
    ENTRY("world.warmup.cache", "warm-up cache", FLAG, "", "true",
          "keep the warmed parameters for later runs", .role = ROLE_PROVENANCE,
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.reference", "reference model", TEXT, "", "initial",
          "the policy of ref_kl_coef: initial (after the warm-up) or the folder of a model of the "
          "same shape. Where it is stated, kl_ref is measured even if the algorithm has no use for "
          "it",
          .is_file = 1, .when = {{"world.kind", "llm"}}),

    /* world.task: tasks with verifiable rewards */
    ENTRY("world.task.kind", "task kind", CHOICE, "", "addition",
          "addition, modular, countdown, sorting, parity, brackets or math; `gepolab llm tasks` "
          "lists them",
          .shorthand = "world.task", .when = {{"world.kind", "llm"}}),
    ENTRY("world.task.held_out", "held-out share", NUMBER, "", "0.1",
          "share of all problems that is held out for evaluation, 0 to 0.9; 0: none. A split that "
          "is empty, or nearly so because the task has few problems, is refused",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "addition"}}),
    ENTRY("world.task.held_out", "held-out share", NUMBER, "", "0.1", NULL,
          .when = {{"world.kind", "llm"}, {"world.task.kind", "modular"}}),
    ENTRY("world.task.held_out", "held-out share", NUMBER, "", "0.1", NULL,
          .when = {{"world.kind", "llm"}, {"world.task.kind", "countdown"}}),
    ENTRY("world.task.held_out", "held-out share", NUMBER, "", "0.1", NULL,
          .when = {{"world.kind", "llm"}, {"world.task.kind", "sorting"}}),
    ENTRY("world.task.held_out", "held-out share", NUMBER, "", "0.1", NULL,
          .when = {{"world.kind", "llm"}, {"world.task.kind", "parity"}}),
    ENTRY("world.task.held_out", "held-out share", NUMBER, "", "0.1", NULL,
          .when = {{"world.kind", "llm"}, {"world.task.kind", "brackets"}}),
    ENTRY("world.task.held_out", "held-out share", NUMBER, "", "0.05", NULL,
          .when = {{"world.kind", "llm"}, {"world.task.kind", "math"}}),
    ENTRY("world.task.reward", "task reward", CHOICE, "", "exact",
          "exact: 1 for a right answer, else 0; graded: partial credit, where the kind has it",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.task.cut_off", "cut-off rule", CHOICE, "", "wrong",
          "whether a response without its end within the length limit is wrong, or scored like any "
          "other (score)",
          .when = {{"world.kind", "llm"}}),
    ENTRY("world.task.digits", "digits", NUMBER, "", "2",
          "operands are uniform over the numbers of up to so many digits, at most 64",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "addition"}}),
    ENTRY("world.task.min_digits", "fewest digits", NUMBER, "", "1", "fewest digits of an operand",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "addition"}}),
    ENTRY("world.task.terms", "terms", NUMBER, "", "2", "operands of a problem, 2 to 8",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "addition"}}),
    ENTRY("world.task.terms", "terms", NUMBER, "", "2", NULL,
          .when = {{"world.kind", "llm"}, {"world.task.kind", "modular"}}),
    ENTRY("world.task.pad", "padding", FLAG, "", "false",
          "operands of `digits` digits and answers of `digits` + 1, filled with zeros, so that all "
          "lengths are the same",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "addition"}}),
    ENTRY("world.task.reverse", "reversed", FLAG, "", "false",
          "the answer's last digit comes first, as carrying goes",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "addition"}}),
    ENTRY("world.task.modulus", "task modulus", NUMBER, "", "97",
          "2 to 1,000,000; operands are uniform below it",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "modular"}}),
    ENTRY("world.task.operations", "operations", LIST, "", NULL,
          "of modular: add, subtract and multiply, each as likely; products come before sums. Of "
          "countdown: those of the solution that warm-up teaches, also divide",
          .rule = "all"),
    ENTRY("world.task.numbers", "numbers given", NUMBER, "", "3",
          "how many numbers are given, 2 to 6",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "countdown"}}),
    ENTRY("world.task.largest", "largest number", NUMBER, "", "9",
          "largest number given, up to 999",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "countdown"}}),
    ENTRY("world.task.largest_target", "largest target", NUMBER, "", "99",
          "largest target, up to 999,999",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "countdown"}}),
    ENTRY("world.task.use", "use of numbers", CHOICE, "", "any",
          "any: each number at most once; all: each exactly once",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "countdown"}}),
    ENTRY("world.task.length", "length", NUMBER, "", "5",
          "of sorting: most numbers of a problem, up to 200; of parity: bits, up to 500; of "
          "brackets: characters of the beginning that is given, up to 500",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "sorting"}}),
    ENTRY("world.task.length", "length", NUMBER, "", "8", NULL,
          .when = {{"world.kind", "llm"}, {"world.task.kind", "parity"}}),
    ENTRY("world.task.length", "length", NUMBER, "", "8", NULL,
          .when = {{"world.kind", "llm"}, {"world.task.kind", "brackets"}}),
    ENTRY("world.task.min_length", "least length", NUMBER, "", NULL,
          "fewest of them; lengths are uniform between the two", .rule = "length"),
    ENTRY("world.task.values", "values", NUMBER, "", "10",
          "numbers are uniform below it, 2 to 1000; with more than 10, commas stand between them",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "sorting"}}),
    ENTRY("world.task.chain", "chain", FLAG, "", "false",
          "the answer is the parity of every beginning; only then there is a graded reward",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "parity"}}),
    ENTRY("world.task.depth", "nesting depth", NUMBER, "", NULL,
          "deepest nesting of the beginning that is given",
          .rule = "4, or length where that is less"),
    ENTRY("world.task.kinds", "bracket kinds", NUMBER, "", "2",
          "how many kinds of brackets there are: the first of (), [], {}, <>",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "brackets"}}),
    ENTRY("world.task.longest", "longest closing", NUMBER, "", NULL,
          "longest response that is right", .rule = "depth"),
    ENTRY("world.task.path", "problems", TEXT, "", NULL,
          "a JSON Lines file in UTF-8, one problem a line; looked for beside the recipe's file "
          "first. Required",
          .is_file = 1),
    ENTRY("world.task.prompt_key", "prompt key", TEXT, "", "prompt", "key of the prompt",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "math"}}),
    ENTRY("world.task.answer_key", "answer key", TEXT, "", "answer",
          "key of the answer, which may be a number",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "math"}}),
    ENTRY("world.task.template", "task template", TEXT, "", "{prompt}",
          "what the model is given, the prompt in place of {prompt}",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "math"}}),
    ENTRY("world.task.answer_pattern", "answer pattern", CHOICE, "", "boxed",
          "where a response's final answer stands: boxed (in the last closed \\boxed{} or "
          "\\fbox{}) or last_number (there, or else the last number of the text)",
          .when = {{"world.kind", "llm"}, {"world.task.kind", "math"}}),
    ENTRY("world.task.held_out_path", "held-out problems", TEXT, "", NULL,
          "a file of held-out problems instead of `held_out`; training problems with one of its "
          "prompts are left out",
          .is_file = 1),

    /* recipes of gepolab bias and gepolab theory */
    ENTRY("learner_probs", "learner probabilities", LIST, "", NULL,
          "of bias: probabilities of the responses under the learner, or a list of them per prompt "
          "(tabular bandits and sequences)",
          .rule = "the world's initial policy"),
    ENTRY("sampler_probs", "sampler probabilities", LIST, "", NULL,
          "of bias: the same under the sampler. Either this or `dial` is needed; with "
          "`training` neither is allowed"),
    ENTRY("dial", "dial", SECTION, "", NULL,
          "of bias: moves the sampler away from the learner, instead of `sampler_probs`"),
    ENTRY("dial.kind", "dial kind", CHOICE, "", "direction",
          "direction (logits moved along one random direction of the seed), hotter or colder "
          "(logits scaled towards the uniform policy or away from it), mixture (q = (1 − m) p + m "
          "· uniform; bandits and sequences of one prompt) or staleness (learner and sampler are "
          "policies of one path of exact gradient steps)"),
    ENTRY("dial.kl", "dialled KL", LIST, "nats", NULL,
          "values of KL(p||q) to solve for: a number, a list, or {from, to, points, scale}; "
          "required but for staleness"),
    ENTRY("dial.kl.from", "first KL", NUMBER, "nats", "0", "first of the values"),
    ENTRY("dial.kl.to", "last KL", NUMBER, "nats", "1", "last of the values"),
    ENTRY("dial.kl.points", "KL points", NUMBER, "", "20", "how many values"),
    ENTRY("dial.kl.scale", "KL scale", CHOICE, "", "linear",
          "how they are spaced: linear, or log (from and to above 0)"),
    ENTRY("dial.steps", "dial steps", NUMBER, "updates", "100",
          "of staleness: exact gradient steps that the learner has made"),
    ENTRY("dial.lr", "dial rate", NUMBER, "", "0.5", "of staleness: their learning rate"),
    ENTRY("dial.updates", "dialled staleness", LIST, "updates", NULL,
          "of staleness: how many steps before the learner the sampler is; a number, a list, or "
          "{from, to, points, scale}; required"),
    ENTRY("group_size", "group sizes", LIST, "", "8",
          "of bias: responses of a group, a number or a list",
          .rule = "8; with `population`: only that limit"),
    ENTRY("algorithms", "algorithms", LIST, "", "all",
          "of bias: algorithms, each as under `algorithm`, or all; no two may be shown alike"),
    ENTRY("population", "population limit", FLAG, "", "false",
          "of bias: also the limit of endless groups, for algorithms that factor"),
    ENTRY("budget", "budget", NUMBER, "", "2000000",
          "of bias: most multisets of the responses to one prompt that are enumerated"),
    ENTRY("samples", "Monte Carlo groups", NUMBER, "", "262144",
          "of bias: groups per prompt that are drawn where enumeration is beyond the budget; 0: "
          "refuse instead"),
    ENTRY("covariance", "covariance", FLAG, "", "false",
          "of bias: the full covariance in the JSON"),
    ENTRY("truncation", "truncation", SECTION, "", NULL,
          "laws of truncated sampling to compare, each with every kind of weights; for one pair of "
          "policies and one group size"),
    ENTRY("truncation.top_p", "compared top-p", LIST, "", NULL,
          "values of top_p, each without top_k; 1 truncates nothing"),
    ENTRY("truncation.top_k", "compared top-k", LIST, "", NULL,
          "values of top_k, each without top_p; one of the two lists is required"),
    ENTRY("truncation.weights", "compared weights", LIST, "", NULL,
          "kinds of `sampling.weights`; required"),
    ENTRY("training", "training", SECTION, "", NULL,
          "of bias: learning curves in exact return instead of a table"),
    ENTRY("training.updates", "training updates", NUMBER, "updates", "500",
          "learner updates by sampled groups"),
    ENTRY("training.staleness", "training staleness", NUMBER, "updates", "0",
          "groups are drawn from the policy of so many updates ago"),
    ENTRY("training.groups", "training groups", NUMBER, "", "1",
          "groups of `group_size` in an update"),
    ENTRY("training.lr", "training rates", LIST, "", NULL,
          "learning rates, of which each algorithm gets the one of the highest mean return on "
          "other seeds; a list or {from, to, points, scale}. Required"),
    ENTRY("training.tuning_seeds", "training tuning seeds", NUMBER, "", "5",
          "how many other seeds"),
    ENTRY("training.record_every", "recording interval", NUMBER, "updates", "10",
          "updates between two points of a curve"),
    ENTRY("training.seeds", "training seeds", NUMBER, "", "10", "runs of each algorithm"),
    ENTRY("outcomes", "outcomes", LIST, "", NULL,
          "of theory: numbers n of outcomes in the table of Theorem 1"),
    ENTRY("vocabularies", "vocabularies", LIST, "", NULL,
          "of theory: numbers V of letters in the products of token laws"),
    ENTRY("lengths", "product lengths", LIST, "", NULL, "of theory: their lengths T"),
    ENTRY("pairs", "pairs", NUMBER, "", "2000",
          "of theory: random pairs of laws in each family; Theorem 3 gives medians over them"),
    ENTRY("starts", "search starts", NUMBER, "", "100",
          "of theory: starts of the search for violations of Theorem 2"),
    ENTRY("search_outcomes", "searched outcomes", NUMBER, "", "4",
          "of theory: outcomes of the laws in that search"),
};
enum { N_FIELDS = sizeof table / sizeof *table };

const field *fields_at(size_t i) {
  return i < N_FIELDS ? &table[i] : NULL;
}

const field *fields_named(const char *path) {
  for (size_t i = 0; i < N_FIELDS; ++i)
    if (strcmp(table[i].path, path) == 0) return &table[i];
  return NULL;
}

/* What the field is in that recipe: stated, or its default; NULL where it has neither. */
static const char *effective(const char *path, field_value value, const void *recipe) {
  int stated = 0;
  const char *text = value(recipe, path, &stated);
  if (stated) return text;
  const field *f = fields_find(path, value, recipe);
  return f != NULL ? f->fallback : NULL;
}

/* Conditions are about fields that have none themselves, or only such, so this ends. */
static int holds(const field_condition *c, field_value value, const void *recipe) {
  if (c->path == NULL) return 1;
  int stated = 0;
  if (c->is == NULL) {
    value(recipe, c->path, &stated);
    return !stated;
  }
  const char *text = effective(c->path, value, recipe);
  return text != NULL && strcmp(text, c->is) == 0;
}

static int applies(const field *f, field_value value, const void *recipe) {
  for (size_t i = 0; i < FIELD_MAX_CONDITIONS; ++i)
    if (!holds(&f->when[i], value, recipe)) return 0;
  return 1;
}

const field *fields_find(const char *path, field_value value, const void *recipe) {
  assert(path != NULL && value != NULL);
  for (size_t i = 0; i < N_FIELDS; ++i)
    if (strcmp(table[i].path, path) == 0 && applies(&table[i], value, recipe)) return &table[i];
  return NULL;
}

const field *fields_short_form(const char *path, field_value value, const void *recipe) {
  for (size_t i = 0; i < N_FIELDS; ++i)
    if (table[i].shorthand != NULL && strcmp(table[i].shorthand, path) == 0 &&
        applies(&table[i], value, recipe))
      return &table[i];
  return NULL;
}

int fields_is_section(const char *path) {
  size_t length = strlen(path);
  for (size_t i = 0; i < N_FIELDS; ++i)
    if (strncmp(table[i].path, path, length) == 0 && table[i].path[length] == '.') return 1;
  return 0;
}

const char *field_role_name(field_role role) {
  switch (role) {
  case ROLE_AXIS:
    return "axis";
  case ROLE_CHOSEN:
    return "chosen";
  case ROLE_ALGORITHM:
    return "algorithm";
  case ROLE_SEED:
    return "seed";
  case ROLE_PROVENANCE:
    return "provenance";
  }
  return "";
}

const char *field_kind_name(field_kind kind) {
  switch (kind) {
  case VALUE_NUMBER:
    return "number";
  case VALUE_CHOICE:
    return "choice";
  case VALUE_FLAG:
    return "flag";
  case VALUE_TEXT:
    return "text";
  case VALUE_LAW:
    return "law";
  case VALUE_LIST:
    return "list";
  case VALUE_SECTION:
    return "section";
  }
  return "";
}
