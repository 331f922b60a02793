/* Recipe fields of the simulated cluster: samplers, links, learner and rules of the clock. */
#include "core/config/fields.h"

#include "sim/cluster.h"

#include <math.h>

static const char *preset_name_at(size_t i) {
  return cluster_preset_at(i) != NULL ? cluster_preset_at(i)->name : NULL;
}

static const void *cluster_defaults_at(size_t i, const char **name) {
  const cluster_preset *p = cluster_preset_at(i);
  if (p != NULL) *name = p->name;
  return p;
}

static const field_presets presets = {"cluster.preset", cluster_defaults_at};

/* The default comes from the preset. */
#define PRESET(of) .presets = &presets, .member = offsetof(cluster_preset, of)

/* The fields of the links of one direction. */
#define LINK(way)                                                                                  \
  FIELD("cluster." way ".bandwidth", "bandwidth " way, POSITIVE, "bytes/s", "inf",                 \
        "bandwidth of each link; none: transmission takes no time", .rule = "none",                \
        .no_limit = true),                                                                         \
      FIELD("cluster." way ".packet_bytes", "packet size " way, REAL(1, 1e12), "bytes", "1500",    \
            "size of a packet"),                                                                   \
      FIELD("cluster." way ".loss", "loss " way, REAL(0, 1), "", "0",                              \
            "probability that a packet is lost"),                                                  \
      FIELD("cluster." way ".loss_bad", "loss in bursts " way, REAL(0, 1), "", "0.5",              \
            "that probability while the link is in its bad state"),                                \
      FIELD("cluster." way ".to_bad", "to bad " way, REAL(0, 1), "", "0",                          \
            "probability per packet that the link turns bad; above 0, losses come in bursts"),     \
      FIELD("cluster." way ".to_good", "to good " way, REAL(1e-9, 1), "", "0.1",                   \
            "probability per packet that a bad link turns good again"),                            \
      FIELD("cluster." way ".rto", "retransmission timeout " way, REAL(0, 1e6), "s", "0.2",        \
            "time before lost packets are sent again"),                                            \
      FIELD("cluster." way ".backoff", "backoff " way, REAL(1, 10), "", "2",                       \
            "factor on that time from round to round"),                                            \
      FIELD("cluster." way ".max_retries", "most retries " way, INTEGER(0, 60), "", "15",          \
            "rounds after which the message is given up")

