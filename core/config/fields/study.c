/* The fields of a study as a whole: its name, length, algorithm, sweep, tuning and checkpoints. */
#include "core/config/fields/tables.h"

static const field entries[] = {

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
    ENTRY(
        "contrasts", "contrasts", LIST, "", NULL,
        "comparisons declared before the runs, for `gepolab contrasts`: a list of {name, measure: "
        "fall | last, of: ARM, against: ARM}, an ARM being {algorithm: NAME, PATH: VALUE, …}",
        .role = ROLE_PROVENANCE),
    ENTRY("tune", "tune", SECTION, "", NULL,
          "before the grid is run, each algorithm's learning rate, or other fields, are chosen on "
          "other seeds",
          .role = ROLE_PROVENANCE),
    ENTRY("tune.lr", "tuned rates", LIST, "", NULL,
          "learning rates to try, each once; this or `fields` is required",
          .role = ROLE_PROVENANCE),
    ENTRY("tune.fields", "tuned fields", SECTION, "", NULL,
          "a map of dotted paths to lists of values to try, or to ranges; all their combinations "
          "are tried, with those of `lr`. At most eight fields",
          .role = ROLE_PROVENANCE),
    ENTRY("tune.halving", "successive halving", SECTION, "", NULL,
          "settings are tried in `rungs` of ever longer runs, and of each rung the best 1/`eta` go "
          "on to the next, whose runs are `eta` times as long; those of the last have `steps` "
          "updates",
          .role = ROLE_PROVENANCE),
    ENTRY("tune.halving.eta", "halving factor", NUMBER, "", NULL, "2 or more",
          .role = ROLE_PROVENANCE, .rule = "3"),
    ENTRY("tune.halving.rungs", "halving rungs", NUMBER, "", NULL, "2 or more",
          .role = ROLE_PROVENANCE, .rule = "3"),
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
};

const field_table fields_of_study = {entries, sizeof entries / sizeof *entries};