static const field entries[] = {

    /* cluster */
    FIELD("cluster", "cluster", SECTION, "", NULL,
          "samplers, links, learner and rules of the simulated clock"),
    FIELD("cluster.preset", "preset", CHOICE_AT(preset_name_at), "", "sync",
          "a set of defaults, for a rule or a system; `gepolab list presets` lists them with their "
          "sources"),
    FIELD("cluster.samplers", "samplers", COUNT_OR_LIST(1, 10000000), "", NULL,
          "a count of equal samplers, or a list of groups {count, speed, site, …}. A group may "
          "have its "
          "own generation, lengths, max_tokens, tokens_per_s, concurrency, batching, jitter, "
          "delay, data_delay, mtbf, mttr, up and down",
          PRESET(samplers), .items = {"cluster"}),
    FIELD("cluster.samplers.count", "samplers of a group", COUNT(1, 10000000), "", "1",
          "samplers of this group"),
    FIELD("cluster.samplers.site", "site of a group", TEXT, "", NULL,
          "where it is, of `network.sites`", .rule = "the learner's site"),
    FIELD("cluster.samplers.colocated", "colocated group", FLAG, "", "false",
          "whether this group is on the learner's GPUs (section `colocated`); if no group says so, "
          "all are"),
    FIELD("cluster.samplers.speed", "speed of a group", POSITIVE, "", "1",
          "the time of a batch is divided by it"),
    FIELD("cluster.generation", "generation", DIST, "s", "120",
          "time of a batch at speed 1, more than 0; with `lengths` or `coupled`, time added once "
          "per batch",
          .rule = "120; with `lengths` or `coupled`: 0; none where units stream",
          .when = {{"cluster.lengths", NULL},
                   {"cluster.coupled", "false"},
                   {"cluster.samplers", NULL},
                   {"cluster.unit", "batch"}}),
    FIELD("cluster.lengths", "response lengths", DIST, "tokens", NULL,
          "distribution of response lengths, rounded to whole tokens from 1 to `max_tokens`",
          .rule =
              "none: `generation` says how long a batch takes; presets of groups: " PRESET_LENGTHS),
    FIELD("cluster.max_tokens", "longest response", REAL(1, 1e9), "tokens", "32768",
          "longest response that `lengths` may give"),
    FIELD("cluster.tokens_per_s", "tokens per second", POSITIVE, "tokens/s", "50",
          "decoding speed of one response"),
    FIELD("cluster.decoding", "decoding", SECTION, "", NULL,
          "decoding speed that depends on the load, instead of `tokens_per_s`: {kind: measured, "
          "running, tokens_per_s or file, cached_token_s, kv_tokens}, or {kind: roofline, "
          "parameters, memory_bandwidth, flops, …}. All responses of a sampler get a token per "
          "step; a group's `speed` divides the time of a step",
          .rule = "none"),
    FIELD("cluster.decoding.kind", "decoding", CHOICE("measured", "roofline"), "", "measured",
          "whether the time of a step is measured, or computed from model and device: the weights "
          "are read once a step, or the arithmetic of all responses takes longer; then the keys "
          "and values of all tokens held are read"),
    FIELD("cluster.decoding.running", "running responses", NUMBERS(1, 1e9), "", NULL,
          "numbers of responses that a sampler decodes at once, ascending, at which the speed was "
          "measured",
          .rule = "the column `running` of `file`"),
    FIELD("cluster.decoding.tokens_per_s", "measured speeds", NUMBERS(1e-9, 1e12), "tokens/s", NULL,
          "speed of each of these responses. The time of a step is linear between the "
          "measurements and beyond the last, and constant below the first",
          .rule = "the column `tokens_per_s` of `file`"),
    FIELD("cluster.decoding.file", "file of speeds", TEXT, "", NULL,
          "a CSV file with columns running and tokens_per_s", .is_file = true),
    FIELD("cluster.decoding.cached_token_s", "time of a cached token", REAL(0, 1), "s", "0",
          "time that a step takes longer for each token whose keys and values are held: all of "
          "running prompts and responses"),
    FIELD("cluster.decoding.kv_tokens", "tokens in memory", REAL(1, 1e15), "tokens", "inf",
          "tokens whose keys and values a sampler can hold. When they are full, the response begun "
          "last is preempted; it continues before a new one is begun, and its keys and values are "
          "computed again at `prefill_tokens_per_s`. Responses begin or continue while 1 % stays "
          "free. none: no limit",
          .rule = "none", .no_limit = true),
    FIELD("cluster.decoding.prefix_cache", "prefix cache", CHOICE("free", "none", "version", "all"),
          "", "free",
          "keys and values of prompts (`prompt_tokens` each, computed at `prefill_tokens_per_s` "
          "while decoding stands still). free: computed in no time, and every response holds its "
          "own; none: every response computes its own; version: the responses of a group that "
          "begin at a sampler under the same weights compute and hold one, because new weights "
          "empty the cache; all: those that begin under other weights too. With a cache, the "
          "tokens of a response that has freed its slot for a call stay in it. A preemption drops "
          "from the cache what no response holds"),
    FIELD("cluster.decoding.parameters", "parameters", REAL(1, 1e15), "", NULL,
          "parameters of the model"),
    FIELD("cluster.decoding.active_parameters", "active parameters", REAL(1, 1e15), "", NULL,
          "parameters that a token uses, with two operations each", .rule = "parameters"),
    FIELD("cluster.decoding.bytes_per_parameter", "bytes of a parameter", REAL(0.1, 16), "bytes",
          "2", "size of a parameter; all are read in every step"),
    FIELD("cluster.decoding.kv_bytes", "keys and values of a token", REAL(0, 1e9), "bytes", "0",
          "size of the keys and values of a token in all layers"),
    FIELD("cluster.decoding.memory_bandwidth", "memory bandwidth", POSITIVE, "bytes/s", NULL,
          "of all devices of a sampler together"),
    FIELD("cluster.decoding.flops", "operations per second", POSITIVE, "FLOP/s", NULL,
          "of all devices of a sampler together"),
    FIELD("cluster.decoding.memory", "device memory", POSITIVE, "bytes", "inf",
          "of all devices of a sampler together; what the weights leave holds keys and values; "
          "none: no limit",
          .rule = "none", .no_limit = true),
    FIELD("cluster.decoding.overhead", "overhead of a step", REAL(0, 10), "s", "0",
          "time of a step besides"),
    FIELD("cluster.concurrency", "concurrency", COUNT(1, 1000000000), "", NULL,
          "responses that a sampler decodes side by side", .rule = "all responses of a batch"),
    FIELD("cluster.batching", "batching", CHOICE("continuous", "padded"), "", "continuous",
          "whether a slot that is free takes the next response at once (continuous) or waits until "
          "the longest response is done (padded)"),
    FIELD("cluster.bytes_per_token", "bytes per token", REAL(0, 1e9), "bytes", "0",
          "bytes added to `rollout_bytes` for every token of a batch"),
    FIELD("cluster.jitter", "jitter", DIST, "", "1", "factor on the generation time of each batch"),
    FIELD("cluster.delay", "weight delay", DIST, "s", NULL,
          "delay of the weights. With `sync: pull`: time since the last fetch before the next one, "
          "looked at between batches. With `push`: time on the way",
          .rule = "0; preset heterorl: log-normal, see `max_delay`"),
    FIELD(
        "cluster.max_delay", "max delay", REAL(0, 1e12), "s", "1800",
        "replaces the upper end of the interval of `delay` and must be above its lower end; beside "
        "another constant or a distribution without interval it is refused; 0 or "
        "none: no delay, null: it is left out. Where no `delay` is given, the distribution is "
        "log-normal from 60 s to "
        "this, at "
        "99.5 %, clamped",
        .rule = "1800 with the preset heterorl where no `delay` is given; else none",
        .when = {{"cluster.preset", "heterorl"},
                 {"cluster.delay", NULL},
                 {"cluster.samplers", NULL}}),
    FIELD("cluster.data_delay", "data delay", DIST, "s", "0",
          "time that a batch is on its way to the learner, after its transmission"),
    FIELD("cluster.shared_delays", "shared delays", FLAG, "", NULL,
          "all samplers draw the same sequence of weight delays", PRESET(heterorl_delays)),
    FIELD("cluster.sync", "weight transfer", CHOICE("pull", "push"), "", NULL,
          "who starts a transfer of weights: the sampler (pull) or the learner (push)",
          PRESET(sync)),
    FIELD("cluster.in_flight", "in-flight weights", FLAG, "", NULL,
          "weights that arrive during generation are used at once; the batch then has several "
          "segments",
          PRESET(in_flight)),
    FIELD("cluster.unit", "unit", CHOICE("batch", "group", "response"), "", NULL,
          "what samplers send and an update takes: whole batches, groups of responses to one "
          "prompt, or single responses. Groups and responses stream: a decoding slot that is free "
          "takes the next response at once, a unit is sent when its last response has ended, and "
          "each has its own version. An update takes as many units as make up `learner.batches` "
          "batches, or `learner.tokens`. Of single responses those of a group that an update takes "
          "are "
          "compared with each other alone. Needs `lengths` or `coupled`",
          PRESET(unit)),
    FIELD("cluster.partial", "partial units", CHOICE("wait", "continue", "drop"), "", NULL,
          "with `unit: group` or `response` and `sync: push`, what happens to units under way when "
          "new weights come: the weights wait until these are finished (wait), the responses "
          "continue under the new weights (continue), or the units are thrown away (drop)",
          .rule = "continue where the preset has `in_flight`; else wait"),
    FIELD("cluster.interrupt", "interruption", REAL(0, 1e12), "s", "0",
          "seconds that decoding stands still where weights are taken over in the middle of "
          "responses (`partial: continue` or `in_flight`)"),
    FIELD("cluster.kv_cache", "keys and values", CHOICE("recompute", "keep"), "", NULL,
          "what happens to the keys and values of a response's earlier tokens where it continues "
          "under new weights: computed again by these (recompute), or kept (keep), so that later "
          "tokens attend to those of older weights; training keeps them with a transformer on the "
          "CPU, and a toy world has none",
          PRESET(kv_cache)),
    FIELD(
        "cluster.prefill_tokens_per_s", "prefill speed", REAL(0, 1e15), "tokens/s", "0",
        "tokens per second at which keys and values of prompts and of earlier tokens are computed "
        "(again), all responses together; "
        "decoding stands still meanwhile; 0: it takes no time, as with `kv_cache: keep`"),
    FIELD(
        "cluster.prompt_tokens", "tokens of a prompt", REAL(0, 1e9), "tokens", "0",
        "tokens of every prompt, whose keys and values take memory with `decoding`, time with its "
        "`prefix_cache`, and are computed again with those of the response"),
    FIELD("cluster.prompt_lengths", "prompt lengths", DIST, "", NULL,
          "factor on the lengths of all responses to one prompt, sampled for every group: some "
          "prompts "
          "are slow",
          .rule = "none"),
    FIELD("cluster.sources", "sources", LIST, "", NULL,
          "where prompts come from, as tasks or data sets: a list of {name, weight, lengths, "
          "reject}. Each group is of one source, drawn at random with the weights, or so that "
          "quotas are filled (`learner.quotas`). `gepolab sim` prints what becomes of each. Needs "
          "unit: group",
          .rule = "none: all prompts are alike"),
    FIELD("cluster.sources.name", "source's name", TEXT, "", NULL, "its name. Required"),
    FIELD("cluster.sources.weight", "weight of a source", POSITIVE, "", "1",
          "its part of all groups, relative to the other sources'"),
    FIELD("cluster.sources.lengths", "lengths of a source", DIST, "tokens", NULL,
          "distribution of its response lengths", .rule = "`lengths` of the samplers"),
    FIELD("cluster.sources.reject", "rejected of a source", REAL(0, FIELD_BELOW_1), "", NULL,
          "probability that a group of it is rejected when it reaches the learner",
          .rule = "`learner.reject`"),
    FIELD("cluster.coupled", "coupled", FLAG, "", "false",
          "the lengths of real responses drive the clock"),
    FIELD("cluster.ahead", "ahead", INTEGER(0, INFINITY), "updates", NULL,
          "a sampler begins the b-th batch only when floor(b / batches) is at most the version it "
          "has + ahead; a batch lost or dropped gives its place back. none: no limit",
          PRESET(ahead), .no_limit = true),
    FIELD(
        "cluster.window", "window", INTEGER(0, INFINITY), "updates", NULL,
        "largest staleness that is trained; staler batches are dropped. With the queue rule "
        "heterorl this is D, which is counted from the newest version trained, so that staleness "
        "up to 2D is trained (`gepolab sim` prints the bound). The gate of `ahead` counts batches "
        "begun, so those of slow samplers may come too late all the same. none: no limit",
        .no_limit = true,
        .rule = "`ahead`, or none with `oversample` and `surplus: carry`; preset heterorl: 32, "
                "or `ahead` if that is less; preset prime_rl and "
                "prime_rl_08: 8; verl_v1: 31; "
                "trl_async: 4; tinker: 2; preset verl_async, areal_2, nemo_rl, skyrl_03, streamrl, "
                "asyncflow, roll_flash and skyrl: none"),
    FIELD("cluster.stale", "stale data", CHOICE("discard", "wait", "downweight"), "", "discard",
          "what happens to data staler than `window`: thrown away (discard); none arises, because "
          "the "
          "learner waits for what is on its way before an update that would leave it too stale "
          "(wait, which needs `ahead` and the queue oldest_version); or it is trained with less "
          "weight (downweight)"),
    FIELD("cluster.stale_decay", "stale decay", REAL(0, 1), "", "0.5",
          "with `stale: downweight`, the weight's factor for every version beyond `window`",
          .when = {{"cluster.stale", "downweight"}}),
    FIELD("cluster.oversample", "over-sampling", REAL(1, 1000), "", "1",
          "samplers may begin so many times the units of an update (rounded up) before the next "
          "version; the update takes those that arrive first. Needs `ahead`"),
    FIELD("cluster.surplus", "surplus", CHOICE("carry", "abort"), "", "carry",
          "what happens to groups or responses that an update leaves: they continue or wait, and "
          "later updates train them (carry), or they are dropped when the update starts (abort)"),
    FIELD(
        "cluster.cancel_stale", "cancel stale", FLAG, "", "false",
        "groups or responses under way that have become staler than `window` are cancelled when an "
        "update ends, and their slots take others; otherwise they are finished and then thrown "
        "away. The message takes no time",
        PRESET(cancels_stale)),
    FIELD(
        "cluster.mtbf", "time to a crash", DIST, "s", "none",
        "time until a sampler crashes, which loses the batch in work and the weights; none: never"),
    FIELD("cluster.mttr", "time to repair", DIST, "s", "600",
          "time from a crash until the sampler is back"),
    FIELD(
        "cluster.restarts", "restarts", SECTION, "", NULL,
        "the whole job stops now and then, and starts again from its last checkpoint: {every, at, "
        "before, down, recovery, keeps, checkpoint_every}. An update under way is made again, "
        "with other data",
        .rule = "none"),
    FIELD("cluster.restarts.every", "time to a restart", DIST, "s", "none",
          "time from a start of the job until its next restart; none: only those of `at` and "
          "`before`"),
    FIELD(
        "cluster.restarts.at", "times of restarts", NUMBERS(0, 1e15), "", NULL,
        "restarts at these times, in simulated seconds; one that would come while the job is down "
        "is left out",
        .rule = "none"),
    FIELD("cluster.restarts.before", "restarts before updates", NUMBERS(2, 1e9), "", NULL,
          "the job restarts when the update before each of these has ended, once each",
          .rule = "none"),
    FIELD("cluster.restarts.down", "down time", DIST, "s", "0", "time until the job runs again"),
    FIELD("cluster.restarts.recovery", "recovery", DIST, "s", "0",
          "time from then until weights and optimiser are loaded and samplers may start"),
    FIELD("cluster.restarts.keeps", "kept by restarts", CHOICE("nothing", "queue", "responses"), "",
          "nothing",
          "what survives: nothing that was generated and not yet trained; the batches, groups or "
          "responses that wait at the learner (queue); or these and all that is under way, also at "
          "the grader, which goes on where it was (responses). Colocated GPUs generate after it, "
          "or are frozen (responses)"),
    FIELD("cluster.restarts.checkpoint_every", "interval of checkpoints", INTEGER(1, 1e9),
          "updates", "1",
          "updates between two checkpoints; those after the last one are made again, and data of "
          "their versions are lost"),
    FIELD("cluster.grader", "grader", SECTION, "", NULL,
          "what has reached the learner is graded before it waits to be trained, at a limited "
          "number of places, first come, first served: {places, time, timeout}",
          .rule = "none: grading takes no time"),
    FIELD("cluster.grader.places", "places of the grader", COUNT(1, 1000000000), "", "1",
          "batches, groups or responses that are graded at a time"),
    FIELD("cluster.grader.time", "grading time", DIST, "s", "none",
          "time of grading one of them. Required"),
    FIELD("cluster.grader.timeout", "grading time-out", POSITIVE, "s", "inf",
          "time after which grading is given up; it is then rejected", .rule = "none",
          .no_limit = true),
    FIELD("cluster.colocated", "colocated", SECTION, "", NULL,
          "samplers are on the learner's GPUs, which change between generation and training: when "
          "enough waits for an update generation stops where it is, and it continues after it: "
          "{to_training, to_generation, switch}",
          .rule = "none; preset verl_v1_colocate, agent_lightning: with its defaults"),
    FIELD("cluster.colocated.to_training", "switch to training", DIST, "s", "0",
          "time from the end of generation until an update starts (engines sleep, the optimiser "
          "is loaded)"),
    FIELD("cluster.colocated.to_generation", "switch to generation", DIST, "s", "0",
          "time from the end of an update, or of the evaluation that follows it, until generation "
          "continues (engines wake, weights are loaded)"),
    FIELD("cluster.colocated.switch", "rule of the switch", CHOICE("always", "idle"), "", "always",
          "the GPUs generate after every update (always), or only when too little waits for the "
          "next one (idle)"),
    FIELD("cluster.colocated.high", "threshold of training", REAL(1, 1e9), "updates", "1",
          "with `switch: idle`: the GPUs change to training when as much waits as so many updates "
          "take; at most ahead + 1"),
    FIELD("cluster.colocated.low", "threshold of generation", REAL(1, 1e9), "updates", "1",
          "with `switch: idle`: the GPUs change to generation after an update when less waits than "
          "so many updates take; at most `high`"),
    FIELD(
        "cluster.environment", "environment", SECTION, "", NULL,
        "responses have several turns of equal length; between two of them a tool or an "
        "environment is called, at a limited number of places that all samplers share, first "
        "come, first served: {turns, time, places, slot}. With `decoding` a response's keys and "
        "values stay in memory during a call (slot: held), or are computed again after it (freed)",
        .rule = "none: a response is one turn"),
    FIELD("cluster.environment.turns", "turns", DIST, "", "none",
          "number of turns of a response, rounded, at least 1; `lengths` counts the tokens of all "
          "of them. Required"),
    FIELD("cluster.environment.time", "time of a call", DIST, "s", "none",
          "time of a call of the environment between two turns. Required"),
    FIELD("cluster.environment.places", "places of the environment", COUNT(1, 1000000000), "", NULL,
          "calls that run at the same time; none: no limit", .rule = "none", .no_limit = true),
    FIELD("cluster.environment.slot", "slot during a call", CHOICE("held", "freed"), "", "held",
          "what happens to a response's decoding slot while the response waits for a place and "
          "during the "
          "call: it stays idle (held), or decodes another response, and after the call the first "
          "free "
          "slot takes this response before new ones (freed; without `ahead` and with too few "
          "places the number of responses under way then grows without limit)"),
    FIELD("cluster.weights_bytes", "size of weights", REAL(0, 1e18), "bytes", "0",
          "size of the weights that are sent to a sampler"),
    FIELD("cluster.rollout_bytes", "size of a batch", REAL(0, 1e18), "bytes", "0",
          "size of a batch, apart from `bytes_per_token`"),
    FIELD("cluster.samples_per_batch", "responses per batch", COUNT(1, 1000000000), "", NULL,
          "responses of a batch: as many lengths are sampled, and samples per second count them",
          .rule = "train.groups × train.group_size"),
    FIELD("cluster.up", "link up", SECTION, "", NULL,
          "the links from samplers to the learner. A link sends one message at a time and sends "
          "lost packets again in rounds"),
    LINK("up"),
    FIELD("cluster.down", "link down", SECTION, "", NULL,
          "the links from the learner to samplers, with the fields of `up`"),
    LINK("down"),
    FIELD(
        "cluster.network", "network", SECTION, "", NULL,
        "what samplers' messages share: {egress, ingress, relay, sites, interrupted, handshake, "
        "delta}. "
        "Without it nothing is "
        "shared: every sampler has its links `up` and `down`, whose bandwidth limits one transfer "
        "with it too",
        .rule = "none"),
    FIELD("cluster.network.egress", "egress", SECTION, "", NULL,
          "the learner's side of the network for weights, shared by all transfers to samplers"),
    FIELD("cluster.network.egress.bandwidth", "egress bandwidth", POSITIVE, "bytes/s", "inf",
          "of all transfers together; none: no limit", .rule = "none", .no_limit = true),
    FIELD(
        "cluster.network.egress.share", "sharing of the egress", CHOICE("fair", "queue"), "",
        "fair",
        "all transfers at once, each with its fair share of the bandwidth (fair: max-min, so that "
        "what one cannot use others do), or one after the other (queue)"),
    FIELD("cluster.network.ingress", "ingress", SECTION, "", NULL,
          "the learner's side of the network for batches, shared by all transfers from samplers"),
    FIELD("cluster.network.ingress.bandwidth", "ingress bandwidth", POSITIVE, "bytes/s", "inf",
          "of all transfers together; none: no limit", .rule = "none", .no_limit = true),
    FIELD("cluster.network.ingress.share", "sharing of the ingress", CHOICE("fair", "queue"), "",
          "fair", "fair or queue, as of the egress"),
    FIELD("cluster.network.relay", "relay", SECTION, "", NULL,
          "samplers that hand weights on to others, in shards, as SHARDCAST (2505.07291) does",
          .rule = "none"),
    FIELD("cluster.network.relay.kind", "relay", CHOICE("none", "tree"), "", "none",
          "none: the learner sends to every sampler; tree: the learner sends to `fanout` samplers, "
          "each of which sends on to `fanout` others, in the order of their numbers. A node sends "
          "one "
          "shard at a time, each as soon as it has it; a version when all of the one before has "
          "arrived below it. Needs sync: push and no crashes"),
    FIELD("cluster.network.relay.fanout", "fan-out of relays", COUNT(1, 1000000), "", "2",
          "samplers that each node sends to; 1: a chain"),
    FIELD("cluster.network.relay.shards", "shards", COUNT(1, 65536), "", "1",
          "equal parts that weights are cut into"),
    FIELD("cluster.network.relay.bandwidth", "bandwidth of relays", POSITIVE, "bytes/s", NULL,
          "of a sampler that sends on, besides its batches", .rule = "up.bandwidth"),
    FIELD("cluster.network.sites", "sites", LIST, "", NULL,
          "places, the learner's first: a list of {name, latency, bandwidth, loss, outages, mtbf, "
          "mttr}. Groups of samplers say where they are with `site`",
          .rule = "none: all is at one place"),
    FIELD("cluster.network.sites.name", "site's name", TEXT, "", NULL,
          "the name by which groups of samplers refer to the site. Required"),
    FIELD(
        "cluster.network.sites.latency", "latency between sites", NUMBER, "s", NULL,
        "one way, from this site to each site in their order (a row of the matrix), or one number "
        "for all others; added to `delay` and `data_delay`",
        .rule = "0"),
    FIELD("cluster.network.sites.bandwidth", "bandwidth between sites", NUMBER, "bytes/s", NULL,
          "from this site to each, or to all others, shared by all transfers of that direction; "
          "none: "
          "no limit",
          .rule = "none"),
    FIELD(
        "cluster.network.sites.loss", "loss between sites", NUMBER, "", NULL,
        "probability that a packet is lost from this site to each, or to all others, besides what "
        "`up` and `down` lose",
        .rule = "0"),
    FIELD("cluster.network.sites.outages", "outages of a site", LIST, "s", NULL,
          "times in which the site is cut off from all others: a list of pairs [from, to]",
          .rule = "none"),
    FIELD("cluster.network.sites.mtbf", "time to an outage", DIST, "s", "none",
          "time until the site is cut off again, sampled after each outage that was sampled"),
    FIELD("cluster.network.sites.mttr", "length of an outage", DIST, "s", "600",
          "time from such an outage to its end"),
    FIELD(
        "cluster.network.interrupted", "interrupted transfers", CHOICE("resumed", "lost"), "",
        "resumed",
        "what happens to transfers from or to a site when it is cut off: they continue after the "
        "outage (resumed), or batches are lost, pushed weights are sent again and a fetch ends "
        "without weights (lost). Transfers that have not begun wait, those whose last byte is sent "
        "arrive, and samplers continue to generate"),
    FIELD("cluster.network.handshake", "handshake", SECTION, "", NULL,
          "round trips before the bytes of a transfer flow"),
    FIELD("cluster.network.handshake.round_trips", "round trips of a handshake", COUNT(0, 1000), "",
          "0", "how many: TCP takes 1, with TLS 1.3 2, an HTTP request of its own 1 more"),
    FIELD("cluster.network.handshake.rtt", "round-trip time", REAL(0, 1e6), "s", "0",
          "time of a round trip of the handshake; 0 with `sites`: their latency there and back"),
    FIELD("cluster.network.delta", "weight deltas", SECTION, "", NULL,
          "weights as what changed since those before, sparse or quantised"),
    FIELD("cluster.network.delta.share", "size of a delta", REAL(0, 1), "", "1",
          "bytes of a delta, as a fraction of `weights_bytes`; 1: none are sent"),
    FIELD(
        "cluster.network.delta.full_every", "full transfers", INTEGER(0, INFINITY), "", "0",
        "every n-th transfer to a sampler has all weights, and so has one that follows a crash or "
        "a loss; 0: only these",
        .unless = {"cluster.network.delta.share", "1"}),
    FIELD("cluster.learner", "learner", SECTION, "", NULL,
          "the learner node: its speed, queue and pauses"),
    FIELD("cluster.learner.step", "step time", DIST, "s", "30", "time of an update"),
    FIELD("cluster.learner.batches", "batches per update", COUNT(1, 10000000), "", NULL,
          "batches trained in one update",
          .rule = "one of each sampler; presets heterorl, fifo and lifo: 1"),
    FIELD(
        "cluster.learner.tokens", "tokens per update", REAL(0, 1e15), "tokens", "0",
        "an update takes units until they hold so many tokens, instead of `batches`; 0: it counts "
        "batches"),
    FIELD("cluster.learner.queue", "queue",
          CHOICE("heterorl", "fifo", "lifo", "oldest_version", "version_order", "in_order"), "",
          NULL,
          "which waiting batch is trained next: heterorl, fifo, lifo or oldest_version; or "
          "none before those in work of older versions (version_order), or before all that were "
          "begun for earlier updates and this one (in_order)",
          PRESET(queue)),
    FIELD("cluster.learner.lookback", "lookback", COUNT(1, 1000000), "", "64",
          "how many of the newest batches the queue rule heterorl looks at"),
    FIELD("cluster.learner.reject", "rejected", REAL(0, FIELD_BELOW_1), "", "0",
          "probability that a batch, group or response is rejected when it reaches the learner, as "
          "groups of equal rewards are by filters: it was generated in vain, and others take its "
          "place"),
    FIELD("cluster.learner.quotas", "quotas", FLAG, "", "false",
          "every update takes from each of `sources` its part, in the order of arrival, and waits "
          "until all are there; more groups than that of a source wait. A sampler begins a group "
          "of the source of which least was begun, relative to its part; what is rejected or "
          "dropped is replaced by a group of the same source"),
    FIELD("cluster.learner.capacity", "queue capacity", COUNT(0, INFINITY), "", "0",
          "most units that wait; beyond it `evict` says which is dropped. 0: no limit"),
    FIELD("cluster.learner.evict", "eviction", CHOICE("oldest", "stalest", "newest"), "", "oldest",
          "what a full queue drops: what arrived first (oldest), what is of the oldest version "
          "(stalest), or what arrives (newest)",
          .unless = {"cluster.learner.capacity", "0"}),
    FIELD("cluster.learner.eval_every", "pause interval", INTEGER(1, INFINITY), "updates", "64",
          "learner updates between two pauses for evaluation"),
    FIELD("cluster.learner.eval_pause", "evaluation pause", DIST, "s", NULL, "time of such a pause",
          PRESET(eval_pause)),
    FIELD("cluster.learner.publish_every", "publishing interval", INTEGER(1, 1000000), "updates",
          NULL, "learner updates between two versions that samplers may get",
          PRESET(publish_every)),
    FIELD(
        "cluster.compare", "compare", SECTION, "", NULL,
        "what was measured of such a cluster: the staleness of updates (`histogram` or `trace`), "
        "for `ks_distance` and the figure of `gepolab sim --figures`; the seconds of updates, for "
        "`gepolab list published`; or both",
        .role = ROLE_PROVENANCE),
    FIELD("cluster.compare.seconds", "measured seconds", POSITIVE, "s", NULL,
          "time that `updates` updates took", .role = ROLE_PROVENANCE),
    FIELD("cluster.compare.updates", "measured updates", COUNT(1, 1000000), "updates", "1",
          "updates that took `seconds`", .role = ROLE_PROVENANCE,
          .unless = {"cluster.compare.seconds", NULL}),
    FIELD("cluster.compare.trace", "measured trace", TEXT, "", NULL,
          "a CSV file with the staleness of one update per line", .role = ROLE_PROVENANCE,
          .is_file = true),
    FIELD("cluster.compare.column", "measured column", TEXT, "", NULL,
          "the file's column; needed where it has several", .role = ROLE_PROVENANCE,
          .rule = "the only one"),
    FIELD("cluster.compare.histogram", "measured histogram", NUMBERS(0, 1e15), "", NULL,
          "how many updates had staleness 0, 1, 2, …", .role = ROLE_PROVENANCE),
    FIELD("cluster.compare.fitted", "fitted", FLAG, "", "false",
          "whether anything in the recipe was fitted to this measurement, which is then no "
          "prediction",
          .role = ROLE_PROVENANCE),
    FIELD("cluster.compare.name", "measured name", TEXT, "", NULL,
          "what the measurement is called in output and figures",
          .rule = "the column, the file or measured", .role = ROLE_PROVENANCE),
    FIELD("cluster.compare.source", "measured source", TEXT, "", NULL,
          "where the measurement comes from, shown with the distance", .role = ROLE_PROVENANCE),
};

FIELD_TABLE(sim_fields, entries);
